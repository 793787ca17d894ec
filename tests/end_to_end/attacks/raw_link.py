"""A link that does what it is told, also what no rig should do: for attacks. Frames, handshake and session, from
proto/README.md. Needs proto/wire_pb2.py on PYTHONPATH: protoc --python_out=DIR -I REPOSITORY proto/wire.proto"""
import ctypes, ctypes.util, hashlib, hmac, math, os, secrets, socket, struct, time, zlib

from proto import wire_pb2 as wire

VERSION, DATAGRAM, TAG, PROOF = 3, 1200, 16, 32
HEADER = struct.Struct("<2sBBQQqqq")  # magic, version, sender, session, number, sent, echoes: see wire.proto
PROOF_FIELD = b"\x82\x01\x20"  # field 16, 32 bytes


def blake2b(key, data, size=32):
    return hashlib.blake2b(data, key=key, digest_size=size).digest()


_sodium = None


def sodium():
    global _sodium
    if _sodium is None:
        _sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
        assert _sodium.sodium_init() >= 0
    return _sodium


def public_of(secret):
    out = ctypes.create_string_buffer(32)
    assert sodium().crypto_scalarmult_base(out, secret) == 0
    return out.raw


def shared_of(secret, public):
    out = ctypes.create_string_buffer(32)
    if sodium().crypto_scalarmult(out, secret, public) != 0:
        raise ValueError("a public key of low order")
    return out.raw


def encrypt(key, number, header, plain):
    out = ctypes.create_string_buffer(len(plain) + TAG)
    size = ctypes.c_ulonglong()
    sodium().crypto_aead_chacha20poly1305_ietf_encrypt(
        out, ctypes.byref(size), plain, ctypes.c_ulonglong(len(plain)), header, ctypes.c_ulonglong(len(header)), None,
        struct.pack("<4xQ", number), key)
    return out.raw


def decrypt(key, number, header, sealed):
    """None: the tag is wrong."""
    if len(sealed) < TAG:
        return None
    out = ctypes.create_string_buffer(max(len(sealed) - TAG, 1))
    size = ctypes.c_ulonglong()
    wrong = sodium().crypto_aead_chacha20poly1305_ietf_decrypt(
        out, ctypes.byref(size), None, sealed, ctypes.c_ulonglong(len(sealed)), header, ctypes.c_ulonglong(len(header)),
        struct.pack("<4xQ", number), key)
    return None if wrong else out.raw[:size.value]


def crc_tag(data):
    return zlib.crc32(data).to_bytes(4, "little") + bytes(TAG - 4)


class Credential:
    """What follows from a key of the key file."""

    def __init__(self, key, name="", role=""):
        self.key, self.name, self.role = key, name, role
        self.id = blake2b(key, b"rigstep 3 key id", 16)
        self.proof_key = blake2b(key, b"rigstep 3 proof")


def read_key_file(path):
    """The one key of a participant's file."""
    if os.stat(path).st_mode & 0o077:
        raise ValueError(f"{path}: others may read it: chmod 600 {path}")
    lines = [line.split() for line in open(path) if line.strip() and not line.startswith("#")]
    if len(lines) != 1 or len(lines[0]) != 3 or len(lines[0][2]) != 64:
        raise ValueError(f"{path}: is not a participant's key file of `rigstep keygen`")
    return Credential(bytes.fromhex(lines[0][2]), lines[0][0], lines[0][1])


class SessionKeys:
    def __init__(self, key, shared, hello, session, server_public):
        self.transcript = hashlib.blake2b(hello + struct.pack("<Q", session) + server_public).digest()
        self.master = blake2b(key, shared + self.transcript, 64)
        self.to_server = blake2b(self.master, b"rigstep 3 rig to server")
        self.to_rig = blake2b(self.master, b"rigstep 3 server to rig")
        self.accept = blake2b(self.master, b"rigstep 3 accept")


def pack_header(session, number, sent, echo_sent=0, echo_came=0, sender="r"):
    return HEADER.pack(b"RS", VERSION, ord(sender), session, number, sent, echo_sent, echo_came)


def seal_plain(header, payload, proof_key=None):
    """A frame outside a session. With a proof key the payload has to end with the field `proof`, and gets it."""
    data = header + payload
    if proof_key:
        assert data[-PROOF - 3:-PROOF] == PROOF_FIELD
        data = data[:-PROOF] + blake2b(proof_key, data[:-PROOF])
    return data + crc_tag(data)


def is_proven(datagram, proof_key):
    data = datagram[:-TAG]
    return data[-PROOF - 3:-PROOF] == PROOF_FIELD and hmac.compare_digest(blake2b(proof_key, data[:-PROOF]), data[-PROOF:])


def fill_up(message, size=DATAGRAM):
    message.padding = b""
    message.padding = bytes(size - HEADER.size - TAG - message.ByteSize() - 3)
    return message.SerializeToString()


class Refused(Exception):
    def __init__(self, refusal, proven):
        super().__init__(refusal.text)
        self.reason, self.proven = refusal.reason, proven


