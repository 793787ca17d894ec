#!/usr/bin/env bash
# Somebody asks for black boxes as fast as he can, and a disk that has next to no room left: few files come of it, the
# recording goes on, no empty or partial file stays, and it is told.
script=$(realpath "$0")
[[ ${1:-} == disk ]] && WORK=$WORK/disk
source "$(dirname "$0")/../lib.sh"
rig_file() {
  local name=$1
  shift
  printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'lifecycle { start: AT_ONCE }' "$@" >"$name"
}
# in a namespace the loop has no priority
# flood TIMES: by signal and over the link
flood() {
  for ((k = 0; k < $1; ++k)); do
    kill -USR1 "$server"
    timeout 1 "$RIGSTEP" blackbox "127.0.0.1:$port" >/dev/null 2>&1 </dev/null
    sleep 0.05
  done
}

# In a mount namespace: the reserve is left to the recording, and a box that does not fit leaves nothing.
on_a_small_disk() {
  mkdir small && mount -t tmpfs -o size=8M tmpfs small || return 77
  rig_file boxed.textproto 'black_box { folder: "small" seconds: 30 least_interval_seconds: 0 reserve_mebibytes: 2 }' \
    "$no_limit"
  serve boxed.textproto --record small/run.mcap --json || exit 1
  sleep 0.3
  head -c "$(($(df --output=avail -k small | tail -n 1) - 2150))K" /dev/zero >small/fill
  flood 4
  expect 0 "$RIGSTEP" status "127.0.0.1:$port" --json
  assert_json out 'd["recording_error"] == "" and d["counters"]["refused_black_boxes"] > 0'
  assert_json out '"are left to the recording" in d["black_box"] and d["black_box_failed"]'
  end_server TERM
  [[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
  assert_json serve.out 'd["recorded_steps"] == d["steps"] and d["refused_black_boxes"] > 0'
  grep -Eq 'warning.* [0-9]+ black boxes refused so far; the newest: .*are left to the recording' serve.err ||
    fail "the log does not tell that boxes were refused: $(cat serve.err)"
  expect 0 "$RIGSTEP" replay small/run.mcap && says out '^bit-exact'
  for box in small/*black_box*; do
    [[ -e $box ]] || continue
    expect 0 "$RIGSTEP" replay "$box" && says out '^bit-exact'
  done

  # without a reserve it may fail half way: nothing is left of it either
  rig_file greedy.textproto 'black_box { folder: "small" seconds: 30 least_interval_seconds: 0 reserve_mebibytes: 0 }' \
    "$no_limit"
  rm -f small/*.mcap
  serve greedy.textproto || exit 1
  sleep 1
  head -c 8M /dev/zero >small/fill 2>/dev/null
  flood 3
  end_server TERM
  [[ -z $(ls small | grep -v '^fill$') ]] || fail "something is left of black boxes on a full disk: $(ls -l small)"
}
if [[ ${1:-} == disk ]]; then
  trap 'stop_server; umount small 2>/dev/null || :' EXIT
  on_a_small_disk || { echo "skipped: no disk of its own can be mounted here"; exit 77; }
  finish
fi

mkdir boxes
rig_file boxed.textproto 'black_box { folder: "boxes" seconds: 30 }' \
  'stale_input { max_age_steps: 500 rule: FAULT }'
serve boxed.textproto --json || exit 1
sleep 0.2
SECONDS=0
flood 15
most=$((1 + (SECONDS + 1) / 10)) # one in ten seconds
[[ $(ls boxes | wc -l) -le $most ]] || fail "$(ls boxes | wc -l) black boxes were written in $SECONDS s"
# that of a fault comes all the same
"$RIGSTEP" rig --port "$port" --duration 0.2 >/dev/null 2>&1 </dev/null
for _ in $(seq 40); do
  "$RIGSTEP" status "127.0.0.1:$port" >out 2>err </dev/null
  grep -q 'what came before is in boxes/' out && break || sleep 0.1
done
says out '^  fault +no inputs for too long .*; what came before is in boxes/'
says out '^refused_black_boxes +[1-9]'
end_server TERM
assert_json serve.out 'd["refused_black_boxes"] > 0 and len(d["black_boxes"]) <= '$((most + 1))
[[ $(grep -c 'black boxes refused so far' serve.err) -le 2 ]] || fail "refusals flood the log: $(cat serve.err)"

source "$(dirname "$script")/../own_namespace.sh"
if own_namespace; then
  "${namespace[@]}" "$BASH" "$script" disk || disk_code=$?
else
  echo "skipped: mount namespaces are not permitted here: $reason"
  disk_code=77
fi
case ${disk_code:-0} in
  0) ;;
  77) [[ $failures -eq 0 ]] && exit 77 ;;
  *) failures=$((failures + 1)) ;;
esac
finish
