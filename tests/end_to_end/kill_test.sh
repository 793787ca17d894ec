#!/usr/bin/env bash
# A server that is killed leaves a recording that replays up to the tear, and not much is missing.
source "$(dirname "$0")/lib.sh"
rig=$SOURCE/config/rigs/ci_loopback.textproto

serve "$rig" --record killed.mcap || exit 1
"$RIGSTEP" rig --port "$port" --duration 0 --drive drive=sine:2,1 --json >rig.json 2>rig.err &
rig_process=$!
trap 'kill -KILL $rig_process 2>/dev/null; stop_server' EXIT
sleep 2
end_server KILL
wait "$rig_process"
[[ $? -eq 5 ]] || fail "the rig did not say that the server is silent: $(cat rig.json rig.err)"
assert_json rig.json 'd["end"] == "server silent" and d["states"] > 500'

expect 7 "$RIGSTEP" replay killed.mcap && says out '^bit-exact over [0-9]+ steps' && says out '^damaged at byte [0-9]+'
expect 7 "$RIGSTEP" replay killed.mcap --json
cp out replay.json
assert_json replay.json 'd["verdict"] == "bit_exact" and d["damage"] and not d["reason"] and not d["not_recorded"]'
# the rig came after the first steps, so the last step was at least what it has seen; replay_test knows it exactly
seen=$("$python" -c 'import json; d = json.load(open("rig.json")); print(d["states"] + d["lost"])')
assert_json replay.json "d['steps'] + 200 >= $seen"

# the next run leaves the torn file alone and writes one of its own
before=$(cksum <killed.mcap)
serve "$rig" --record killed.mcap || exit 1
sleep 0.3
end_server TERM
[[ $(cksum <killed.mcap) == "$before" ]] || fail "the torn recording was overwritten"
expect 0 "$RIGSTEP" replay killed.[0-9]*.mcap
finish
