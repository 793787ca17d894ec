#!/usr/bin/env bash
# The installed rig library: an example outside the repository finds it with CMake, builds and drives a server.
source "$(dirname "$0")/lib.sh"
build=$(realpath "$(dirname "$RIGSTEP")/..")
cmake --install "$build" --component development --prefix "$PWD/installed" >install.log || { cat install.log; exit 1; }
cmake -G Ninja -S "$SOURCE/tests/end_to_end/rig_client" -B example -DCMAKE_PREFIX_PATH="$PWD/installed" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >configure.log || { cat configure.log; exit 1; }
cmake --build example >build.log || { cat build.log; exit 1; }

"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^link {/link { key_file: \"bench.key\"/; s/^recording.*//" \
  "$SOURCE/config/rigs/ci_loopback.textproto" >rig.textproto
serve rig.textproto --json || exit 1
expect 0 example/rig_loop "$port" 1000 bench.key && says out '^four_bar at 1000 us' && says out '^1000 steps'
expect 1 example/rig_loop "$port" 10 && says err 'only with a key that it knows'
expect 1 example/rig_loop "$port" 10 no.key && says err 'no\.key: No such file'
end_server TERM
assert_json serve.out 'd["link"]["accepted"] > 1000'
expect 1 example/rig_loop "$port" 10 bench.key && says err 'rigstep serve'
finish
