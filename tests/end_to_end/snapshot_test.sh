#!/usr/bin/env bash
# Snapshot files: written by a live server, gone on from by servers and offline with the same bits, parameters and ramps
# included; sent back to a server; recorded and replayed; refused where they do not fit.
source "$(dirname "$0")/lib.sh"
cat >cart.textproto <<'END'
name: "cart_pole"
gravity { z: -9.81 }
body { name: "cart" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } }
body { name: "pole" mass: 0.2 inertia { xx: 0.006 yy: 0.005 zz: 0.004 } position { x: 0.5 } }
joint { name: "slide" type: PRISMATIC first: "ground" second: "cart" at_start { axis { x: 1 } } }
joint { name: "hinge" type: REVOLUTE first: "cart" second: "pole" at_start { axis { y: 1 } } }
spring { name: "spring" along_direction { first: "ground" second: "cart" direction { x: 1 } } stiffness: 40 damping: 1 }
input { name: "push" body_force { body: "cart" direction { x: 1 } } }
output { name: "pose" body_pose { body: "pole" } }
parameter { name: "tip" of: "pole.mass" minimum: 0.15 maximum: 0.35 }
parameter { name: "stiffness" of: "spring.stiffness" minimum: 0 maximum: 500 }
parameter { name: "arm" of: "pole.position.x" minimum: 0.4 maximum: 0.6 }
END
sed 's/"cart_pole"/"other_cart"/' cart.textproto >other.textproto
rig() { printf 'mechanism: "%s.textproto"\nlink { port: 47001 %s}\nrecording { full_state_every: 100 }\n%s\n' "$1" "${3:-}" "$2"; }
held='lifecycle { start: HELD } stale_input { rule: HOLD fault_after_steps: 0 }'
rig cart "$held start { parameter { name: \"stiffness\" value: 60 } parameter { name: \"tip\" value: 0.3 } }" >rig.textproto
rig cart "$held start { from: \"warm.snapshot\" }" >from.textproto
rig cart "$held start { from: \"warm.snapshot\" parameter { name: \"tip\" value: 0.3 } }" >both.textproto
rig other "$held" >other_rig.textproto
rig cart "period_us: 2000 $held" >slow.textproto
rig cart "solver { iterations: 4 } $held" >four.textproto
rig cart 'realtime { pace: RIG } input { channel: "push" minimum: -1 maximum: 1 most_change_per_step: 0.004 }' >lockstep.textproto
# same_bits A B: the steps that both have; one of them is longer
same_bits() {
  "$RIGSTEP" diff "$1" "$2" >out 2>err
  says out 'states are equal, bit for bit'
}
replays() { expect 0 "$RIGSTEP" replay "$1" && says out "^bit-exact over ${2:-}"; }

