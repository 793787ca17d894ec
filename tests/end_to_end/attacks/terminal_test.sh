#!/usr/bin/env bash
# Names and texts from a network, a file or the command line are shown to people and steer nothing: no control character
# but line ends reaches the terminal or the log, nobody forges a line of them, and JSON is ASCII. Who connects and leaves
# all the time does not fill the log.
source "$(dirname "$0")/../lib.sh"
esc=$'\x1b'
protoc --python_out=. -I "$SOURCE" proto/recording.proto || exit 1

# steers_nothing FILE: no control character but line ends, no mark of direction, nothing that is no UTF-8
steers_nothing() {
  "$python" - "$1" <<'END' || fail "$1 of the last command would steer a terminal: $(od -c "$1" | head -n 5)"
import sys, unicodedata
text = open(sys.argv[1], "rb").read().decode()  # raises where it is no UTF-8
bad = [c for c in text if (unicodedata.category(c) in ("Cc", "Zl", "Zp") and c != "\n") or 0x202A <= ord(c) <= 0x202E
       or 0x2066 <= ord(c) <= 0x2069 or ord(c) in (0x200E, 0x200F, 0x061C)]
sys.exit(bool(bad))
END
}
is_ascii_json() {
  is_json "$1"
  LC_ALL=C grep -q '[^ -~]' "$1" && fail "$1 of the last command is not ASCII: $(od -c "$1" | head -n 5)"
}

# --- what an error tells of a mechanism file
name='four\\033[2J\\nbar \\302\\233 \\342\\200\\256 \\177'
sed "s/^name: .*/name: \"$name\"/" "$SOURCE/config/mechanisms/four_bar.textproto" >evil.textproto
for command in "check evil.textproto" "check evil.textproto --json" "simulate evil.textproto" "verify evil.textproto"; do
  expect 3 "$RIGSTEP" $command && steers_nothing err &&
    says err '^rigstep: evil\.textproto:[0-9]+: name: "four\\x1b\[2J\\x0abar \\u009b \\u202e \\x7f" has a character'
done
printf 'mechanism: "four_bar.textproto"\nlink { key_file: "no\\033[2J.key" }\n' >evil_rig.textproto
cp "$SOURCE/config/mechanisms/four_bar.textproto" .
expect 4 "$RIGSTEP" serve evil_rig.textproto --port 0 && steers_nothing err && says err 'no\\x1b\[2J\.key'

# --- names of files and of options
cp four_bar.textproto "name${esc}[31m"$'\n.textproto'
expect 0 "$RIGSTEP" check "name${esc}[31m"$'\n.textproto' && steers_nothing out && says out 'name\\x1b\[31m\\x0a'
expect 0 "$RIGSTEP" check "name${esc}[31m"$'\n.textproto' --json && is_ascii_json out
expect 3 "$RIGSTEP" check "missing${esc}c"$'\xff\n13:00:00 info'.textproto && steers_nothing err &&
  says err '^rigstep: missing\\x1bc\\xff\\x0a13:00:00 info'
expect 2 "$RIGSTEP" check evil.textproto "--no-such${esc}[2J" && steers_nothing err && says err 'no-such\\x1b'
expect 2 "$RIGSTEP" "no-such${esc}[2J" && steers_nothing err && says err 'no-such\\x1b'

# --- the texts of a recording's header
expect 0 "$RIGSTEP" simulate four_bar.textproto --duration 0.01 --output good.mcap
PYTHONPATH=. "$python" "$SOURCE/tests/end_to_end/attacks/forge_recording.py" good.mcap forged.mcap \
  'h.compiler = "cc\x1b[2J\nbit-exact over 50 steps"' 'h.cpu = "\u009b31m"' \
  'h.commissioning = "{\"measured\": \"\\u001b[2J\", \"carried\": false, \"rules\": []}"' || exit 1
expect 0 "$RIGSTEP" replay forged.mcap && steers_nothing out && says out 'NOT CARRIED .*\\x1b\[2J' &&
  says out 'another build or processor: cc\\x1b\[2J\\x0abit-exact over 50 steps on \\u009b31m'
expect 0 "$RIGSTEP" replay forged.mcap --json && is_ascii_json out
PYTHONPATH=. "$python" "$SOURCE/tests/end_to_end/attacks/forge_recording.py" good.mcap forged.mcap \
  'h.mechanism_file = "\x1b[2J"' 'h.mechanism_text = "body { name: \"\u202e\" }"' || exit 1
expect 3 "$RIGSTEP" replay forged.mcap && steers_nothing err && says err '\\x1b\[2J:1: .*\\u202e'

# --- the names of rigs in the log, and in what others are told
printf 'mechanism: "four_bar.textproto"\n' >rig.textproto
serve rig.textproto || exit 1
"$RIGSTEP" rig --port "$port" --duration 1 --name "rig${esc}[2J"$'\n12:00:00 info' >first.out 2>first.err &
first=$!
for _ in $(seq 20); do grep -q ' connected$' serve.err && break || sleep 0.1; done
expect 0 "$RIGSTEP" status "127.0.0.1:$port" && steers_nothing out && says out 'rig\\x1b\[2J\\x0a12:00:00 info'
expect 0 "$RIGSTEP" status "127.0.0.1:$port" --json && is_ascii_json out
timeout 20 "$RIGSTEP" rig --port "$port" --duration 0.2 --name other >out 2>err
steers_nothing out && steers_nothing err
wait "$first"
for _ in $(seq 20); do grep -q 'left$' serve.err && break || sleep 0.1; done
steers_nothing serve.err && says serve.err 'rig "rig\\x1b\[2J\\x0a12:00:00 info" .* connected'

# --- who comes and goes all the time gets ten lines a second, and the rest is counted
for _ in $(seq 40); do "$RIGSTEP" rig --port "$port" --duration 0.01 --name hasty >/dev/null 2>&1 & done
for job in $(jobs -p); do [[ $job == "$server" ]] || wait "$job"; done
for _ in $(seq 30); do grep -q 'more lines about rigs and requests in the last second' serve.err && break || sleep 0.1; done
end_server TERM
says serve.err '[0-9]+ more lines about rigs and requests in the last second'
"$python" - <<'END' || fail "more than ten lines in one second: $(cut -c1-8 serve.err | uniq -c | sort -n | tail -n 3)"
import collections
# a second of the clock may hold the lines of two seconds of the limit
seconds = collections.Counter(line[:8] for line in open("serve.err") if '"hasty"' in line or "left" in line)
import sys
sys.exit(max(seconds.values(), default=0) > 20)
END
finish
