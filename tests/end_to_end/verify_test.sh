#!/usr/bin/env bash
# Every mechanism in config/ has a verdict, and every reference solver is named with a result or a reason.
source "$(dirname "$0")/lib.sh"

solvers=$("$RIGSTEP" verify --list --json | "$python" -c 'import json, sys; print(len(json.load(sys.stdin)))')
[[ $solvers -ge 12 ]] || fail "only \"$solvers\" reference solvers are listed"

# verify_briefly NAME LIMIT ARGUMENTS...: reference solvers that are too slow for this test may be stopped, none may differ
verify_briefly() {
  local name=$1 limit=$2 code
  shift 2
  timeout 60 "$RIGSTEP" verify "$SOURCE/config/mechanisms/$name.textproto" --limit "$limit" --json "$@" >out 2>err </dev/null
  code=$?
  [[ $code -eq 0 || $code -eq 8 ]] || { fail "$name: exit status $code"; return; }
  assert_json out "len(d['solvers']) == $solvers and any(j['agrees'] for j in d['solvers']) and
    all(j['agrees'] or j['unsupported_reason'] and not j['failed'] for j in d['solvers']) and d['converges'] and d['until_s'] > 0"
}

for file in "$SOURCE"/config/mechanisms/*.textproto; do
  name=$(basename "$file" .textproto)
  case "$name" in
    andrews) verify_briefly "$name" 0.3 --duration 0.002 --dt 2e-5 ;;
    chain_128) verify_briefly "$name" 3 --duration 0.004 ;;
    driven_crank) verify_briefly "$name" 0.3 --duration 0.02 --dt 1e-4 ;;
    full_car)
      # at rest it says little: a kick of the drive shafts, a step of the road under one wheel, and steering
      printf 't,drive_rear_left,drive_rear_right,road_front_left,rack_travel\n0,200,200,0.001,0\n' >kick.csv
      printf '%s,200,200,0.001,%s\n' 0.002 0.0001 0.004 0.0003 0.006 0.0006 0.008 0.001 >>kick.csv
      expect 0 "$RIGSTEP" verify "$file" --duration 0.01 --inputs kick.csv --solver ida,hamiltonian_dca --limit 20 --json &&
        assert_json out '0.9 < d["order"] < 1.1 and d["steps"][0]["error"]["position_m"] > 1e-6'
      ;;
    screw_jack)  # a reference solver's rounding shows in its gyroscopic torque: asked again it agrees
      expect 0 "$RIGSTEP" verify "$file" --json &&
        assert_json out 'any(j["agrees"] and j["tolerance"] < 1e-9 for j in d["solvers"])'
      ;;
    *) verify_briefly "$name" 0.3 --duration 0.04 ;;
  esac
done

# --- a penalty factor for index3_literal: one that suffices, one that does not, and a solver that has none
literal=("$RIGSTEP" verify "$SOURCE/config/mechanisms/double_pendulum.textproto" --duration 0.1 --json)
expect 0 "${literal[@]}" --solver index3_literal --alpha 1e12 && assert_json out 'd["alpha"] == 1e12 and d["solvers"][0]["agrees"]'
expect 6 "${literal[@]}" --solver index3_literal --alpha 1e6 && assert_json out '"penalty factor" in d["solvers"][0]["unsupported_reason"]'
expect 2 "${literal[@]}" --solver qr --alpha 1e9 && says err '--alpha: only index3_literal'
# --- from the file, for verify and simulate; --alpha replaces it, other solvers do not read it
with_penalty() {
  cp "$SOURCE/config/mechanisms/double_pendulum.textproto" penalty.textproto
  echo "reference_solvers { penalty_factor: $1 }" >>penalty.textproto
}
with_penalty 1e6
expect 6 "$RIGSTEP" verify penalty.textproto --duration 0.1 --json --solver index3_literal &&
  assert_json out 'd["alpha"] == 1e6 and "penalty factor" in d["solvers"][0]["unsupported_reason"]'
expect 0 "$RIGSTEP" verify penalty.textproto --duration 0.1 --solver index3_literal --alpha 1e12 && says out '^index3_literal .* alpha = 1e\+12$'
expect 0 "$RIGSTEP" verify penalty.textproto --duration 0.1 --solver index3_literal --alpha 0 --json && assert_json out 'd["alpha"] == 0'
expect 0 "$RIGSTEP" verify penalty.textproto --duration 0.1 --solver qr --json && assert_json out 'd["alpha"] == 0'
with_penalty 1e9
expect 0 "$RIGSTEP" simulate penalty.textproto --solver index3_literal --duration 0.1 --dt 0.01 --json && assert_json out 'd["alpha"] == 1e9'
cp out from_file.json
expect 0 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/double_pendulum.textproto" --solver index3_literal --alpha 1e9 --duration 0.1 \
  --dt 0.01 --json && [[ $(grep -v wall_s out) == "$(grep -v wall_s from_file.json)" ]] || fail "alpha of the file and of --alpha differ"
expect 0 "$RIGSTEP" simulate penalty.textproto --solver qr --duration 0.1 --dt 0.01 --json && assert_json out 'd["alpha"] == 0'
with_penalty 0.5
expect 3 "$RIGSTEP" verify penalty.textproto && says err 'penalty.textproto:[0-9]+: reference_solvers.penalty_factor: is 0.5, the least is 1'

# --- mechanisms without freedom: there is nothing to integrate, and every reference solver can tell
cat >fixed.textproto <<'END'
name: "fixed"
gravity { z: -9.81 }
body { name: "A" mass: 1 inertia { xx: 0.1 yy: 0.1 zz: 0.1 } position { x: 1 } }
joint { name: "j" type: FIXED first: "ground" second: "A" at_start { point {} axis { y: 1 } } }
END
sed -e 's/FIXED/REVOLUTE/' -e 's/position { x: 1 }/& angular_velocity { y: 1 } velocity { z: -1 }/' fixed.textproto >crank.textproto
echo 'driver { name: "d" joint: "j" polynomial { coefficient: [0, 1] } }' >>crank.textproto
for name in fixed crank; do
  expect 0 "$RIGSTEP" verify "$name.textproto" --duration 0.1 --json &&
    assert_json out 'sum(j["agrees"] for j in d["solvers"]) >= 17 and not any(j["failed"] for j in d["solvers"])'
done
expect 0 "$RIGSTEP" simulate fixed.textproto --solver hamiltonian_dca --duration 0.1 --dt 0.01

# --- drivers that are sums, efforts of all kinds, points given at the start
cat >sums.textproto <<'END'
name: "sums"
gravity { z: -9.81 }
body { name: "crank" mass: 2 inertia { xx: 0.02 yy: 0.05 zz: 0.06 } position { x: 0.2 } }
body { name: "arm" mass: 1 inertia { xx: 0.01 yy: 0.03 zz: 0.03 } position { x: 0.6 } }
body { name: "slide" mass: 0.5 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } position { x: 0.9 } }
joint { name: "shaft" type: REVOLUTE first: "ground" second: "crank" at_start { point {} axis { y: 1 } } }
joint { name: "elbow" type: REVOLUTE first: "crank" second: "arm" at_start { point { x: 0.4 } axis { y: 1 } } }
joint { name: "rail" type: PRISMATIC first: "arm" second: "slide" at_start { point { x: 0.9 } axis { x: 1 } } }
driver {
  name: "motor" joint: "shaft"
  sum {
    harmonic { amplitude: 0.2 angular_frequency: 5 }
    polynomial { coefficient: [0, -1, 4] }
    table { time: [0, 0.04, 0.3] value: [0, 0.05, -0.1] }
  }
}
effort {
  name: "torque" joint: "elbow"
  sum { harmonic { amplitude: 1.5 angular_frequency: 20 } polynomial { coefficient: [0, 10] } }
}
effort { name: "push" joint: "rail" table { time: [0, 0.03, 0.06] value: [0, 2, -1] } }
spring {
  name: "s" stiffness: 50 rest: -1
  along_direction {
    first: "ground" second: "slide" direction { z: 1 }
    at_start { first_point { x: 0.9 z: 1 } second_point { x: 1 } }
  }
}
load {
  name: "l" body: "arm" frame: BODY amplitude: 1 angular_frequency: 9
  at_start { point { x: 0.7 } force { z: 3 } }
}
output { name: "motor" driver_effort { driver: "motor" } }
output { name: "torque" force_element { element: "torque" } }
END
expect 0 "$RIGSTEP" verify sums.textproto --duration 0.2 --json &&
  assert_json out '1.8 < d["order"] < 2.2 and sum(j["agrees"] for j in d["solvers"]) >= 12 and not any(j["failed"] for j in d["solvers"])'

# --- a motion whose errors are rounding has no order that could be too low
cat >fling.textproto <<'END'
name: "fling"
gravity { x: 0.24 y: -1.25 z: 2.86 }
body { name: "A" mass: 0.76 inertia { xx: 0.06 yy: 0.1 zz: 0.06 } position { x: 0.11 y: -0.5 z: -0.36 } }
joint { name: "j" type: PERPENDICULAR_AXES first: "ground" second: "A" at_start { axis { x: 1 } second_axis { y: 1 } } }
END
expect 0 "$RIGSTEP" verify fling.textproto --json && assert_json out 'd["order"] == 0 and d["converges"]'

# --- a singular pose that the motion passes at speed, between two instants, ends the comparison for all reference solvers
for case in four_bar:2:1.01 four_bar:30:1.01 four_bar_hanging:5:0.68; do
  IFS=: read -r name duration pose <<<"$case"
  expect 0 "$RIGSTEP" verify "$SOURCE/config/mechanisms/$name.textproto" --duration "$duration" --limit 10 --json &&
    assert_json out "0.8 * $pose < d['until_s'] < $pose and 'singular pose near $pose' in d['why_not_further']"
done

# --- a start at dead centre, where a side rod could go either way: reference solvers that lose the branch say nothing
cat >dead_centre.textproto <<'END'
name: "dead_centre"
body { name: "front" mass: 50 inertia { xx: 1 yy: 1 zz: 2 } angular_velocity { z: 5 } }
body { name: "rear" mass: 50 inertia { xx: 1 yy: 1 zz: 2 } position { x: 2 } angular_velocity { z: 5 } }
body { name: "rod" mass: 20 inertia { xx: 0.1 yy: 7 zz: 7 } position { x: 1.3 } velocity { y: 1.5 } }
joint { name: "axle0" type: REVOLUTE first: "ground" second: "front" at_start { point {} axis { z: 1 } } }
joint { name: "axle1" type: REVOLUTE first: "ground" second: "rear" at_start { point { x: 2 } axis { z: 1 } } }
joint { name: "pin0" type: REVOLUTE first: "front" second: "rod" at_start { point { x: 0.3 } axis { z: 1 } } }
joint { name: "pin1" type: REVOLUTE first: "rear" second: "rod" at_start { point { x: 2.3 } axis { z: 1 } } }
load { name: "steam" body: "front" torque { z: 1000 } constant: 0 amplitude: 1 angular_frequency: 3 }
END
expect 8 "$RIGSTEP" verify dead_centre.textproto --duration 0.5 --limit 20 &&
  says out '^verdict: INCOMPLETE: the start is a singular pose, where solvers go astray: . famil.* agrees? \([0-9]+ solvers?\)'
sed -e 's/ [a-z_]*velocity { [yz]: [0-9.]* }//' -e 's/1000 } constant: 0 .*/20 } constant: 1 }/' \
  dead_centre.textproto >at_rest.textproto
