#!/usr/bin/env bash
# The Python package: a controller, a loop, asyncio, lockstep, keys, servers that go away, and recordings as arrays.
# PACKAGE: the folder that holds the package `rigstep` with its messages; made here if not given.
source "$(dirname "$0")/lib.sh"
"$python" -c 'import google.protobuf, numpy' || { echo "$python lacks modules: install python3-protobuf python3-numpy"; exit 1; }
if [[ -z ${PACKAGE:-} ]]; then
  PACKAGE=$WORK/package
  mkdir -p "$PACKAGE" && cp -r "$SOURCE/server/package/python/rigstep" "$PACKAGE" || exit 1
  protoc -I "$SOURCE/proto" --python_out="$PACKAGE/rigstep/_messages" wire.proto recording.proto || exit 1
fi
export PYTHONPATH=$PACKAGE PYTHONDONTWRITEBYTECODE=1

# --- the key schedule and the datagrams are those of the protocol's page
expect 0 "$python" "$SOURCE/tests/end_to_end/handshake_vectors.py" "$SOURCE/proto/README.md"
four_bar=$SOURCE/config/mechanisms/four_bar.textproto
cat >open.textproto <<END
mechanism: "$four_bar"
period_us: 1000
realtime { deadline_misses_until_fault { consecutive: 0 per_second: 0 } }
recording { full_state_every: 100 }
stale_input { max_age_steps: 200 rule: FAULT fault_after_steps: 0 }
link { timeout_steps: 500 }
END

# run NAME ARGUMENTS...: the program NAME.py, which asserts what it expects
run() {
  local name=$1
  shift
  expect 0 "$python" -W error "$name.py" "$@"
}

# --- what needs numpy or asyncio is loaded when it is asked for
cat >lazy.py <<'END'
import sys
sys.modules["numpy"] = None
import rigstep
from rigstep import *
assert "asyncio" not in sys.modules and rigstep.aio.connect and open is not rigstep.open
try:
    rigstep.open("any.mcap")
    raise SystemExit("a recording without numpy")
except rigstep.RigstepError as error:
    assert "python3-numpy" in str(error), error
END
run lazy

# --- a controller with a callback, a loop, names and values that are refused, others that look on
cat >controller.py <<'END'
import math, sys, time
import rigstep
port = int(sys.argv[1])

