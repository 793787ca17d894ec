#!/usr/bin/env bash
# Parameters: told by check, given on the command line and in a rig file, changed live by an operator and by rigs,
# refused, recorded, replayed bit for bit, verified, kept by variants.
source "$(dirname "$0")/lib.sh"
cat >cart.textproto <<'END'
name: "tuned_cart_pole"
gravity { z: -9.81 }
body { name: "cart" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } }
body { name: "pole" mass: 0.2 inertia { xx: 0.006 yy: 0.005 zz: 0.004 } position { x: 0.5 } }
joint { name: "slide" type: PRISMATIC first: "ground" second: "cart" at_start { axis { x: 1 } } }
joint { name: "hinge" type: REVOLUTE first: "cart" second: "pole" at_start { axis { y: 1 } } }
spring { name: "spring" along_direction { first: "ground" second: "cart" direction { x: 1 } } stiffness: 40 damping: 1 }
joint_friction { name: "rubbing" joint: "hinge" coulomb: 0.01 viscous: 0.002 regularisation_speed: 0.1 }
output { name: "pose" body_pose { body: "pole" } }
parameter { name: "tip" of: "pole.mass" of: "pole.inertia.yy" factor: 1 factor: 0.025 minimum: 0.15 maximum: 0.35 }
parameter { name: "stiffness" of: "spring.stiffness" minimum: 0 maximum: 500 }
parameter { name: "gravity" of: "gravity.z" factor: -1 minimum: 0 maximum: 20 }
parameter { name: "arm" of: "pole.position.x" minimum: 0.4 maximum: 0.6 }
END
printf 'mechanism: "cart.textproto"\nlink { port: 47001 }\nlifecycle { start: HELD }\nrecording { full_state_every: 50 }\nstale_input { rule: HOLD }\nstart { parameter { name: "stiffness" value: 60 } }\n' >cart_rig.textproto

# --- told, and given before the start
expect 0 "$RIGSTEP" check cart.textproto && says out 'tip +tunable +0\.2 \[kg\], 0\.15 to 0\.35' && says out 'arm +fixed'
expect 0 "$RIGSTEP" check cart.textproto --set tip=0.3 --json
assert_json out '[p["value"] for p in d["parameters"] if p["name"] == "tip"] == [0.3]'
expect 3 "$RIGSTEP" simulate cart.textproto --set tip=0.4 && says err 'parameter "tip".* give a value from 0\.15 to 0\.35 kg'
expect 3 "$RIGSTEP" simulate cart.textproto --set tipp=0.3 && says err '"tip"'
expect 2 "$RIGSTEP" simulate cart.textproto --set tip && says err 'NAME=VALUE'
expect 0 "$RIGSTEP" simulate cart.textproto --duration 0.2 --set tip=0.3 --set stiffness=0 --output set.mcap
expect 0 "$RIGSTEP" replay set.mcap && says out 'bit-exact over 200 steps'

# --- changed live
serve cart_rig.textproto --record run.mcap || exit 1
at=127.0.0.1:$port
expect 0 "$RIGSTEP" get "$at" --json
assert_json out '{p["name"]: p["value"] for p in d["parameters"]} == {"tip": 0.2, "stiffness": 60, "gravity": 9.81, "arm": 0.5}'
expect 0 "$RIGSTEP" set "$at" tip=0.25 && says out 'acts from step 1$'
expect 0 "$RIGSTEP" run "$at"
sleep 0.2
expect 0 "$RIGSTEP" set "$at" stiffness=200 gravity=4 --ramp 20 --json && assert_json out 'd["acts_from_step"] > 1'
sleep 0.3
expect 0 "$RIGSTEP" get "$at" && says out 'stiffness +tunable +200 ' && says out 'gravity +tunable +4 '
expect 0 "$RIGSTEP" status "$at" && says out 'parameter +stiffness 200 N/m'
expect 5 "$RIGSTEP" set "$at" tip=0.2 stiffness=501 && says err '"stiffness".*0 to 500'
expect 5 "$RIGSTEP" set "$at" arm=0.45 && says err '"arm": is fixed'
expect 5 "$RIGSTEP" set "$at" weight=1 && says err 'nearest names'
expect 0 "$RIGSTEP" get "$at" && says out 'tip +tunable +0\.25 '
expect 0 "$RIGSTEP" hold "$at"
end_server TERM

# --- recorded, replayed, verified, varied
expect 0 "$RIGSTEP" replay run.mcap && says out 'bit-exact'
expect 0 "$RIGSTEP" verify run.mcap --duration 0.3 --solver ida --json
expect 0 "$RIGSTEP" cut run.mcap --from 0.3 --output piece.mcap
expect 0 "$RIGSTEP" replay piece.mcap && says out 'bit-exact'
expect 0 "$RIGSTEP" replay run.mcap --from 50 --output again.mcap
expect 0 "$RIGSTEP" replay again.mcap && says out 'bit-exact'
finish
