#!/usr/bin/env bash
# Every exit status of the command line, provoked by a real command, and what it says then.
source "$(dirname "$0")/lib.sh"
mechanisms=$SOURCE/config/mechanisms
pendulum=$mechanisms/double_pendulum.textproto
rig=$SOURCE/config/rigs/ci_loopback.textproto

# --- help and version: 0
for command in new check simulate serve rig replay verify demo bench 'bench step' 'bench error' study 'study index3' 'study hamiltonian' 'study tree' 'study complement' 'study all' status run hold step snapshot reset blackbox keygen \
  impair doctor tune commission info export plot cut diff; do
  # shellcheck disable=SC2086
  expect 0 "$RIGSTEP" $command --help
  says out 'Examples:'
  says out "rigstep $command"
  says out 'Exit codes: 0 ok'
done
expect 0 "$RIGSTEP" --help && says out 'Exit codes: 0 ok'
expect 0 "$RIGSTEP" --version && says out '^rigstep [0-9]+\.[0-9]+\.[0-9]+'

# --- usage: 2
expect 2 "$RIGSTEP"
expect 2 "$RIGSTEP" no_such_command && says err 'no_such_command'
expect 2 "$RIGSTEP" check
expect 2 "$RIGSTEP" check "$pendulum" --no-such-option
expect 2 "$RIGSTEP" serve
expect 2 "$RIGSTEP" serve "$rig" --port 70000
expect 2 "$RIGSTEP" serve no_such_file.textproto && says err 'no_such_file.textproto'
for dt in 0 -1 nan 2 1e-12 1.005e-7; do
  expect 2 "$RIGSTEP" simulate "$pendulum" --dt=$dt && says err '--dt: '
done
for duration in -1 nan 1e300; do
  expect 2 "$RIGSTEP" simulate "$pendulum" --duration=$duration && says err '--duration: '
  expect 2 timeout -s KILL 2 "$RIGSTEP" serve "$rig" --port 0 --record d.mcap --duration=$duration
  expect 2 "$RIGSTEP" rig --port 9 --duration=$duration
done
for rate in -1 nan 1e-300 1e6; do
  expect 2 "$RIGSTEP" rig --port 9 --rate=$rate
done
expect 2 "$RIGSTEP" simulate "$pendulum" --solver no_such_solver && says err 'no_such_solver'
for every in 0 -1 1e300 18446744073709551615; do
  expect 2 "$RIGSTEP" simulate "$pendulum" --every=$every && says err '--every: '
done
expect 2 "$RIGSTEP" simulate "$pendulum" --dt 0.01 --duration 0.004 && says err '--duration: 0\.004 s is no run: give one step of 0\.01 s'
expect 0 "$RIGSTEP" simulate "$pendulum" --dt 0.01 --duration 0.117 && says out '^12 steps of 0\.01 s to 0\.12 s '
expect 2 "$RIGSTEP" simulate "$pendulum" --inputs no_such_file.csv && says err 'no_such_file.csv'
printf 't,push_y\n0,1\n1,x\n' >bad.csv
expect 2 "$RIGSTEP" simulate "$pendulum" --inputs bad.csv && says err 'bad\.csv:3: column 2'
printf 't,no_such_input\n0,1\n' >bad.csv
expect 2 "$RIGSTEP" simulate "$pendulum" --inputs bad.csv && says err 'no_such_input.*push_y, push_z'
printf '# two forces of one name\nt,push_y,push_y\n0,1,2\n' >bad.csv
expect 2 "$RIGSTEP" simulate "$pendulum" --inputs bad.csv && says err 'bad\.csv:2: column 3: "push_y" names another column already'
# what some editors put in front of UTF-8 text is no part of it
printf '\xEF\xBB\xBFt,push_y\n0,1\n' >marked.csv
(printf '\xEF\xBB\xBF'; cat "$pendulum") >marked.textproto
expect 0 "$RIGSTEP" simulate marked.textproto --inputs marked.csv --duration 0.01
printf '\xEF\xBB\xBFmechanism: "marked.textproto"\n' >marked_rig.textproto
expect 0 "$RIGSTEP" serve marked_rig.textproto --port 0 --duration 0.1

