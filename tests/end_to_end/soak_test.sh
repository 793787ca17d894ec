#!/usr/bin/env bash
# Two recorded runs at 1 kHz side by side, one with keys and one without, each through a bad network and beside attackers
# of all kinds: a flood of 10 000 datagrams a second in turn of garbage, Hellos, Hellos with cookies, status queries,
# commands and inputs; somebody on the way who repeats the rig's datagrams from a port of his own, its Hello above all,
# changes copies of them, and puts forged refusals, challenges and ends before the answers; rigs and operators who are none,
# and who ask for control, a reset and black boxes without end; an operator who is one, and asks for black boxes, too.
# No crash, no growth, control kept, few black boxes, a whole recording, a replay bit for bit. A few seconds as a test;
# with SOAK_SECONDS=1800 half an hour.
script=$(realpath "$0")
which=${1:-}
[[ -n $which ]] && WORK=$WORK/$which
source "$(dirname "$0")/lib.sh"
seconds=${SOAK_SECONDS:-6}
attacks=$SOURCE/tests/end_to_end/attacks

if [[ -z $which ]]; then
  for link in keyed open; do
    "$BASH" "$script" "$link" >$link.txt 2>&1 &
    links+=($!)
  done
  for link in "${links[@]}"; do wait "$link" || failures=$((failures + 1)); done
  sed 's/^/keyed: /' keyed.txt
  sed 's/^/open: /' open.txt
  finish
fi

# listens_on FILE: the port that a relay tells there
listens_on() {
  for _ in $(seq 50); do
    sed -nE 's/.*listening on ([^ ]*:)?([0-9]+).*/\2/p' "$1" | grep . && return
    sleep 0.1
  done
  echo "nobody listens: $(cat "$1")" >&2
  exit 1
}
# The rig and the way have machines of their own elsewhere: what else runs here must not silence them, if that is permitted.
apart=()
chrt --fifo 20 true 2>/dev/null && apart=(chrt --fifo 20)
memory() { awk '/VmRSS/ {print $2}' "/proc/$server/status"; }
# asks_without_end USER COMMAND...: twice a second while the rig is there, with the runtime folder of this user
asks_without_end() {
  local user=$1 status
  shift
  while sleep 0.5; do
    XDG_RUNTIME_DIR=$PWD/$user timeout 5 "$RIGSTEP" "$@"
    status=$?
    kill -0 "$rig_process" 2>/dev/null || return
    echo "exit status $status"
  done >>"$user.out" 2>&1 </dev/null
}
statuses() { grep 'exit status' "$1" | sort | uniq -c | tr -s ' \n' ' '; }

mkdir -m 700 mine stranger
mkdir boxes
export XDG_RUNTIME_DIR=$PWD/mine
key= rig_key=() strangers_key=() operator_key=()
if [[ $which == keyed ]]; then
  "$RIGSTEP" keygen rig.keys --participant bench --role controller 2>/dev/null &&
    "$RIGSTEP" keygen rig.keys --participant screen --role observer 2>/dev/null &&
    "$RIGSTEP" keygen rig.keys --participant desk --role operator 2>/dev/null &&
    "$RIGSTEP" keygen other.key 2>/dev/null || exit 1
  key='key_file: "rig.keys"' rig_key=(--key bench.key) strangers_key=(--key other.key) operator_key=(--key desk.key)
