#!/usr/bin/env bash
# A stranger on the same machine floods the server with 50 000 datagrams a second, of every kind one after another:
# garbage, Hellos with and without a cookie, status queries, commands, inputs of sessions that are none. A rig with a
# key, one without and one in lockstep keep control; their inputs arrive and do not age, no fault is latched.
source "$(dirname "$0")/../lib.sh"
export SOURCE
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
seconds=3

# run LINK RIG_FILE INPUTS_PER_SECOND: a rig beside the flood; its report in rig.json, the server's in serve.out
run() {
  serve "$2" --json || exit 1
  "$RIGSTEP" rig "$2" --port "$port" --rate "$3" --duration "$((seconds + 1))" --json >rig.json 2>rig.err </dev/null &
  local rig=$!
  sleep 0.7
  "$python" "$SOURCE/tests/end_to_end/attacks/flood.py" --port "$port" --seconds "$seconds" >flood.json
  wait "$rig" || fail "$1: the rig ended with $?: $(cat rig.err)"
  end_server TERM
  [[ $code -eq 0 ]] || fail "$1: serve ended with $code: $(cat serve.err)"
  assert_json rig.json 'd["end"] == "duration over" and d["reconnects"] == 0'
  assert_json serve.out 'not d["fault"] and d["faults"] == 0'
  "$python" - "$1" <<'END' || fail "$1: inputs were lost or aged"
import json, sys
rig, server, flood = (json.load(open(name)) for name in ("rig.json", "serve.out", "flood.json"))
used = rig["round_trip_us"]["count"] / rig["inputs_sent"]
ages = server["input_age_steps"]
read = server["link"]["received"] - rig["inputs_sent"] - rig["asked_again"]
print(f"{sys.argv[1]}: flood of {flood['rate']:.0f} a second; {100 * used:.1f} % of {rig['inputs_sent']} inputs used,",
      f"{rig['asked_again']} asked again; age of inputs p50 {ages['p50']:.0f} p99 {ages['p99']:.0f} steps; of the flood",
      f"{read} read, {server['link']['queue_overflows']} left to the kernel")
assert flood["rate"] > 15000, "too slow a flood to show anything"
assert used > 0.97
assert rig["asked_again"] < 0.02 * rig["inputs_sent"]
assert ages["p50"] <= 5
assert read < 7000 * (flood["seconds"] + 1), "strangers take more than their share"
END
}

mechanisms="s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^recording.*//; /^black_box/d"
stale="s/^stale_input.*/stale_input { max_age_steps: 1000 rule: FAULT }/"
sed "$mechanisms; $stale; s/^link {/link { key_file: \"bench.key\"/" "$SOURCE/config/rigs/ci_loopback.textproto" >keyed.textproto
sed "$mechanisms; $stale" "$SOURCE/config/rigs/ci_loopback.textproto" >unkeyed.textproto
sed "$mechanisms" "$SOURCE/config/rigs/lockstep.textproto" >lockstep.textproto
run "with a key" keyed.textproto 200
run "without a key" unkeyed.textproto 200
run "lockstep" lockstep.textproto 1000
finish