# --- mechanism files: 0 for those we ship, 3 for those that are wrong
mkdir checked
for file in "$mechanisms"/*.textproto; do
  expect 0 "$RIGSTEP" check --json "$file" && cp out "checked/$(basename "$file").json"
done
"$python" - checked/*.json <<'END' || fail "what check says of the mechanisms"
import json, sys
for name in sys.argv[1:]:
    d = json.load(open(name))
    assert d["schema"] == 1 and d["bodies"] > 0 and d["start_gap_m"] < 1e-6, name
END
expect 0 "$RIGSTEP" check "$mechanisms/full_car.textproto" && says out '^freedom +[0-9]+ degrees'
# --- what may stand in a file, and files that are mistaken for others
expect 0 "$RIGSTEP" schema && says out '^message Mechanism \{' && says out '^message Rope \{'
expect 0 "$RIGSTEP" schema rig && says out '^message Rig \{'
expect 2 "$RIGSTEP" schema recording && says err 'recording'
printf '# moved\nmechanism: "nowhere.textproto"\n' >lost.textproto
expect 3 "$RIGSTEP" serve lost.textproto --port 0 && says err 'lost\.textproto:2: mechanism: nowhere\.textproto is not there'
expect 3 "$RIGSTEP" simulate marked_rig.textproto && says err 'marked_rig\.textproto:1: mechanism: belongs into a rig file'
printf '\x89MCAP0\r\n' >text.mcap
expect 3 "$RIGSTEP" check text.mcap && says err 'text\.mcap: file: is a recording'
# --- redundancy by joint and component, and what the layout makes of the mechanism
expect 0 "$RIGSTEP" check --json "$mechanisms/mcpherson_redundant.textproto"
assert_json out 'd["not_unique"] == {j: ["fx", "fy", "fz", "ty", "tz"] for j in ("Aa", "Ab")}'
assert_json out 'd["redundant_rows"] == 5 and d["outputs_us"] > 0 and d["singularity_margin"] > 0.01'
assert_json out 'len(d["parts_of_1_2_4_threads"]) == 3 and d["memory_bytes_per_body"] > 0'
expect 0 "$RIGSTEP" check --details "$mechanisms/four_bar.textproto" && says out '^tangents +1 to 3 in 3 iterations at 1 ms: closed loops'
says out '^layout +[0-9]+ of 3 bodies'
expect 0 "$RIGSTEP" check --json "$mechanisms/motor_with_friction.textproto"
assert_json out 'd["tangents"] == {"count": 3, "least": 1, "why": "the stiffness of a force element changes"}'
expect 0 "$RIGSTEP" check "$mechanisms/four_bar.textproto"
says out 'joint3 .* not unique: fz tx ty' && says out '^singular pose +no, margin' && says out '^cost per step'
says out '^    joint1 +revolute .*angle \[rad\]$' && says out '^    drive +\[N m\]$'
grep -q '^layout' out && fail "check tells the layout without --details"

# what is odd without being wrong is said as on the page: a wrong axis, a wrong rest length, a body that hangs on nothing
sed '0,/axis { z: 1 }/s//axis { x: 0.1 z: 1 }/' "$mechanisms/four_bar.textproto" >odd.textproto
expect 0 "$RIGSTEP" check odd.textproto && says out '^warning +nothing can move'
expect 0 "$RIGSTEP" check --json odd.textproto && assert_json out 'any(f["severity"] == "warning" for f in d["findings"])'
cat >odd.textproto <<'END'
name: "odd" gravity { z: -9.81 }
body { name: "load" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { z: -1 } }
body { name: "lost" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } }
spring { name: "coil" stiffness: 100 rest: 2 between_points { first: "ground" second: "load" } }
END
expect 0 "$RIGSTEP" check odd.textproto && says out '^warning +spring coil: pushes with 100 N at the start, 5\.1 times the weight of all bodies: it is 1 m long, its rest 2 m$' &&
  says out '^note +body lost: no joint, spring, bushing or rope holds it$'
expect 0 "$RIGSTEP" check "$mechanisms/hoist.textproto" && ! grep -E '^(warning|error|note) ' out || fail "a hoist is odd: $(cat out)"

expect 3 "$RIGSTEP" check no_such_file.textproto && says err 'no_such_file.textproto'
sed 's/mass: 1$/mass: -1/' "$pendulum" >bad.textproto
expect 3 "$RIGSTEP" check bad.textproto && says err 'bad\.textproto:[0-9]+: body "A"\.mass: '
silent out
sed 's/mass: 1$/mass: heavy/' "$pendulum" >bad.textproto
expect 3 "$RIGSTEP" check bad.textproto && says err 'bad\.textproto:[0-9]+: [a-z_]+: '
sed 's/second: "B"/second: "X"/' "$pendulum" >bad.textproto
expect 3 "$RIGSTEP" simulate bad.textproto && says err 'bad\.textproto:[0-9]+: joint "joint2"\.second: '

# --- drivers that a coupling rules out
cat >contradiction.textproto <<'END'
name: "contradiction"
body { name: "A" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } }
body { name: "B" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: 1 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "A" at_start { point {} axis { z: 1 } } }
joint { name: "b" type: REVOLUTE first: "ground" second: "B" at_start { point { x: 1 } axis { z: 1 } } }
coupling { name: "gear" first_joint: "a" second_joint: "b" ratio: 1 }
driver { name: "one" joint: "a" polynomial { coefficient: [ 0, 0, 1 ] } }
driver { name: "other" joint: "b" polynomial { coefficient: [ 0, 0, 1 ] } }
END
expect 3 "$RIGSTEP" check --json contradiction.textproto && assert_json out 'd["contradicts_itself"]' &&
  says err 'contradict one another: .* one prescribes what others rule out' && says err 'gear' && says err 'other'
sed '/"other"/s/0, 0, 1/0, 0, -1/' contradiction.textproto >agreement.textproto
expect 0 "$RIGSTEP" check --json agreement.textproto && assert_json out 'not d["contradicts_itself"] and d["redundant_rows"] == 1'

# --- a start that does not fit: 3 with the joint and the gap, and a way out
sed 's/position { x: 1 z: 0.5 }/position { x: 1.2 z: 0.5 }/; s/at_start { point { x: 1 } }/in_first { point { x: 0.5 } } in_second { point { z: -0.5 } }/' \
  "$pendulum" >open.textproto
expect 3 "$RIGSTEP" check open.textproto && says err 'open\.textproto:[0-9]+: .*joint2.* 0\.2 ?m'
expect 3 "$RIGSTEP" simulate open.textproto
expect 0 "$RIGSTEP" check open.textproto --assemble --write closed.textproto && says out 'nearest start +found'
expect 0 "$RIGSTEP" check closed.textproto
expect 0 "$RIGSTEP" check open.textproto --assemble --json && is_json out
expect 0 "$RIGSTEP" check open.textproto --assemble --write closed.textproto # a mechanism is replaced, nothing else
cp "$rig" kept.textproto
expect 2 "$RIGSTEP" check open.textproto --assemble --write kept.textproto && says err '--write: kept.textproto is no mechanism file'
cmp -s "$rig" kept.textproto || fail "check --write replaced a rig file"
expect 4 "$RIGSTEP" check open.textproto --assemble --write /no/such/folder/x.textproto && says err '/no/such/folder'
cat >torn_apart.textproto <<END
name: "torn_apart"
body { name: "A" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: 0.5 } }
joint { name: "left" type: SPHERICAL first: "ground" second: "A" in_first {} in_second { point { x: -0.5 } } }
joint { name: "right" type: SPHERICAL first: "ground" second: "A" in_first { point { x: 3 } } in_second { point { x: 0.5 } } }
END
expect 3 "$RIGSTEP" check torn_apart.textproto --assemble && says out 'NOT FOUND'

# --- a start by joint coordinates, in units: told body by body, written with comments, refused where it cannot be
"$RIGSTEP" new drawn --from four_bar >/dev/null
sed 's/angle: 0 deg/angle: 60 deg rate: 30 rpm/' drawn/mechanism.textproto >crank.textproto
expect 0 "$RIGSTEP" check crank.textproto && says out 'start as written +[0-9.e-]+ m'
expect 0 "$RIGSTEP" check crank.textproto --assemble --write crank_written.textproto
says out '^ +crank +moved 0 m, turned 1\.0472 rad; velocity by 0 m/s, angular velocity by 3\.14159 rad/s$'
says out '^wrote +crank_written\.textproto: [0-9]+ places differ from crank\.textproto, comments and layout are kept$'
[[ $(grep -o '#.*' crank.textproto) == "$(grep -o '#.*' crank_written.textproto)" ]] || fail "--write lost a comment"
grep -q '^  mass: 800 g$' crank_written.textproto || fail "--write lost a unit"
expect 2 "$RIGSTEP" check crank_written.textproto --assemble --write again.textproto && says err 'nothing would change'
[[ ! -e again.textproto ]] || fail "--write wrote what had not changed"
expect 0 "$RIGSTEP" simulate crank.textproto --duration 0.01 --dt 0.001 --output crank.csv
grep -v '^#' crank.csv | sed -n 2p | grep -Eq '1\.047' || fail "the crank does not start at 60 degrees: $(head -n 2 crank.csv)"
sed 's/joint: "crank_bearing" angle: 0 deg/joint: "rocker_bearing" angle: 10 deg/' drawn/mechanism.textproto >beyond.textproto
expect 3 "$RIGSTEP" check beyond.textproto && says err 'beyond\.textproto:[0-9]+: start\[0\]\.angle: .*cannot be 0\.174533 rad'
sed 's/viscous: 0.05 N m s\/rad/viscous: 0.05 N s\/m/' drawn/mechanism.textproto >unit.textproto
expect 3 "$RIGSTEP" check unit.textproto && says err 'unit\.textproto:[0-9]+: joint_friction "crank_friction"\.viscous: is in N s/m, .* but takes N m s/rad'

# --- a rig file: ranges of its channels, and its period against the cost of a step
expect 0 "$RIGSTEP" check drawn/rig.textproto && says out '^ +torque +\[N m\] +-10 to 10, safe 0, stale after 50 steps$' &&
  says out '^period +1000 us in drawn/rig\.textproto: a step with its outputs takes' && says out '^ +crank_rate +\[rad/s\] +0 while a fault'
expect 0 "$RIGSTEP" check --json drawn/rig.textproto && assert_json out 'd["period_us"] == 1000 and d["inputs"][0]["maximum"] == 10'
sed 's/maximum: 10 /maximum: 10 N /' drawn/rig.textproto >drawn/wrong.textproto
expect 2 "$RIGSTEP" check drawn/wrong.textproto && says err 'maximum: is in N, but channel "torque" is in N m'

# --- standard output that cannot be written: 4 and one line that says so, from every command
for arguments in "check $pendulum" "check --json $pendulum" 'doctor' 'doctor --json' 'verify --list' "simulate --duration 0.1 --json $pendulum" \
  "serve --port 0 --duration 0.1 --record full.mcap $rig" 'check --help' '--version'; do
  # shellcheck disable=SC2086
  expect 4 bash -c '"$@" >/dev/full' full "$RIGSTEP" $arguments && says err 'standard output: cannot be written.*: make room'
done
[[ $(grep -c 'cannot' err) -eq 1 ]] || fail "what cannot be written is told more than once"

# --- simulate: 0 with a table, a stream or a recording
expect 0 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --dt 0.01 --output run.csv && says out '^10 steps of 0\.01 s'
grep -v '^#' run.csv | head -n 1 >header
for name in t A.{x,y,z,e0,e1,e2,e3,vx,vy,vz,wx,wy,wz,ax,ay,az,alx,aly,alz} B.x B.wz joint1.{fx,fy,fz,tx,ty,tz} joint2.fx \
  energy.{kinetic,potential,total} residual.{position,velocity,acceleration} \
  B_accelerometer.{x,y,z} joint1_reaction.fz output.energy.total solver.{status,last_increment}; do
  grep -Eq "(^|,)$name(,|\$)" header || fail "column $name is not in the header of run.csv"
done
says run.csv '^# outputs of the mechanism: .*B_accelerometer\.x \[m/s\^2\], .*output\.energy\.total \[J\]'
grep -v '^#' run.csv | tail -n +2 | cut -d, -f1 | paste -sd' ' >times
[[ $(<times) == "0 0.01 0.02 0.03 0.04 0.05 0.06 0.07 0.08 0.09 0.1" ]] || fail "times are no exact decimals: $(<times)"
[[ $(grep -cv '^#' run.csv) -eq 12 ]] || fail "run.csv does not have a header and 11 rows"
expect 0 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --dt 0.01 --output -
cmp -s out run.csv || fail "--output - is not the same table as a file's"
silent err
expect 0 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --dt 0.01 --json && is_json out
silent err
expect 4 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --output /no/such/folder/run.csv && says err '/no/such/folder'
expect 4 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --output /no/such/folder/run.mcap && says err '/no/such/folder'
expect 4 "$RIGSTEP" simulate "$pendulum" --duration 1 --output /dev/full && says err '/dev/full'
# a limit on the size of files is an error with words, not the end by a signal
for output in limited.csv limited.mcap; do
  expect 4 bash -c 'ulimit -f 100; "$@"' limited "$RIGSTEP" simulate "$pendulum" --duration 5 --output $output &&
    says err "$output"
done

# --- simulate by a reference solver: the same columns but the stepper's own, which it tells, and the same inputs, which act at the
# start already; 2 for what it cannot do
printf 't,push_y\n0,20\n' >push.csv
expect 0 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/double_pendulum.textproto" --solver index3_literal --alpha 1e9 \
  --duration 1 --dt 0.01 --json && assert_json out 'd["alpha"] == 1e9 and abs(d["energy_lowest_J"] - d["energy_start_J"]) < 0.05'
expect 6 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/chain_128.textproto" --solver index3_literal --alpha 1e6 \
  --duration 2 --dt 0.01 --every 200 && says err 'no convergence at .*larger penalty'
expect 2 "$RIGSTEP" simulate "$SOURCE/config/mechanisms/double_pendulum.textproto" --alpha 1e9 && says err '--alpha: only index3_literal'
for solver in index3 hamiltonian_dca index3_literal qr; do
  expect 0 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --dt 0.00001 --every 1000 --inputs push.csv --solver $solver \
    --output $solver.csv && grep -v '^#' $solver.csv >$solver.rows
  "$python" - index3.rows $solver.rows <<'END' || fail "index3.csv and $solver.csv differ"
import csv, sys
one, other = ([row for row in csv.reader(open(name))] for name in sys.argv[1:])
there = [name for name in one[0] if sys.argv[2] == "index3.rows" or not name.startswith("solver.")]
at = [one[0].index(name) for name in there]
sys.exit(not (other[0] == there and len(one) == len(other) == 12 and float(one[-1][2]) != float(one[1][2]) and
              all(abs(float(x[k]) - float(b)) < 1e-3 * (1 + abs(float(x[k])))
                  for x, y in zip(one[2:], other[2:]) for k, name, b in zip(at, there, y) if "residual" not in name)))
END
  [[ $solver == index3 ]] || says err "\"solver\" has no columns with --solver $solver: only index3 has it"
done
expect 0 "$RIGSTEP" simulate "$mechanisms/four_bar.textproto" --duration 0.1 --dt 0.01 --solver ida --output open.csv &&
  says err '"joint1_reaction" has no columns with --solver ida: redundant constraints leave it open'
says open.csv '^# outputs without columns: joint1_reaction: .*; solver: '
grep -v '^#' open.csv | head -n 1 >header
grep -q 'joint1_reaction\.fx' header && fail "open.csv has a reaction that is not unique"
expect 0 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --solver ida --tolerance 1e-10 --json && is_json out &&
  assert_json out 'd["solver"] == "ida" and d["instants"] == 101 and 0 < d["right_hand_sides"]'
silent err
expect 2 "$RIGSTEP" simulate "$mechanisms/rack_and_pinion.textproto" --solver hamiltonian_dca && says err 'couples joint coordinates'
expect 2 "$RIGSTEP" simulate "$pendulum" --solver qr --tolerance 0 && says err '--tolerance: 0'
expect 2 "$RIGSTEP" simulate "$pendulum" --solver qr --output reference.mcap && says err 'recordings'

# --- a step that fails: 6, and what was recorded before replays
printf 't,push_y\n0,0\n0.5,0\n0.6,1e300\n' >huge.csv
expect 6 "$RIGSTEP" simulate "$pendulum" --duration 1 --dt 0.01 --inputs huge.csv --output failed.mcap &&
  says err 'step [0-9]+ is (singular|not finite) at (body|joint) '
expect 0 "$RIGSTEP" replay failed.mcap && says out '^bit-exact over [1-9]'
expect 6 "$RIGSTEP" simulate "$pendulum" --duration 1 --dt 0.01 --inputs huge.csv --json
assert_json out 'd["failure"] and d["steps"] < 100'

# --- verify: 0 where reference solvers agree, 2 for what is no reference solver, 3, 6 where there is nothing to compare
for name in double_pendulum mcpherson_redundant rack_and_pinion; do
  expect 0 "$RIGSTEP" verify "$mechanisms/$name.textproto" --solver ida,qr --duration 0.1 --limit 100 &&
    says out '^verdict: the stepper agrees'
done
expect 0 "$RIGSTEP" verify "$mechanisms/driven_crank.textproto" --solver partitioning --duration 0.02 --dt 1e-4 --limit 100
expect 0 "$RIGSTEP" verify "$pendulum" --duration 0.05 --solver wang_huston --limit 100 --json && is_json out &&
  assert_json out 'd["passed"] and 1.8 < d["order"] < 2.2 and d["solvers"][0]["deviation"]["position_m"] < 1e-6'
silent err
printf 't,target\n0,0\n0.1,0\n0.101,0.5\n' >target.csv
expect 0 "$RIGSTEP" simulate "$mechanisms/motor_with_friction.textproto" --duration 0.2 --inputs target.csv --output motor.mcap
expect 0 "$RIGSTEP" verify motor.mcap --solver ida --limit 100 && says out '0 to 0\.2 s'
expect 0 "$RIGSTEP" verify --list && says out '^ida ' && says out '^wang_huston '
expect 0 "$RIGSTEP" verify --list "$mechanisms/chain_128.textproto" && says out 'cannot: 128 bodies'
expect 6 "$RIGSTEP" verify "$mechanisms/chain_128.textproto" --solver qr --duration 0.004 && says out '128 bodies' &&
  says out '^verdict: NONE'
expect 6 "$RIGSTEP" verify "$pendulum" --solver qr --duration 0.1 --limit 0 && says out 'qr +stopped at'
expect 8 "$RIGSTEP" verify "$mechanisms/full_car.textproto" --solver qr --duration 0.1 --limit 1 &&
  says out '^verdict: INCOMPLETE.*1 agree as far as --limit let them go \(qr\)' && says out '^qr .*to 0\.0.* s, --limit'
expect 0 "$RIGSTEP" verify "$mechanisms/full_car.textproto" --solver qr,ida --duration 0.1 --limit 1 &&
  says out '^verdict: the stepper agrees.*1 family agrees \(1 solver\), 1 agree as far as --limit let them go \(qr\)'
printf 't,push_y\n0,0\n0.02,0\n0.0201,30\n0.05,30\n0.0501,-10\n' >push.csv
expect 0 "$RIGSTEP" verify "$pendulum" --duration 0.1 --inputs push.csv --limit 100 --json &&
  assert_json out '0.9 < d["order"] < 1.1 and all(j["agrees"] for j in d["solvers"]) and len(d["solvers"]) > 11'
head -c "$(($(stat -c %s motor.mcap) - 3000))" motor.mcap >half.mcap
expect 0 "$RIGSTEP" verify half.mcap --solver ida --limit 100 && says out '^the recording is damaged at byte [0-9]+: .*only the steps before'
expect 0 "$RIGSTEP" verify half.mcap --solver ida --limit 100 --json && assert_json out '"damaged at byte" in d["cut"]'
head -c "$(($(stat -c %s motor.mcap) / 2))" motor.mcap >headless.mcap
expect 7 "$RIGSTEP" verify headless.mcap --solver ida && says err '^rigstep: headless.mcap: no step can be read: .*damaged at byte'
expect 2 "$RIGSTEP" verify motor.mcap --duration 0 && says err '--duration: '
expect 2 "$RIGSTEP" verify motor.mcap --inputs push.csv && says err '--inputs: '
expect 2 "$RIGSTEP" verify "$pendulum" --solver no_such_solver && says err 'no_such_solver.*ida'
expect 2 "$RIGSTEP" verify "$pendulum" --tolerance 0 && says err '--tolerance: 0'
expect 2 "$RIGSTEP" verify
expect 3 "$RIGSTEP" verify bad.textproto

# --- doctor: 0 or 1 as its findings say, each with a remedy unless it passes
# at a low priority: what it spins through would hold up the loops of other tests on its core
sed 's/BEST_EFFORT/& priority: 5/' "$rig" >low.textproto
"$RIGSTEP" doctor low.textproto --json >out 2>err
code=$?
is_json out && silent err && assert_json out "(d['verdict'] == 'fail') == ($code == 1) and $code in (0, 1)"
assert_json out 'all((f["remedy"] == "") == (f["health"] == "pass") and f["reason"] for f in d["findings"])'
assert_json out '{"kernel", "privileges", "rtprio limit", "memlock limit", "governor", "SMT", "isolated CPUs", "cpuset", "cgroup limits",
  "RT throttling", "IRQ affinity", "transparent huge pages", "clock source", "NIC coalescing", "OpenMP environment",
  "container limits", "tried: memory lock"} <= {f["check"] for f in d["findings"]}'
expect 1 "$RIGSTEP" doctor low.textproto --interface no_such_link && says out '^fail  NIC coalescing +no_such_link: there is no such interface'
says out 'fix: use one of' && says out '^verdict: fail: '
sed 's/BEST_EFFORT/& threads: 2/' low.textproto >two.textproto
OMP_THREAD_LIMIT=1 "$RIGSTEP" doctor two.textproto >out 2>err
says out '^warn  OpenMP environment +OMP_THREAD_LIMIT=1 ' && says out '^pass  NIC coalescing +lo: loopback'
expect 2 "$RIGSTEP" doctor no_such_file.textproto && says err 'no_such_file'

# --- tune: 0 with a rig file that serves, 1 without one, 2 for demands that make no sense, 3, 4
expect 0 "$RIGSTEP" tune "$pendulum" --deadline 1e6 --error 0.1 --dt 1000,5000 --iterations 2,3 --projection-passes 1 --threads 1 --samples 100 \
  --duration 0.2 --output tuned.textproto && says out '^verdict: period [15]000 us' && says out 'rigstep serve tuned.textproto'
silent err
(cat tuned.textproto; echo 'lifecycle { start: AT_ONCE }') >tuned_at_once.textproto
expect 0 "$RIGSTEP" serve tuned_at_once.textproto --port 0 --duration 0.2 && says out '^double_pendulum +[1-9][0-9]* steps'
expect 0 "$RIGSTEP" tune "$pendulum" --deadline 1e6 --error 0.1 --dt 1000,5000 --iterations 2 --projection-passes 1 --threads 1 --samples 100 \
  --duration 0.2 --output tuned.textproto --json && is_json out # its own file is replaced
assert_json out 'd["rig_file"] == "tuned.textproto" and d["settings"][d["chosen"]]["in_time"] and d["settings"][d["chosen"]]["accurate"]'
expect 1 "$RIGSTEP" tune "$pendulum" --deadline 1e-3 --error 0.1 --dt 1000,5000 --iterations 2 --projection-passes 1 --threads 1 --samples 100 \
  --duration 0.2 --output none.textproto && says out '^verdict: no setting meets .* 0 are in time, [1-4] are accurate'
[[ ! -e none.textproto ]] || fail "tune wrote a rig file that does not meet the demands"
cp "$rig" own.textproto
expect 2 "$RIGSTEP" tune "$pendulum" --deadline 1000 --error 0.1 --output own.textproto && says err 'own.textproto was not written by'
expect 2 "$RIGSTEP" tune "$pendulum" --deadline 0 --error 0.1 && says err '--deadline: 0 us'
expect 2 "$RIGSTEP" tune "$pendulum" --deadline 1000 --error 0.1 --dt 700,1100,1300,1700 && says err '--dt: '
cat >rotor.textproto <<'END'
name: "rotor"
body { name: "A" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } angular_velocity { z: 600 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "A" at_start { point {} axis { z: 1 } } }
END
expect 0 "$RIGSTEP" tune rotor.textproto --deadline 1e6 --error 1e-3 --order 2 --dt 100,1000 --iterations 3 --projection-passes 1 --threads 1 --samples 100 \
  --duration 0.1 --output rotor_rig.textproto --json # its mass centre rests: what is wrong is its angle, by (600 dt)^2 / 48
assert_json out '{s["dt_us"]: s["accurate"] for s in d["settings"]} == {100: True, 1000: False} and
  all(0.8 < s["error_m"] / (6 * (600e-6 * s["dt_us"]) ** 2 / 48) < 1.25 for s in d["settings"])'
expect 1 "$RIGSTEP" tune "$mechanisms/four_bar.textproto" --deadline 1e6 --error 10 --dt 50000 --iterations 1 --projection-passes 1 --threads 1 --samples 100 \
  --output none.textproto && says out '[1-9][0-9]* steps not converged'
expect 3 "$RIGSTEP" tune bad.textproto --deadline 1000 --error 0.1
expect 4 "$RIGSTEP" tune "$pendulum" --deadline 1000 --error 0.1 --output /no/such/folder/x.textproto && says err '/no/such/folder'

# --- replay: 0, 1, 7
expect 0 "$RIGSTEP" simulate "$pendulum" --duration 2 --every 500 --output run.mcap
expect 0 "$RIGSTEP" replay run.mcap && says out '^bit-exact over 2000 steps'
expect 0 "$RIGSTEP" replay run.mcap --json
assert_json out 'd["verdict"] == "bit_exact" and d["steps"] == 2000 and d["damage"] == ""'
cp run.mcap kept.mcap
expect 0 "$RIGSTEP" simulate "$pendulum" --duration 0.1 --output kept.mcap && says out '^recording +kept\.[0-9]{8}T[0-9]{6}\.mcap$'
cmp -s run.mcap kept.mcap || fail "simulate replaced a recording"
expect 0 "$RIGSTEP" replay "$(sed -n 's/^recording *//p' out)" && says out '^bit-exact over 100 steps'
expect 7 "$RIGSTEP" replay no_such_file.mcap && says err 'no_such_file.mcap'
expect 7 "$RIGSTEP" replay /dev/null
expect 7 "$RIGSTEP" replay "$pendulum" && says err 'double_pendulum.textproto: '
head -c 100000 /dev/urandom >garbage.mcap
expect 7 "$RIGSTEP" replay garbage.mcap && says err 'garbage.mcap: '
head -c "$(($(stat -c %s run.mcap) - 3000))" run.mcap >torn.mcap
expect 7 "$RIGSTEP" replay torn.mcap && says out '[0-9]+ steps replayed' && says out '^damaged at byte [0-9]+: ' &&
  says out '^bit-exact over [0-9]+ steps'
