#!/usr/bin/env bash
# The reference implementation of MCAP opens our recordings, whole and torn.
source "$(dirname "$0")/lib.sh"
cp "$SOURCE"/tests/end_to_end/mcap/{package.json,package-lock.json,read_recording.mjs} . || exit 1
"$python" "$SOURCE/server/page/fetch_packages.py" . || exit

rig=$SOURCE/config/rigs/ci_loopback.textproto
serve "$rig" --record whole.mcap --json || exit 1
sleep 1.5
end_server TERM
expect 0 node read_recording.mjs whole.mcap
cp out whole.json
steps=$("$python" -c 'import json; print(json.load(open("serve.out"))["steps"])')
assert_json whole.json "d['indexed'] and d['topics']['/steps'] == $steps > 1000 and d['topics']['/states'] >= 1"

serve "$rig" --record torn.mcap || exit 1
sleep 1.5
end_server KILL
expect 0 node read_recording.mjs torn.mcap --torn
cp out torn.json
assert_json torn.json '"/footer" not in d["topics"] and d["topics"]["/steps"] > 1000'
# our reader gets as much out of it
expect 7 "$RIGSTEP" replay torn.mcap --json
assert_json out "d['steps'] == $("$python" -c 'import json; print(json.load(open("torn.json"))["topics"]["/steps"])')"

expect 0 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/chain_8.textproto" --duration 0.5 --output simulated.mcap
expect 0 node read_recording.mjs simulated.mcap
assert_json out 'd["topics"] == {"/header": 1, "/outputs": 500, "/steps": 500, "/states": 500, "/bodies": 500, "/footer": 1}'

# whoever knows nothing of Rigstep has outputs and bodies by name, from the schemas in the file alone
four_bar=$SOURCE/config/mechanisms/four_bar.textproto
expect 0 "$RIGSTEP" simulate "$four_bar" --duration 0.5 --output by_name.mcap
expect 0 "$RIGSTEP" simulate "$four_bar" --duration 0.5 --output by_name.csv
expect 0 node read_recording.mjs by_name.mcap --last
cp out last.json
"$python" "$SOURCE/tests/end_to_end/mcap/check_names.py" last.json by_name.csv >out 2>err || fail "names or values differ"
finish
