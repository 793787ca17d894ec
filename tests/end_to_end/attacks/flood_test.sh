#!/usr/bin/env bash
# A stranger on the same machine floods the server with 50 000 datagrams a second, of every kind one after another:
# garbage, Hellos with and without a cookie, status queries, commands, inputs of sessions that are none. A rig with a
# key, one without and one in lockstep keep control, every input arrives, and none is older than without the flood;
# strangers take their share of the server's time and no more; no fault is latched.
source "$(dirname "$0")/../lib.sh"
export SOURCE
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
protoc --python_out=. -I "$SOURCE" proto/recording.proto || exit 1
too_slow=

# rig_beside NAME RIG_FILE RATE KINDS: a rig beside a flood of these kinds, which pauses before each turn
rig_beside() {
  rm -f run.mcap
  serve "$2" --record run.mcap --json || exit 1
  "$RIGSTEP" rig "$2" --port "$port" --rate "$3" --duration 0 --json >rig.json 2>rig.err </dev/null &
  local rig=$! felt
  sleep 0.7
  "$python" "$SOURCE/tests/end_to_end/attacks/flood.py" --port "$port" --seconds 2.4 --pause 0.4 --kinds "$4" >flood.json
  kill -TERM "$rig"
  wait "$rig" || fail "$1: the rig ended with $?: $(cat rig.err)"
  end_server TERM
  [[ $code -eq 0 ]] || fail "$1: serve ended with $code: $(cat serve.err)"
  assert_json serve.out 'not d["fault"] and d["faults"] == 0'
  PYTHONPATH=. "$python" "$SOURCE/tests/end_to_end/attacks/flood_felt.py" "$1"
  felt=$?
  case $felt in
    0) ;;
    77) too_slow=yes ;;
    *) fail "$1: the flood was felt" ;;
  esac
}

# none of them is accepted, so that what is accepted is the rig's
refused=garbage,cookie,input
mechanisms="s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^recording.*//; /^black_box/d"
stale="s/^stale_input.*/stale_input { max_age_steps: 1000 rule: FAULT }/"
sed "$mechanisms; $stale; s/^link {/link { key_file: \"bench.key\"/" "$SOURCE/config/rigs/ci_loopback.textproto" >keyed.textproto
sed "$mechanisms; $stale" "$SOURCE/config/rigs/ci_loopback.textproto" >unkeyed.textproto
sed "$mechanisms" "$SOURCE/config/rigs/lockstep.textproto" >lockstep.textproto
rig_beside "with a key" keyed.textproto 200 "$refused"
rig_beside "without a key" unkeyed.textproto 200 "$refused"
rig_beside "without a key, requests" unkeyed.textproto 200 hello,status,command
rig_beside "in lockstep" lockstep.textproto 1000 "$refused"
[[ $failures -eq 0 && -n $too_slow ]] && exit 77
finish