# torn before its first step: after the header, that is, which the first chunk holds
"$python" - run.mcap stepless.mcap <<'END' || fail "could not tear a recording before its first step"
import struct, sys
data = open(sys.argv[1], "rb").read()
at, chunks = 8, 0
while chunks < 2:
    chunks += data[at] == 6
    at += 9 + struct.unpack_from("<Q", data, at + 1)[0]
    if chunks == 1: end = at
open(sys.argv[2], "wb").write(data[:end])
END
expect 7 "$RIGSTEP" replay stepless.mcap --json && assert_json out 'd["verdict"] == "nothing_replayed" and d["steps"] == 0'
expect 7 "$RIGSTEP" replay stepless.mcap && says out '^no verdict: there is no step to compare$'
"$python" - run.mcap tampered.mcap <<'END' || fail "could not make a tampered recording"
# flips the last bit of the last state hash of the first chunk with steps and mends the chunk's checksum
import struct, sys, zlib
data = bytearray(open(sys.argv[1], "rb").read())
at, steps = 8, None
while at + 9 < len(data):
    opcode, length = data[at], struct.unpack_from("<Q", data, at + 1)[0]
    begin = at + 9
    if opcode == 6:
        records = begin + 40
        inner, end = records, begin + length
        while inner < end:
            size = struct.unpack_from("<Q", data, inner + 1)[0]
            # a step ends with its hash: tag of field 11, 64 bits
            if data[inner] == 5 and data[inner + 9 + size - 9] == 0x59:
                steps = inner + 9 + size - 1
            inner += 9 + size
        if steps:
            data[steps] ^= 1
            struct.pack_into("<I", data, begin + 24, zlib.crc32(data[records:end]))
            open(sys.argv[2], "wb").write(data)
            sys.exit(0)
    at = begin + length