def raises(kind, words, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert words in str(error), error
        return error
    raise SystemExit(f"no {kind.__name__} from {function}")

with rigstep.connect(port=port, name="controller.py") as rig:
    assert rig.mechanism == "four_bar" and rig.period == 0.001 and not rig.lockstep
    assert rig.inputs == (rigstep.Channel("drive", "N m"),) and rig.outputs[0] == rigstep.Channel("phi", "rad")
    state = rig.receive()
    assert state.status == rigstep.StepStatus.OK and state.values[0] == state["phi"] == state.as_dict()["phi"]
    assert state.time == state.sim_time_ns / 1e9 == state.step / 1000 and state.no_input and not state.faulted
    raises(ValueError, '"drve": the inputs are "drive"', rig.send, drve=1.0)
    raises(ValueError, "finite", rig.send, {"drive": math.nan})
    raises(KeyError, '"phi_rate", "phi"', lambda: state["phi_rat"])
    raises(ValueError, "positive", rig.loop, rate=0.0)
    assert rig.receive(timeout=0.2).no_input, "a refused input was sent"

    seen = []
    def controller(state):
        seen.append(state)
        return {"drive": math.sin(state.time)}
    begin = time.monotonic()
    summary = rig.run(controller, duration=2.0)
    took = time.monotonic() - begin
    # a shared machine may be busy: many of 2000, not all
    assert 500 < len(seen) == summary.turns <= 2000 - summary.missed_turns, summary
    assert took >= 2.0 and summary.states > 500 and not summary.faulted, (took, summary)
    assert 0.0 < summary.round_trip_p50 <= summary.round_trip_p99 < took and summary.largest_input_age < 1000, summary
    assert all(a.step <= b.step for a, b in zip(seen, seen[1:])) and seen[-1].step - seen[0].step > 1000
    assert not seen[-1].no_input and seen[-1].sequence > 0
    # one machine, one clock: the estimate has to contain zero
    assert abs(rig.clock.offset) <= rig.clock.uncertainty < 0.01, rig.clock

    turns = []
    for state in rig.loop(rate=100.0, duration=0.5):
        turns.append(time.monotonic())
        rig.send()
        if len(turns) == 25:
            status = rig.status()
    assert 40 <= len(turns) <= 50 and 0.4 < turns[-1] - turns[0] < 0.6, len(turns)
    assert status.loop_state == "RUNNING" and status.controller.name == "controller.py" and status.timeout == 0.5
    assert status.distributions["step_ns"].count > 1000 and status.counters["accepted"] > 1000

    with rigstep.connect(port=port, role="observer", timeout=2.0) as observer:
        assert [channel.name for channel in observer.outputs] == [channel.name for channel in rig.outputs]
        raises(rigstep.RigstepError, "role='controller'", observer.send, drive=1.0)
        assert sum(1 for _ in observer.loop(rate=50.0, duration=0.2)) > 5 and observer.summary.round_trip_p50 is None
        rig.send()
        assert rig.status().observers == 1
    with rigstep.connect(port=port, role="console") as console:
        raises(rigstep.RigstepError, "console", console.receive)
        assert console.status().mechanism == "four_bar"
        rig.send()
    second = raises(rigstep.Refused, "controller.py", rigstep.connect, port=port, timeout=0.2)
    assert second.reason == rigstep.RefusalReason.CONTROL_TAKEN
    raises(rigstep.Refused, "black_box", rig.write_black_box)

    # inputs that do not come again are a fault here, which an operator or the controller clears
    time.sleep(0.3)
    with rigstep.connect(port=port, role="console") as console:
        assert console.status().faulted and console.reset_fault() and not console.status().faulted
    rig.send()
    for state in rig.loop(duration=2.0):
        if state.faulted:
            break
    assert state.faulted and state.input_stale and rig.summary.faulted and rig.status().faulted
    assert rig.reset_fault() and not rig.status().faulted
    rig.send(drive=0.0)
    assert not rig.reset_fault()
    time.sleep(1.0)
    gone = raises(rigstep.Disconnected, "time-out", rig.receive)
    assert gone.reason == rigstep.GoodbyeReason.TIMED_OUT
raises(rigstep.RigstepError, "connect again", rig.receive)
with rigstep.connect(port=port, timeout=2.0) as rig:  # the place is free again
    pass
END
serve open.textproto --record run.mcap --json || exit 1
run controller "$port"
end_server TERM
[[ $code -eq 1 ]] || fail "serve ended with $code: $(cat serve.err)"
assert_json serve.out 'd["link"]["accepted"] > 1500 and all(d["link"]["dropped"][k] == 0 for k in ("malformed", "not_finite"))'
grep -q 'rig "controller.py" .* went silent' serve.err || fail "the end of the rig is not in the log: $(cat serve.err)"

# --- the example, beside the package as it is built, not as it is written; its recording has an output now and then
cp "$SOURCE/server/package/python/balance.py" .
sparse='recording { full_state_every: 50 outputs_every: 7 output: "phi" }'
sed "s/^recording.*/$sparse/; s/FAULT/HOLD/" open.textproto >sparse.textproto
serve sparse.textproto --record sparse.mcap || exit 1
expect 0 "$python" balance.py --port "$port" --duration 0.5 --json
assert_json out 'd["turns"] > 200 and not d["faulted"]'
expect 0 "$python" balance.py --port "$port" --duration 0.2 --pd phi phi_rate --target -1.57 &&
  says out 'turns='
expect 1 "$python" balance.py --port "$port" --input drvie && says err '^balance.py: .*"drive"'
end_server TERM

# --- asyncio: a controller and an observer in one event loop, alive while they do something else
cat >asynchronous.py <<'END'
import asyncio, math, sys, time
import rigstep
port = int(sys.argv[1])

async def controller(state):
    await asyncio.sleep(0)
    return {"drive": math.sin(state.time)}

async def look_on():
    count = 0
    async with rigstep.aio.connect(port=port, role="observer") as observer:
        async for state in observer.loop(rate=50.0, duration=1.0):
            count += 1
    return count

async def main():
    async with rigstep.aio.connect(port=port) as rig:
        looking = asyncio.create_task(look_on())
        summary = await rig.run(controller, rate=200.0, duration=1.0)
        assert 100 < summary.turns <= 200 and summary.states > 300 and summary.round_trip_p50 < 1.0, summary
        assert await looking > 10
        summary, status = await asyncio.gather(rig.run(lambda state: {"drive": 0.0}, duration=0.2), rig.status())
        assert summary.turns > 20 and status.step > 500, (summary, status)
        await asyncio.sleep(1.0)  # twice the time-out
        assert (await rig.receive()).step > 500 and (await rig.status()).controller is not None
        await rig.reset_fault()
        try:
            rig.send(drvie=1.0)
            raise SystemExit("an unknown channel was sent")
        except ValueError as error:
            assert '"drive"' in str(error)
    begin = time.monotonic()
    try:
        async with rigstep.aio.connect(port=9, timeout=0.5):
            raise SystemExit("nobody is there")
    except rigstep.NoAnswer as error:
        assert "127.0.0.1:9" in str(error) and time.monotonic() - begin < 2.0
    rig = await rigstep.aio.connect(port=port)
    await rig.close()

asyncio.run(main())
END
serve open.textproto || exit 1
run asynchronous "$port"
end_server TERM

# --- lockstep: a step a turn, whatever is lost on the way
cat >lockstep.py <<'END'
import sys
import rigstep
with rigstep.connect(port=int(sys.argv[1]), name="lockstep.py") as rig:
    assert rig.lockstep and rig.receive().step == 0
    rig.send(drive=1.0)
    rig.send(drive=2.0)  # the newest counts, and nothing is stepped before receive()
    first = rig.receive()
    assert first.step == 1 and first.sequence == 1 and rig.receive().step == 1
    steps = []
    summary = rig.run(lambda state: steps.append(state.step) or {"drive": 0.1 * state["phi"]}, duration=0.5)
    assert steps == list(range(1, 502)), steps[:5]
    assert summary.lost == 0 and summary.missed_turns == 0 and summary.round_trip_p50 > 0, summary
    assert rig.receive().step == 501, "a step that nobody asked for"
    assert [state.step for state in rig.loop(rate=200.0, duration=0.01)] == list(range(501, 512))
    assert rig.write_black_box().endswith(".mcap")
END
serve "$SOURCE/config/rigs/lockstep.textproto" --record lockstep.mcap --json || exit 1
expect 0 "$python" -W error lockstep.py "$port"
end_server TERM
assert_json serve.out 'd["steps"] == 511 and d["link"]["dropped"]["sequence"] == 0'
expect 0 "$RIGSTEP" replay lockstep.mcap && says out '^bit-exact over 511 steps'
serve "$SOURCE/config/rigs/lockstep.textproto" --json || exit 1
"$RIGSTEP" impair "127.0.0.1:$port" --listen-port 0 --loss 0.02 --seed 7 >impair.out 2>impair.err </dev/null &
impair=$!
for _ in $(seq 50); do
  through=$(sed -nE 's/.*listening on [^ ]*:([0-9]+).*/\1/p' impair.err)
  [[ -n $through ]] && break
  sleep 0.1
done
run lockstep "$through"
kill -TERM "$impair" && wait "$impair" 2>/dev/null
end_server TERM
assert_json serve.out 'd["steps"] == 511'

# --- with a key; without it, or with a file that others may read, an error that says so
cat >keyed.py <<'END'
import sys
import rigstep
port, key = int(sys.argv[1]), sys.argv[2]
with rigstep.connect(port=port, key=key) as rig:
    assert rig.run(lambda state: {"drive": 1.0}, duration=0.3).states > 100
    assert rig.status().authenticated and rig.status().controller.key_name == "bench"
try:
    rigstep.connect(port=port, timeout=0.3)
    raise SystemExit("let in without a key")
except rigstep.Refused as refusal:
    assert refusal.reason == rigstep.RefusalReason.AUTHENTICATION and "key" in refusal.text
for path, words in ((key + ".open", "chmod 600"), ("no.key", "no.key"), ("keyed.py", "keyed.py")):
    try:
        rigstep.connect(port=port, key=path)
        raise SystemExit(f"{path} was taken")
    except rigstep.RigstepError as error:
        assert words in str(error), error
END
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
(umask 022 && cp bench.key bench.key.open && chmod 644 bench.key.open)
sed 's/^link {/link { key_file: "bench.key"/' open.textproto >keyed.textproto
serve keyed.textproto || exit 1
run keyed "$port" bench.key
end_server TERM

# --- a server that goes away: its words, or silence for the time-out; one that is not there
cat >gone.py <<'END'
import sys, time
import rigstep
port, how = int(sys.argv[1]), sys.argv[2]
begin = time.monotonic()
try:
    with rigstep.connect(port=port, timeout=1.0) as rig:
        print("connected", flush=True)
        for state in rig.loop(rate=100.0, duration=20.0):
            rig.send()
            begin = time.monotonic() if state.step != getattr(sys, "last", None) else begin
            sys.last = state.step
    raise SystemExit("it did not go away")
except rigstep.Disconnected as gone:
    assert how == "TERM" and gone.reason == rigstep.GoodbyeReason.ENDED and "stopped" in str(gone), gone
except rigstep.NoAnswer as silence:
    assert how in ("KILL", "nobody") and f"127.0.0.1:{port}" in str(silence), silence
    assert "is `rigstep serve` running there" in str(silence) or how == "KILL", silence
assert time.monotonic() - begin < 3.0, "later than its time-out"
END
for how in TERM KILL; do
  serve open.textproto || exit 1
  "$python" -W error gone.py "$port" $how >gone.out 2>gone.err </dev/null &
  gone=$!
  for _ in $(seq 50); do grep -q connected gone.out && break; sleep 0.1; done
  sleep 0.3
  end_server $how
  wait "$gone" || fail "the rig of a server that got SIG$how: $(cat gone.err)"
done
run gone "$port" nobody

# --- a recording as arrays: the numbers of export and info, bodies, faults, NaN where nothing was recorded
cat >recorded.py <<'END'
import json, subprocess, sys
import numpy as np
import rigstep
program, path = sys.argv[1:3]

def exported(path, *names):
    channels = [part for name in names for part in ("--channel", name)]
    subprocess.run([program, "export", path, *channels, "--output", "columns.csv"], stderr=subprocess.DEVNULL)
    return np.loadtxt("columns.csv", delimiter=",", skiprows=2, ndmin=2)

run = rigstep.open(path)
info = json.loads(subprocess.run([program, "info", path, "--json"], capture_output=True).stdout)
assert run.mechanism == "four_bar" and run.dt == 0.001 and run.damage is None and run.footer.reason == info["reason"]
assert len(run) == len(run.time) == info["steps"] > 1000 and run.step[-1] == info["last_step"]
names = ("drive", "phi", "B_pose.y", "energy.kinetic")
table = exported(path, *names, "run.wake_up", "run.missed_deadlines", "run.flags", "run.input_age")
assert np.array_equal(table[:, 0], run.time)
for k, name in enumerate(names):
    assert np.array_equal(table[:, k + 1], run[name]), name
for k, values in enumerate((1e-3 * run.timing.wake_up_ns, run.timing.missed_deadlines, run.flags, run.input_age)):
    assert np.array_equal(table[:, k + 5], values), k
assert run.inputs == ("drive",) and [f"{name} [{run.units[name]}]" for name in run.outputs] == info["recorded_outputs"]
assert run["phi [rad]"] is run["phi"] and "phi" in run and "psi" not in run
faults = [event for event in info["events"] if event["event"].startswith("FAULT")]
assert len(faults) == len(run.faults) > 0 and run.faults[0].step == faults[0]["step"] and run.faults[0].status == 0
assert run.faults[0].flags & rigstep.Flags.STALE_INPUT
assert len(run.bodies_time) > 20 and list(run.bodies) == ["A", "B", "C"]
at = np.searchsorted(run.time, run.bodies_time)
good = at < len(run)
for k, axis in enumerate("xyz"):
    assert np.array_equal(run.bodies["A"].position[good, k], run[f"A_pose.{axis}"][at[good]]), axis
assert np.allclose(np.linalg.norm(run.bodies["B"].orientation, axis=1), 1.0)
assert run.bodies["C"].velocity.shape == (len(at), 3)
chosen = run.table(["phi", "drive"])
assert chosen.dtype.names == ("time", "phi", "drive") and np.array_equal(chosen["phi"], run["phi"])
assert len(run.table()) == len(run)
try:
    run["ph"]
    raise SystemExit("an unknown channel was found")
except KeyError as error:
    assert '"phi"' in str(error)

sparse = rigstep.open("sparse.mcap")
assert sparse.outputs == ("phi",) and len(sparse.bodies_time) > 0
assert np.array_equal(np.isfinite(sparse["phi"]), sparse.step % 7 == 0) and np.isfinite(sparse["drive"]).all()
none = rigstep.open("none.mcap")
assert none.outputs == () and len(none) == 200
same = rigstep.open("same_name.mcap")
assert same.units["drive"] == "N m" and same.units["output.drive"] == "rad" and np.ptp(same["output.drive"]) > 0
box = rigstep.open("box.mcap")
assert box.step[0] == box.header.start_step + 1 and box.time[-1] == box.step[-1] / 1000

whole = open(path, "rb").read()
for size in (len(whole) // 3, len(whole) // 2, len(whole) - 1):
    open("torn.mcap", "wb").write(whole[:size])
    torn = rigstep.open("torn.mcap")
    told = json.loads(subprocess.run([program, "info", "torn.mcap", "--json"], capture_output=True).stdout)
    assert torn.damage and torn.damage.split(":")[0] == told["damage"].split(":")[0], torn.damage
    assert len(torn) == told["steps"] > 100 and np.array_equal(torn["phi"], run["phi"][: len(torn)])
for content, words in ((b"", "empty"), (b"# no recording", "not an MCAP file"), (whole[:3000], "without the header")):
    open("bad.mcap", "wb").write(content)
    try:
        rigstep.open("bad.mcap")
        raise SystemExit(f"taken for a recording: {words}")
    except rigstep.RecordingError as error:
        assert words in str(error) and "bad.mcap" in str(error), error
END
mkdir -p boxes
cat >none.textproto <<END
mechanism: "$four_bar"
realtime { pace: RIG }
recording { outputs_every: 0 }
black_box { folder: "boxes" seconds: 0.1 }
END
cat >none.py <<'END'
import sys
import rigstep
with rigstep.connect(port=int(sys.argv[1])) as rig:
    rig.run(lambda state: {"drive": 1.0}, duration=0.2)
    rig.write_black_box()
END
serve none.textproto --record none.mcap || exit 1
run none "$port"
end_server TERM
cp boxes/*.mcap box.mcap || fail "there is no black box"
sed 's/name: "phi"/name: "drive"/' "$four_bar" >same_name.textproto
expect 0 "$RIGSTEP" simulate same_name.textproto --duration 0.1 --output same_name.mcap
run recorded "$RIGSTEP" run.mcap

# --- how long a large one takes
expect 0 "$RIGSTEP" simulate "$four_bar" --duration 100 --every 1000 --output large.mcap
cat >large.py <<'END'
import time
import rigstep
begin = time.monotonic()
run = rigstep.open("large.mcap")
took = time.monotonic() - begin
assert len(run) == 100000 and len(run.outputs) == 37 and took < 20.0
print(f"{run} in {took:.2f} s")
END
run large && cat out
rm -f large.mcap
# --- the run waits for its rig, holds, is set back, and the recording tells it
printf 'mechanism: "%s"\nlink { port: 47001 }\n' "$SOURCE/config/mechanisms/four_bar.textproto" >waiting.textproto
serve waiting.textproto --record waiting.mcap || exit 1
"$python" - "$port" <<'EOF' || fail "commands of a rig"
import sys, time, rigstep
with rigstep.connect(port=int(sys.argv[1])) as rig:
    first = rig.receive()
    assert first.step == 0 and first.stands and first.flags & rigstep.Flags.READY
    rig.run(lambda state: {"drive": 1.0}, duration=0.3)
    held = rig.command("hold")
    assert held.loop_state == "HOLDING" and held.step > 100
    try:
        rig.command("hold")
        raise AssertionError("held twice")
    except rigstep.Refused as refused:
        assert "Possible: run" in refused.text, refused.text
    try:
        rig.command("jump")
        raise AssertionError("jumped")
    except ValueError as problem:
        assert "reset to start" in str(problem)
    assert rig.command("reset to start").loop_state == "READY"
    assert rig.command("step", steps=20).transitions > held.transitions
    time.sleep(0.2)
    assert rig.status().loop_state == "HOLDING"
EOF
end_server TERM
"$python" - <<'EOF' || fail "events of a recording"
import numpy, rigstep
run = rigstep.open("waiting.mcap")
assert [e.what for e in run.events] == ["control gained", "hold", "reset to start", "step", "steps done"], run.events
assert numpy.all(numpy.diff(run.step) == 1) and len(run.step) == run.footer.steps and run.events[-1].step == run.step[-1]
EOF
finish
