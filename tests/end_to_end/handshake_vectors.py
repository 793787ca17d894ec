"""Recomputes the test vectors of proto/README.md. usage: handshake_vectors.py README"""
import re, struct, sys

from rigstep import link
from rigstep._messages import wire_pb2 as wire


def value(text):
    return b"".join(bytes(int(part[3:])) if part.startswith("00*") else bytes.fromhex(part) for part in text.split())


block = open(sys.argv[1]).read().split("## Test vectors")[1].split("```")[1]
want = {name: value(text) for name, text in re.findall(r"^(\w+) = (.+)$", block, re.M)}
assert len(want) == 18, len(want)

key = link.Credential(want["key"])
rig_public, server_public = link.public_of(want["rig_secret"]), link.public_of(want["server_secret"])
nonce, session = 0x0123456789ABCDEF, 0x1122334455667788
hello = wire.RigToServer(hello=wire.Hello(product_version="1.0", rig_name="bench 7", nonce=nonce, cookie=bytes(range(0xA0, 0xB0)),
                                          key_id=key.id, public_key=rig_public), proof=bytes(32))
hello = link.seal_plain(link.pack_header(0, 0, 1000), link.fill_up(hello), key.proof_key)
shared = link.shared_of(want["rig_secret"], server_public)
keys = link.SessionKeys(key.key, shared, hello, session, server_public)


def answer(proof_key, **content):
    message = wire.ServerToRig(**content, proof=bytes(32))
    return link.seal_plain(link.pack_header(0, 0, 5000, 1000, 4000, "s"), message.SerializeToString(), proof_key)


def sealed(key, header, message):
    return header + link.encrypt(key, 1, header, message.SerializeToString())


got = {
    "key": key.key, "key_id": key.id, "proof_key": key.proof_key,
    "rig_secret": want["rig_secret"], "rig_public": rig_public,
    "server_secret": want["server_secret"], "server_public": server_public,
    "hello": hello, "transcript": keys.transcript, "shared": shared, "master": keys.master,
    "rig_to_server": keys.to_server, "server_to_rig": keys.to_rig, "accept_key": keys.accept,
    "accept": answer(keys.accept, accept=wire.Accept(nonce=nonce, session=session, public_key=server_public)),
    "refusal": answer(key.proof_key, refusal=wire.Refusal(reason=wire.CONTROL_TAKEN, text="taken", nonce=nonce)),
    "join": sealed(keys.to_server, link.pack_header(session, 1, 2000), wire.RigToServer(join=wire.Join())),
    "goodbye": sealed(keys.to_rig, link.pack_header(session, 1, 6000, 2000, 5500, "s"),
                      wire.ServerToRig(goodbye=wire.Goodbye(text="done"))),
}
wrong = [name for name in want if got.get(name) != want[name]]
sys.exit(f"not as in {sys.argv[1]}: {', '.join(wrong)}" if wrong else 0)
