#!/usr/bin/env bash
# An observer who sends 20 000 datagrams a second: 2000 of them are read, the rig in control loses none of its inputs, and
# another observer stays connected.
source "$(dirname "$0")/../lib.sh"
protoc --python_out=. -I "$SOURCE" proto/wire.proto || exit 1
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^recording.*//" "$SOURCE/config/rigs/ci_loopback.textproto" >rig.textproto
cat >flood.py <<'END'
import json, os, sys, time
sys.path.insert(0, os.environ["SOURCE"] + "/tests/end_to_end/attacks")
import raw_link
from proto import wire_pb2 as wire
link = raw_link.Link("127.0.0.1", int(sys.argv[1]))
link.connect(role=wire.OBSERVER, name="loud")
garbage, sent, begin = os.urandom(100), 0, time.monotonic()
while (now := time.monotonic() - begin) < 2:
    for _ in range(int(20000 * now) - sent):
        link.socket.send(garbage)
        sent += 1
    time.sleep(0.001)
print(json.dumps({"sent": sent, "seconds": time.monotonic() - begin}))
END
export SOURCE
serve rig.textproto --json || exit 1
"$RIGSTEP" rig --port "$port" --rate 200 --duration 0 --json >rig.json 2>rig.err </dev/null &
rig=$!
"$RIGSTEP" rig --port "$port" --observe --duration 0 --json >screen.json 2>screen.err </dev/null &
screen=$!
sleep 0.5
PYTHONPATH=. "$python" flood.py "$port" >flood.json || fail "the observer was not let in"
kill -TERM "$rig" "$screen"
wait "$rig" || fail "the rig ended with $?: $(cat rig.err)"
wait "$screen" || fail "the other observer ended with $?: $(cat screen.err)"
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
assert_json rig.json 'd["end"] == "stopped" and d["reconnects"] == 0'
assert_json screen.json 'd["end"] == "stopped" and d["reconnects"] == 0'
"$python" - <<'END'
import json, sys
rig, server, flood = (json.load(open(name)) for name in ("rig.json", "serve.out", "flood.json"))
link = server["link"]
read = link["received"] - link["accepted"]
print(f"an observer has sent {flood['sent']} datagrams in {flood['seconds']:.1f} s, {read} were read;",
      f"{rig['inputs_sent']} inputs sent, {link['accepted']} datagrams accepted")
most = 2000 * (flood["seconds"] + 0.5)  # with the time that the end takes
if flood["sent"] < 2 * most:
    print("skipped: this machine is too busy for a flood that is more than is read")
    sys.exit(77)
sys.exit(read > most or link["accepted"] < rig["inputs_sent"] - 5)
END
case $? in
  0) ;;
  77) [[ $failures -eq 0 ]] && exit 77 ;;
  *) fail "more was read than an observer's share, or inputs were lost" ;;
esac
finish
