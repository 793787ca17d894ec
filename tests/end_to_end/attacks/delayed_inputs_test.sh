#!/usr/bin/env bash
# Somebody on the way holds every datagram back by 70 ms. Inputs that may be older than the bound are refused and counted,
# by the clocks of both sides, and never reach the mechanism; without a bound they are taken.
source "$(dirname "$0")/../lib.sh"
"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
rig_file() {
  printf '%s\n' "mechanism: \"$SOURCE/config/mechanisms/four_bar.textproto\"" 'period_us: 1000' \
    "link { key_file: \"bench.key\" $1 }" >rig.textproto
}
run() {
  serve rig.textproto --json || exit 1
  "$RIGSTEP" impair "127.0.0.1:$port" --delay 70 >impair.json 2>impair.err </dev/null &
  local proxy=$! proxy_port=
  for _ in $(seq 50); do
    proxy_port=$(sed -nE 's/.*listening on [^ ]*:([0-9]+),.*/\1/p' impair.err)
    [[ -n $proxy_port ]] && break
    sleep 0.1
  done
  expect 0 "$RIGSTEP" rig --port "$proxy_port" --key bench.key --rate 200 --duration 1.5 --json
  kill -TERM "$proxy"
  wait "$proxy"
  end_server TERM
}
rig_file ''
run
assert_json serve.out 'd["link"]["dropped"]["delayed"] > 50 and d["steps_with_input"] == 0'
rig_file 'max_input_delay_ms: 0'
run
assert_json serve.out 'd["link"]["dropped"]["delayed"] == 0 and d["steps_with_input"] > 200'
rig_file 'max_input_delay_ms: 70000'
expect 2 "$RIGSTEP" serve rig.textproto --port 0 --duration 0.1 && says err 'link\.max_input_delay_ms: is 70000, the most is 60000'
finish
