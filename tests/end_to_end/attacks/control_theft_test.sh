#!/usr/bin/env bash
# Control of a link without keys, wanted by another user of the machine: he reads the rig's name from the status and says
# Hello under it while the rig is silent. He is refused; the rig's own user takes the place again with the secret of the
# session; the rig that has lost its place is told, and does not take it back.
source "$(dirname "$0")/../lib.sh"
printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000' >rig.textproto
mkdir -m 700 mine other
as_other() { XDG_RUNTIME_DIR=$PWD/other "$@"; }
controller() { "$RIGSTEP" status "127.0.0.1:$port" --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["controller"]["address"])'; }
ends() { grep -q "\"end\": \"$2\"" "$1" || fail "$1 does not end with \"$2\": $(grep '"end"' "$1")"; }

serve rig.textproto || exit 1
XDG_RUNTIME_DIR=$PWD/mine "$RIGSTEP" rig --port "$port" --name "bench 7" --rate 50 --duration 0 --json >rig.json 2>rig.err </dev/null &
rig=$!
sleep 0.7
address=$(controller)
name=$("$RIGSTEP" status "127.0.0.1:$port" --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["controller"]["rig_name"])')
[[ $name == "bench 7" ]] || fail "the status does not name the rig but \"$name\""

# a tenth of the time-out is 0.2 s, the time-out 2 s
kill -STOP "$rig"
sleep 0.4
as_other expect 124 timeout 1 "$RIGSTEP" rig --port "$port" --name "$name" --duration 0.2
[[ $(controller) == "$address" ]] || fail "control was stolen"
kill -CONT "$rig"
sleep 0.2
as_other expect 5 timeout 5 "$RIGSTEP" rig --port "$port" --name "$name" --duration 0.2 &&
  says err 'refuses this rig: the rig "bench 7" at .* is in control'
[[ $(controller) == "$address" ]] || fail "control was stolen"

# the same user, after the rig was suspended
kill -STOP "$rig"
sleep 0.4
XDG_RUNTIME_DIR=$PWD/mine "$RIGSTEP" rig --port "$port" --name "bench 7" --duration 3 --json >again.json 2>again.err </dev/null &
again=$!
for _ in $(seq 15); do
  [[ $(controller) != "$address" ]] && break
  sleep 0.1
done
[[ $(controller) != "$address" ]] || fail "the rig's own user was refused: $(cat again.err)"
address=$(controller)
kill -CONT "$rig"
wait "$rig"
[[ $? -eq 5 ]] || fail "the displaced rig ended with $?"
ends rig.json "another rig took its place"
[[ $(controller) == "$address" ]] || fail "the displaced rig has taken its place back"
wait "$again" || fail "the rig that took the place ended with $?: $(cat again.err)"
ends again.json "duration over"
for folder in mine other; do
  [[ -z $(find $folder -type f ! -name 'operator-*' 2>/dev/null) ]] || fail "secrets of ended sessions are left: $(find $folder -type f)"
done
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
finish