sys.exit(1)
END
expect 1 "$RIGSTEP" replay tampered.mcap && says out '^DIFFERS from step [0-9]+ on'
expect 1 "$RIGSTEP" replay tampered.mcap --json
assert_json out 'd["verdict"] == "differs" and d["first_difference"] > 0'

# --- serve: 130 and 0 by signal, 0 by duration, 5 for the port, 4 for permissions
serve "$rig" --record served.mcap || failures=$((failures + 1))
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.5 --drive drive=sine:2,1 --json
assert_json out 'd["mechanism"] == "four_bar" and d["states"] > 200 and d["status"] == "ok"'
expect 2 "$RIGSTEP" rig --port "$port" --drive no_such_channel=step:1 && says err 'no_such_channel.*Input channels: drive'
expect 2 "$RIGSTEP" rig --port "$port" --name $'\xff' && says err 'name: is not UTF-8'
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2 --observe && says out '^states +[1-9]'
[[ $(grep -c '^round trip' out) -eq 0 ]] || fail "an observer tells a round trip that it did not measure"
expect 0 "$RIGSTEP" status "127.0.0.1:$port" && says out '^missed_deadlines +[0-9]+$' && says out '^not_converged_steps +0$'
expect 2 "$RIGSTEP" rig --port "$port" --drive drive=step:1 --drive drive=sine:2,1 &&
  says err 'drive "drive=sine:2,1": channel "drive" has a drive already'
