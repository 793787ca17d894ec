#!/usr/bin/env bash
# The morning after: what a recording tells about its run, its channels as numbers and as figures, a piece of it, what
# differs from another one, and the same inputs on another plant.
source "$(dirname "$0")/lib.sh"
four_bar=$SOURCE/config/mechanisms/four_bar.textproto
printf 'mechanism: "%s"\nlink { port: 47001 }\nlifecycle { start: AT_ONCE }\nrecording { full_state_every: 200 }\n' "$four_bar" >rig.textproto
printf 'mechanism: "%s"\nlifecycle { start: AT_ONCE }\nrecording { full_state_every: 200 outputs_every: 7 output: "phi" }\n' "$four_bar" >sparse.textproto

# --- a live run with a rig that comes late and goes early
serve rig.textproto --record run.mcap || exit 1
sleep 0.3
expect 0 "$RIGSTEP" rig --host 127.0.0.1 --port "$port" --drive drive=sine:2,0.5 --duration 1.5
sleep 0.3
end_server TERM
expect 0 "$RIGSTEP" replay run.mcap

# --- info
expect 0 "$RIGSTEP" info run.mcap --json && cp out info.json
assert_json info.json 'd["mechanism"] == "four_bar" and d["steps"] > 1000 and d["inputs"] == ["drive [N m]"]'
assert_json info.json 'd["steps_with_outputs"] == d["steps"] and d["full_states"] >= d["steps"] // 200'
assert_json info.json '100 < d["steps_without_input"] < d["steps"] and d["steps_with_stale_input"] > 0 and d["reason"] != ""'
assert_json info.json 'any("the first inputs" in e["event"] for e in d["events"]) and any("stale" in e["event"] for e in d["events"])'
expect 0 "$RIGSTEP" info run.mcap && says out '^run\.mcap: four_bar$' && says out '^event +step .*the first inputs$' && says out '^ended '
expect 7 "$RIGSTEP" info "$four_bar"

# --- export: every step, exact times, with units; as JSON lines; by name
steps=$("$python" -c 'import json; print(json.load(open("info.json"))["steps"])')
expect 0 "$RIGSTEP" export run.mcap --output run.csv
[[ $(grep -vc '^#' run.csv) -eq $((steps + 1)) ]] || fail "run.csv has not a row for each of $steps steps"
sed -n 2p run.csv | grep -q '^t \[s\],drive \[N m\],' || fail "the head of run.csv has no names with units"
grep -q '^0.003,' run.csv || fail "times are no exact decimals"
expect 0 "$RIGSTEP" export run.mcap --json --channel phi --channel run.wake_up --from 0.1 --to 0.109
[[ $(wc -l <out) -eq 10 ]] || fail "ten steps make $(wc -l <out) lines"
head -n 1 out >line.json && assert_json line.json 'd["t"] == 0.1 and d["step"] == 100 and d["run.wake_up"] >= 0'
expect 2 "$RIGSTEP" export run.mcap --channel phy && says err '"phy" is no channel of run\.mcap: the nearest are .*"phi"'
expect 4 "$RIGSTEP" export run.mcap --output /no/such/folder/x.csv && says err '/no/such/folder/x\.csv: cannot be written'
expect 4 "$RIGSTEP" export run.mcap --output /dev/full && says err 'cannot be written'
[[ -e /dev/full ]] || fail "export removed a device"

# --- the inputs again, on the same plant: the same bits; what was not recorded comes by replay
expect 0 "$RIGSTEP" simulate "$four_bar" --inputs run.mcap --duration "$("$python" -c "print($steps / 1000)")" --output again.mcap
expect 0 "$RIGSTEP" diff run.mcap again.mcap && says out '^states are equal, bit for bit$' && says out '^within tolerance$'
expect 0 "$RIGSTEP" export run.mcap --inputs --output inputs.csv
expect 0 "$RIGSTEP" simulate "$four_bar" --inputs inputs.csv --duration "$("$python" -c "print($steps / 1000)")" --output third.mcap
expect 0 "$RIGSTEP" diff again.mcap third.mcap
sed 's/drive \[N m\]/drive [N]/' inputs.csv >wrong_unit.csv
expect 2 "$RIGSTEP" simulate "$four_bar" --inputs wrong_unit.csv && says err 'drive: is in \[N\], its channel in \[N m\]'
serve sparse.textproto --record sparse.mcap --duration 0.5 || exit 1
wait "$server"
server=
expect 0 "$RIGSTEP" info sparse.mcap --json
assert_json out 'd["recorded_outputs"] == ["phi [rad]"] and 0 < d["steps_with_outputs"] <= d["steps"] // 7'
expect 0 "$RIGSTEP" export sparse.mcap --channel phi --channel energy.kinetic --output sparse.csv
grep -q nan sparse.csv && fail "what was not recorded is not there"
expect 0 "$RIGSTEP" simulate "$four_bar" --inputs sparse.mcap --duration 0.4 --output full.mcap
expect 0 "$RIGSTEP" diff sparse.mcap full.mcap --to 0.4

