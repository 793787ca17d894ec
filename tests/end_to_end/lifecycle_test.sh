#!/usr/bin/env bash
# A run that waits for its rig, holds, steps, is set back, and replays; who may ask for it, and what is refused.
source "$(dirname "$0")/lib.sh"
crank=$SOURCE/config/mechanisms/driven_crank.textproto four_bar=$SOURCE/config/mechanisms/four_bar.textproto
printf 'mechanism: "%s"\nlink { port: 47001 }\nrecording { full_state_every: 200 }\n' "$crank" >crank.textproto
printf 'mechanism: "%s"\nlink { port: 47001 }\nlifecycle { start: HELD control_lost: HOLD soft_start_steps: 200 }\n' \
  "$four_bar" >held.textproto
printf 'mechanism: "%s"\nlink { port: 47001 }\nlifecycle { control_lost: FAULT }\n' "$four_bar" >strict.textproto
printf 'mechanism: "%s"\nlink { port: 47001 }\nrealtime { pace: RIG }\n' "$four_bar" >lockstep.textproto
printf 'mechanism: "%s"\nlink { port: 47001 }\nlifecycle { start: SOON }\n' "$four_bar" >wrong.textproto

# state STATE [STEP]: of the server
state() {
  expect 0 "$RIGSTEP" status "127.0.0.1:$port" --json
  assert_json out "d['state'] == '$1'" || fail "the state is not $1"
  [[ -z ${2:-} ]] || assert_json out "d['step'] == $2"
}
step_now() { "$RIGSTEP" status "127.0.0.1:$port" --json | "$python" -c 'import json,sys; print(json.load(sys.stdin)["step"])'; }
# waits for step STEP, ten seconds at most
until_step() {
  for _ in $(seq 100); do
    [[ $(step_now) -ge $1 ]] && return
    sleep 0.1
  done
  fail "the server does not reach step $1"
}
ask() { expect 0 "$RIGSTEP" "$@" --json; }

# --- it waits: no step before a rig has control, and the state goes out all the same
serve crank.textproto --record run.mcap || exit 1
at=127.0.0.1:$port
sleep 0.5
state ready 0
expect 0 "$RIGSTEP" rig --port "$port" --observe --duration 0.3 --json
assert_json out 'd["states"] > 10'
state ready 0
expect 5 "$RIGSTEP" hold "$at" && says err 'the run is ready, and hold is not possible then\. Possible: run, step, snapshot, reset to snapshot'
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.4
state running
expect 5 "$RIGSTEP" reset "$at" --to start && says err 'the run is running, and reset to start is not possible then'
expect 2 "$RIGSTEP" reset "$at" --to yesterday
expect 2 "$RIGSTEP" step "$at" --steps 0

# --- hold, single steps, snapshot, resets
ask hold "$at" && assert_json out 'd["state"] == "holding"'
sleep 0.3
held=$(step_now)
sleep 0.2
state holding "$held"
ask step "$at" --steps 10
sleep 0.3
state holding "$((held + 10))"
ask snapshot "$at"
ask run "$at" && assert_json out 'd["state"] == "running"'
sleep 0.4
ask hold "$at"
ask reset "$at" --to start && assert_json out 'd["state"] == "ready"'
began_anew=$(step_now)
ask run "$at"
until_step $((began_anew + 200)) # so many are compared below
ask hold "$at"
ask reset "$at" --to snapshot && assert_json out 'd["state"] == "holding"'
ask run "$at"
sleep 0.3
end_server TERM
says serve.err 'ready: time stands at the start' && says serve.err 'hold was asked for by' && says serve.err 'reset to start was asked for by'
expect 0 "$RIGSTEP" replay run.mcap && says out '^bit-exact over '
expect 0 "$RIGSTEP" info run.mcap
for event in 'control gained' hold step 'steps done' snapshot run 'reset to start' 'reset to snapshot'; do
  says out "^event .*: $event\$"
done
# after the reset to the start the crank turns as it did at first
expect 0 "$RIGSTEP" export run.mcap --output run.csv
"$python" - <<'EOF' || fail "the crank does not begin anew after the reset"
import subprocess, json, os
rows = [line.split(",") for line in open("run.csv") if line[0].isdigit()]
info = json.loads(subprocess.run([os.environ["RIGSTEP"], "info", "run.mcap", "--json"], capture_output=True).stdout)
reset = next(e["step"] for e in info["events"] if e["event"] == "reset to start")
first = {int(round(float(r[0]) * 1000)): r[1:] for r in rows}
same = [first[k] == first[reset + k] for k in range(1, 200)]
assert all(same), same.index(False)
EOF
# a piece that begins after the reset replays; a variant ends at the reset
expect 0 "$RIGSTEP" cut run.mcap --from "$("$python" -c "print(float('$(tail -n 1 run.csv | cut -d, -f1)') - 0.1)")" --output piece.mcap
expect 0 "$RIGSTEP" replay piece.mcap && says out '^bit-exact over '
expect 0 "$RIGSTEP" replay run.mcap --mechanism "$crank" --output variant.mcap && says out '^states are equal, bit for bit$'

# --- held at the start, inputs faded in, and time stands when the rig leaves
serve held.textproto --record held.mcap || exit 1
at=127.0.0.1:$port
"$RIGSTEP" rig --port "$port" --duration 3 --drive drive=step:4 >rig.out 2>&1 &
rig=$!
sleep 0.4
state ready 0
ask run "$at"
wait "$rig"
sleep 0.3
state holding
stood=$(step_now)
sleep 0.3
state holding "$stood"
ask run "$at"
sleep 0.2
end_server TERM
expect 0 "$RIGSTEP" replay held.mcap
expect 0 "$RIGSTEP" export held.mcap --channel drive --output held.csv
"$python" - <<'EOF' || fail "inputs were not faded in"
drive = [float(line.split(",")[1]) for line in open("held.csv") if line[0].isdigit()]
assert drive[:200] == sorted(drive[:200]) and 0 < drive[0] < 0.1 and abs(drive[99] - 2) < 0.2 and drive[250] == 4, drive[:5]
EOF

# --- a rig that leaves is a fault; set back, it is ready
serve strict.textproto || exit 1
at=127.0.0.1:$port
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.3
sleep 0.2
expect 1 "$RIGSTEP" status "$at" --json && assert_json out '"control_lost" in d["fault"] and d["state"] == "faulted"'
ask reset "$at" --to start && assert_json out 'd["state"] == "ready" and d["fault"] == ""'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code after the fault was reset"

# --- in lockstep: asked for a step while it holds, it answers with the state that stands
serve lockstep.textproto --record lockstep.mcap || exit 1
at=127.0.0.1:$port
"$RIGSTEP" rig --port "$port" --duration 2 --rate 500 --json >rig.out 2>rig.err &
rig=$!
sleep 0.5
ask hold "$at"
stood=$(step_now)
sleep 0.3
state holding "$stood"
ask run "$at"
sleep 0.4
state running
[[ $(step_now) -gt $stood ]] || fail "the run did not go on"
wait "$rig" || fail "the rig in lockstep ended with $?: $(cat rig.err)"
end_server TERM
expect 0 "$RIGSTEP" replay lockstep.mcap

# --- a rig file that names no such start
expect 2 "$RIGSTEP" serve wrong.textproto && says err 'SOON' && says err 'WHEN_CONTROLLED'
finish