expect 5 "$RIGSTEP" serve "$rig" --port "$port" --record second.mcap && says err "127\.0\.0\.1 port $port"
[[ ! -e second.mcap ]] || fail "a server without a port has made a recording"
end_server INT
[[ $code -eq 130 ]] || fail "serve ended with $code after SIGINT: $(cat serve.err)"
expect 0 "$RIGSTEP" replay served.mcap && says out '^bit-exact over [1-9][0-9]* steps'
serve "$rig" --record served.mcap --json || failures=$((failures + 1))
sleep 0.3
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code after SIGTERM: $(cat serve.err)"
is_json serve.out && assert_json serve.out 'd["recorded_steps"] == d["steps"] > 100 and d["fault"] == ""'
expect 0 "$RIGSTEP" replay served.mcap
expect 0 "$RIGSTEP" serve "$rig" --port 0 --record served.mcap --duration 0.3
sed "s#\.\./mechanisms#$mechanisms#; s/four_bar.mcap/served.mcap/" "$rig" >rig.textproto
sed 's/port: 47001/port: 99999/' rig.textproto >bad_rig.textproto
expect 2 "$RIGSTEP" serve bad_rig.textproto && says err 'bad_rig\.textproto:[0-9]+: link\.port: '
(cat rig.textproto; echo 'output: "no_such_output"') >bad_rig.textproto
expect 2 "$RIGSTEP" serve bad_rig.textproto --port 0 && says err 'bad_rig\.textproto:[0-9]+: output: "no_such_output"'
sed 's#four_bar.textproto#no_such_file.textproto#' rig.textproto >bad_rig.textproto
expect 3 "$RIGSTEP" serve bad_rig.textproto --port 0 && says err 'no_such_file.textproto'
sed 's/127\.0\.0\.1/192.0.2.1/' rig.textproto >bad_rig.textproto
expect 2 "$RIGSTEP" serve bad_rig.textproto --port 0 && says err 'bad_rig\.textproto:[0-9]+: link\.address: .*rigstep keygen.*allow_unauthenticated'
sed -i 's/^link {/link { allow_unauthenticated: true/' bad_rig.textproto
expect 5 "$RIGSTEP" serve bad_rig.textproto --port 0 && says err 'no such address'
expect 4 "$RIGSTEP" serve rig.textproto --port 0 --record /no/such/folder/x.mcap && says err '/no/such/folder'

