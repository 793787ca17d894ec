#!/usr/bin/env bash
# A Hello that somebody has captured and repeats: refused or accepted, its cookie has served. No flood of answers, no ghost in
# control, and the handshakes of others go on beside it.
source "$(dirname "$0")/../lib.sh"
protoc --python_out=. -I "$SOURCE" proto/wire.proto || exit 1
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000' 'link { key_file: "bench.key" }' >keyed.textproto
sed '/^link/d' keyed.textproto >open.textproto
cat >replay.py <<'END'
import os, secrets, sys, time
sys.path.insert(0, os.environ["SOURCE"] + "/tests/end_to_end/attacks")
import raw_link
from proto import wire_pb2 as wire
port, key = int(sys.argv[1]), raw_link.read_key_file(sys.argv[2]) if len(sys.argv) > 2 else None

def hello(link):
    """A Hello with a fresh cookie, as it would be captured."""
    nonce = secrets.randbits(64)
    got = link.answer(link.hello(nonce), "challenge", nonce, time.monotonic() + 3)
    return link.hello(nonce, got[1].challenge.cookie, secret=secrets.token_bytes(32))

def answers(link, said, count=2000):
    for _ in range(count):
        link.socket.send(said)
        time.sleep(0.0002)
    got = list(iter(lambda: link.receive(0.3), None))
    # once its cookie is too old it is asked to try again; states of a session may come late
    return sum(1 for _, message in got if message.HasField("accept") or message.HasField("refusal"))

rig = raw_link.Link("127.0.0.1", port, key)
captured = hello(rig)
assert 1 <= answers(rig, captured) <= 40, "a Hello that is repeated is answered too often"
status = raw_link.Link("127.0.0.1", port, key)
if key:
    status.connect(role=wire.CONSOLE)
    report = status.ask("status", status_query=wire.StatusQuery())
    assert not report.HasField("controller"), "a ghost is in control"
rig.connect()
second = raw_link.Link("127.0.0.1", port, key)
patient = raw_link.Link("127.0.0.1", port, key)
waiting = hello(patient)
refused = answers(second, hello(second))
assert refused <= 2, f"a refused Hello was answered {refused} times"
rig.ask("channel_page", channel_query={"direction": wire.INPUT, "first": 0})  # the rig notices nothing
rig.send(goodbye={"text": "done"})
time.sleep(0.1)
assert answers(rig, captured, 200) == 0, "an old Hello was answered"
fresh = raw_link.Link("127.0.0.1", port, key)
fresh.connect()
END
export SOURCE
for link in open keyed; do
  serve $link.textproto --json || exit 1
  PYTHONPATH=. expect 0 "$python" replay.py "$port" $([[ $link == keyed ]] && echo bench.key)
  end_server TERM
  assert_json serve.out 'd["link"]["dropped"]["replayed"] > 3000'
done
finish
