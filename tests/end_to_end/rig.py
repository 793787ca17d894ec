#!/usr/bin/env python3
"""A rig in a hundred lines: sends a sine on the first input, reads states, prints one JSON line; exit code 1 without states.
Needs proto/wire_pb2.py on PYTHONPATH: protoc --python_out=DIR -I REPOSITORY proto/wire.proto"""
import argparse, hashlib, hmac, json, math, os, secrets, socket, struct, sys, time, zlib

from proto import wire_pb2 as wire

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=47001)
parser.add_argument("--key", help="copy of the server's key file")
parser.add_argument("--seconds", type=float, default=5.0)
parser.add_argument("--rate", type=float, default=1000.0, help="inputs per second")
args = parser.parse_args()

VERSION, DATAGRAM, TAG = 2, 1200, 16
HEADER = struct.Struct("<2sBBQQqqq")  # magic, version, sender, session, number, sent, echoes: see wire.proto
key = b""
if args.key:
    if os.stat(args.key).st_mode & 0o077:
        sys.exit(f"{args.key}: others may read it: chmod 600 {args.key}")
    key = bytes.fromhex(open(args.key).read())
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.connect((args.host, args.port))
session, number, newest, echo_sent, echo_came = 0, 0, 0, 0, 0
offset, shortest = None, math.inf  # the server's clock minus ours, from the shortest exchange

def tag(data):
    if not key:
        return zlib.crc32(data).to_bytes(4, "little") + bytes(TAG - 4)
    return hashlib.blake2b(data, key=key, digest_size=TAG).digest()

def send(fill_up=False, **content):
    global number
    number += 1 if session else 0
    message = wire.RigToServer(**content)
    if fill_up:
        message.padding = bytes(DATAGRAM - HEADER.size - TAG - message.ByteSize() - 3)
    header = HEADER.pack(b"RS", VERSION, ord("r"), session, number, time.monotonic_ns(), echo_sent, echo_came)
    data = header + message.SerializeToString()
    link.send(data + tag(data))

def receive(timeout):
    """The next datagram of the server that is right: session and message. None: something else."""
    global newest, echo_sent, echo_came, offset, shortest
    link.settimeout(timeout)
    data = link.recv(2048)
    came = time.monotonic_ns()
    if len(data) < HEADER.size + TAG or not hmac.compare_digest(tag(data[:-TAG]), data[-TAG:]):
        return None
    magic, version, sender, of, count, sent, my_sent, there_came = HEADER.unpack_from(data)
    if (magic, version, sender) != (b"RS", VERSION, ord("s")) or of not in (0, session) and session:
        return None
    if session and of == session:
        if count <= newest:  # overtaken or doubled
            return None
        newest, echo_sent, echo_came = count, sent, came
        if my_sent and (came - my_sent) - (sent - there_came) < shortest:
            shortest = (came - my_sent) - (sent - there_came)
            offset = ((there_came - my_sent) + (sent - came)) / 2
    return of, wire.ServerToRig.FromString(data[HEADER.size:-TAG])

def ask(wanted, fill_up=False, **request):
    for _ in range(30):
        try:
            send(fill_up, **request)
            for _ in range(100):  # states may be between
                answer = receive(0.1)
                if answer and answer[1].HasField("refusal"):
                    sys.exit("refused: " + answer[1].refusal.text)
                if answer and answer[1].HasField(wanted):
                    return answer[0], getattr(answer[1], wanted)
        except (TimeoutError, ConnectionRefusedError):
            time.sleep(0.05)
    sys.exit(f"no answer from {args.host}:{args.port}: is `rigstep serve` running there, with this key?")

hello = {"product_version": "rig.py", "rig_name": "rig.py", "nonce": secrets.randbits(64)}
_, challenge = ask("challenge", True, hello=wire.Hello(**hello))
of, welcome = ask("welcome", True, hello=wire.Hello(**hello, cookie=challenge.cookie))
assert welcome.nonce == hello["nonce"], "a Welcome to somebody else"
session, inputs = of, []
while len(inputs) < welcome.input_channels:
    inputs += ask("channel_page", channel_query={"direction": wire.INPUT, "first": len(inputs)})[1].channel
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
    send(input=input_frame(now))
    if welcome.lockstep:  # as fast as the server answers; what was lost is asked for again, and stepped once
        state = None
        while state is None:
            try:
                state = take(receive(0.1))
            except (TimeoutError, ConnectionRefusedError):
                send(input=input_frame(now))
        if state.flags & 16:
            sys.exit("the server has a fault: rigstep status tells which, rigstep reset clears it")
        continue
    paced = start + sequence * 1e9 / args.rate
    while (left := paced - time.monotonic_ns()) > 0:
        try:
            take(receive(left * 1e-9))
        except (TimeoutError, ConnectionRefusedError):
            continue
send(goodbye={"text": "done"})
median = sorted(trips)[len(trips) // 2] / 1000 if trips else None
clock = {"offset_us": offset / 1000, "uncertainty_us": shortest / 2000} if offset is not None else None
print(json.dumps({"states": states, "lost": lost, "rtt_p50_us": median, "clock": clock, "inputs": [c.name for c in inputs]}))
sys.exit(0 if states else 1)
