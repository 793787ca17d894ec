#!/usr/bin/env bash
# A recorded run at 1 kHz through a bad network and beside attackers of all kinds: a flood of 10 000 datagrams a second in
# turn of garbage, Hellos, Hellos with cookies, status queries, commands and inputs; everything that the rig sends, sent
# again by somebody else; rigs and operators with another key who ask for control, a reset and black boxes without end.
# No crash, no growth, control kept, a whole recording, a replay bit for bit. A few seconds as a test; with
# SOAK_SECONDS=1800 half an hour.
source "$(dirname "$0")/lib.sh"
seconds=${SOAK_SECONDS:-6}
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^link {/link { key_file: \"bench.key\"/" \
  "$SOURCE/config/rigs/ci_loopback.textproto" >rig.textproto
"$RIGSTEP" keygen bench.key 2>/dev/null && "$RIGSTEP" keygen other.key 2>/dev/null || exit 1
serve rig.textproto --record soak.mcap --json || exit 1

"$RIGSTEP" impair "127.0.0.1:$port" --seed 7 --delay 0.3 --jitter 0.5 --loss 0.01 --reorder 0.01 --duplicate 0.01 \
  >impair.json 2>impair.err </dev/null &
proxy=$!
proxy_port=
for _ in $(seq 50); do
  proxy_port=$(sed -nE 's/.*listening on [^ ]*:([0-9]+),.*/\1/p' impair.err)
  [[ -n $proxy_port ]] && break
  sleep 0.1
done

"$python" "$SOURCE/tests/end_to_end/attacks/repeat.py" --to "$proxy_port" --server "$port" >repeat.json 2>repeat.err &
repeater=$!
repeat_port=
for _ in $(seq 50); do
  repeat_port=$(sed -nE 's/.*listening on ([0-9]+).*/\1/p' repeat.err)
  [[ -n $repeat_port ]] && break
  sleep 0.1
done

SOURCE=$SOURCE "$python" "$SOURCE/tests/end_to_end/attacks/flood.py" --port "$port" --rate 10000 \
  --seconds "$((seconds + 2))" >hostile.json </dev/null &
hostile=$!
ask_without_end() {
  while kill -0 "$hostile" 2>/dev/null; do
    timeout 5 "$RIGSTEP" "$@"
    echo "exit status $?"
    sleep 0.5
  done >>others.out 2>&1 </dev/null
}
ask_without_end blackbox "127.0.0.1:$port" --key other.key &
others=($!)
ask_without_end reset "127.0.0.1:$port" --key other.key &
others+=($!)
ask_without_end rig --port "$port" --key other.key --duration 1 &
others+=($!)

memory() { awk '/VmRSS/ {print $2}' "/proc/$server/status"; }
"$RIGSTEP" rig rig.textproto --port "$repeat_port" --drive drive=sine:2,0.5 --duration "$seconds" --json \
  >rig.json 2>rig.err </dev/null &
rig_process=$!
sleep "$("$python" -c "print(min(60, $seconds / 3))")"
before=$(memory)
wait "$rig_process" || fail "the rig ended with $?: $(cat rig.err)"
after=$(memory)
wait "$hostile" || fail "the flood ended with $?"
wait "${others[@]}"
grep -q 'exit status' others.out || fail "nobody else asked"
! grep 'exit status' others.out | grep -qv 'status [5]$\|status 124$' || fail "somebody with another key was let in: $(sort others.out | uniq -c)"
kill -TERM "$repeater" && wait "$repeater" || fail "the repeater ended with $?: $(cat repeat.err)"
[[ $((after - before)) -lt 256 ]] || fail "the server grew from $before to $after KiB"
kill -TERM "$proxy" && wait "$proxy" || fail "the proxy ended with $?: $(cat impair.err)"
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"

assert_json hostile.json "d['sent'] > 1000 * $seconds"
assert_json repeat.json "d['repeated'] > 100 * $seconds"
assert_json rig.json "d['end'] == 'duration over' and d['states'] > 0.5 * 1000 * $seconds" # others load the machine, too
to_server=$("$python" -c 'import json; print(json.load(open("impair.json"))["to_server"]["sent"])')
# beside the rig's own datagrams only Hellos of strangers, who get a challenge, at most 500 a second
assert_json serve.out "0 < d['link']['accepted'] <= $to_server + 500 * ($seconds + 10)"
assert_json serve.out "d['link']['received'] == d['link']['accepted'] + sum(d['link']['dropped'].values())"
assert_json serve.out "d['lost_records'] == 0 and d['recorded_steps'] == d['steps'] and not d['fault']"
"$RIGSTEP" replay soak.mcap >out 2>err </dev/null || fail "the replay ended with $?"
echo "memory $before to $after KiB; flood $(cat hostile.json); repeated $(cat repeat.json); $to_server from the proxy"
"$python" -c 'import json; d = json.load(open("serve.out")); print(d["steps"], "steps,", d["missed_deadlines"], "missed, link", d["link"])'
finish
