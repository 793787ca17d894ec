#!/usr/bin/env bash
# A stranger on the same machine floods the server with 50 000 datagrams a second, of every kind one after another:
# garbage, Hellos with and without a cookie, status queries, commands, inputs of sessions that are none. A rig with a
# key, one without and one in lockstep keep control and every input arrives; strangers take their share of the server's time and no more; no fault is latched.
source "$(dirname "$0")/../lib.sh"
export SOURCE
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
seconds=2

# rig_beside LINK RIG_FILE RATE KINDS: a rig beside a flood of these kinds; its report in rig.json, the server's in serve.out
rig_beside() {
  serve "$2" --json || exit 1
  "$RIGSTEP" rig "$2" --port "$port" --rate "$3" --duration 0 --json >rig.json 2>rig.err </dev/null &
  local rig=$!
  sleep 0.7
  "$python" "$SOURCE/tests/end_to_end/attacks/flood.py" --port "$port" --seconds "$seconds" --kinds "$4" >flood.json
  kill -TERM "$rig"
  wait "$rig" || fail "$1: the rig ended with $?: $(cat rig.err)"
  end_server TERM
  [[ $code -eq 0 ]] || fail "$1: serve ended with $code: $(cat serve.err)"
  assert_json rig.json 'd["end"] == "stopped" and d["reconnects"] == 0'
  assert_json serve.out 'not d["fault"] and d["faults"] == 0'
  "$python" - "$1" "$4" <<'END' || fail "$1: the flood was felt"
import json, sys
rig, server, flood = (json.load(open(name)) for name in ("rig.json", "serve.out", "flood.json"))
link, ages = server["link"], server["input_age_steps"]
strangers = link["received"] - min(link["accepted"], rig["inputs_sent"])
print(f"{sys.argv[1]}: flood of {flood['rate']:.0f} a second; {rig['inputs_sent']} inputs sent, {link['accepted']} datagrams",
      f"accepted; age of inputs p50 {ages['p50']:.0f} p99 {ages['p99']:.0f} steps; of the flood {strangers} read,",
      f"{link['queue_overflows']} left to the kernel")
# what strangers may take of the thread: 10 000 a second, and no more
assert strangers < 10500 * (flood["seconds"] + 0.5), "strangers take more than their share"
if flood["rate"] < 12000:
    print("    this machine is too busy for a flood that takes more than that")
# every input arrives; what the rig has in the air at the end may be missing
assert link["accepted"] >= rig["inputs_sent"] - 5, "inputs were lost"
END
}

# none of them is accepted, so that what is accepted is the rig's
refused=garbage,cookie,input
mechanisms="s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^recording.*//; /^black_box/d"
stale="s/^stale_input.*/stale_input { max_age_steps: 1000 rule: FAULT }/"
sed "$mechanisms; $stale; s/^link {/link { key_file: \"bench.key\"/" "$SOURCE/config/rigs/ci_loopback.textproto" >keyed.textproto
sed "$mechanisms; $stale" "$SOURCE/config/rigs/ci_loopback.textproto" >unkeyed.textproto
sed "$mechanisms" "$SOURCE/config/rigs/lockstep.textproto" >lockstep.textproto
rig_beside "with a key" keyed.textproto 200 "$refused"
rig_beside "without a key" unkeyed.textproto 200 "$refused"
rig_beside "without a key, requests" unkeyed.textproto 200 hello,status,command
rig_beside "in lockstep" lockstep.textproto 1000 "$refused"
finish
