#!/usr/bin/env bash
# The plugin from outside: a C program that balances the pole in its own loop, what library and units export and need,
# the Python package, and units through the command line and through a host in C.
source "$(dirname "$0")/lib.sh"
command -v objdump >/dev/null || { echo "skipped: no objdump here (binutils)"; exit 77; }
library=$(dirname "$RIGSTEP")/plugin/librigstep.so.1
cart_pole=$SOURCE/config/templates/cart_pole/mechanism.textproto
header=$SOURCE/server/plugin/rigstep.h

# --- the header: C11, no other include than two of the standard
expect 0 "${CC:-cc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -x c "$header"
[[ $(grep '#include' "$header" | tr -d '\n') == '#include <stddef.h>#include <stdint.h>' ]] || fail "rigstep.h includes more"

# --- a loop in C at 1 kHz; the same inputs give the service's stepper the same state
expect 0 "${CC:-cc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror -I"$SOURCE/server/plugin" \
  "$SOURCE/tests/plugin/balance.c" "$library" -lm -o balance
LD_LIBRARY_PATH=$(dirname "$library") expect 0 ./balance "$cart_pole" inputs.csv
says out 'after 3000 steps, state [0-9a-f]{16}$'
hash=$(sed 's/.*state //' out)
expect 0 "$RIGSTEP" simulate "$cart_pole" --duration 3 --inputs inputs.csv --json
assert_json out "d['state_hash'] == '$hash'"
LD_LIBRARY_PATH=$(dirname "$library") expect 2 ./balance nothing.textproto inputs.csv
says err '^nothing\.textproto: file: cannot be read: check the path'

