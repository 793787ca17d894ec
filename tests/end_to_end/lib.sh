# shellcheck shell=bash
# Shared by the scripts of this folder: a folder of their own, servers on free ports that end with the script, and
# failures with their context. RIGSTEP, SOURCE and WORK come from ctest; by hand:
#   RIGSTEP=build/test/server/rigstep SOURCE=. WORK=/tmp/work bash tests/end_to_end/commands_test.sh
set -uo pipefail
: "${RIGSTEP:?the rigstep binary}" "${SOURCE:?the repository}" "${WORK:?a folder to work in}"
RIGSTEP=$(realpath "$RIGSTEP") SOURCE=$(realpath "$SOURCE")
rm -rf "$WORK" && mkdir -p "$WORK" && cd "$WORK" || exit 1
# the system's interpreter is the one that has python3-protobuf
python=python3
[[ -x /usr/bin/python3 ]] && python=/usr/bin/python3
# of a rig file: on a loaded machine misses must not fault a run that is not about them
export no_limit='realtime { deadline_misses_until_fault { consecutive: 0 per_second: 0 } }'
failures=0
server=

stop_server() {
  [[ -n $server ]] && kill -KILL "$server" 2>/dev/null
  [[ -n $server ]] && wait "$server" 2>/dev/null
  server=
}
trap stop_server EXIT

# fail TEXT: with what the last command said
fail() {
  echo "FAILED: $*"
  for stream in out err; do
    [[ -s $stream ]] && sed "s/^/    $stream: /" "$stream" | tail -n 25
  done
  failures=$((failures + 1))
}

# expect CODE COMMAND...: runs it, leaves its streams in the files out and err
expect() {
  local wanted=$1 code
  shift
  timeout 60 "$@" >out 2>err </dev/null
  code=$?
  [[ $code -eq $wanted ]] || { fail "exit status $code instead of $wanted: $*"; return 1; }
}

# says FILE PATTERN: an extended regular expression
says() { grep -Eq -- "$2" "$1" || fail "\"$2\" is not in $1 of the last command"; }
silent() { [[ ! -s $1 ]] || fail "$1 should be empty"; }
is_json() { "$python" -m json.tool <"$1" >/dev/null 2>&1 || fail "$1 is not JSON"; }

# assert_json FILE EXPRESSION: Python with the document as d; a failure tells the fields that the expression names
assert_json() {
  "$python" -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "not true of $1: $2: $(
    "$python" -c 'import json, re, sys
d = json.load(open(sys.argv[1]))
print({key: d.get(key) for key in re.findall(r"""\bd\[["\x27](\w+)""", sys.argv[2])} if isinstance(d, dict) else d)' "$1" "$2" 2>&1 |
      cut -c1-600)"
}

# serve ARGUMENTS...: a server on a free port in the background; sets server and port, log in serve.err
serve() {
  : >serve.err # else the port of the last server may still be read
  "$RIGSTEP" serve "$@" --port 0 >serve.out 2>serve.err </dev/null &
  server=$!
  port=
  for _ in $(seq 100); do
    port=$(sed -nE 's/.*listening on [^ ]*:([0-9]+).*/\1/p' serve.err)
    [[ -n $port ]] && return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  echo "the server did not start: rigstep serve $*"
  cat serve.err
  return 1
}

# end_server SIGNAL: sets code to the exit status
end_server() {
  kill "-$1" "$server"
  { wait "$server"; } 2>/dev/null
  code=$?
  server=
}

finish() {
  [[ $failures -eq 0 ]] || { echo "$failures failed; files are in $WORK"; exit 1; }
  echo "all good"
  exit 0
}
