#!/usr/bin/env bash
# Files that somebody else made: recordings, mechanisms, rig files, tables, keys and verdicts that nest too deeply, ask for
# too much, lie about themselves, or are no files at all. Every command ends soon with an exit code of its own and a
# complaint that names the file; none dies by a signal, waits for ever or takes memory without end.
source "$(dirname "$0")/../lib.sh"
protoc --python_out=. -I "$SOURCE" proto/recording.proto || exit 1
four_bar=$SOURCE/config/mechanisms/four_bar.textproto

# refuses CODE PATTERN COMMAND...: within 10 s and 2 GB
refuses() {
  local wanted=$1 pattern=$2 code
  shift 2
  (ulimit -v 2097152 && exec timeout 10 "$@") >out 2>err </dev/null
  code=$?
  [[ $code -eq $wanted ]] || { fail "exit status $code instead of $wanted: $*"; return 1; }
  grep -Eq -- "$pattern" err || fail "\"$pattern\" is not what it says: $*"
}
forge() { PYTHONPATH=. "$python" "$SOURCE/tests/end_to_end/attacks/forge_recording.py" good.mcap "$@" || exit 1; }

expect 0 "$RIGSTEP" simulate "$four_bar" --duration 0.05 --dt 0.001 --output good.mcap
forge same.mcap pass
expect 0 "$RIGSTEP" replay same.mcap && says out '^bit-exact over 50 steps'

# --- JSON in a header that nests deeper than a stack: shown as the text that it is
for nested in '"[" * 200000 + "]" * 200000' "'{\"a\":' * 100000 + '1' + '}' * 100000"; do
  forge deep.mcap "h.commissioning = $nested"
  expect 0 "$RIGSTEP" replay deep.mcap --json && is_json out && assert_json out 'isinstance(d["commissioning"], str)'
  expect 0 "$RIGSTEP" replay deep.mcap && says out '^commissioned: a verdict that this version cannot read'
done

# --- numbers, lists and texts of a header have one bound for every reader
while IFS='|' read -r change field; do
  forge forged.mcap "$change"
  refuses 7 "forged\.mcap: byte [0-9]+: header\.$field.*, the (most|least) is .*; the file is damaged or forged" \
    "$RIGSTEP" replay forged.mcap
  refuses 7 "forged\.mcap: byte [0-9]+: header\.$field.*, the (most|least) is .*; the file is damaged or forged" \
    "$RIGSTEP" verify forged.mcap --solver ida --limit 1
done <<'END'
h.projection_passes = 65535|projection_passes is 65535
h.iterations = 1000|iterations is 1000
h.iterations = 0|iterations is 0
h.dt_ns = 2**64 - 1|dt_ns is 1.8
h.dt_ns = 0|dt_ns is 0
h.start_step = 2**63|start_step is 9.2
h.relative_compliance = float("nan")|relative_compliance is nan
h.commissioning = " " * (1 << 21)|commissioning its length in bytes is 2097152
h.mechanism_text = "#" * (17 << 20)|mechanism_text its length in bytes is 17825792
END

# --- what is not a file that ends is not read
mkfifo pipe
mkdir folder
for file in pipe /dev/zero folder; do
  refuses 3 ': file: ' "$RIGSTEP" check "$file"
  refuses 3 ': file: ' "$RIGSTEP" simulate "$file" --duration 0.01
  refuses 3 ': file: ' "$RIGSTEP" verify "$file"
  refuses 2 ': file: ' "$RIGSTEP" serve "$file" --port 0 --duration 0.1
  refuses 2 ': file: ' "$RIGSTEP" simulate "$four_bar" --inputs "$file" --duration 0.01
  refuses 7 'not a regular file' "$RIGSTEP" replay "$file"
  refuses 4 'key file' "$RIGSTEP" status 127.0.0.1:9 --key "$file"
done
ln -s pipe link
refuses 3 'link: file: is no regular file: write what comes from there to a file' "$RIGSTEP" check link
refuses 2 'was not written by rigstep tune' "$RIGSTEP" tune "$four_bar" --deadline 100 --error 1e-3 --output pipe
truncate -s 64M large.textproto
refuses 3 'large\.textproto: file: has more than 16777216 bytes' "$RIGSTEP" check large.textproto