# forge: files that are warm.snapshot, but for one thing each
forge() {
  "$python" - <<'EOF'
whole = open("warm.snapshot", "rb").read()
open("damaged.snapshot", "wb").write(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
def forged(old, new):
    body, found = whole[24:], whole[24:].find(old)
    assert found >= 0
    body = body.replace(old, new, 1)
    value = 0xcbf29ce484222325
    for byte in body:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return whole[:8] + len(body).to_bytes(8, "little") + value.to_bytes(8, "little") + body
version = whole[26:26 + whole[25]]
open("version.snapshot", "wb").write(forged(version, b"9" * len(version)))
open("newer.snapshot", "wb").write(whole[:7] + b"\x02" + whole[8:])
open("forged.snapshot", "wb").write(forged(b"\x0a\x03tip", b"\x0a\x03tap"))
EOF
}

# --- in the middle of a ramp, beside one that was changed at once; written while it runs
serve rig.textproto --record whole.mcap || exit 1
at=127.0.0.1:$port
expect 0 "$RIGSTEP" set "$at" stiffness=200 --ramp 1200
expect 0 "$RIGSTEP" run "$at"
expect 0 "$RIGSTEP" set "$at" tip=0.2
sleep 0.2
expect 0 "$RIGSTEP" snapshot "$at" warm.snapshot --json
assert_json out 'd["mechanism"] == "cart_pole" and d["step"] > 100'
step=$("$python" -c 'import json; print(json.load(open("out"))["step"])')
hash=$("$python" -c 'import json; print(json.load(open("out"))["state_hash"])')
sleep 1.2
expect 0 "$RIGSTEP" hold "$at"
# steps from the snapshot to here: a busy machine skips some
expect 0 "$RIGSTEP" status "$at" --json
until_hold=$("$python" -c "import json; print((json.load(open('out'))['step'] - $step) / 1000)")
# and back to it, in the run that it is of
expect 0 "$RIGSTEP" reset "$at" --to warm.snapshot --json && assert_json out 'd["state"] == "holding"'
expect 0 "$RIGSTEP" run "$at"
sleep 0.3
end_server TERM
says serve.err 'snapshot was asked for by' && says serve.err 'reset to file was asked for by'
replays whole.mcap
expect 0 "$RIGSTEP" info whole.mcap && says out "event .*: reset to file\$"

# --- offline and by another server
expect 0 "$RIGSTEP" simulate --from warm.snapshot --duration "$until_hold" --output to_hold.mcap
same_bits whole.mcap to_hold.mcap
expect 0 "$RIGSTEP" simulate --from warm.snapshot --duration 1 --output offline.mcap
replays offline.mcap '1000 steps'
expect 0 "$RIGSTEP" info offline.mcap && says out '^started from +warm\.snapshot$' && says out 'stiffness 200'
serve from.textproto --record again.mcap || exit 1
at=127.0.0.1:$port
says serve.err 'starts from the snapshot'
expect 0 "$RIGSTEP" status "$at" --json && assert_json out "d['step'] == $step and d['state'] == 'ready'"
expect 0 "$RIGSTEP" snapshot "$at" same.snapshot --json && assert_json out "d['step'] == $step and d['state_hash'] == '$hash'"
cmp warm.snapshot same.snapshot || fail "a snapshot of what has not moved is another one"
expect 0 "$RIGSTEP" run "$at"
sleep 0.5
end_server TERM
same_bits offline.mcap again.mcap
replays again.mcap
serve rig.textproto --from warm.snapshot --record back.mcap || exit 1
at=127.0.0.1:$port
expect 0 "$RIGSTEP" run "$at"
sleep 0.3
expect 0 "$RIGSTEP" hold "$at"
expect 0 "$RIGSTEP" reset "$at" --to start
expect 0 "$RIGSTEP" snapshot "$at" start.snapshot --json && assert_json out "d['state_hash'] == '$hash'"
expect 0 "$RIGSTEP" run "$at"
sleep 0.2
end_server TERM
replays back.mcap

# --- in lockstep, with inputs that are limited; the rig goes on where the run is
serve lockstep.textproto --record rig_whole.mcap || exit 1
at=127.0.0.1:$port
"$RIGSTEP" rig --port "$port" --drive push=sine:5,3 --rate 1000 --duration 1.5 >rig.out 2>&1 &
rig=$!
sleep 0.6
expect 0 "$RIGSTEP" snapshot "$at" rig.snapshot && says out '^rig\.snapshot: cart_pole after step [0-9]+, [0-9]+ bytes$'
wait "$rig"
end_server TERM
serve lockstep.textproto --from rig.snapshot --record rig_again.mcap || exit 1
expect 0 "$RIGSTEP" rig --port "$port" --drive push=sine:5,3 --rate 1000 --duration 0.6
end_server TERM
same_bits rig_whole.mcap rig_again.mcap
replays rig_again.mcap

# --- the C library, and rigs in Python
expect 0 "$RIGSTEP" simulate --from rig.snapshot --duration 0.3 --json
reached=$("$python" -c 'import json; print(json.load(open("out"))["state_hash"])')
serve lockstep.textproto || exit 1
cat >rig.py <<'END'
import pathlib, sys
import rigstep

port, library, reached = int(sys.argv[1]), sys.argv[2], int(sys.argv[3], 16)
with rigstep.Stepper(snapshot="rig.snapshot", library=library) as cart:
    begin = cart.report
    cart.run(300)
    assert cart.report.state_hash == reached and cart.report.step == begin.step + 300
    cart.reset()
    assert cart.report.state_hash == begin.state_hash
try:
    rigstep.Stepper(snapshot="cart.textproto", library=library)
    raise SystemExit("a mechanism file was taken for a snapshot")
except rigstep.MechanismError as error:
    assert "is no snapshot" in str(error)
with rigstep.connect(port=port) as rig:
    for k in range(100):
        rig.send(push=0.5)
        rig.receive()
    data = rig.snapshot()
    pathlib.Path("python.snapshot").write_bytes(data)
    at_snapshot = rig.status().step
    for k in range(50):
        rig.send(push=0.5)
        rig.receive()
    rig.command("hold")
    assert rig.reset(data).loop_state == "HOLDING" and rig.status().step == at_snapshot + 50
    assert rig.snapshot()[24:] != data[24:]  # of a later step of the run
    for wrong in (b"", b"no snapshot", b"\0" * 100):
        try:
            rig.reset(wrong)
            raise SystemExit("what is no snapshot was sent")
        except ValueError as error:
            assert "no snapshot" in str(error)
    assert rig.reset(bytearray(data)).loop_state == "HOLDING"
    rig.command("run")
    rig.command("hold")
    try:
        rig.reset(pathlib.Path("forged.snapshot").read_bytes())
        raise SystemExit("a forged snapshot was taken")
    except rigstep.Refused as error:
        assert "is forged" in str(error)
END
forge
package=${PACKAGE:-$(dirname "$RIGSTEP")/../python}
PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 expect 0 "$python" -W error rig.py "$port" \
  "$(dirname "$RIGSTEP")/plugin/librigstep.so.1" "$reached"
end_server TERM
expect 0 "$RIGSTEP" simulate --from python.snapshot --duration 0.01

# --- what is refused, and changes nothing
expect 2 "$RIGSTEP" serve other_rig.textproto --from warm.snapshot
says err 'is of the mechanism "cart_pole" \([0-9a-f]+\), and this is "other_cart"'
expect 2 "$RIGSTEP" serve slow.textproto --from warm.snapshot && says err 'period \[ns\] is 1000000 in it and 2000000 here'
expect 2 "$RIGSTEP" serve four.textproto --from warm.snapshot && says err 'solver.iterations is 3 in it and 4 here'
expect 2 "$RIGSTEP" serve both.textproto && says err 'both.textproto:[0-9]+: start.from: holds values of all parameters'
expect 2 "$RIGSTEP" serve rig.textproto --from cart.textproto && says err 'cart\.textproto: snapshot: is no snapshot'
expect 2 "$RIGSTEP" simulate --from nothing.snapshot && says err 'nothing\.snapshot: file: cannot be read'
expect 2 "$RIGSTEP" simulate cart.textproto --from warm.snapshot && says err 'MECHANISM'
expect 2 "$RIGSTEP" simulate --from warm.snapshot --set tip=0.2 && says err '--set'
expect 2 "$RIGSTEP" simulate --from warm.snapshot --dt 0.002 && says err '--dt: the snapshot is one of steps of 0\.001 s'
expect 2 "$RIGSTEP" simulate && says err 'MECHANISM: is missing'
head -c 500 warm.snapshot >short.snapshot
expect 2 "$RIGSTEP" simulate --from short.snapshot && says err 'short\.snapshot: snapshot: has 476 bytes behind its head'
expect 2 "$RIGSTEP" simulate --from damaged.snapshot && says err 'damaged\.snapshot: snapshot: its bytes do not have the hash'
expect 2 "$RIGSTEP" simulate --from version.snapshot && says err 'was written by Rigstep 9'
expect 2 "$RIGSTEP" simulate --from newer.snapshot && says err 'has format 2, and this version reads 1'
expect 2 "$RIGSTEP" simulate --from forged.snapshot && says err 'forged\.snapshot: snapshot: .*tap'
serve other_rig.textproto || exit 1
at=127.0.0.1:$port
expect 5 "$RIGSTEP" reset "$at" --to warm.snapshot && says err 'refuses: what was sent: snapshot: is of the mechanism "cart_pole"'
expect 2 "$RIGSTEP" reset "$at" --to damaged.snapshot && says err 'damaged\.snapshot'
expect 4 "$RIGSTEP" snapshot "$at" no/such/folder.snapshot
expect 0 "$RIGSTEP" status "$at" --json && assert_json out "d['step'] == 0 and d['state'] == 'ready'"
end_server TERM

# --- an observer's key opens no way to either
"$RIGSTEP" keygen rig.keys --participant desk --role operator 2>/dev/null
"$RIGSTEP" keygen rig.keys --participant screen --role observer 2>/dev/null
rig cart "$held" 'key_file: "rig.keys" ' >keyed.textproto
serve keyed.textproto || exit 1
at=127.0.0.1:$port
expect 5 "$RIGSTEP" snapshot "$at" mine.snapshot --key screen.key && says err 'only the rig in control or an operator'
expect 5 "$RIGSTEP" reset "$at" --to warm.snapshot --key screen.key && says err 'only the rig in control or an operator'
[[ ! -e mine.snapshot ]] || fail "a file was written for an observer"
expect 0 "$RIGSTEP" snapshot "$at" mine.snapshot --key desk.key
expect 0 "$RIGSTEP" reset "$at" --to warm.snapshot --key desk.key
end_server TERM
finish
