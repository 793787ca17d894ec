#!/usr/bin/env bash
# What a bench does to a server: a second controller, a suspended rig, a suspended server, keys that are not there, and
# in a mount namespace of its own a disk that fills up and one that is read-only. Each is told with what to do, and nothing
# that was recorded before is lost. Killed servers are in kill_test.sh, restarted ones and rigs in link_test.sh, taken
# ports and wrong keys in commands_test.sh, cut cables in namespaces_test.sh, a date that is set in the unit tests.
script=$(realpath "$0")
[[ ${1:-} == disks ]] && WORK=$WORK/disks
source "$(dirname "$0")/lib.sh"
# rig_file NAME LINES...: the four-bar at 1 kHz
rig_file() {
  local name=$1
  shift
  printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000 lifecycle { start: AT_ONCE }' "$@" >"$name"
}
# logs PATTERN: the server's log says so within a second
logs() {
  for _ in $(seq 20); do grep -Eq -- "$1" serve.err && return 0 || sleep 0.05; done
  fail "\"$1\" is not in the log of the server: $(cat serve.err)"
}

disks() {
  mkdir disk && mount -t tmpfs -o size=4M tmpfs disk || return 77
  rig_file boxed.textproto 'black_box { folder: "disk" seconds: 30 least_interval_seconds: 0 reserve_mebibytes: 0 }' "$no_limit"
  rig_file plain.textproto "$no_limit"

  # it fills up while it is recorded on: the loop goes on, what was written before replays, the next run has room again
  expect 0 "$RIGSTEP" serve plain.textproto --port 0 --duration 0.3 --record disk/old.mcap
  local before
  before=$(cksum <disk/old.mcap)
  serve boxed.textproto --record disk/run.mcap --json || exit 1
  for _ in $(seq 100); do [[ $(stat -c %s disk/run.mcap) -gt 100000 ]] && break || sleep 0.05; done
  cat /dev/zero >disk/fill 2>/dev/null
  logs 'THE RECORDING ENDS HERE, stepping goes on: disk/run\.mcap: cannot write at byte [0-9]+: No space left on device; free space'
  expect 4 "$RIGSTEP" blackbox "127.0.0.1:$port" && silent out &&
    says err 'on the server the black box could not be written: disk/four_bar\.black_box\..*: No space left on device; free space'
  expect 0 "$RIGSTEP" rig --port "$port" --duration 0.3 --json && assert_json out 'd["states"] > 10 and d["status"] == "ok"'
  expect 0 "$RIGSTEP" status "127.0.0.1:$port" && says out '^black box +the black box could not be written' &&
    says out '^recording +ended: disk/run\.mcap: cannot write at byte [0-9]+: No space left on device; free space'
  expect 0 "$RIGSTEP" status "127.0.0.1:$port" --json && assert_json out '"No space left on device" in d["recording_error"]'
  [[ -z $(ls disk | grep black_box) ]] || fail "something is left of the black box: $(ls -l disk)"
  rm disk/fill
  expect 0 "$RIGSTEP" blackbox "127.0.0.1:$port" && says out '^disk/four_bar\.black_box\..*\.mcap$'
  local box
  box=$(cat out)
  end_server TERM
  [[ $code -eq 4 ]] || fail "serve ended with $code after its disk was full: $(cat serve.err)"
  assert_json serve.out 'd["steps"] > d["recorded_steps"] > 100 and d["lost_records"] == d["steps"] - d["recorded_steps"]'
  assert_json serve.out '"No space left on device" in d["recording_error"] and d["fault"] == "" and len(d["black_boxes"]) == 1'
  local recorded
  recorded=$("$python" -c 'import json; print(json.load(open("serve.out"))["recorded_steps"])')
  expect 7 "$RIGSTEP" replay disk/run.mcap && says out "^bit-exact over $recorded steps" && says out '^damaged at byte'
  expect 0 "$RIGSTEP" replay "$box" && says out '^bit-exact over [1-9][0-9]* steps'

  # read-only: told before the first step, with what is there as it was
  mount -o remount,ro disk || return 77
  expect 4 "$RIGSTEP" serve plain.textproto --port 0 --record disk/new.mcap --duration 0.1 &&
    says err 'disk/new\.mcap: cannot create the recording: Read-only file system; name a file in a directory that'
  expect 4 "$RIGSTEP" serve plain.textproto --port 0 --record disk/old.mcap --duration 0.1 && says err 'Read-only file system'
  expect 2 "$RIGSTEP" serve boxed.textproto --port 0 --duration 0.1 &&
    says err 'boxed\.textproto:[0-9]+: black_box\.folder: cannot write to "disk" \(Read-only file system\): make this folder, or name'
  expect 4 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/four_bar.textproto" --duration 0.1 --output disk/run.csv &&
    says err 'disk/run\.csv: .*Read-only file system'
  expect 4 "$RIGSTEP" keygen disk/bench.key && says err 'disk/bench\.key: Read-only file system'
  [[ $(cksum <disk/old.mcap) == "$before" ]] || fail "an older recording was changed"
  expect 0 "$RIGSTEP" replay disk/old.mcap && says out '^bit-exact over [1-9][0-9]* steps'
}
if [[ ${1:-} == disks ]]; then
  trap 'stop_server; umount disk 2>/dev/null || :' EXIT
  disks || { echo "skipped: no disk of its own can be mounted here"; exit 77; }
  finish
