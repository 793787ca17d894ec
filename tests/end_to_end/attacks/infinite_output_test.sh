#!/usr/bin/env bash
# A rig that sends finite inputs of absurd size: a motion whose energy has no number any more is a fault that names the
# output, every state that is sent is finite, so that the rig sees it, and the run replays.
source "$(dirname "$0")/../lib.sh"
cat >stone.textproto <<'END'
name: "stone"
body { name: "stone" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } }
input { name: "push" body_force { body: "stone" direction { x: 1 } } }
output { name: "pose" body_pose { body: "stone" } }
output { name: "energy" energy {} }
END
echo 'mechanism: "stone.textproto" input { channel: "push" rule: RATE }' >rig.textproto

serve rig.textproto --record run.mcap --json || exit 1
expect 1 "$RIGSTEP" rig --port "$port" --drive push=step:1e160 --duration 0.5 --json
assert_json out 'd["status"] == "output not finite" and d["flags"] & 16 and d["states"] > 50'
assert_json out 'd["dropped"]["not_finite"] == 0'
expect 1 "$RIGSTEP" status "127.0.0.1:$port" && says out '^  fault +output not finite: energy\.kinetic'
expect 0 "$RIGSTEP" reset "127.0.0.1:$port"
expect 0 "$RIGSTEP" rig --port "$port" --drive push=step:1 --duration 0.2 --json && assert_json out 'd["status"] == "ok"'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code after the reset: $(cat serve.err)"
grep -q 'stepping stopped: output not finite: energy.kinetic' serve.err || fail "the log does not tell: $(cat serve.err)"
expect 0 "$RIGSTEP" replay run.mcap && says out '^bit-exact' && says out 'output not finite: energy\.kinetic'

# a start that cannot be told is no start
sed 's/mass: 1 /mass: 1 velocity { x: 1e160 } /' stone.textproto >fast.textproto
echo 'mechanism: "fast.textproto"' >fast_rig.textproto
expect 3 "$RIGSTEP" serve fast_rig.textproto --port 0 --duration 0.2 &&
  says err 'fast\.textproto: the output channel energy\.kinetic is not finite at the start'
finish
