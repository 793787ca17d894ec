#!/usr/bin/env bash
# What the loop thread asks of the kernel, counted by the kernel: in each step the sleep and the hand-off, in lockstep
# the two datagrams, and nothing else; no page fault once memory is locked. Three runs side by side. A few seconds as a
# test; QUIET_SECONDS=60 for a minute.
source "$(dirname "$0")/lib.sh"
seconds=${QUIET_SECONDS:-4}
command -v strace >/dev/null || { echo "skipped: no strace here"; exit 77; }
sleep 5 &
timeout -s INT 1 strace -q -o /dev/null -p $! 2>probe.err
grep -qi 'not permitted\|denied' probe.err && { echo "skipped: $(cat probe.err)"; exit 77; }

# quiet RIG_FILE "SYSTEM CALLS" [PORT]: traces the loop thread of a live run; with a page on PORT that somebody watches
quiet() {
  mkdir "$1${3:+.page}" && cd "$1${3:+.page}" || exit 1
  trap stop_server EXIT
  sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; /^black_box/d" "$SOURCE/config/rigs/$1.textproto" >rig.textproto
  [[ -z ${3:-} ]] || echo "view { port: $3 }" >>rig.textproto
  serve rig.textproto --json || exit 1
  "$RIGSTEP" rig --port "$port" --duration "$((seconds + 3))" --json >rig.json 2>rig.err </dev/null &
  local rig=$! thread= viewer=
  if [[ -n ${3:-} ]]; then
    "$python" -c "import urllib.request as u; s = u.urlopen('http://127.0.0.1:$3/api/stream')
while s.read(4096): pass" >viewer.log 2>&1 &
    viewer=$!
  fi
  sleep 1.5
  thread=$(grep -lx rigstep-loop "/proc/$server/task/"*/comm | sed -E 's#.*/task/([0-9]+)/comm#\1#')
  [[ -n $thread ]] || { fail "no thread named rigstep-loop"; kill "$rig"; exit 1; }
  timeout -s INT "$seconds" strace -q -c -U name,calls -o calls -p "$thread" 2>strace.err
  if [[ -n $viewer ]]; then
    kill "$viewer" 2>/dev/null || fail "the viewer ended: $(cat viewer.log)"
  fi
  wait "$rig" || fail "the rig ended with $?: $(cat rig.err)"
  end_server TERM
  [[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
  local called
  called=$(awk '$2 ~ /^[0-9]+$/ && $1 != "total" && $1 != "restart_syscall" {print $1}' calls | sort | xargs)
  [[ $called == "$2" ]] || fail "$1: the loop thread called \"$called\" instead of \"$2\": $(cat calls)"
  awk -v least=$((100 * seconds)) '$1 == "total" && $2 < least {exit 1}' calls || fail "$1: hardly any call: $(cat calls strace.err)"
  if grep -Eq 'memory lock: [0-9]+ kB locked' serve.err; then
    assert_json serve.out "d['page_faults'] == 0"
  else
    echo "$1: memory is not locked here, page faults are not judged"
  fi
  "$python" -c 'import json; d = json.load(open("serve.out")); print(d["steps"], "steps,", d["page_faults"],
    "page faults, taken off its core", d["involuntary_switches"], "times")'
  sed "s/^/    /" calls
  exit $((failures > 0))
}

quiet ci_loopback "clock_nanosleep write" >quiet.txt 2>&1 &
runs=($!)
quiet ci_loopback "clock_nanosleep write" $((20000 + RANDOM % 9000)) >watched.txt 2>&1 &
runs+=($!)
quiet lockstep "recvfrom sendto" >lockstep.txt 2>&1 &
runs+=($!)
for run in "${runs[@]}"; do wait "$run" || failures=$((failures + 1)); done
cat quiet.txt watched.txt lockstep.txt
finish
