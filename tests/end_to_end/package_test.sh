#!/usr/bin/env bash
# The installed package: programs outside the repository find it with CMake and with pkg-config, static and shared, and
# run; each header compiles alone; manual and completion know the commands.
command -v pkg-config >/dev/null || { echo "skipped: no \`pkg-config\` here (pkgconf)"; exit 77; }
source "$(dirname "$0")/lib.sh"
build=$(realpath "$(dirname "$RIGSTEP")/..")
compiler=${CXX:-c++}
warnings="-Wall -Wextra -Werror"
four_bar=$SOURCE/config/mechanisms/four_bar.textproto
cmake --install "$build" --prefix "$PWD/installed" >install.log || { cat install.log; exit 1; }
include=$PWD/installed/include/rigstep

# flags PACKAGES: of pkg-config, with Eigen as a header of the system, whose warnings are not ours
flags() { pkg-config "${@}" | sed -E 's#-I([^ ]*eigen3)#-isystem \1#'; }

# runs_own_loop FOLDER, runs_deadline_loop FOLDER
runs_own_loop() {
  expect 0 "$1/own_loop" "$four_bar" && says out '^phi after 0\.5 s: (-?[0-9.]+) rad, restored and stepped again: \1 rad'
  expect 2 "$1/own_loop" nothing.textproto && says err '^nothing\.textproto: file: cannot be read: '
}
runs_deadline_loop() {
  expect 0 "$1/deadline_loop" "$four_bar" && says out '^wake-up: median' && says out '^step: median'
}

# --- headers: each alone, and none that shows what is inside. Eigen takes seconds each time, and core/mechanism/types.h
# includes it: it is compiled once. A header that reaches it has it included first.
(cd "$include" && find . -name '*.h' | sed 's#^\./##' | sort) >headers
[[ $(wc -l <headers) -ge 15 ]] || fail "few headers: $(tr '\n' ' ' <headers)"
types=core/mechanism/types.h
mkdir precompiled
echo "#include \"$types\"" >precompiled/types.h
# shellcheck disable=SC2046,SC2086
compile_alone() { "$compiler" -std=c++20 $warnings -I"$include" $(flags --cflags eigen3) "$@"; }
compile_alone -x c++-header precompiled/types.h -o precompiled/types.h.gch >out 2>err || fail "$types does not compile alone"
while read -r header; do
  echo "#include \"$header\"" >alone.cpp
  # lists our headers that it includes; those of the system are hidden
  "$compiler" -std=c++20 -MM -MG -nostdinc -nostdinc++ -I"$include" alone.cpp >out 2>err || fail "$header"
  brings=()
  [[ $header != "$types" ]] && grep -q "/$types" out && brings=(-include precompiled/types.h)
  compile_alone "${brings[@]}" -fsyntax-only alone.cpp >out 2>err || fail "$header does not compile alone"
done <headers
grep -rnE '<(pthread|sched|omp|google/.*|sodium|asio.*)(\.h|\.hpp)?>|class (Plan|Workspace)|struct (Plan|Workspace)' "$include" >out &&
  fail "headers show what is inside"

# --- CMake, static and shared
for kind in static shared; do
  cmake -G Ninja -S "$SOURCE/tests/package" -B "$kind" -DKIND="$kind" -DCMAKE_PREFIX_PATH="$PWD/installed" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$warnings" >"$kind.log" 2>&1 || fail "$kind: $(tail -n 20 "$kind.log")"
  cmake --build "$kind" >"$kind.log" 2>&1 || fail "$kind: $(tail -n 20 "$kind.log")"
  runs_own_loop "$kind" && runs_deadline_loop "$kind"
done
[[ $(ldd shared/own_loop) == *'librigstep_shared.so.0.1 => '* ]] || fail "own_loop is not linked to librigstep_shared.so.0.1"
ldd static/own_loop | grep -q 'librigstep_shared\.so' && fail "own_loop is linked to librigstep_shared.so"

# --- pkg-config
PKG_CONFIG_PATH=$(dirname "$(find "$PWD/installed" -name rigstep.pc)")
export PKG_CONFIG_PATH
libraries=$(dirname "$PKG_CONFIG_PATH")
# build_with PACKAGES FOLDER PROGRAM
build_with() {
  mkdir -p "$2"
  # shellcheck disable=SC2046,SC2086
  expect 0 "$compiler" -std=c++20 $warnings "$SOURCE/tests/package/$3.cpp" -o "$2/$3" $(flags --cflags --libs $1)
}
build_with rigstep-shared pc_shared own_loop && LD_LIBRARY_PATH=$libraries runs_own_loop pc_shared
build_with "rigstep-config rigstep-rt" pc_static deadline_loop && runs_deadline_loop pc_static

# --- data and manual
for file in share/rigstep/config/mechanisms/four_bar.textproto share/rigstep/proto/mechanism.proto; do
  [[ -s installed/$file ]] || fail "$file is not installed"
done
commands=$("$RIGSTEP" --help | sed -n '/^Subcommands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
[[ -n $commands ]] || fail "rigstep --help tells no commands"
for command in $commands; do
  grep -q "^\.SH rigstep $command\$" installed/share/man/man1/rigstep.1 || fail "the manual has no page of $command"
done
# complete WORDS...: what the completion offers for the last one
complete_words() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rigstep; echo "${COMPREPLY[@]}"' bash \
    installed/share/bash-completion/completions/rigstep "$@"
}
[[ $(complete_words rigstep ser) == serve ]] || fail "completion of ser: $(complete_words rigstep ser)"
[[ $(complete_words rigstep bench st) == step ]] || fail "completion of bench st: $(complete_words rigstep bench st)"
[[ $(complete_words rigstep serve --rec) == --record ]] || fail "completion: $(complete_words rigstep serve --rec)"
finish
