#!/usr/bin/env python3
"""Somebody on the way: a relay between one rig and its server that passes everything on. It sends datagrams of the rig to
the server again, later and from a port of its own, the Hellos above all; now and then it sends a changed copy before the
datagram itself, either way; and it puts refusals, challenges and ends that it has forged before answers of the server.
Prints one JSON line at SIGTERM."""
import argparse, json, os, random, re, selectors, signal, socket, struct, sys, time, zlib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--to", type=int, required=True, help="port that the rig's datagrams are passed on to")
parser.add_argument("--server", type=int, required=True, help="port that they are repeated to")
args = parser.parse_args()

HELLO, KEPT, SELDOM = 1200, 2000, 20
source = os.environ["SOURCE"]
version = int(re.search(r"kProtocolVersion = (\d+)", open(f"{source}/proto/frame.h").read())[1])


def forged(session):
    """A refusal or a challenge without the nonce of the Hello, or the end of this session without its keys."""
    refusal = b"\x1a\x04\x08" + bytes([random.choice([1, 2, 5])]) + b"\x12\x00"
    challenge = b"\x3a\x12\x12\x10" + os.urandom(16)
    goodbye = random.choice([b"\x32\x00", b"\x32\x02\x10\x01"])
    content, session = random.choice([(refusal, 0), (challenge, 0), (refusal, session ^ 1), (goodbye, session ^ 1)])
    data = struct.pack("<2sBBQQqqq", b"RS", version, ord("s"), session, 1 << 40, time.monotonic_ns(), 0, 0) + content
    return data + zlib.crc32(data).to_bytes(4, "little") + bytes(12)


def changed(data):
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1:]


def read(link):
    while True:
        try:
            yield link.recvfrom(2048)
        except (BlockingIOError, ConnectionRefusedError):
            return


def send(link, data):
    try:
        link.send(data)
    except (BlockingIOError, ConnectionRefusedError):
        pass


front, back, own = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
front.bind(("127.0.0.1", 0))
back.connect(("127.0.0.1", args.to))
own.connect(("127.0.0.1", args.server))
waiting = selectors.DefaultSelector()
for link in (front, back, own):
    link.setblocking(False)
    waiting.register(link, selectors.EVENT_READ)
print(f"listening on {front.getsockname()[1]}", file=sys.stderr, flush=True)
counts = {"passed": 0, "repeated": 0, "changed": 0, "forged": 0}
rig, hellos, kept, stopped = None, [], [], []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))

while not stopped:
    waiting.select(0.1)
    for data, rig in read(front):
        if not random.randrange(SELDOM):
            send(back, changed(data))
            counts["changed"] += 1
        send(back, data)
        counts["passed"] += 1
        those = hellos if len(data) == HELLO else kept
        if len(those) < KEPT:
            those.append(data)
        else:
            those[random.randrange(KEPT)] = data
        send(own, random.choice(kept if kept and random.randrange(SELDOM) else hellos or kept))
        counts["repeated"] += 1
    for data, _ in read(back):
        if not rig:
            continue
        if not random.randrange(SELDOM):
            front.sendto(changed(data), rig)
            counts["changed"] += 1
        if len(data) == HELLO or not random.randrange(SELDOM):
            front.sendto(forged(struct.unpack_from("<Q", data, 4)[0]), rig)
            counts["forged"] += 1
        front.sendto(data, rig)
    for _ in read(own):  # answers to what was repeated
        pass
print(json.dumps(counts))