# --- exports and needs
declared=$(grep -oE '\brigstep_[a-z_]+\(' "$header" | tr -d '(' | sort -u | grep -vE '^rigstep_(stepper|parameter|settings)$')
exported=$(nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@@RIGSTEP_1$/, "", $3); print $3 }' | sort)
[[ $declared == "$exported" ]] || fail "rigstep.h and the library differ: $(diff <(echo "$declared") <(echo "$exported"))"
nm -D --defined-only "$library" | grep -vE ' (T rigstep_[a-z_]+@@RIGSTEP_1|A RIGSTEP_1)$' >out && fail "it exports more"
# needs_c_library_only FILE [PREFIX]: and of it no function that is newer than glibc 2.17; PREFIX: of its objdump
needs_c_library_only() {
  local objdump=${2:-}objdump
  "$objdump" -p "$1" | sed -n 's/^ *NEEDED *//p' | grep -vxE 'lib(c|m|pthread)\.so\.[0-9]|ld-linux-.*' >out && fail "$1 needs more"
  local newest
  newest=$("$objdump" -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [[ $(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -n 1) == GLIBC_2.17 ]] || fail "$1 needs $newest"
}
needs_c_library_only "$library"

# --- a host whose locale writes decimals with a comma: the same mechanism, in units other than SI, too
sed 's/angle: 0.1 rad/angle: 5.5 deg/' "$cart_pole" >comma.textproto
grep -q '5.5 deg' comma.textproto || fail "the template does not start at 0.1 rad any more"
mkdir locale && localedef -i de_DE -f UTF-8 locale/de_DE.UTF-8 2>localedef.err
cat >comma.py <<'END'
import locale, sys
import rigstep
if len(sys.argv) > 3:
    locale.setlocale(locale.LC_ALL, sys.argv[3])
    assert locale.format_string("%.1f", 0.5) == "0,5"
with rigstep.Stepper(sys.argv[1], period=0.001, library=sys.argv[2]) as cart:
    cart.run(100)
    print(cart.report.state_hash)
END
export PYTHONPATH=${PACKAGE:-$SOURCE/server/package/python} PYTHONDONTWRITEBYTECODE=1
expect 0 "$python" comma.py comma.textproto "$library" && cp out point
LOCPATH=$PWD/locale expect 0 "$python" comma.py comma.textproto "$library" de_DE.UTF-8 && cmp -s out point ||
  fail "another locale makes another mechanism: $(cat point)"

# --- Python: a whole trajectory, states, names, what is wrong
cat >stepper.py <<'END'
import gc, sys
import numpy as np
import rigstep

def raises(kind, words, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert words in str(error), error
        return
    raise SystemExit(f"no {kind.__name__}")

mechanism, library = sys.argv[1:]
with rigstep.Stepper(mechanism, period=0.001, library=library) as cart:
    assert cart.input_channels == (rigstep.Channel("force", "N"),) and cart.bodies == ("cart", "pole")
    assert cart.output_channels[0] == rigstep.Channel("angle", "rad") and cart.period == 0.001
    start = cart.save()
    forces = np.sin(np.arange(500.0))[:, None]
    trajectory = cart.run(500, forces)
    assert trajectory.shape == (500, len(cart.output_channels)) and cart.time == 0.5
    assert (trajectory[-1] == cart.outputs).all() and cart["angle"] == trajectory[-1, 0]
    reached = cart.report.state_hash
    cart.restore(start)
    for row, force in zip(trajectory, forces):
        cart["force"] = force[0]
        assert cart.step() == rigstep.StepStatus.OK and (cart.outputs == row).all()
    assert cart.report.state_hash == reached and cart.report.step == 500
    assert np.allclose(cart.poses[1][3:] @ cart.poses[1][3:], 1.0)
    cart.reset()
    assert cart.report.step == 0 and cart.inputs[0] == 0.0
    raises(rigstep.UnknownChannel, "there are force", cart.__setitem__, "forc", 1.0)
    raises(ValueError, "not finite", cart.__setitem__, "force", float("nan"))
    raises(ValueError, "shape", cart.run, 3, np.zeros((2, 1)))
    raises(rigstep.RigstepError, "bytes", cart.restore, start[:-1])
    raises(rigstep.RigstepError, "no state of this mechanism", cart.restore, b"x" * len(start))
    cart.inputs[0] = np.inf
    raises(rigstep.StepFailed, "input force is inf", cart.step)
    outputs = cart.outputs
raises(rigstep.RigstepError, "closed", cart.step)
del cart
gc.collect()
assert np.isfinite(outputs).all()  # an array keeps the memory that it shows
raises(rigstep.MechanismError, "cannot be read", lambda: rigstep.Stepper("nothing.textproto", library=library))
raises(rigstep.RigstepError, "cannot be loaded", lambda: rigstep.Stepper(mechanism, library="nothing.so"))
END
expect 0 "$python" -W error stepper.py "$cart_pole" "$library"

# --- units: both standards give the state of the simulation, tell their rules, and need the C library alone
four_bar=$SOURCE/config/mechanisms/four_bar.textproto
expect 0 "$RIGSTEP" simulate "$four_bar" --duration 0.5 --json
hash=$("$python" -c 'import json; print(json.load(open("out"))["state_hash"])')
for fmi in 2 3; do
  expect 0 "$RIGSTEP" export-fmu "$four_bar" --fmi $fmi --output "four_bar_$fmi.fmu" && says out "FMI $fmi.0 for co-simulation"
  expect 0 "$RIGSTEP" fmusim "four_bar_$fmi.fmu" --stop 0.5 --output "$fmi.csv" --json && silent err
  assert_json out "d['state_hash'] == '$hash' and d['violations'] == [] and d['steps'] == 500"
  rm -rf "unit_$fmi" && "$python" -m zipfile -e "four_bar_$fmi.fmu" "unit_$fmi" || fail "four_bar_$fmi.fmu: no zip file"
  binary=unit_$fmi/binaries/$([[ $fmi == 2 ]] && echo linux64 || echo x86_64-linux)/four_bar.so
  needs_c_library_only "$binary"
  nm -D --defined-only "$binary" | grep -vE " (T fmi$fmi[A-Z][A-Za-z0-9]+@@FMI$fmi|A FMI$fmi)$" >out &&
    fail "the binary of FMI $fmi.0 exports more"
  for file in modelDescription.xml documentation/index.html resources/mechanism.textproto resources/rig.textproto; do
    [[ -s unit_$fmi/$file ]] || fail "FMI $fmi.0: $file is missing"
  done
done
cmp 2.csv 3.csv || fail "FMI 2.0 and 3.0 differ"

# --- a host in C, with nothing of this project but the declarations
expect 0 "${CC:-cc}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$SOURCE/server/plugin" "$SOURCE/tests/plugin/fmu_host.c" -ldl -o fmu_host
# of_unit FMI EXPRESSION: of the description, where r is its root
of_unit() { "$python" -c "import sys, xml.etree.ElementTree as t; r = t.parse('unit_$1/modelDescription.xml').getroot(); print($2)"; }
token=$(of_unit 3 'r.get("instantiationToken")')
phi=$(of_unit 3 '[v.get("valueReference") for v in r.find("ModelVariables") if v.get("name") == "phi"][0]')
[[ $(of_unit 2 'r.get("guid")') == "$token" ]] || fail "guid and instantiation token differ"
# reads_phi: what the host printed is what the command line wrote
reads_phi() {
  "$python" -c 'import sys; sys.exit(float(sys.argv[1]) != float(sys.argv[2]))' "$(cut -d, -f2 3.csv | tail -n 1)" "$(cat out)" ||
    fail "the host in C reads another phi than the command line: $1"
}
for fmi in 2 3; do
  expect 0 ./fmu_host $fmi "$PWD/unit_$fmi" four_bar "$token" 500 0.001 "$phi" && reads_phi "FMI $fmi.0"
done
# a machine that has the C library and nothing else: not even a shell
mkdir -p bare
cp -r fmu_host unit_2 unit_3 bare
for file in $(ldd fmu_host unit_2/binaries/linux64/four_bar.so unit_3/binaries/x86_64-linux/four_bar.so | grep -oE '/[^ :]+' | grep -v "^$PWD" | sort -u); do
  cp --parents -L "$file" bare
done
expect 0 find bare -name '*.so*' -not -name four_bar.so && ! grep -vE '/(libc|libm|libpthread|libdl|ld-linux-[^/]*)\.so\.[0-9]$' out ||
  fail "the units need more than the C library"
alone=(chroot bare)
[[ $EUID == 0 ]] || alone=(unshare --user --map-root-user chroot bare)
for fmi in 2 3; do
  if "${alone[@]}" /fmu_host $fmi /nothing x x 1 1 1 2>&1 | grep -q 'Operation not permitted'; then
    echo "not tried: a machine with the C library alone ($(id -un) may not change the root folder)" && break
  fi
  expect 0 "${alone[@]}" /fmu_host $fmi /unit_$fmi four_bar "$token" 500 0.001 "$phi" && reads_phi "FMI $fmi.0, with the C library alone"
done
# the binary for another processor, where it was built (target aarch64) and can be run: the same bits
if [[ -e unit_3/binaries/aarch64-linux/four_bar.so ]] && command -v qemu-aarch64 aarch64-linux-gnu-gcc >/dev/null; then
  expect 0 ./fmu_host 3 "$PWD/unit_3" four_bar "$token" 500 0.001 "$phi"
  value=$(cat out)
  needs_c_library_only unit_3/binaries/aarch64-linux/four_bar.so aarch64-linux-gnu-
  expect 0 aarch64-linux-gnu-gcc -std=c11 -D_GNU_SOURCE -I"$SOURCE/server/plugin" "$SOURCE/tests/plugin/fmu_host.c" -ldl -o fmu_host_aarch64
  expect 0 qemu-aarch64 -L /usr/aarch64-linux-gnu ./fmu_host_aarch64 3 "$PWD/unit_3" four_bar "$token" 500 0.001 "$phi"
  [[ $(cat out) == "$value" ]] || fail "on aarch64 phi is $(cat out), here $value"
fi
expect 1 ./fmu_host 3 "$PWD/unit_3" four_bar "{another}" 500 0.001 "$phi" && says err 'instantiation token: "{another}" is not that of'

# --- a rig file gives what a mechanism file does not know
rig=$SOURCE/config/templates/cart_pole/rig.textproto
expect 0 "$RIGSTEP" export-fmu --rig "$rig" --period 0.002 --set rail_friction=3 --output cart_pole.fmu
"$python" -m zipfile -e cart_pole.fmu cart_pole || fail "cart_pole.fmu: no zip file"
grep -q 'name="force".* min="-40" max="40" start="0"' cart_pole/modelDescription.xml || fail "the force has no range"
grep -q '^period_us: 2000$' cart_pole/resources/rig.textproto || fail "--period is lost beside --rig"
grep -q 'name="rail_friction".* start="3"' cart_pole/modelDescription.xml || fail "--set is lost beside --rig"
expect 0 "$RIGSTEP" fmusim cart_pole.fmu --stop 0.1 --json && assert_json out "d['violations'] == []"
expect 2 "$RIGSTEP" export-fmu && says err 'MECHANISM: is missing'
expect 2 "$RIGSTEP" export-fmu "$cart_pole" --rig "$rig" && says err 'excludes'
sed "s#mechanism.textproto#$cart_pole#; s/minimum: -40/minimum: 50/" "$rig" >wrong.textproto
expect 2 "$RIGSTEP" export-fmu --rig wrong.textproto && says err '^rigstep: wrong\.textproto:[0-9]+: input "force"\.minimum'

# --- what is wrong says what and where
expect 2 "$RIGSTEP" fmusim nothing.fmu && says err '^rigstep: nothing\.fmu: cannot be read as a zip file'
expect 2 "$RIGSTEP" fmusim four_bar_3.fmu --set phi_dot=1 && says err '"phi_dot" is no real variable'
expect 2 "$RIGSTEP" export-fmu "$four_bar" --output four_bar.zip && says err 'does not end with \.fmu'
expect 2 "$RIGSTEP" export-fmu "$four_bar" --period 0.0000015 && says err 'no whole number of microseconds'
sed -i -e 's/causality="input"/causality="imput"/' -e 's/unit="rad"/unit="radian"/' unit_3/modelDescription.xml
(cd unit_3 && "$python" -m zipfile -c ../broken.fmu modelDescription.xml documentation resources binaries)
expect 1 "$RIGSTEP" fmusim broken.fmu --stop 0.01 && says err 'FMI 3\.0, 2\.4\.7: <Float64> "drive": causality = "imput" is not one of parameter' &&
  says err 'FMI 3\.0, 2\.4\.3: variable "phi": unit "radian" is not defined'
finish