# --- steps that do not converge are counted by everyone who tells of the run
cat >spin.textproto <<END
name: "spin"
body { name: "A" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } angular_velocity { z: 1000 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "A" at_start { point {} axis { z: 1 } } }
END
printf 'mechanism: "spin.textproto" solver { iterations: 1 order: 4 error_limit { orientation: 0.01 deg } }
  lifecycle { start: AT_ONCE }\n' >spin_rig.textproto
serve spin_rig.textproto --record spin.mcap --json || failures=$((failures + 1))
sleep 0.2
expect 0 "$RIGSTEP" status "127.0.0.1:$port" --json && assert_json out 'd["counters"]["not_converged_steps"] > 0 and d["counters"]["inaccurate_steps"] > 0'
end_server TERM
assert_json serve.out 'd["steps"] >= d["not_converged_steps"] > 0 and d["first_not_converged_step"] == 1'
counted=$(grep -o '"not_converged_steps": [0-9]*' serve.out)
expect 0 "$RIGSTEP" replay spin.mcap --json && says out "$counted,"
assert_json serve.out 'd["inaccurate_steps"] > 0 and d["first_inaccurate_step"] == 1 and d["first_inaccurate_body"] == "A"'
inaccurate=$(grep -o '"inaccurate_steps": [0-9]*' serve.out)
expect 0 "$RIGSTEP" info spin.mcap --json && says out "$inaccurate," && says out 'error is above the limit: .* \\"A\\" most'
expect 0 "$RIGSTEP" export spin.mcap --channel run.orientation_error && says out '^0\.001,[0-9.]+'
expect 0 "$RIGSTEP" replay spin.mcap && says out '^[0-9]+ of the steps had not converged'
expect 0 "$RIGSTEP" serve spin_rig.textproto --port 0 --duration 0.2 && says out '^not converged +[0-9]+ steps, first step 1$' &&
  says out '^error +[0-9]+ steps err by more than the limit, first step 1 \("A"\)$'

# the stale rule stops the run: 1 and a reason, however it is stopped; 100 ms, which a loaded machine does not stand still
sed -E 's/max_age_steps: [0-9]+ rule: HOLD/max_age_steps: 100 rule: FAULT/' rig.textproto >fault_rig.textproto
grep -q 'max_age_steps: 100 rule: FAULT' fault_rig.textproto || fail "the rig file has another stale rule than before"
serve fault_rig.textproto --record fault.mcap || failures=$((failures + 1))
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2
sleep 0.5
end_server TERM
[[ $code -eq 1 ]] || fail "serve ended with $code after a stale fault"
grep -q 'stepping stopped' serve.err || fail "the fault was not logged: $(cat serve.err)"
grep -qi 'stale\|no input' serve.out || fail "the summary does not say why stepping stopped: $(cat serve.out)"
expect 0 "$RIGSTEP" replay fault.mcap && says out 'faulted after step [0-9]+: no inputs for too long'

# an operator clears it, steps go on, and it replays
serve fault_rig.textproto --record reset.mcap --json || failures=$((failures + 1))
expect 0 "$RIGSTEP" status "127.0.0.1:$port" && says out '^loop +running'
expect 0 "$RIGSTEP" reset "127.0.0.1:$port" && says err 'no fault is latched'
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2
sleep 0.5
expect 1 "$RIGSTEP" status "127.0.0.1:$port" --json && is_json out
assert_json out 'd["state"] == "faulted" and d["faults"] == 1 and "no inputs" in d["fault"]'
expect 0 "$RIGSTEP" reset "127.0.0.1:$port" --json && says err 'resetting fault 1: no inputs'
assert_json out 'd["state"] == "running" and d["controller"] is None and d["distributions"]["step_ns"]["count"] > 0'
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2 --json && assert_json out 'd["flags"] & 16 == 0'
sleep 0.5
expect 0 "$RIGSTEP" reset "127.0.0.1:$port" && says err 'resetting fault 2'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code after a reset: $(cat serve.err)"
assert_json serve.out 'd["faults"] == 2 and d["fault"] == "" and d["recorded_steps"] == d["steps"]'
expect 0 "$RIGSTEP" replay reset.mcap && says out '^bit-exact over [1-9][0-9]* steps'

# --- lockstep: the rig finds out by itself; the black box comes on a signal, and both recordings replay
serve "$SOURCE/config/rigs/lockstep.textproto" --record lockstep.mcap --json || failures=$((failures + 1))
grep -q 'in lockstep with the rig' serve.err || fail "lockstep is not told: $(cat serve.err)"
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.5 --rate 100000 --drive drive=sine:2,1 --json
assert_json out 'd["lockstep"] and d["lost"] == 0 and d["states"] > 100'
kill -USR1 "$server"
for _ in $(seq 50); do compgen -G 'four_bar.black_box.*.mcap' >/dev/null && break || sleep 0.1; done
sleep 0.2
expect 0 "$RIGSTEP" status "127.0.0.1:$port" && says out 'in lockstep' && says out '^black box +.*four_bar\.black_box\.'
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code in lockstep: $(cat serve.err)"
assert_json serve.out 'd["steps"] == d["recorded_steps"] > 100 and len(d["black_boxes"]) == 1 and d["missed_deadlines"] == 0'
expect 0 "$RIGSTEP" replay four_bar.black_box.*.mcap && says out '^bit-exact'
expect 0 "$RIGSTEP" replay lockstep.mcap && says out '^bit-exact'
(cat rig.textproto; echo 'input { channel: "torque" minimum: -1 }') >bad_rig.textproto
expect 2 "$RIGSTEP" serve bad_rig.textproto --port 0 &&
  says err 'bad_rig\.textproto:[0-9]+: input\.channel: "torque" is no input channel .*: use one of drive'