expect 0 "$RIGSTEP" check at_rest.textproto --json && assert_json out 'd["singular_start"]'
"$RIGSTEP" verify at_rest.textproto --duration 0.3 --dt 0.001 --json >out 2>err
assert_json out 'd["starts_singular"]'
expect 0 "$RIGSTEP" verify dead_centre.textproto --duration 0.5 --solver featherstone_dca,svd --json &&
  assert_json out 'd["starts_singular"] and d["verdict"] == "agrees"'
expect 0 "$RIGSTEP" check dead_centre.textproto --json &&
  assert_json out 'd["not_unique"]["pin0"] == ["fz", "tx", "ty"] and "fx" in d["not_unique_at_start"]["pin0"]'

# --- a fast loop: a four-bar on a stiff spring. At 1 ms the order is not yet 2: the steps are halved until it is; where nanoseconds forbid that, the dt to try is told, and it is short enough
cat >fast_loop.textproto <<'END'
name: "fast_loop"
gravity { y: -9.81 }
body { name: "crank" mass: 1 inertia { xx: 0.001 yy: 0.0075 zz: 0.0075 } position { x: 0.0810453458 y: 0.1262206477 } orientation { e0: 0.8775825618 e3: 0.4794255386 } }
body { name: "coupler" mass: 2 inertia { xx: 0.002 yy: 0.6666666666 zz: 0.6666666666 } position { x: 1.0433702416 y: 0.7250366349 } orientation { e0: 0.9698658541 e3: 0.2436395391 } }
body { name: "rocker" mass: 1.5 inertia { xx: 0.0015 yy: 0.18 zz: 0.18 } position { x: 1.9623248957 y: 0.5988159871 } orientation { e0: 0.7289690803 e3: -0.6845466235 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "crank" at_start { point {} axis { z: 1 } } }
joint { name: "b" type: SPHERICAL first: "crank" second: "coupler" at_start { point { x: 0.1620906917 y: 0.2524412954 } } }
joint { name: "c" type: UNIVERSAL first: "coupler" second: "rocker" at_start { point { x: 1.9246497915 y: 1.1976319743 } axis { z: 1 } second_axis { x: -1.1976319743 y: -0.0753502084 } } }
joint { name: "d" type: REVOLUTE first: "rocker" second: "ground" at_start { point { x: 2 } axis { z: 1 } } }
spring { name: "k" in_joint { joint: "a" freedom: ANGLE } stiffness: 5e4 rest: 0.002 }
END
expect 0 "$RIGSTEP" verify fast_loop.textproto --duration 0.3 --dt 0.001 --solver ida,featherstone_dca --limit 60 --json &&
  assert_json out 'len(d["steps"]) > 3 and d["converges"] and all(q["order"] == 0 or q["order"] > 1.7 for q in d["quantities"].values())'
expect 8 "$RIGSTEP" verify fast_loop.textproto --duration 0.3 --dt 0.001000004 --solver ida --limit 60 &&
  says out '^verdict: INCOMPLETE: the steps are still too long .*order 1\.[0-9]*.*try --dt 0\.00050*, or a larger --limit: '
expect 8 "$RIGSTEP" verify fast_loop.textproto --duration 0.3 --dt 0.001000004 --solver ida --limit 60 --json &&
  assert_json out 'len(d["steps"]) == 3 and d["dt_to_try_s"] == 0.0005 and not d["settled"]'
expect 0 "$RIGSTEP" verify fast_loop.textproto --duration 0.3 --dt 0.0005 --solver ida --limit 60

# --- slender rods in a loop, at rest: whatever the stepper makes of them, no wrong load passes
cat >slender_loop.textproto <<'END'
name: "slender_loop"
gravity { y: -9.81 }
body { name: "A" mass: 1 inertia { xx: 1e-9 yy: 0.0833333333333333 zz: 0.0833333333333333 } position { x: 0.5 } }
body { name: "B" mass: 1 inertia { xx: 0.0833333333333333 yy: 1e-9 zz: 0.0833333333333333 } position { x: 1 y: -0.5 } }
body { name: "C" mass: 1 inertia { xx: 0.0833333333333333 yy: 0.0833333333333333 zz: 1e-9 } position { x: 1 y: -1 z: 0.5 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "A" at_start { point {} axis { y: 1 } } }
joint { name: "b" type: REVOLUTE first: "A" second: "B" at_start { point { x: 1 } axis { z: 1 } } }
joint { name: "c" type: SPHERICAL first: "B" second: "C" at_start { point { x: 1 y: -1 } } }
joint { name: "d" type: SPHERICAL first: "C" second: "ground" at_start { point { x: 1 y: -1 z: 1 } } }
END
"$RIGSTEP" verify slender_loop.textproto --duration 0.1 --solver ida,svd --json >out 2>err
assert_json out 'not d["passed"] or d["steps"][-1]["error"]["force_N"] < 0.3 and
  all(j["deviation"]["force_N"] < 0.3 and j["deviation"]["acceleration_m_s2"] < 0.1 for j in d["solvers"])'

# --- fast for its dt: shorter steps follow it; too fast for them: what little converges is no verdict
cat >spin.textproto <<'END'
name: "spin"
body { name: "A" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } angular_velocity { z: 1000 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "A" at_start { point {} axis { z: 1 } } }
END
expect 0 "$RIGSTEP" verify spin.textproto --solver ida,qr --limit 60 --json &&
  assert_json out 'len(d["steps"]) > 3 and d["asked_s"] == 1'
sed 's/1000 }/20000 }/' spin.textproto >faster.textproto
expect 8 "$RIGSTEP" verify faster.textproto --solver ida,qr && says out '^verdict: INCOMPLETE.*only 0\.0.* of 0\.1 s could be compared'
expect 8 "$RIGSTEP" verify faster.textproto --solver ida,qr --json && assert_json out 'd["too_short"] and d["asked_s"] == 0.1'
finish
