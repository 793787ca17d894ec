#!/usr/bin/env bash
# A rig in another language, from nothing but proto/wire.proto.
source "$(dirname "$0")/lib.sh"
"$python" -c 'import google.protobuf' || { echo "$python has no google.protobuf: install python3-protobuf"; exit 1; }
protoc --python_out=. -I "$SOURCE" proto/wire.proto || exit 1

serve "$SOURCE/config/rigs/ci_loopback.textproto" --record python.mcap --json || exit 1
PYTHONPATH=. expect 0 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 3
cp out rig.json
# a shared machine may be busy: most of 3000, not all
assert_json rig.json 'd["states"] > 1500 and d["lost"] < 0.2 * d["states"]'
assert_json rig.json 'd["inputs"] == ["drive"] and 0 < d["rtt_p50_us"] < 20000'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
assert_json serve.out 'd["link"]["accepted"] > 1500 and not any(d["link"]["dropped"].values())'
grep -q 'rig "rig.py" (version rig.py) at .* connected' serve.err || fail "the rig is not in the log: $(cat serve.err)"
grep -q 'rig "rig.py" .* left' serve.err || fail "the rig's goodbye is not in the log: $(cat serve.err)"
expect 0 "$RIGSTEP" replay python.mcap

# nobody there: an error that helps, no stack trace
PYTHONPATH=. expect 1 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 1 &&
  says err 'is `rigstep serve` running there'
finish
