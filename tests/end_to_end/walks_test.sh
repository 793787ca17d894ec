#!/usr/bin/env bash
# What the first page tells a newcomer to write and to run, taken from README.md itself.
source "$(dirname "$0")/lib.sh"

# block N HEADING LANGUAGE: the N-th fenced block of that language below the heading
block() {
  awk -v wanted="$1" -v heading="$2" -v fence="\`\`\`$3" '
    /^## / { here = index($0, "## " heading) == 1 }
    here && inside && /^```$/ { inside = 0; closed = 1; next }
    here && !inside && /^```/ { inside = 1; mine = $0 == fence && ++n == wanted; next }
    inside && mine' "$SOURCE/README.md"
}

block 1 'Walk 1' '' >crane.textproto
block 2 'Walk 1' '' >crane_rig.textproto
grep -q '^name: "crane"' crane.textproto && grep -q '^mechanism: "crane.textproto"' crane_rig.textproto ||
  fail "README.md: Walk 1 has no mechanism and rig file"

# --- write a mechanism and connect a rig
expect 0 "$RIGSTEP" check crane.textproto && says out '^freedom +2 degrees' && says out '^inputs +1 channel$' && says out '^outputs +3 channels'
serve crane_rig.textproto || exit 1
expect 0 "$RIGSTEP" rig crane_rig.textproto --port "$port" --drive force=sine:50,0.2 --duration 1 --json
assert_json out 'd["states"] > 100'
expect 0 "$RIGSTEP" blackbox "127.0.0.1:$port" && says out '^\./crane\.black_box\..*\.mcap$'
end_server TERM

# --- find out what went wrong yesterday
expect 0 "$RIGSTEP" replay crane.mcap && says out '^bit-exact over [0-9]+ steps'
timeout 60 "$RIGSTEP" verify crane.mcap --limit 1 >out 2>err </dev/null
code=$?
[[ $code -eq 0 || $code -eq 8 ]] || fail "verify crane.mcap: exit status $code" # 8: the machine is too slow for the limit
finish
