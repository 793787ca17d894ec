#!/usr/bin/env python3
"""A stranger's flood: datagrams to a server on loopback at a given rate, half a second of each kind in turn.
Prints one JSON line: sent, seconds, rate. Its own port differs from the rig's, its address does not."""
import argparse, json, os, random, re, socket, struct, time, zlib

SIZE, HEADER, TAG = 1200, struct.Struct("<2sBBQQqqq"), 16
AT_ONCE, TURN = 500, 0.5


def field(number, data):
    """A protobuf field of bytes, text or a message."""
    size = len(data)
    prefix = bytes([number << 3 | 2])
    while size > 127:
        prefix, size = prefix + bytes([size & 127 | 128]), size >> 7
    return prefix + bytes([size]) + data


def frame(version, session, message, fill_up):
    if fill_up:
        left = SIZE - HEADER.size - TAG - len(message)
        message += field(15, bytes(left - 3))
    data = HEADER.pack(b"RS", version, ord("r"), session, 1 if session else 0, time.monotonic_ns(), 0, 0) + message
    return data + zlib.crc32(data).to_bytes(4, "little") + bytes(TAG - 4)


def hello(version, cookie=b""):
    content = field(1, b"1.0") + field(2, b"stranger") + b"\x21" + os.urandom(8)
    return frame(version, 0, field(2, content + (field(5, cookie) if cookie else b"")), True)


def make(kind, version):
    if kind == "garbage":
        return random.choice([os.urandom(64), os.urandom(SIZE), b"RS" + bytes([version]) + b"r" + os.urandom(296),
                              b"RS" + bytes([version]) + b"r" + os.urandom(SIZE - 4)])
    if kind == "hello":
        return hello(version)
    if kind == "cookie":
        return hello(version, os.urandom(16))
    if kind == "status":
        return frame(version, 0, field(7, b""), True)
    if kind == "command":  # a black box, or a reset
        return frame(version, 0, field(random.choice([8, 9]), b"\x08\x01\x11" + os.urandom(8)), True)
    return frame(version, random.getrandbits(64), field(4, b"\x09" + os.urandom(8) + b"\x10\x05"), False)  # input


def main():
    kinds = ["garbage", "hello", "cookie", "status", "command", "input"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=float, default=50000, help="datagrams per second")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--kinds", default=",".join(kinds))
    args = parser.parse_args()
    source = os.environ["SOURCE"]
    version = int(re.search(r"kProtocolVersion = (\d+)", open(f"{source}/proto/frame.h").read())[1])
    kinds = args.kinds.split(",")
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # answers are not read
    link.connect(("127.0.0.1", args.port))
    send, sent, turn, begin = link.send, 0, -1, time.monotonic()
    while (now := time.monotonic() - begin) < args.seconds:
        if int(now / TURN) != turn:  # with fresh nonces
            turn = int(now / TURN)
            datagrams = [make(kinds[turn % len(kinds)], version) for _ in range(AT_ONCE)]
        for _ in range(min(AT_ONCE, int(args.rate * now) - sent)):
            try:
                send(datagrams[sent % AT_ONCE])
            except OSError:
                pass
            sent += 1
        time.sleep(0.0005)
    seconds = time.monotonic() - begin
    print(json.dumps({"sent": sent, "seconds": seconds, "rate": sent / seconds}))


main()
