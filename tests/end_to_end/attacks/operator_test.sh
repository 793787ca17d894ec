#!/usr/bin/env bash
# Faults are cleared and black boxes written for the rig in control and for operators only. Without keys that is the user
# who runs the server, by a key in his runtime folder; with keys it is the role in the key file.
source "$(dirname "$0")/../lib.sh"
mkdir -m 700 mine other boxes
export XDG_RUNTIME_DIR=$PWD/mine
as_other() { XDG_RUNTIME_DIR=$PWD/other "$@"; }
printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000' \
  'stale_input { max_age_steps: 100 rule: FAULT }' 'black_box { folder: "boxes" seconds: 1 }' >open.textproto
state() { "$RIGSTEP" status "127.0.0.1:$port" "$@" --json | "$python" -c 'import json, sys; d = json.load(sys.stdin); print(d["state"], d["faults"])'; }

serve open.textproto || exit 1
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2
sleep 0.5
[[ $(state) == "faulted 1" ]] || fail "not faulted but $(state)"
as_other expect 5 timeout 5 "$RIGSTEP" reset "127.0.0.1:$port" && says err 'there is no operator.s key for port'
as_other expect 5 timeout 5 "$RIGSTEP" blackbox "127.0.0.1:$port"
[[ $(state) == "faulted 1" ]] || fail "somebody else has cleared the fault"
file=$PWD/mine/rigstep/operator-$port.key
[[ $(stat -c '%a %a' "$file" 2>/dev/null) == "600 600" && $(stat -c %a mine/rigstep) == 700 ]] || fail "the operator's key is open to others"
# a key of another server is none
as_other "$RIGSTEP" keygen other.keys --participant desk --role operator 2>/dev/null
as_other expect 5 timeout 5 "$RIGSTEP" reset "127.0.0.1:$port" --key desk.key && says err 'does not know this one'
[[ $(state) == "faulted 1" ]] || fail "a foreign key has cleared the fault"
expect 0 "$RIGSTEP" reset "127.0.0.1:$port"
[[ $(state) == "running 1" ]] || fail "the operator did not clear the fault: $(state)"
end_server TERM
[[ ! -e $file ]] || fail "the operator's key is left behind"
# links in the place of the folder are not followed
rm -rf other/rigstep && mkdir -m 700 elsewhere && ln -s "$PWD/elsewhere" other/rigstep
XDG_RUNTIME_DIR=$PWD/other serve open.textproto || exit 1
end_server TERM
[[ -z $(ls elsewhere) ]] || fail "a link was followed: $(ls elsewhere)"

# with keys
rm -f desk.key
for participant in "bench controller" "screen observer" "desk operator"; do
  # shellcheck disable=SC2086
  set -- $participant
  expect 0 "$RIGSTEP" keygen rig.keys --participant "$1" --role "$2"
done
sed '1a link { key_file: "rig.keys" }' open.textproto >keyed.textproto
serve keyed.textproto || exit 1
expect 0 "$RIGSTEP" rig --port "$port" --key bench.key --duration 0.2
expect 5 timeout 9 "$RIGSTEP" rig --port "$port" --key screen.key --duration 0.2 && says err 'the role of the key "screen" is observer'
sleep 0.5
for key in screen.key bench.key; do
  expect 5 timeout 5 "$RIGSTEP" reset "127.0.0.1:$port" --key $key && says err 'only the rig in control or an operator'
  expect 5 timeout 5 "$RIGSTEP" blackbox "127.0.0.1:$port" --key $key
  expect 1 "$RIGSTEP" status "127.0.0.1:$port" --key $key
done
[[ $(state --key desk.key) == "faulted 1" ]] || fail "a wrong role has cleared the fault"
expect 0 "$RIGSTEP" reset "127.0.0.1:$port" --key desk.key
[[ $(state --key desk.key) == "running 1" ]] || fail "the operator did not clear the fault"
end_server TERM
finish