# --- another plant: what changes, by channel
sed 's/mass: 1\b/mass: 1.2/' "$four_bar" >heavier.textproto
cmp -s "$four_bar" heavier.textproto && fail "the heavier four-bar is the same"
expect 0 "$RIGSTEP" simulate heavier.textproto --inputs run.mcap --duration 1 --output heavier.mcap
expect 1 "$RIGSTEP" diff run.mcap heavier.mcap --to 1 --channel phi --json && cp out diff.json
assert_json diff.json 'not d["same_mechanism"] and d["instants"] == 1000 and d["outputs"][0]["name"] == "phi"'
assert_json diff.json '0 < d["outputs"][0]["rms"] <= d["outputs"][0]["largest"] and not d["outputs"][0]["within"]'
expect 0 "$RIGSTEP" diff run.mcap heavier.mcap --to 1 --channel phi --tolerance 1e-9 --tolerance phi=100
expect 1 "$RIGSTEP" diff run.mcap heavier.mcap --channel phi --tolerance 100 && says out ' only in a'
expect 2 "$RIGSTEP" diff run.mcap heavier.mcap --tolerance phi=x && says err '"phi=x" is no tolerance'
expect 2 "$RIGSTEP" diff run.mcap heavier.mcap --tolerance phi=1 --tolerance 'phi [rad]=2' && says err '"phi" is given twice'
expect 0 "$RIGSTEP" diff run.mcap heavier.mcap --to 1 --channel phi --tolerance 'phi [rad]=100'
expect 2 "$RIGSTEP" diff run.mcap heavier.mcap --tolerance inf && says err 'is no tolerance'
expect 2 "$RIGSTEP" diff run.mcap heavier.mcap --tolerance psi=1 && says err '"psi" is no channel'

# the same by one command, from the start and from a state in the middle of the run
expect 0 "$RIGSTEP" replay run.mcap --mechanism heavier.textproto --output what_if.mcap --json && cp out what_if.json
assert_json what_if.json 'd["variant"] == "what_if.mcap" and d["steps"] > 1000 and not d["within_tolerance"]'
expect 0 "$RIGSTEP" diff what_if.mcap heavier.mcap --to 1
expect 0 "$RIGSTEP" info what_if.mcap && says out '^variant of +run\.mcap, with the mechanism heavier\.textproto$'
expect 0 "$RIGSTEP" replay what_if.mcap && says out '^bit-exact over '
for from in 3 700; do
  rm -f from.mcap
  expect 0 "$RIGSTEP" replay run.mcap --from $from --output from.mcap --picture from.html &&
    says out '^states are equal, bit for bit$' && says out ' 0 only in a, 0 only in b$' && says out '^within tolerance$'
done
expect 0 "$RIGSTEP" replay from.mcap && says out '^bit-exact over '
expect 0 "$RIGSTEP" replay run.mcap --from 700 --inputs inputs.csv --output from.mcap && says out '^states are equal, bit for bit$'
expect 0 "$RIGSTEP" replay run.mcap --period 0.0005 --output finer.mcap && says out ' only in a, [0-9]+ only in b'
expect 2 "$RIGSTEP" replay run.mcap --from 99999999 --output from.mcap && says err 'has no step 99999999'
expect 2 "$RIGSTEP" replay run.mcap --from 700 --output variant.csv && says err 'name an \.mcap'
expect 2 "$RIGSTEP" replay run.mcap --from 700 --mechanism "$SOURCE/config/mechanisms/double_pendulum.textproto"
expect 0 "$RIGSTEP" replay run.mcap --from 700 --mechanism heavier.textproto --output from.mcap

