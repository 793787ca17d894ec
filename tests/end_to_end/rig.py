#!/usr/bin/env python3
"""A rig in sixty lines: sends a sine on the first input, reads states, prints one JSON line; exit code 1 without states.
Needs proto/wire_pb2.py on PYTHONPATH: protoc --python_out=DIR -I REPOSITORY proto/wire.proto"""
import argparse, json, math, socket, sys, time

from proto import wire_pb2 as wire

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--seconds", type=float, default=5.0)
parser.add_argument("--rate", type=float, default=1000.0, help="inputs per second")
args = parser.parse_args()
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.connect((args.host, args.port))

def ask(request, wanted):
    for _ in range(30):
        try:
            link.send(wire.RigToServer(protocol_version=1, **request).SerializeToString())
            link.settimeout(0.1)
            for _ in range(100):  # states may be between
                reply = wire.ServerToRig.FromString(link.recv(2048))
                if reply.HasField("refusal"):
                    sys.exit("refused: " + reply.refusal.text)
                if reply.HasField(wanted):
                    return getattr(reply, wanted)
        except (TimeoutError, ConnectionRefusedError):
            time.sleep(0.05)
    sys.exit(f"no answer from {args.host}:{args.port}: is `rigstep serve` running there?")

welcome = ask({"hello": {"product_version": "rig.py", "rig_name": "rig.py"}}, "welcome")
inputs = []
while len(inputs) < welcome.input_channels:
    inputs += ask({"channel_query": {"direction": wire.INPUT, "first": len(inputs)}}, "channel_page").channel
states, lost, last, trips, echoed, sequence = 0, 0, None, [], 0, 0
start = time.monotonic_ns()
while (now := time.monotonic_ns()) < start + args.seconds * 1e9:
    sequence += 1
    frame = wire.InputFrame(mechanism_id=welcome.mechanism_id, sequence=sequence, rig_time_ns=now)
    frame.value.extend(math.sin(2 * math.pi * (now - start) * 1e-9) if i == 0 else 0.0 for i in range(len(inputs)))
    link.send(wire.RigToServer(protocol_version=1, input=frame).SerializeToString())
    while (left := start + sequence * 1e9 / args.rate - time.monotonic_ns()) > 0:
        link.settimeout(left * 1e-9)
        try:
            state = wire.ServerToRig.FromString(link.recv(2048)).state
        except (TimeoutError, ConnectionRefusedError):
            continue
        if state.mechanism_id != welcome.mechanism_id:
            continue  # something else than a state
        assert state.sim_time_ns == state.step * welcome.period_ns, "simulated time is not step * period"
        assert last is None or state.step > last or state.flags & 16, "the step did not increase"
        states, lost, last = states + 1, lost + (max(state.step - last - 1, 0) if last else 0), state.step
        if echoed < state.sequence <= sequence and state.rig_time_ns >= start:  # else an earlier rig's
            trips.append(time.monotonic_ns() - state.rig_time_ns)
            echoed = state.sequence
link.send(wire.RigToServer(protocol_version=1, goodbye={"text": "done"}).SerializeToString())
median = sorted(trips)[len(trips) // 2] / 1000 if trips else None
print(json.dumps({"states": states, "lost": lost, "rtt_p50_us": median, "inputs": [c.name for c in inputs]}))
sys.exit(0 if states else 1)
