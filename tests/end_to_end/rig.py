#!/usr/bin/env python3
"""A rig in a hundred lines: sends a sine on the first input, reads states, prints one JSON line; exit code 1 without states.
The link is rigstep_link.py beside it. Needs proto/wire_pb2.py on PYTHONPATH:
protoc --python_out=DIR -I REPOSITORY proto/wire.proto"""
import argparse, json, math, sys, time

import rigstep_link
from proto import wire_pb2 as wire

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="the participant's key file of `rigstep keygen`")
parser.add_argument("--name", default="rig.py")
parser.add_argument("--seconds", type=float, default=5.0)
parser.add_argument("--rate", type=float, default=1000.0, help="inputs per second")
args = parser.parse_args()

try:
    link = rigstep_link.Link(args.host, args.port, rigstep_link.read_key_file(args.key) if args.key else None)
    welcome = link.connect(name=args.name)
except rigstep_link.Refused as refusal:
    sys.exit(f"refused: {refusal}")
except ValueError as problem:
    sys.exit(str(problem))
except TimeoutError:
    sys.exit(f"no answer from {args.host}:{args.port}: is `rigstep serve` running there, with this key?")

inputs = []
while len(inputs) < welcome.input_channels:
    inputs += link.ask("channel_page", channel_query={"direction": wire.INPUT, "first": len(inputs)}).channel
states, lost, last, trips, echoed = 0, 0, None, [], 0
sequence = welcome.step if welcome.lockstep else 0
start = time.monotonic_ns()

def input_frame(now):
    seconds = sequence * welcome.period_ns * 1e-9 if welcome.lockstep else (now - start) * 1e-9
    frame = wire.InputFrame(mechanism_id=welcome.mechanism_id, sequence=sequence, rig_time_ns=now)
    frame.value.extend(math.sin(2 * math.pi * seconds) if i == 0 else 0.0 for i in range(len(inputs)))
    return frame

def take(answer):
    """Checks and counts a state, and returns it. None: the answer is none, or one that came before."""
    global states, lost, last, echoed
    if link.goodbye:
        sys.exit(f"the server has ended the session: {link.goodbye.text}")
    if not answer or not answer[1].HasField("state"):
        return None
    state = answer[1].state
    if welcome.lockstep and state.step == last and not state.flags & 16:  # asked for twice, answered twice
        return None
    assert state.sim_time_ns == state.step * welcome.period_ns, "simulated time is not step * period"
    assert last is None or state.step > last or state.flags & 16, "the step did not increase"
    states, lost, last = states + 1, lost + (max(state.step - last - 1, 0) if last else 0), state.step
    if echoed < state.sequence <= sequence and state.rig_time_ns >= start:  # else an earlier rig's
        trips.append(time.monotonic_ns() - state.rig_time_ns)
        echoed = state.sequence
    return state

while (now := time.monotonic_ns()) < start + args.seconds * 1e9:
    sequence += 1
    link.send(input=input_frame(now))
    if welcome.lockstep:  # as fast as the server answers; what was lost is asked for again, and stepped once
        state = asked = None
        while state is None:
            state = take(link.receive(0.1))
            if state is None and time.monotonic_ns() > (asked or now) + 1e8:
                asked = time.monotonic_ns()
                link.send(input=input_frame(now))
        if state.flags & 16:
            sys.exit("the server has a fault: rigstep status tells which, rigstep reset clears it")
        continue
    paced = start + sequence * 1e9 / args.rate
    while (left := paced - time.monotonic_ns()) > 0:
        take(link.receive(left * 1e-9))
link.send(goodbye={"text": "done"})
median = sorted(trips)[len(trips) // 2] / 1000 if trips else None
clock = None
if link.offset is not None:
    clock = {"offset_us": link.offset / 1000, "uncertainty_us": link.shortest / 2000}
print(json.dumps({"states": states, "lost": lost, "rtt_p50_us": median, "clock": clock, "inputs": [c.name for c in inputs]}))
sys.exit(0 if states else 1)
