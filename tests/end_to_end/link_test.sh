#!/usr/bin/env bash
# The link when things go wrong around it: a server killed and started anew, a rig killed and started anew, a flood of
# hostile datagrams, a bad network.
source "$(dirname "$0")/lib.sh"
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^link {/link { key_file: \"bench.key\"/; s/^recording.*//" \
  "$SOURCE/config/rigs/ci_loopback.textproto" >rig.textproto
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1

# a rig that was killed takes its own place again, before the time-out
serve rig.textproto || exit 1
"$RIGSTEP" rig rig.textproto --port "$port" --name "bench 7" --duration 0 >/dev/null 2>&1 &
rig_process=$!
sleep 0.7
{ kill -KILL "$rig_process" && wait "$rig_process"; } 2>/dev/null
expect 0 "$RIGSTEP" rig rig.textproto --port "$port" --name "bench 7" --duration 0.3
grep -q 'rig "bench 7" .* connected anew' serve.err || fail "the rig did not take its place: $(cat serve.err)"

# a rig finds a server that was killed and started anew
"$RIGSTEP" rig rig.textproto --port "$port" --duration 6 --json >rig.json 2>rig.err &
rig_process=$!
sleep 1
first_port=$port
end_server KILL
"$RIGSTEP" serve rig.textproto --port "$first_port" >serve.out 2>serve.err </dev/null &
server=$!
wait "$rig_process" || fail "the rig gave up: $(cat rig.err)"
assert_json rig.json 'd["end"] == "duration over" and d["reconnects"] == 1'

# through a bad network and beside a hostile sender: counted, no crash, no growth, the states go on
"$RIGSTEP" impair "127.0.0.1:$port" --seed 5 --delay 1 --jitter 2 --loss 0.01 --burst-loss 0.001 --reorder 0.02 \
  --duplicate 0.02 --corrupt 0.01 >impair.json 2>impair.err </dev/null &
proxy=$!
for _ in $(seq 50); do
  proxy_port=$(sed -nE 's/.*listening on [^ ]*:([0-9]+),.*/\1/p' impair.err)
  [[ -n $proxy_port ]] && break
  sleep 0.1
done
"$python" - "$port" <<'END' &
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", int(sys.argv[1])))
noise = [b"RS\x03r" + bytes(8) + os.urandom(n) for n in (0, 32, 60, 300, 1188, 1400)]
end = time.monotonic() + 4
while time.monotonic() < end:
    for _ in range(20):
        for datagram in noise:
            s.send(datagram)
    time.sleep(0.01)
END
flood=$!
memory() { awk '/VmRSS/ {print $2}' "/proc/$server/status"; }
expect 0 "$RIGSTEP" rig rig.textproto --port "$proxy_port" --duration 1 --json
before=$(memory)
expect 0 "$RIGSTEP" rig rig.textproto --port "$proxy_port" --duration 3 --json
after=$(memory)
wait "$flood"
cp out rig.json
assert_json rig.json 'd["states"] > 500 and d["dropped"]["authentication"] > 0 and d["dropped"]["replayed"] > 0'
[[ $((after - before)) -lt 1000 ]] || fail "the server grew from $before to $after KiB"
expect 0 "$RIGSTEP" status "127.0.0.1:$port" --key bench.key --json
assert_json out 'd["refused"]["authentication"] > 5000 and d["refused"]["wrong_size"] > 1000'
kill -TERM "$proxy"
wait "$proxy" || fail "the proxy ended with $?: $(cat impair.err)"
assert_json impair.json 'd["rigs"] == 2 and d["to_server"]["lost"] > 0 and d["to_rig"]["corrupted"] > 0'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
finish