fi
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^link {/link { $key/" "$SOURCE/config/rigs/ci_loopback.textproto" \
  >rig.textproto
echo 'black_box { folder: "boxes" seconds: 5 most_files: 20 most_mebibytes: 100 }' >>rig.textproto
serve rig.textproto --record soak.mcap --json || exit 1

"${apart[@]}" "$RIGSTEP" impair "127.0.0.1:$port" --seed 7 --delay 0.3 --jitter 0.5 --loss 0.01 --reorder 0.01 --duplicate 0.01 \
  >impair.json 2>impair.err </dev/null &
proxy=$!
proxy_port=$(listens_on impair.err) || exit 1
SOURCE=$SOURCE "${apart[@]}" "$python" "$attacks/on_the_way.py" --to "$proxy_port" --server "$port" >on_the_way.json 2>on_the_way.err &
on_the_way=$!
way_port=$(listens_on on_the_way.err) || exit 1
SOURCE=$SOURCE "$python" "$attacks/flood.py" --port "$port" --rate 10000 --seconds "$((seconds + 2))" >hostile.json </dev/null &
hostile=$!

"${apart[@]}" "$RIGSTEP" rig --port "$way_port" "${rig_key[@]}" --drive drive=sine:2,0.5 --duration "$seconds" --json \
  >rig.json 2>rig.err </dev/null &
rig_process=$!
for _ in $(seq 50); do grep -q 'connected' serve.err && break || sleep 0.1; done
others=()
asks() { asks_without_end "$@" & others+=($!); }
asks stranger blackbox "127.0.0.1:$port" "${strangers_key[@]}"
asks stranger rig --port "$port" "${strangers_key[@]}" --duration 1
asks mine blackbox "127.0.0.1:$port" "${operator_key[@]}"
if [[ $which == keyed ]]; then
  asks stranger reset "127.0.0.1:$port" "${strangers_key[@]}"
  asks stranger blackbox "127.0.0.1:$port" --key screen.key
  asks stranger rig --port "$port" --key screen.key --duration 1
fi
sleep "$("$python" -c "print($seconds / 2)")" # by then everything has been used once
before=$(memory)
wait "$rig_process" || fail "the rig ended with $?: $(cat rig.err)"
after=$(memory)
kill -TERM "$hostile" 2>/dev/null # on a busy machine its turns take longer
wait "$hostile" || fail "the flood ended with $?"
wait "${others[@]}"
kill -TERM "$on_the_way" && wait "$on_the_way" || fail "who is on the way ended with $?: $(cat on_the_way.err)"
kill -TERM "$proxy" && wait "$proxy" || fail "the proxy ended with $?: $(cat impair.err)"
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"

echo "memory $before to $after KiB"
echo "flood $("$python" -c 'import json; d = json.load(open("hostile.json")); print(d["sent"], "sent,", round(d["rate"]), "a second")')"
echo "on the way: $(cat on_the_way.json)"
echo "strangers: $(statuses stranger.out)"
echo "operator: $(statuses mine.out)"
"$python" -c 'import json; d = json.load(open("rig.json")); print("rig", d["states"], "states,", d["inputs_sent"], "inputs,", d["reconnects"], "times connected again, oldest input", d["max_input_age_steps"], "steps, dropped", {k: v for k, v in d["dropped"].items() if v})'
"$python" -c 'import json; d = json.load(open("serve.out")); print(d["steps"], "steps,", d["missed_deadlines"], "missed, faults", d["faults"], "black boxes", len(d["black_boxes"]), "refused", d["refused_black_boxes"], "link", d["link"])'
[[ $((after - before)) -lt 256 ]] || fail "the server grew from $before to $after KiB"
[[ -s stranger.out ]] || fail "no stranger asked"
! grep 'exit status' stranger.out | grep -qv 'status 5$\|status 124$' || fail "a stranger was let in: $(statuses stranger.out)"
assert_json hostile.json "d['sent'] > 1000 * $seconds"
assert_json on_the_way.json "d['repeated'] > 100 * $seconds and d['changed'] > 10 * $seconds and d['forged'] > 10 * $seconds"
# how many answers come in time depends on who else runs here
assert_json rig.json "d['end'] == 'duration over' and d['states'] > 100 * $seconds"
assert_json serve.out "d['link']['received'] == d['link']['accepted'] + sum(d['link']['dropped'].values())"
assert_json serve.out "d['lost_records'] == 0 and d['recorded_steps'] == d['steps'] and not d['fault'] and d['faults'] == 0"
assert_json serve.out "len(d['black_boxes']) <= min(20, 1 + ($seconds + 12) / 10)"
to_server=$("$python" -c 'import json; print(json.load(open("impair.json"))["to_server"]["sent"])')
# beside the rig's own datagrams Hellos of strangers, who get a challenge, and requests: at most 500 a second each
assert_json serve.out "0 < d['link']['accepted'] <= $to_server + 1500 * ($seconds + 12)"
"$RIGSTEP" replay soak.mcap >out 2>err </dev/null || fail "the replay ended with $?"
finish