class Link:
    def __init__(self, host, port, credential=None, local=None):
        self.credential, self.session, self.keys = credential, 0, None
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if local:
            self.socket.bind(local)
        self.socket.connect((host, port))
        self.number = self.newest = self.echo_sent = self.echo_came = 0
        self.offset, self.shortest = None, math.inf  # the server's clock minus ours, from the shortest exchange
        self.token, self.goodbye = b"", None

    # --- datagrams

    def hello(self, nonce, cookie=b"", role=wire.CONTROLLER, name="rig.py", secret=None, **more):
        """The bytes of a Hello. secret: of the X25519 key pair, where the cookie is there and a key is used."""
        hello = wire.Hello(product_version="rig.py", rig_name=name, role=role, nonce=nonce, cookie=cookie, **more)
        message = wire.RigToServer(hello=hello)
        proof_key = None
        if cookie and self.credential:
            message.hello.key_id, message.hello.public_key = self.credential.id, public_of(secret)
            message.proof, proof_key = bytes(PROOF), self.credential.proof_key
        return seal_plain(pack_header(0, 0, time.monotonic_ns()), fill_up(message), proof_key)

    def seal(self, message, delay_ns=0):
        self.number += 1
        header = pack_header(self.session, self.number, time.monotonic_ns() - delay_ns, self.echo_sent, self.echo_came)
        payload = message.SerializeToString()
        if self.keys:
            return header + encrypt(self.keys.to_server, self.number, header, payload)
        return seal_plain(header, payload)

    def send(self, **content):
        self.socket.send(self.seal(wire.RigToServer(**content)))

    def open(self, data, came):
        """Header and message of a datagram that is right; None: something else."""
        if not HEADER.size + TAG <= len(data) <= DATAGRAM:
            return None
        header = HEADER.unpack_from(data)
        if header[0] != b"RS" or header[2] != ord("s") or header[1] != VERSION:
            return None
        if header[3] == 0 or not self.keys:
            if data[-TAG:] != crc_tag(data[:-TAG]):
                return None
            payload = data[HEADER.size:-TAG]
        else:
            payload = decrypt(self.keys.to_rig, header[4], data[:HEADER.size], data[HEADER.size:])
        if payload is None or header[3] not in (0, self.session):
            return None
        if header[3] and not self.take_number(header, came):
            return None
        return header, wire.ServerToRig.FromString(payload)

    def take_number(self, header, came):
        count, sent, my_sent, there_came = header[4:]
        if count <= self.newest:  # overtaken or doubled
            return False
        self.newest, self.echo_sent, self.echo_came = count, sent, came
        if my_sent and (came - my_sent) - (sent - there_came) < self.shortest:
            self.shortest = (came - my_sent) - (sent - there_came)
            self.offset = ((there_came - my_sent) + (sent - came)) / 2
        return True

    def receive(self, timeout):
        """The next datagram that is right, as (bytes, message); None: none in this time, or something else."""
        self.socket.settimeout(max(timeout, 1e-4))
        try:
            data = self.socket.recv(2048)
        except (TimeoutError, ConnectionRefusedError):
            return None
        opened = self.open(data, time.monotonic_ns())
        if opened and opened[1].HasField("goodbye"):
            self.goodbye = opened[1].goodbye
        return opened and (data, opened[1])

    def wait_for(self, wanted, seconds):
        """The next message of this kind, as (bytes, message)."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            got = self.receive(left)
            if got and got[1].HasField(wanted):
                return got
            if got is None:
                time.sleep(0.001)  # a port without a server answers at once
        return None

    # --- the handshake

    def connect(self, seconds=3.0, **hello):
        """Welcome; raises Refused, or TimeoutError. A refusal is reported only at the end: it may be forged, or pass."""
        end, refused = time.monotonic() + seconds, None
        while time.monotonic() < end:
            try:
                if self.attempt(min(1.0, end - time.monotonic()), **hello):
                    return self.join(max(0.2, end - time.monotonic()))
            except Refused as reason:
                refused = reason
                time.sleep(0.1)
        raise refused or TimeoutError("no answer")

    def attempt(self, seconds, **hello):
        """One handshake up to Accept. False: no answer."""
        self.session, self.keys = 0, None
        nonce, secret, end = secrets.randbits(64), secrets.token_bytes(32), time.monotonic() + seconds
        cookie = self.answer(self.hello(nonce, **hello), "challenge", nonce, end)
        if not cookie:
            return False
        said = self.hello(nonce, cookie[1].challenge.cookie, secret=secret, **hello)
        accepted = self.answer(said, "accept", nonce, end)
        if not accepted:
            return False
        accept, keys = accepted[1].accept, None
        if self.credential:
            keys = SessionKeys(self.credential.key, shared_of(secret, accept.public_key), said, accept.session,
                               accept.public_key)
            if not is_proven(accepted[0], keys.accept):
                return False
        self.session, self.keys, self.number, self.newest = accept.session, keys, 0, 0
        self.echo_sent = self.echo_came = 0
        return True

    def answer(self, request, wanted, nonce, end):
        while time.monotonic() < end:
            self.socket.send(request)
            repeat = min(end, time.monotonic() + 0.1)
            while (left := repeat - time.monotonic()) > 0:
                got = self.receive(left)
                if not got:
                    time.sleep(0.001)
                elif got[1].HasField("refusal") and got[1].refusal.nonce == nonce:
                    raise Refused(got[1].refusal, self.credential and is_proven(got[0], self.credential.proof_key))
                elif got[1].HasField(wanted) and getattr(got[1], wanted).nonce == nonce:
                    return got
        return None

    def join(self, seconds=2.0):
        welcome = self.ask("welcome", seconds, join=wire.Join())
        self.token = welcome.token
        return welcome

    def ask(self, wanted, seconds=2.0, **request):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.send(**request)
            got = self.wait_for(wanted, 0.1)
            if got:
                return getattr(got[1], wanted)
        raise TimeoutError(f"no {wanted} from the server")
