#!/usr/bin/env bash
# A recorded run at 1 kHz through a bad network and beside a hostile sender of 10 000 datagrams a second: no crash, no
# growth, nothing accepted but the rig's own datagrams, a whole recording, a replay bit for bit. A few seconds as a test;
# with SOAK_SECONDS=1800 half an hour.
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

# noise of all sizes, and frames as they should be but for their key
"$python" - "$port" "$seconds" >hostile.txt <<'END_PYTHON' &
import os, random, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", int(sys.argv[1])))
random.seed(3)
noise = [b"RS\x02r" + os.urandom(n) for n in (0, 20, 40, 60, 100, 300, 1196, 1400)] + [os.urandom(n) for n in (1, 64, 500)]
sent, begin = 0, time.monotonic()
while time.monotonic() - begin < float(sys.argv[2]) + 2:
    while sent < 10000 * (time.monotonic() - begin):
        try:
            s.send(random.choice(noise))
        except ConnectionRefusedError:
            pass
        sent += 1
    time.sleep(0.001)
print(sent)
END_PYTHON
hostile=$!
"$RIGSTEP" rig --port "$port" --key other.key --duration "$seconds" >/dev/null 2>other.err </dev/null &
other=$!

memory() { awk '/VmRSS/ {print $2}' "/proc/$server/status"; }
"$RIGSTEP" rig rig.textproto --port "$proxy_port" --drive drive=sine:2,0.5 --duration "$seconds" --json \
  >rig.json 2>rig.err </dev/null &
rig_process=$!
sleep "$("$python" -c "print(min(60, $seconds / 3))")"
before=$(memory)
wait "$rig_process" || fail "the rig ended with $?: $(cat rig.err)"
after=$(memory)
wait "$other"
[[ $? -eq 5 ]] || fail "a rig with another key was let in: $(cat other.err)"
wait "$hostile"
[[ $((after - before)) -lt 256 ]] || fail "the server grew from $before to $after KiB"
kill -TERM "$proxy" && wait "$proxy" || fail "the proxy ended with $?: $(cat impair.err)"
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"

hostile_sent=$(cat hostile.txt)
[[ $hostile_sent -gt $((9000 * seconds)) ]] || fail "the hostile sender made only $hostile_sent datagrams"
assert_json rig.json "d['end'] == 'duration over' and d['states'] > 0.5 * 1000 * $seconds" # others load the machine, too
to_server=$("$python" -c 'import json; print(json.load(open("impair.json"))["to_server"]["sent"])')
assert_json serve.out "0 < d['link']['accepted'] <= $to_server"
assert_json serve.out "d['link']['received'] == d['link']['accepted'] + sum(d['link']['dropped'].values())"
assert_json serve.out "d['lost_records'] == 0 and d['recorded_steps'] == d['steps'] and not d['fault']"
"$RIGSTEP" replay soak.mcap >out 2>err </dev/null || fail "the replay ended with $?"
echo "memory $before to $after KiB; $hostile_sent hostile datagrams; $to_server from the proxy"
"$python" -c 'import json; d = json.load(open("serve.out")); print(d["steps"], "steps,", d["missed_deadlines"], "missed, link", d["link"])'
finish
