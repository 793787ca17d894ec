#!/usr/bin/env bash
# Somebody on the way sends a starting rig refusals, forged or captured, before each answer of the server. They do not
# name the nonce of its Hello and prove nothing: the rig connects, with a key and without.
source "$(dirname "$0")/../lib.sh"
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000' >open.textproto
{ cat open.textproto && echo 'link { key_file: "bench.key" }'; } >keyed.textproto

cat >relay.py <<'END'
import os, select, socket, struct, sys, time, zlib
front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
front.bind(("127.0.0.1", 0))
back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
back.connect(("127.0.0.1", int(sys.argv[1])))
open("relay.new", "w").write(str(front.getsockname()[1]))
os.rename("relay.new", "relay.port")

def refusal(hello, reason):  # the version and the clock of the Hello, but not its nonce
    text = b"Rigstep 9 is needed here"
    message = b"\x1a" + bytes([4 + len(text), 0x08, reason, 0x12, len(text)]) + text
    data = struct.pack("<2sBBQQqqq", b"RS", hello[2], ord("s"), 0, 0, 1, struct.unpack_from("<q", hello, 20)[0], 1) + message
    return data + zlib.crc32(data).to_bytes(4, "little") + bytes(12)

rig, end = None, time.monotonic() + 8
while time.monotonic() < end:
    for ready in select.select([front, back], [], [], 0.2)[0]:
        if ready is front:
            data, rig = front.recvfrom(2048)
            if len(data) == 1200:
                for reason in (1, 2, 5):  # another version, control taken, authentication
                    front.sendto(refusal(data, reason), rig)
            back.send(data)
        elif rig:
            front.sendto(back.recv(2048), rig)
END
for link in open keyed; do
  serve $link.textproto || exit 1
  rm -f relay.port
  "$python" relay.py "$port" &
  relay=$!
  for _ in $(seq 50); do
    [[ -s relay.port ]] && break
    sleep 0.1
  done
  key=()
  [[ $link == keyed ]] && key=(--key bench.key)
  expect 0 "$RIGSTEP" rig --port "$(cat relay.port)" "${key[@]}" --duration 0.5 --json && assert_json out 'd["states"] > 20'
  kill "$relay"
  { wait "$relay"; } 2>/dev/null
  end_server TERM
done
finish
