#!/usr/bin/env bash
# Keys change while the server runs: a participant who is removed is out at once, a new one comes in, the others notice
# nothing; a file that cannot be used changes nothing and is told.
source "$(dirname "$0")/../lib.sh"
for participant in "bench controller" "screen observer" "desk operator"; do
  # shellcheck disable=SC2086
  set -- $participant
  "$RIGSTEP" keygen rig.keys --participant "$1" --role "$2" 2>/dev/null || exit 1
done
printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000' 'link { key_file: "rig.keys" }' \
  'stale_input { rule: HOLD fault_after_steps: 0 }' >rig.textproto
logs() {
  for _ in $(seq 40); do grep -Eq -- "$1" serve.err && return 0 || sleep 0.1; done
  fail "\"$1\" is not in the log of the server: $(cat serve.err)"
}
serve rig.textproto || exit 1
"$RIGSTEP" rig --port "$port" --key screen.key --observe --duration 0 --json >screen.json 2>screen.err </dev/null &
screen=$!
"$RIGSTEP" rig --port "$port" --key bench.key --duration 20 --json >bench.json 2>bench.err </dev/null &
bench=$!
logs 'rig ".*" .* connected'

cp -p rig.keys good.keys
echo 'bench controller' >>rig.keys
logs 'keys: those known before stay, key file .*rig\.keys:[0-9]+: is not a name, a role'
chmod 644 rig.keys
logs 'keys: those known before stay, .*others than its owner may use it: chmod 600'
kill -0 "$bench" || fail "a broken file has ended a session: $(cat bench.err)"
cp -p good.keys rig.keys
logs 'keys: read again, 3 participants'
expect 0 "$RIGSTEP" keygen rig.keys --remove bench
logs 'rig ".*" .* ended: its key was removed'
wait "$bench"
assert_json bench.json 'd["end"] == "server stopped" and d["states"] > 50'
expect 5 "$RIGSTEP" rig --port "$port" --key bench.key --duration 0.2 && says err 'does not know this one'
expect 0 "$RIGSTEP" keygen rig.keys --participant bench2 --role controller
logs 'keys: read again, 3 participants.*'
expect 0 "$RIGSTEP" rig --port "$port" --key bench2.key --duration 0.3 --json && assert_json out 'd["states"] > 20'
kill -TERM "$screen"
wait "$screen" || fail "the observer ended with $?: $(cat screen.err)"
assert_json screen.json 'd["reconnects"] == 0 and d["states"] > 200'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
finish
