#!/usr/bin/env bash
# The first hour of a new user, and the morning after: a cart-pole from the templates waits for its controller, balances,
# is held, faults, is set back; its recording is told, drawn, run with a heavier pole, and compared. Every template works
# with its controller. hour.log reads as the user saw it.
source "$(dirname "$0")/lib.sh"
: "${PACKAGE:?the folder of the Python package: python/ of the build}"
export PYTHONPATH=$PACKAGE PYTHONDONTWRITEBYTECODE=1
log=hour.log

# told CODE COMMAND...: as expect, and in the log as a user sees it
told() {
  local wanted=$1
  shift
  echo "\$ ${*/#$RIGSTEP/rigstep}" >>"$log"
  expect "$wanted" "$@"
  cat out err >>"$log"
}

# --- write it, look at it
told 0 "$RIGSTEP" new balance --from cart_pole && says out 'rigstep serve balance/rig\.textproto'
told 2 "$RIGSTEP" new balance && says err 'balance/mechanism\.textproto is there already'
expect 2 "$RIGSTEP" new other --from submarine && says err 'cart_pole'
told 0 "$RIGSTEP" check balance/mechanism.textproto && says out 'mechanism\.textproto: balance$'
grep -q '^name: "balance"$' balance/mechanism.textproto || fail "the mechanism is not called balance"

# --- it waits for the controller, which comes late and to a machine that is busy
serve balance/rig.textproto --record run.mcap || exit 1
at=127.0.0.1:$port
sleep "${WAIT_SECONDS:-2}"
told 0 "$RIGSTEP" status "$at" && says out '^loop +ready at step 0'
"$python" -c 'import time; end = time.time() + 3
while time.time() < end: pass' &
busy=$!
"$python" balance/rig.py --port "$port" --seconds 6 >rig.out 2>&1 &
controller=$!
sleep 3
told 0 "$RIGSTEP" hold "$at" && says out '^loop +holding'
told 0 "$RIGSTEP" run "$at" && says out '^loop +running'
wait "$controller" || fail "the pole fell: $(cat rig.out)"
cat rig.out >>"$log"
wait "$busy"
# the controller has left: inputs go to rest, the pole falls, and after two seconds without inputs the run is faulted
sleep 2.6
told 1 "$RIGSTEP" status "$at" && says out '^loop +faulted'
told 0 "$RIGSTEP" reset "$at" --to start && says out '^loop +ready'
told 0 "$python" balance/rig.py --port "$port" --seconds 4 && says out '^The pole is balanced'
end_server TERM

# --- the morning after
told 0 "$RIGSTEP" info run.mcap && says out '^event .*: control gained$' && says out '^event .*FAULT' && says out '^event .*: reset to start$'
told 0 "$RIGSTEP" replay run.mcap && says out '^bit-exact over '
told 0 "$RIGSTEP" plot run.mcap --channel angle --channel force --output run.html
grep -q 'FAULT' run.html || fail "the plot does not mark the fault"
sed 's/mass: 0.5 /mass: 1.5 /' balance/mechanism.textproto >heavier.textproto
cmp -s heavier.textproto balance/mechanism.textproto && fail "the pole is not heavier"
told 0 "$RIGSTEP" cut run.mcap --to 3 --output piece.mcap
told 0 "$RIGSTEP" replay piece.mcap --mechanism heavier.textproto --output heavier.mcap --picture heavier.html
told 1 "$RIGSTEP" diff piece.mcap heavier.mcap --channel angle && says out '^DIFFER$'
"$python" - <<'EOF' || fail "the recording as arrays"
import rigstep
run = rigstep.open("run.mcap")
assert abs(run["angle"][0] - 0.1) < 0.01 and run.units["angle"] == "rad" and len(run.faults) == 1
EOF

# --- the other templates, each with its controller, side by side
others=(pendulum four_bar slider_crank vehicle_corner leg)
servers=()
trap 'kill -KILL "${servers[@]}" 2>/dev/null; stop_server' EXIT
for from in "${others[@]}"; do
  expect 0 "$RIGSTEP" new "$from" --from "$from"
  expect 0 "$RIGSTEP" check "$from/mechanism.textproto"
  serve "$from/rig.textproto" --record "$from.mcap" || exit 1
  servers+=("$server")
  server=
  # a server ends with its controller, else it would fault for want of inputs while others are waited for
  { "$python" "$from/rig.py" --port "$port" --seconds 10 --json >"$from.json" 2>"$from.err"
    ended=$?
    kill -TERM "${servers[-1]}"
    exit "$ended"; } &
  controllers+=($!)
done
for k in "${!others[@]}"; do
  wait "${controllers[k]}" || fail "the controller of ${others[k]}: $(cat "${others[k]}.json" "${others[k]}.err")"
  wait "${servers[k]}" || fail "the server of ${others[k]} ended with $?"
done
for other in "${others[@]}"; do
  assert_json "$other.json" 'd["reached"] and d["states"] > 1000'
  expect 0 "$RIGSTEP" replay "$other.mcap"
done
finish
