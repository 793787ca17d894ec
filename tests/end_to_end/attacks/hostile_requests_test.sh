#!/usr/bin/env bash
# Forged, truncated and senseless requests about parameters and snapshots, by a rig in control and by an observer: refused
# with words or counted, and nothing of the run changes; in lockstep as well.
source "$(dirname "$0")/../lib.sh"
protoc --python_out=. -I "$SOURCE" proto/wire.proto || exit 1
cp "$SOURCE/config/templates/cart_pole/mechanism.textproto" .
printf 'mechanism: "mechanism.textproto"\nlifecycle { start: HELD }\nlink { timeout_steps: 20000 }\n' >rig.textproto
printf 'mechanism: "mechanism.textproto"\nlifecycle { start: HELD }\nrealtime { pace: RIG }\nlink { timeout_steps: 20000 }\n' >lockstep.textproto
cat >attack.py <<'END'
import math, random, sys, time
from raw_link import Link, pack_header, seal_plain, wire

port, role = int(sys.argv[1]), sys.argv[2]
link = Link("127.0.0.1", port)
link.connect(role=wire.CONTROLLER if role == "controller" else wire.OBSERVER)

def report():
    return link.ask("status", status_query=wire.StatusQuery())

def values():
    return [p.value for p in link.ask("parameters", parameter_query=wire.ParameterQuery()).parameter]

def words(**request):  # of a refusal; none: no answer, the datagram was counted
    while link.receive(0.001):
        pass
    link.send(**request)
    for _ in range(30):
        got = link.receive(0.01)
        if got and got[1].HasField("refusal"):
            return got[1].refusal.text
        if got and (got[1].HasField("snapshot_piece") or got[1].HasField("parameters") or got[1].HasField("status")):
            return "answered"
    return None

def parameter(value, ramp=0, **setting):
    return {"parameter_set": wire.ParameterSet(request=random.getrandbits(63) | 1, ramp_steps=ramp,
                                               setting=[wire.ParameterSetting(value=value, **setting)])}

def piece(transfer, offset, total, data):
    return {"snapshot_piece": wire.SnapshotPiece(transfer=transfer, offset=offset, total=total, data=data)}

def command(kind, transfer=0):
    return {"command": wire.Command(kind=kind, transitions=before.transitions, transfer=transfer)}

before, values_before = report(), values()
# both may read the mechanism file, and nothing beside it
file = open("mechanism.textproto", "rb").read()
for offset in (0, 100, len(file) - 1, len(file), 2**32 - 1):
    mechanism = link.ask("mechanism_piece", mechanism_query=wire.MechanismQuery(offset=offset))
    assert mechanism.total == len(file) and mechanism.offset == min(offset, len(file)), offset
    assert mechanism.data == file[offset : offset + 1024], offset
if role == "observer":
    for request in (parameter(8, name="rail_friction"), {"snapshot_query": wire.SnapshotQuery(transfer=1)},
                    piece(1, 0, 100, b"RIGSNAP"), command(wire.Command.RESET_TO_FILE, 1)):
        assert "only the rig in control or an operator" in words(**request), request
else:
    assert "0 to 40" in words(**parameter(41, name="rail_friction"))
    assert "0 to 40" in words(**parameter(1e308, ramp=2**32 - 1, index=0))
    assert words(**parameter(math.nan, name="rail_friction")) is None
    assert "nearest names" in words(**parameter(1, name="rail\x1b[31m" + "x" * 20))
    assert "none of index 4294967295" in words(**parameter(1, index=2**32 - 1))
    assert words(parameter_set=wire.ParameterSet(request=1)) is None
    assert words(**piece(0, 0, 10, b"x")) is None
    assert words(**piece(1, 0, 2**32 - 1, b"x")) is None
    assert words(**piece(1, 0, 2000, b"x" * 1025)) is None
    assert "from its beginning" in words(**piece(2, 1024, 2000, b"x"))
    assert "do not tell one size" in words(**piece(3, 0, 0, b""))
    assert words(**piece(4, 0, 2000, b"x" * 1024)) == "answered"
    assert "do not tell one size" in words(**piece(4, 1024, 3000, b"x"))
    assert "no whole snapshot came" in words(**command(wire.Command.RESET_TO_FILE, 4))
    assert "is no snapshot" in words(**piece(5, 0, 4, b"what"))
    assert "no whole snapshot came" in words(**command(wire.Command.RESET_TO_FILE, 5))
    assert "ends within its head" in words(**piece(6, 0, 8, b"RIGSNAP\x01"))
    assert "somebody else" in words(snapshot_query=wire.SnapshotQuery(transfer=7, offset=1024))
    assert words(snapshot_query=wire.SnapshotQuery(transfer=0)) is None
    # a whole snapshot comes, and its pieces asked for beyond the end hold nothing
    while not (first := link.ask("snapshot_piece", snapshot_query=wire.SnapshotQuery(transfer=8))).data:
        pass
    beyond = link.ask("snapshot_piece", snapshot_query=wire.SnapshotQuery(transfer=8, offset=2**32 - 1))
    assert first.data.startswith(b"RIGSNAP\x01") and beyond.offset == beyond.total == first.total and not beyond.data
    # changed anywhere it is refused
    whole = b""
    while len(whole) < first.total:
        whole += link.ask("snapshot_piece", snapshot_query=wire.SnapshotQuery(transfer=8, offset=len(whole))).data
    before = report()
    for transfer in range(100, 130):
        place = random.randrange(len(whole))
        wrong = whole[:place] + bytes([whole[place] ^ 1 << random.randrange(8)]) + whole[place + 1:]
        said = [words(**piece(transfer, at, len(wrong), wrong[at:at + 1024])) for at in range(0, len(wrong), 1024)]
        assert said[-1] not in (None, "answered"), (place, said)
        assert "no whole snapshot came" in words(**command(wire.Command.RESET_TO_FILE, transfer))
    random.seed(27)
    for _ in range(500):  # any bytes as content
        link.number += 1
        payload = bytes(random.randrange(256) for _ in range(random.randrange(1, 60)))
        header = pack_header(link.session, link.number, time.monotonic_ns(), link.echo_sent, link.echo_came)
        link.socket.send(seal_plain(header, random.choice([b"\x62", b"\x6a", b"\x92\x03"]) + payload))
after = report()
assert after.step == before.step and after.loop_state == before.loop_state and after.transitions == before.transitions
assert values() == values_before
END
for rig in rig.textproto lockstep.textproto; do
  serve "$rig" || exit 1
  for role in controller observer; do
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD:$SOURCE/tests/end_to_end/attacks" expect 0 "$python" attack.py "$port" "$role"
  done
  end_server TERM
  [[ $code -eq 0 ]] || fail "the server ended with $code"
done
finish
