#!/usr/bin/env python3
"""A stranger's flood: datagrams to a server on loopback at a given rate, 0.4 s of each kind in turn, each after a
pause if one is asked for, until SIGTERM at the latest. Prints one JSON line: datagrams sent, seconds of flood, rate, and
begin and end of each turn in ns since 1970. Its own port differs from the rig's, its address does not."""
import argparse, ctypes, json, os, random, re, signal, socket, struct, time, zlib

SIZE, HEADER, TAG = 1200, struct.Struct("<2sBBQQqqq"), 16
AT_ONCE, VOLLEY, TURN = 500, 0.004, 0.4  # a volley of full ones is more than a socket holds


class Buffer(ctypes.Structure):  # struct iovec
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Header(ctypes.Structure):  # struct msghdr
    _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_uint32), ("buffer", ctypes.POINTER(Buffer)),
                ("buffers", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Message(ctypes.Structure):  # struct mmsghdr
    _fields_ = [("header", Header), ("sent", ctypes.c_uint)]


class Volley:
    """Datagrams that leave with one system call: one send() each takes a whole core before it comes to 50 000 a second."""

    def __init__(self, datagrams):
        self.buffers = (Buffer * len(datagrams))(*[Buffer(data, len(data)) for data in datagrams])
        self.messages = (Message * len(datagrams))()
        for message, buffer in zip(self.messages, self.buffers):
            message.header.buffer, message.header.buffers = ctypes.pointer(buffer), 1
        self.sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg

    def send(self, link, count):
        """How many the system took; none where it told an error of an earlier one."""
        return max(self.sendmmsg(link.fileno(), self.messages, count, 0), 0)


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


def turn(link, volley, rate, seconds):
    """One turn at this rate; how many were sent."""
    sent, begin = 0, time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        sent += volley.send(link, max(min(AT_ONCE, int(rate * now) - sent), 0))
        time.sleep(VOLLEY)
    return sent


def main():
    kinds = ["garbage", "hello", "cookie", "status", "command", "input"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=float, default=50000, help="datagrams per second")
    parser.add_argument("--seconds", type=float, default=3, help="of flood, pauses aside")
    parser.add_argument("--pause", type=float, default=0, help="seconds before each turn")
    parser.add_argument("--kinds", default=",".join(kinds))
    args = parser.parse_args()
    source = os.environ["SOURCE"]
    version = int(re.search(r"kProtocolVersion = (\d+)", open(f"{source}/proto/frame.h").read())[1])
    kinds = args.kinds.split(",")
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # answers are not read
    link.connect(("127.0.0.1", args.port))
    sent, seconds, turns, told_to_stop = 0, 0, [], []
    signal.signal(signal.SIGTERM, lambda *_: told_to_stop.append(True))
    while seconds < args.seconds and not told_to_stop:
        kind = kinds[len(turns) % len(kinds)]
        volley = Volley([make(kind, version) for _ in range(AT_ONCE)])  # with fresh nonces
        time.sleep(args.pause)
        begin = time.time_ns()
        sent += turn(link, volley, args.rate, min(TURN, args.seconds - seconds))
        turns.append((begin, time.time_ns()))
        seconds += (turns[-1][1] - begin) * 1e-9
    print(json.dumps({"sent": sent, "seconds": seconds, "rate": sent / seconds, "turns": turns}))


main()