fi

# --- a fault names the file that its black box wrote, in the log, the status and the summary
mkdir boxes
rig_file box.textproto 'black_box { folder: "boxes" seconds: 30 }' 'stale_input { max_age_steps: 100 rule: FAULT }' "$no_limit"
serve box.textproto || exit 1
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2
logs 'stepping stopped: no inputs for too long.*; what came before is in boxes/four_bar\.black_box\..*\.mcap; the last good state is'
expect 1 "$RIGSTEP" status "127.0.0.1:$port" && says out '^  fault +no inputs .*; what came before is in boxes/four_bar\.black_box\.'
box=$(sed -nE 's/.*what came before is in ([^;]*\.mcap)$/\1/p' out)
# one that is asked for later does not take its place
expect 0 "$RIGSTEP" blackbox "127.0.0.1:$port" --json && assert_json out "d['black_boxes'] == 2 and not d['black_box_failed']"
assert_json out "d['fault'].endswith('$box') and not d['black_box'].endswith('$box')"
logs 'a black box was asked for by 127\.0\.0\.1'
end_server TERM
grep -Eq "^fault +stepping stopped: .*; what came before is in $box\$" serve.out || fail "the summary: $(cat serve.out)"
expect 0 "$RIGSTEP" replay "$box" && says out 'faulted after step [0-9]+: no inputs for too long' && says out '^bit-exact'

# --- two controllers, a suspended rig, a suspended server; the recording of it all is whole
rig_file rig.textproto 'stale_input { rule: HOLD fault_after_steps: 0 }' "$no_limit"
serve rig.textproto --record run.mcap --json || exit 1
"$RIGSTEP" rig --port "$port" --name first --drive drive=sine:2,1 --duration 0 --json >rig.json 2>rig.err &
rig_process=$!
sleep 0.5
expect 5 "$RIGSTEP" rig --port "$port" --name second --duration 0.2 &&
  says err 'refuses this rig: the rig "first" at 127\.0\.0\.1:[0-9]+ is in control\. Stop it, or wait until it has been silent'