# --- a verdict of commissioning that is none
printf 'mechanism: "%s"\nperiod_us: 1000\n' "$four_bar" >rig.textproto
"$python" -c 'print("[" * 300000 + "]" * 300000)' >rig.commissioned.json
expect 0 "$RIGSTEP" serve rig.textproto --port 0 --duration 0.1 && says err 'is no verdict of rigstep commission'
rm rig.commissioned.json && mkfifo rig.commissioned.json
expect 0 "$RIGSTEP" serve rig.textproto --port 0 --duration 0.1 && says err 'rig\.commissioned\.json: file: is no regular file'
rm rig.commissioned.json

# --- texts that nest, and numbers beyond their bounds
"$python" -c 'print("body {" * 100000)' >nested.textproto
refuses 3 'nested\.textproto:1: ' "$RIGSTEP" check nested.textproto
for setting in 'solver { projection_passes: 4294967295 }' 'solver { iterations: 51 }' 'realtime { threads: 65 }' \
  'realtime { busy_poll_us: 4294967295 }' 'recording { full_state_every: 4294967295 }' 'link { timeout_steps: 4294967295 }' \
  'black_box { folder: "." seconds: 1e300 }' 'link { port: 65536 }'; do
  printf 'mechanism: "%s"\n%s\n' "$four_bar" "$setting" >rig.textproto
  refuses 2 'rig\.textproto:2: .*, the most is [0-9]+: ' "$RIGSTEP" serve rig.textproto --port 0 --duration 0.1
done
"$python" - <<'END'
open("many.textproto", "w").write("body { }\n" * 100001)
open("long.textproto", "w").write('name: "' + "x" * 5000 + '"\nbody { name: "A" mass: 1 }\n')
END
refuses 3 'many\.textproto:[0-9]+: body: has a length of 100001, the most is 100000' "$RIGSTEP" check many.textproto
refuses 3 'long\.textproto:1: name: its length in bytes is 5000, the most is 4096' "$RIGSTEP" check long.textproto

# --- a container that lies: chunks larger than the file, of no size, that hold themselves; cut off anywhere
"$python" - <<'END'
import struct, zlib
good = open("good.mcap", "rb").read()
chunk = good.index(b"\x06", 8)
while struct.unpack_from("<Q", good, chunk + 1)[0] > len(good):  # the byte may stand elsewhere
    chunk = good.index(b"\x06", chunk + 1)
def lie(name, offset, form, value):
    data = bytearray(good)
    struct.pack_into(form, data, chunk + offset, value)
    open(name, "wb").write(data)
lie("lie_length.mcap", 1, "<Q", 2**63)
lie("lie_zero.mcap", 1, "<Q", 0)
lie("lie_size.mcap", 25, "<Q", 2**62)
lie("lie_stored.mcap", 41, "<Q", 2**62)
for k, cut in enumerate((1, 8, 9, 60, 200, 1000)):
    open(f"lie_cut{k}.mcap", "wb").write(good[:cut])
inner = good[8:chunk + 300]
body = struct.pack("<BQ", 6, 2**40) + inner  # a chunk in a chunk
content = struct.pack("<QQQIIQ", 0, 0, len(body), zlib.crc32(body), 0, len(body)) + body
open("lie_nested.mcap", "wb").write(good[:8] + struct.pack("<BQ", 6, len(content)) + content)
content = struct.pack("<QQQI", 0, 0, 2**50, 0) + struct.pack("<I", 4) + b"zstd" + struct.pack("<Q", 4) + b"bomb"
open("lie_bomb.mcap", "wb").write(good[:8] + struct.pack("<BQ", 6, len(content)) + content)
END
for lie in lie_*.mcap; do refuses 7 "$lie: (byte|the)" "$RIGSTEP" replay "$lie"; done
truncate -s 40G sparse.mcap
refuses 7 'sparse\.mcap: byte 0: not an MCAP file' "$RIGSTEP" replay sparse.mcap

# --- tables
printf 't,drive\n0,1\n0.01,nan\n' >nan.csv
refuses 2 'nan\.csv:3: column 2' "$RIGSTEP" simulate "$four_bar" --inputs nan.csv --duration 0.01
"$python" -c 'print("t" + ",drive" * 2000000)' >wide.csv
refuses 2 'wide\.csv:1: column 3: "drive" names another column' "$RIGSTEP" simulate "$four_bar" --inputs wide.csv --duration 0.01
"$python" -c 'print("t," + ",".join(f"c{k}" for k in range(200000)))' >wide.csv
refuses 2 'wide\.csv' "$RIGSTEP" simulate "$four_bar" --inputs wide.csv --duration 0.01

# --- keys
head -c 1000000 /dev/zero >zero.key && chmod 600 zero.key
refuses 4 'key file zero\.key: ' "$RIGSTEP" status 127.0.0.1:9 --key zero.key
finish
