#!/usr/bin/env bash
# The Wireshark dissector names the fields of frames and of the messages in them.
source "$(dirname "$0")/lib.sh"
command -v tshark >/dev/null || { echo "skipped: no tshark here"; exit 77; }
corpus=$SOURCE/tests/fuzz/corpus/decode
"$python" - "$corpus" <<'END' || exit 1
import struct, sys
def packet(name, source, destination):
    data = open(f"{sys.argv[1]}/{name}", "rb").read()
    udp = struct.pack(">HHHH", source, destination, 8 + len(data), 0) + data
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1") + udp
    return struct.pack("<IIII", 0, 0, len(ip), len(ip)) + ip
with open("frames.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for name in ("hello_frame", "input_frame", "noise"):
        file.write(packet(name, 40000, 47001))
    for name in ("welcome_frame", "state_frame"):
        file.write(packet(name, 47001, 40000))
END
dissect=(tshark -r frames.pcap -X "lua_script:$SOURCE/proto/rigstep.lua" -o "uat:protobuf_search_paths:\"$SOURCE\",\"TRUE\"")
expect 0 "${dissect[@]}" -Y rigstep -T fields -e rigstep.sender -e rigstep.session -e rigstep.number -e rigstep.held_ns
says out '^0x72\s0x0+\s1\s50$' && says out '^0x72\s0x0*9\s1\s50$' && says out '^0x73\s0x0*9\s1\s50$'
[[ $(wc -l <out) -eq 4 ]] || fail "not the four frames"
expect 0 "${dissect[@]}" -V && says out 'rigstep.wire.RigToServer' && says out 'rig_name: bench|rig_name = bench' &&
  says out 'rigstep.wire.StateFrame'
! grep -q 'not dissected\|Lua Error' out err || fail "the dissector failed"
finish