# --- figures: well-formed, self-contained, and no text of a file becomes markup
cp run.mcap 'a<script>b.mcap'
expect 0 "$RIGSTEP" plot run.mcap --channel phi --channel drive --output run.svg
"$python" -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse("run.svg")' || fail "run.svg is no XML"
expect 0 "$RIGSTEP" plot 'a<script>b.mcap' --channel phi --output page.html
[[ $(grep -c '<script' page.html) -eq 1 ]] || fail "the name of a file became a script"
grep -q 'https\?:' page.html && fail "page.html needs a network"
grep -q '"phi"' page.html || fail "page.html has no phi"
expect 0 "$RIGSTEP" diff run.mcap again.mcap --channel phi --picture both.html
printf 't [s],phi [rad],torque [N m]\n0,1,2\n0.5,1.5,3\n1,2,4\n' >table.csv
expect 0 "$RIGSTEP" plot table.csv --channel phi --output table.svg && says table.svg '>\[rad\]<'
expect 0 "$RIGSTEP" plot table.csv table.csv --output table.html && says table.html '"N m"'
expect 2 "$RIGSTEP" plot table.csv --channel phy --output table.svg && says err '"phy" is no column of table.csv: the nearest are "phi"'
printf 'x,y\n1,2\n' >no_time.csv
expect 2 "$RIGSTEP" plot no_time.csv --output table.svg && says err 'has no column t'
expect 2 "$RIGSTEP" plot run.mcap --output run.png && says err 'name an \.svg or an \.html'

# --- a piece, which replays; none where there is nothing; nothing is replaced
expect 0 "$RIGSTEP" cut run.mcap --from 0.5 --to 0.8 --output piece.mcap && says out '^piece\.mcap: [0-9]+ steps, [0-9]+ to 800$'
expect 0 "$RIGSTEP" replay piece.mcap && says out '^bit-exact over '
expect 0 "$RIGSTEP" diff run.mcap piece.mcap --from 0.5 --to 0.8
# what if it had begun with the state where the piece begins, which is no step of it
rm -f from.mcap
expect 0 "$RIGSTEP" replay piece.mcap --mechanism "$four_bar" --output from.mcap && says out '^states are equal, bit for bit$' &&
  says out ' 0 only in a, 0 only in b$'
expect 1 "$RIGSTEP" diff piece.mcap run.mcap --to 0.1 && says out '^nothing was compared'
expect 4 "$RIGSTEP" cut run.mcap --output piece.mcap && says err 'piece\.mcap'
expect 2 "$RIGSTEP" cut run.mcap --from 100 --to 200 --output none.mcap && says err 'has no step from 100 s on to 200 s'
[[ ! -e none.mcap ]] || fail "none.mcap was made"

# --- a torn recording: what is whole is used, and it is told
head -c $(($(stat -c %s run.mcap) / 2)) run.mcap >torn.mcap
expect 7 "$RIGSTEP" info torn.mcap && says out '^DAMAGED'
expect 7 "$RIGSTEP" export torn.mcap --channel phi --output torn.csv && says err 'everything before it was used'
[[ $(wc -l <torn.csv) -gt 100 ]] || fail "the whole part of the torn recording is not there"
expect 7 "$RIGSTEP" cut torn.mcap --output saved.mcap && says err 'damaged at byte' && expect 0 "$RIGSTEP" replay saved.mcap
expect 7 "$RIGSTEP" diff torn.mcap torn.mcap
expect 7 "$RIGSTEP" replay torn.mcap --inputs inputs.csv --output x.mcap && says err 'rigstep cut'
expect 7 "$RIGSTEP" simulate "$four_bar" --inputs torn.mcap && says err 'rigstep cut'

# --- channels that stand still, or differ in the last bit only, are drawn in no time
"$RIGSTEP" simulate "$four_bar" --duration 0.02 --output still.mcap >/dev/null 2>&1
for kind in svg html; do
  expect 0 timeout 10 "$RIGSTEP" plot still.mcap --channel drive --channel energy.total --output still.$kind
done

# --- an input and an output of one name are told apart
sed 's/name: "phi"/name: "drive"/' "$four_bar" >same_name.textproto
expect 0 "$RIGSTEP" simulate same_name.textproto --duration 0.1 --output same_name.mcap
expect 0 "$RIGSTEP" export same_name.mcap --channel drive --channel output.drive --output same_name.csv
sed -n 2p same_name.csv | grep -q '^t \[s\],drive \[N m\],output\.drive \[rad\]$' || fail "$(sed -n 2p same_name.csv)"
expect 0 "$RIGSTEP" diff same_name.mcap same_name.mcap

# --- a unit that would forge a column
(cat "$four_bar"; echo 'input { name: "other" signal { unit: "N,x\n" } }') >unit.textproto
expect 3 "$RIGSTEP" check unit.textproto && says err 'unit: ".*" has a character that titles of columns cannot carry'
finish
