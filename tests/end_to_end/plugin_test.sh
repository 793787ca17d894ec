#!/usr/bin/env bash
# The C library from outside: a C program that balances the pole in its own loop, what the library exports and needs,
# and the Python package on it.
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
# needs_c_library_only FILE: and of it no function that is newer than glibc 2.31
needs_c_library_only() {
  objdump -p "$1" | sed -n 's/^ *NEEDED *//p' | grep -vxE 'lib(c|m|pthread)\.so\.[0-9]|ld-linux-.*' >out && fail "$1 needs more"
  local newest
  newest=$(objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [[ $(printf '%s\nGLIBC_2.31\n' "$newest" | sort -V | tail -n 1) == GLIBC_2.31 ]] || fail "$1 needs $newest"
}
needs_c_library_only "$library"

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
PYTHONPATH=${PACKAGE:-$SOURCE/server/package/python} PYTHONDONTWRITEBYTECODE=1 \
  expect 0 "$python" -W error stepper.py "$cart_pole" "$library"
finish
