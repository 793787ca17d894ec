#!/usr/bin/env python3
"""Somebody on the way who repeats what he has seen: a relay between one rig and its server that passes everything on, and
sends each datagram of the rig to the server again, later and from a port of its own. Prints one JSON line at SIGTERM."""
import argparse, json, random, selectors, signal, socket, sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--to", type=int, required=True, help="port that the rig's datagrams are passed on to")
parser.add_argument("--server", type=int, required=True, help="port that they are repeated to")
args = parser.parse_args()

front, back, own = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
front.bind(("127.0.0.1", 0))
back.connect(("127.0.0.1", args.to))
own.connect(("127.0.0.1", args.server))
waiting = selectors.DefaultSelector()
for link in (front, back, own):
    link.setblocking(False)
    waiting.register(link, selectors.EVENT_READ)
print(f"listening on {front.getsockname()[1]}", file=sys.stderr, flush=True)
passed, repeated, rig, kept, stopped = 0, 0, None, [], []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))


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


while not stopped:
    waiting.select(0.1)
    for data, rig in read(front):
        send(back, data)
        passed += 1
        if len(kept) < 2000:
            kept.append(data)
        else:
            kept[random.randrange(2000)] = data
        send(own, random.choice(kept))
        repeated += 1
    for data, _ in read(back):
        if rig:
            front.sendto(data, rig)
    for _ in read(own):  # answers to what was repeated
        pass
print(json.dumps({"passed": passed, "repeated": repeated}))
