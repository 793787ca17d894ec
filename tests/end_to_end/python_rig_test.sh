#!/usr/bin/env bash
# A rig in another language, from nothing but proto/wire.proto and proto/README.md.
source "$(dirname "$0")/lib.sh"
"$python" -c 'import google.protobuf' || { echo "$python has no google.protobuf: install python3-protobuf"; exit 1; }
protoc --python_out=. -I "$SOURCE" proto/wire.proto || exit 1

# the key schedule and the datagrams are those of the protocol's page
PYTHONPATH=. expect 0 "$python" "$SOURCE/tests/end_to_end/handshake_vectors.py" "$SOURCE/proto/README.md"

serve "$SOURCE/config/rigs/ci_loopback.textproto" --record python.mcap --json || exit 1
PYTHONPATH=. expect 0 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 3
cp out rig.json
# a shared machine may be busy: most of 3000, not all
assert_json rig.json 'd["states"] > 1500 and d["lost"] < 0.2 * d["states"]'
assert_json rig.json 'd["inputs"] == ["drive"] and 0 < d["rtt_p50_us"] < 20000'
# one machine, one clock: the estimate has to contain zero
assert_json rig.json 'abs(d["clock"]["offset_us"]) <= d["clock"]["uncertainty_us"] < 10000'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
assert_json serve.out 'd["link"]["accepted"] > 1500 and not any(d["link"]["dropped"].values())'
grep -q 'rig "rig.py" (version rig.py) at .* connected' serve.err || fail "the rig is not in the log: $(cat serve.err)"
grep -q 'rig "rig.py" .* left' serve.err || fail "the rig's goodbye is not in the log: $(cat serve.err)"
expect 0 "$RIGSTEP" replay python.mcap

# in lockstep, without being told to
serve "$SOURCE/config/rigs/lockstep.textproto" --record lockstep.mcap --json || exit 1
PYTHONPATH=. expect 0 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 1
cp out rig.json
assert_json rig.json 'd["states"] > 200 and d["lost"] == 0'
end_server TERM
assert_json serve.out 'd["steps"] > 200 and d["link"]["dropped"]["sequence"] == 0'
expect 0 "$RIGSTEP" replay lockstep.mcap && says out '^bit-exact'

# the same with a key; without it a refusal that says so
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^link {/link { key_file: \"bench.key\"/" \
  "$SOURCE/config/rigs/ci_loopback.textproto" >keyed.textproto
serve keyed.textproto --record keyed.mcap || exit 1
PYTHONPATH=. expect 0 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 1 --key bench.key
PYTHONPATH=. expect 1 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 1 &&
  says err 'refused: this server takes rigs only with a key that it knows'
end_server TERM

# nobody there: an error that helps, no stack trace
PYTHONPATH=. expect 1 "$python" "$SOURCE/tests/end_to_end/rig.py" --port "$port" --seconds 1 &&
  says err 'is `rigstep serve` running there'
finish