expect 5 "$RIGSTEP" blackbox "127.0.0.1:$port" && says err 'refuses: it keeps no black box\. Give its rig file a `black_box'
kill -STOP "$rig_process"
sleep 0.5
expect 0 "$RIGSTEP" status "127.0.0.1:$port" --json && assert_json out 'd["state"] == "running" and d["controller"]["silent_ns"] > 3e8'
kill -CONT "$rig_process"
sleep 0.3
kill -STOP "$server"
sleep 0.5
kill -CONT "$server"
logs '[0-9]+ deadlines missed and skipped, the newest before step [0-9]+ '
kill -TERM "$rig_process"
wait "$rig_process" || fail "the rig that was suspended ended with $?: $(cat rig.err)"
assert_json rig.json 'd["end"] == "stopped" and d["reconnects"] == 0 and d["flags"] & 1'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code after it was suspended: $(cat serve.err)"
# every deadline was served once or counted as missed: no burst made up for those that were slept through
assert_json serve.out 'd["missed_deadlines"] > 400 and abs(d["steps"] + d["missed_deadlines"] - 1000 * d["seconds"]) < 100'
assert_json serve.out '0 < d["first_miss_step"] <= d["newest_miss_step"] <= d["steps"] and d["wake_up_us"]["max"] > 4e5'
assert_json serve.out 'd["input_age_steps"]["max"] > 300 and d["recorded_steps"] == d["steps"] and d["lost_records"] == 0'
steps=$("$python" -c 'import json; print(json.load(open("serve.out"))["steps"])')
expect 0 "$RIGSTEP" replay run.mcap && says out "^bit-exact over $steps steps"
# what was missed has its place: while the process stood still the loop mostly waited
expect 0 "$RIGSTEP" info run.mcap --json
assert_json out 'd["missed_unplaced"] + sum(d[w]["deadlines"] for w in ("missed_waiting", "missed_in_step", "missed_beside_step")) == d["missed_deadlines"] > 400'
assert_json out 'max(d[w]["longest_us"] for w in ("missed_waiting", "missed_in_step", "missed_beside_step")) > 4e5'

# --- the reader of the log goes away and the terminal hangs up: under nohup the loop goes on, and its recording is whole
mkfifo log
sed -nE '/listening on/{s/.*listening on [^ ]*:([0-9]+).*/\1/p;q}' log >port &
reader=$!
(trap '' HUP && exec "$RIGSTEP" serve rig.textproto --port 0 --record unread.mcap >/dev/null 2>log </dev/null) &
server=$!
wait "$reader"
kill -HUP "$server"
expect 0 "$RIGSTEP" rig --port "$(cat port)" --duration 0.2
expect 0 "$RIGSTEP" rig --port "$(cat port)" --duration 0.2
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code after nobody read its log any more"
expect 0 "$RIGSTEP" replay unread.mcap && says out '^bit-exact over [1-9][0-9]* steps'
# and closed streams are not taken for files
"$RIGSTEP" serve rig.textproto --port 0 --duration 0.2 --record closed.mcap >&- 2>&- <&- || fail "serve ended with $? without streams"
expect 0 "$RIGSTEP" replay closed.mcap && says out '^bit-exact over [1-9][0-9]* steps'

# --- key files at the rig's end
"$RIGSTEP" keygen bench.key 2>/dev/null && cp bench.key open.key && chmod 644 open.key && mkfifo pipe.key
expect 4 "$RIGSTEP" rig --port 9 --key no_such.key --duration 0.2 &&
  says err 'key file no_such\.key: No such file or directory: make one with `rigstep keygen no_such\.key`, or copy'
expect 4 "$RIGSTEP" rig --port 9 --key open.key --duration 0.2 && says err 'key file open\.key: others.*: chmod 600 open\.key'
expect 4 "$RIGSTEP" status 127.0.0.1:9 --key pipe.key && says err 'key file pipe\.key: is no regular file: name the file'

# --- disks
source "$(dirname "$script")/own_namespace.sh"
if own_namespace; then
  "${namespace[@]}" "$BASH" "$script" disks || disks_code=$?
else
  echo "skipped: mount namespaces are not permitted here: $reason"
  disks_code=77
fi
case ${disks_code:-0} in
  0) ;;
  77) [[ $failures -eq 0 ]] && exit 77 ;;
  *) failures=$((failures + 1)) ;;
esac
finish