# --- a team: what the environment holds against it is taken away before OpenMP reads it
{
  echo 'name: "long_chain"'
  for ((k = 1; k <= 512; ++k)); do
    echo "body { name: \"B$k\" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: $((k - 1)).5 } }"
    echo "joint { name: \"J$k\" type: SPHERICAL first: \"$([[ $k -eq 1 ]] && echo ground || echo "B$((k - 1))")\"" \
      "second: \"B$k\" at_start { point { x: $((k - 1)) } } }"
  done
} >long_chain.textproto
echo 'mechanism: "long_chain.textproto" period_us: 5000 realtime { threads: 2 busy_poll_us: 50 }' >team.textproto
OMP_THREAD_LIMIT=1 OMP_DYNAMIC=true expect 0 "$RIGSTEP" serve team.textproto --port 0 --duration 0.2 &&
  says err 'team of 2: OpenMP gave all of them' && says err 'busy-poll 50 us: '

# --- keys: 4 for a file that is not there, open to others, no key; 5 for another one
expect 0 "$RIGSTEP" keygen bench.key
[[ $(stat -c %a bench.key) == 600 ]] && grep -Eq '^bench controller [0-9a-f]{64}$' bench.key || fail "the key file is not what it should be"
expect 4 "$RIGSTEP" keygen bench.key && says err 'bench\.key: File exists'
sed 's/^link {/link { key_file: "bench.key"/' rig.textproto >keyed.textproto
cp -p bench.key good.key
chmod 640 bench.key
expect 4 "$RIGSTEP" serve keyed.textproto --port 0 && says err 'bench\.key: others.*chmod 600'
chmod 600 bench.key && echo 'no key' >bench.key
expect 4 "$RIGSTEP" serve keyed.textproto --port 0 && says err 'bench\.key:1: is not a name, a role and 64'
head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >bench.key # as protocol version 2 had it
expect 4 "$RIGSTEP" serve keyed.textproto --port 0 && says err 'bench\.key:1: is one shared key.*rigstep keygen rig\.keys --participant'
printf 'bench controller %064d\n' 0 >bench.key
expect 4 "$RIGSTEP" serve keyed.textproto --port 0 && says err 'bench\.key:1: a key of all zeros protects nothing: make one'
rm bench.key
expect 4 "$RIGSTEP" serve keyed.textproto --port 0 && says err 'bench\.key: No such file.*rigstep keygen'
mv good.key bench.key
serve keyed.textproto --record keyed.mcap || failures=$((failures + 1))
expect 0 "$RIGSTEP" rig keyed.textproto --port "$port" --duration 0.3
expect 5 "$RIGSTEP" rig --port "$port" --duration 0.3 && says err 'only with a key that it knows, and this one shows none'
"$RIGSTEP" keygen other.key 2>/dev/null
expect 5 "$RIGSTEP" rig --port "$port" --key other.key --duration 0.3 && says err 'no answer from .* that its key proves; .* does not know this one'
expect 5 "$RIGSTEP" status "127.0.0.1:$port" && says err 'only with a key that it knows'
expect 0 "$RIGSTEP" status "127.0.0.1:$port" --key bench.key --json && assert_json out 'd["authenticated"]'
assert_json out 'd["refused"]["authentication"] > 5 and d["refused"]["replayed"] == 0'
expect 5 "$RIGSTEP" reset "127.0.0.1:$port" && says err 'only with a key'
expect 0 "$RIGSTEP" keygen desk.keys --participant desk --role operator && says err 'desk\.keys: desk added as operator' &&
  says err 'desk\.key: written'
expect 4 "$RIGSTEP" keygen desk.keys --participant desk --role observer --file d.key && says err 'two participants "desk"'
expect 4 "$RIGSTEP" keygen desk.keys --participant boss --role boss && says err '"boss" is no role: give controller, observer or operator'
expect 0 "$RIGSTEP" keygen desk.keys --remove desk && says err 'desk removed'
end_server TERM

# --- status: 5 without a server, 2 for what is no address
expect 5 "$RIGSTEP" status "127.0.0.1:$port" && says err 'rigstep serve'
expect 2 "$RIGSTEP" status "127.0.0.1:x" && says err 'HOST:PORT'

# --- impair: 2 for a target that no datagram reaches
for target in foo foo:47001 127.0.0.1 127.0.0.1:0; do
  expect 2 timeout 5 "$RIGSTEP" impair $target --listen-port 0 && says err "\"${target%:47001}\" is (not HOST:PORT|no numeric address): give for instance"
done
expect 2 timeout 5 "$RIGSTEP" impair 127.0.0.1:47001 --listen-address foo && says err '"foo" is no numeric address'

# --- plot: every state as JSON
serve rig.textproto --record plot.mcap || failures=$((failures + 1))
"$python" - >plot.json <<'END' &
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.settimeout(20)
open("plot.new", "w").write(str(s.getsockname()[1]))
os.rename("plot.new", "plot.port")
print(s.recv(65536).decode())
END
plotter=$!
for _ in $(seq 50); do
  [[ -s plot.port ]] && break
  sleep 0.1
done
expect 0 "$RIGSTEP" rig --port "$port" --observe --duration 0.3 --plot "udp://127.0.0.1:$(cat plot.port)"
wait "$plotter" && assert_json plot.json 'd["timestamp"] > 0 and "phi" in d and "residual.position" in d'
expect 2 "$RIGSTEP" rig --port "$port" --plot 127.0.0.1 && says err 'udp://'
end_server TERM

# --- commission: 0 or 1 as its own numbers say, and what serve makes of it; beside it a cyclictest that is not the real one
mkdir -p fake_bin
printf '#!/bin/sh\nprintf "# Histogram\\n000011 000999\\n000097 000001\\n# Max Latencies: 00097\\n"; echo "$*" >fake_bin/arguments\n' >fake_bin/cyclictest
chmod +x fake_bin/cyclictest
sed 's/^recording.*//; s/BEST_EFFORT/& priority: 5/' rig.textproto >bench.textproto
PATH=$PWD/fake_bin:$PATH "$RIGSTEP" commission bench.textproto --port 0 --duration 1 --drive drive=sine:2,0.5 --json >out 2>err
code=$?
says err 'bench.commissioned.json written' && says fake_bin/arguments '--interval=1000 --duration=1'
assert_json out "d['carried'] == all(r['holds'] for r in d['rules']) and $code == (0 if d['carried'] else 1)"
assert_json out 'all(r["holds"] == (r["value"] is not None and r["value"] <= r["at_most"]) for r in d["rules"]) and len(d["rules"]) >= 8'
assert_json out 'd["cyclictest"]["problem"] == "" and 10 < d["cyclictest"]["wake_up_us"]["p50"] < 12 and
  d["cyclictest"]["wake_up_us"]["max"] == 97'
