#!/usr/bin/env bash
# A disk that hangs, and symbolic links that somebody else has laid: the loop goes on, the end is not put off, what is not
# in the file is told, and nothing is created where a link to nothing points.
source "$(dirname "$0")/../lib.sh"
rig_file() {
  local name=$1
  shift
  printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'lifecycle { start: AT_ONCE }' "$@" >"$name"
}
rig_file plain.textproto

# --- a pipe that nobody reads takes no more after 64 KiB
mkfifo stuck.mcap
for signal in TERM INT; do
  serve plain.textproto --record stuck.mcap --json || exit 1
  sleep 0.8
  expect 0 "$RIGSTEP" rig --port "$port" --duration 0.3 --json && assert_json out 'd["states"] > 10 and d["status"] == "ok"'
  started=$(date +%s%N)
  kill "-$signal" "$server"
  for _ in $(seq 60); do kill -0 "$server" 2>/dev/null && sleep 0.05 || break; done
  took_ms=$((($(date +%s%N) - started) / 1000000))
  # two seconds, and one for a busy machine
  [[ $took_ms -lt 3000 ]] || fail "serve took $took_ms ms to end after SIG$signal on a disk that hangs"
  end_server KILL 2>/dev/null
  [[ $code -eq 4 ]] || fail "serve ended with $code after SIG$signal on a disk that hangs: $(cat serve.err)"
  assert_json serve.out '"has not taken what was left within 1500 ms" in d["recording_error"]'
  assert_json serve.out 'd["steps"] > d["recorded_steps"] and d["lost_records"] == d["steps"] - d["recorded_steps"]'
done

# --- how much time a stall may take, and the memory for it, is told at the start; at any period
for period in 100 1000 20000; do
  rig_file period.textproto "period_us: $period" 'recording { full_state_every: 50 }'
  expect 0 "$RIGSTEP" serve period.textproto --port 0 --duration 0.1 --record period.mcap
  seconds=$(sed -nE 's/.*in memory until the disk has them: records of ([0-9]+)\.[0-9]+ s in [0-9.]+ MiB.*/\1/p' err)
  [[ ${seconds:-0} -ge 16 ]] || fail "the ring holds ${seconds:-no} s at $period us: $(cat err)"
done

# --- links to nothing
mkdir elsewhere boxes
ln -s elsewhere/planted link.mcap
ln -s elsewhere/planted link.csv
expect 4 "$RIGSTEP" serve plain.textproto --port 0 --duration 0.1 --record link.mcap &&
  says err 'link\.mcap: cannot create the recording: it is a symbolic link to nothing, which is not followed'
expect 4 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/four_bar.textproto" --duration 0.1 --output link.mcap &&
  says err 'link\.mcap: .*symbolic link to nothing'
expect 4 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/four_bar.textproto" --duration 0.1 --output link.csv &&
  says err 'link\.csv: .*symbolic link to nothing'
expect 4 "$RIGSTEP" keygen link.mcap
# under the names that a black box would take in the next seconds
rig_file boxed.textproto 'black_box { folder: "boxes" }'
now=$(date +%s)
for ((second = 0; second < 30; ++second)); do
  name=boxes/four_bar.black_box.$(date -u -d "@$((now + second))" +%Y%m%dT%H%M%S).mcap
  ln -s ../elsewhere/planted "$name"
  ln -s ../elsewhere/planted "$name.part"
done
serve boxed.textproto || exit 1
sleep 0.3
kill -USR1 "$server"
for _ in $(seq 40); do compgen -G 'boxes/*-2.mcap' >/dev/null && break || sleep 0.05; done
end_server TERM
[[ -z $(ls elsewhere) ]] || fail "something was created through a symbolic link: $(ls -l elsewhere)"
expect 0 "$RIGSTEP" replay boxes/*-2.mcap && says out '^bit-exact'
# a link to a file that is there is somebody's own arrangement
touch there.csv && ln -s there.csv to_there.csv
expect 0 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/four_bar.textproto" --duration 0.1 --output to_there.csv
[[ -s there.csv ]] || fail "a link to an existing file was not followed"
finish
