#!/usr/bin/env bash
# What a rig leaves behind that goes away with its torque on, and a loop that is held up: without a word about it in the
# rig file the torque goes to its safe value, then the run is faulted. Only what is written so goes on for ever.
source "$(dirname "$0")/../lib.sh"
# rig_file NAME LINES...: the four-bar at 1 kHz
rig_file() {
  local name=$1
  shift
  printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'lifecycle { start: AT_ONCE }' "$@" >"$name"
}
# state_after SECONDS WANTED: what the status says then
state_after() {
  sleep "$1"
  "$RIGSTEP" status "127.0.0.1:$port" --json >out 2>err </dev/null
  assert_json out "d['state'] == '$2'"
}

# --- the default, after a Goodbye and after a kill
rig_file default.textproto "$no_limit"
for ending in TERM KILL; do
  serve default.textproto --record "$ending.mcap" || exit 1
  "$RIGSTEP" rig --port "$port" --drive drive=step:2 --duration 0 >rig.out 2>&1 </dev/null &
  rig=$!
  sleep 0.5
  kill "-$ending" "$rig"
  { wait "$rig"; } 2>/dev/null
  state_after 0.5 running
  state_after 2.5 faulted
  end_server TERM
  [[ $code -eq 1 ]] || fail "serve ended with $code after its rig had gone (SIG$ending): $(cat serve.err)"
  grep -q 'stepping stopped: no inputs for too long' serve.err || fail "the log does not tell the fault: $(cat serve.err)"
  expect 0 "$RIGSTEP" replay "$ending.mcap" && says out 'faulted after step [0-9]+: no inputs' && says out '^bit-exact'
done

# --- for ever, where the file says so in two words
rig_file hold.textproto "$no_limit" 'stale_input { rule: HOLD fault_after_steps: 0 }'
serve hold.textproto || exit 1
expect 0 "$RIGSTEP" rig --port "$port" --drive drive=step:2 --duration 0.2
state_after 2.6 running
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code though its file says HOLD for ever: $(cat serve.err)"

# --- a loop that is held up for longer than its file allows has nothing to do with the time on the wall
rig_file misses.textproto 'realtime { deadline_misses_until_fault { consecutive: 400 } }'
serve misses.textproto --record misses.mcap || exit 1
sleep 0.3
kill -STOP "$server"
sleep 0.8
kill -CONT "$server"
state_after 0.3 faulted
says out 'too many deadlines were missed \(realtime\.deadline_misses_until_fault\)'
end_server TERM
[[ $code -eq 1 ]] || fail "serve ended with $code after too many misses: $(cat serve.err)"
expect 0 "$RIGSTEP" replay misses.mcap && says out 'faulted after step [0-9]+: too many deadlines' && says out '^bit-exact'

# --- a link without a key is told at each start
rig_file open.textproto 'link { address: "127.0.0.1" allow_unauthenticated: true }'
for _ in 1 2; do
  expect 0 "$RIGSTEP" serve open.textproto --port 0 --duration 0.1 &&
    says err 'warning.* open\.textproto:[0-9]+: link\.allow_unauthenticated: whoever reaches 127\.0\.0\.1 may steer'
done
finish