assert_json out 'd["steps"] > 0 and d["udp_echo"]["round_trip_us"]["count"] + d["udp_echo"]["lost"] == 1000'
assert_json out '0 <= d["pauses"]["share"] <= 1 and 1 <= d["pauses"]["seconds"] < 3'
assert_json out 'd["margin"] is None or d["margin"] < 1'
cmp -s out bench.commissioned.json || fail "the verdict file is not what was printed"
expect 0 "$RIGSTEP" serve bench.textproto --port 0 --duration 0.2 --record commissioned.mcap && says err '(info|warning) commissioned'
grep -aq '"udp_echo"' commissioned.mcap || fail "the recording does not hold the verdict of the commissioning"
echo '# changed' >>bench.textproto
expect 0 "$RIGSTEP" serve bench.textproto --port 0 --duration 0.2 && says err 'bench.commissioned.json: is about another rig_file; rigstep commission'
cp "$pendulum" kept.textproto
expect 2 "$RIGSTEP" commission bench.textproto --port 0 --duration 60 --output kept.textproto &&
  says err '--output: kept.textproto was not written by rigstep commission and is kept'
cmp -s "$pendulum" kept.textproto || fail "commission replaced a mechanism file"
# asked to stop, it does not wait for cyclictest
printf '#!/bin/sh\nexec sleep 30.0625\n' >fake_bin/cyclictest
PATH=$PWD/fake_bin:$PATH timeout --signal TERM --kill-after 5 3 "$RIGSTEP" commission bench.textproto --port 0 --duration 0.5 --output stopped.json \
  --drive drive=sine:2,0.5 >out 2>err
code=$?
[[ $code -eq 124 && ! -s out ]] || fail "commission ended with $code instead of being stopped"
pgrep -f 'sleep 30.0625' >/dev/null && fail "the cyclictest of a commission that was stopped goes on"
expect 4 timeout 10 "$RIGSTEP" commission bench.textproto --port 0 --duration 60 --output /no/such/folder/x && says err '/no/such/folder/x: cannot'
expect 2 "$RIGSTEP" commission no_such_file.textproto && says err 'no_such_file'
expect 2 "$RIGSTEP" commission bench.textproto --port 0 --duration 0.5 --drive no_such=sine:1,1 && says err 'no_such'

# --- rig without a server: 5
expect 5 "$RIGSTEP" rig --port "$port" --duration 1 && says err "127\.0\.0\.1:$port.*rigstep serve"
silent out

# --- enforced real time without permissions: 4
chmod 755 "$WORK"
sed 's/BEST_EFFORT/ENFORCE/; s/^recording.*//' rig.textproto >"enforce.textproto"
unprivileged=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
if "${unprivileged[@]}" test -x "$RIGSTEP" -a -r enforce.textproto 2>/dev/null; then
  (ulimit -r 0 -l 64; expect 4 "${unprivileged[@]}" "$RIGSTEP" serve enforce.textproto --port 0 --duration 0.1
    says err 'refused .*: '
    expect 1 "${unprivileged[@]}" "$RIGSTEP" doctor enforce.textproto && says out '^fail  rtprio limit +0, priority 80 is requested' &&
      says out '^fail  tried: SCHED_FIFO priority 80 +refused ' && says out 'fix: .*rtprio 80'
    exit "$failures") || failures=$((failures + 1))
else
  echo "skipped: enforced real time without permissions (no other user can run $RIGSTEP)"
fi

# --- what an operator sees in a terminal: a line in place, or with --watch every output; a rig that asserts
serve "$rig" || failures=$((failures + 1))
at=127.0.0.1:$port
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.5 --drive drive=sine:2,1 --expect phi=-7..7 && says out '^expected +phi=-7\.\.7: met$'
expect 1 "$RIGSTEP" rig --port "$port" --duration 0.5 --expect phi=-7..7 --expect energy.total=1e6..2e6 --json
assert_json out '[e["met"] for e in d["expectations"]] == [True, False] and d["expectations"][1]["states_outside"] == d["states"]'
expect 2 "$RIGSTEP" rig --port "$port" --expect phi=3 && says err '"phi=3" is no range'
expect 2 "$RIGSTEP" rig --port "$port" --expect psi=0..1 && says err '"psi" is no output of this server: the nearest are .*"phi"'
script -qefc "$RIGSTEP rig --port $port --duration 1 --watch" screen >/dev/null
grep -aq 'four_bar: running, step [0-9]*' screen && grep -aq 'phi_rate .* rad/s' screen || fail "rig --watch shows no line and no outputs"
timeout -s INT 1.3 "$RIGSTEP" status "$at" --watch >out 2>err
[[ $(grep -c '^loop ' out) -ge 2 ]] || fail "status --watch told it once only"
end_server TERM
script -qefc "timeout -s TERM 1.5 $RIGSTEP serve $rig --port 0 --watch --record screen.mcap" screen >/dev/null
grep -aq 'four_bar: running, .*[0-9] steps, wake-up p99' screen && grep -aq 'phi_rate .* rad/s' screen || fail "serve --watch shows no line and no outputs"
# a rig is told why its server is faulted, and what clears it
printf 'mechanism: "%s/config/mechanisms/four_bar.textproto"\nlifecycle { start: AT_ONCE control_lost: FAULT }\n' "$SOURCE" >strict.textproto
serve strict.textproto || failures=$((failures + 1))
expect 0 "$RIGSTEP" rig --port "$port" --duration 0.2
sleep 0.1
expect 1 "$RIGSTEP" rig --port "$port" --duration 0.2 && says err 'the server is faulted: the rig in control has left' && says err 'rigstep reset 127\.0\.0\.1:[0-9]+'
end_server TERM

# --- simulate and demo are interrupted: 130
"$RIGSTEP" simulate "$pendulum" --duration 100000 --output interrupted.mcap >out 2>err &
server=$!
sleep 0.5
end_server INT
# a background job of a script ignores SIGINT unless the program asks for it
[[ $code -eq 130 ]] || fail "simulate ended with $code after SIGINT"
expect 0 "$RIGSTEP" replay interrupted.mcap

# --- the demo: 0 or 1 as its verdict says, which a busy machine may spoil, but nothing else
timeout 60 "$RIGSTEP" demo --duration 2 --record demo.mcap >out 2>err </dev/null
code=$?
if grep -q ' FAIL ' out; then
  [[ $code -eq 1 ]] || fail "a part of the demo failed, and it ended with $code"
  says out '^verdict: NOT GOOD: what was computed is right'
  expect 0 "$RIGSTEP" demo --duration 1 --record demo2.mcap --tolerate-timing
else
  [[ $code -eq 0 ]] || fail "the demo ended with $code"
  says out '^verdict: Rigstep does its job'
fi

finish
