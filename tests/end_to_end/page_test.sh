#!/usr/bin/env bash
# The page of rigstep view in a real browser: a mechanism file, recordings, a live run; its security; its accessibility.
# Pictures of it are left in this test's folder. Asserts no times; page/frame_rates.mjs measures.
source "$(dirname "$0")/lib.sh"

chromium=$(command -v chromium || command -v chromium-browser) || { echo "skipped: no chromium here"; exit 77; }
[[ -d $SOURCE/server/page/node_modules/playwright-core ]] || { echo "skipped: the page's npm packages are not installed"; exit 77; }
cp "$SOURCE"/config/mechanisms/{four_bar,full_car,chain_128}.textproto .

"$RIGSTEP" view four_bar.textproto --page-port 0 >probe.out 2>probe.err &
server=$!
sleep 0.5
if grep -q 'without the page' probe.err; then echo "skipped: $(cat probe.err)"; exit 77; fi
end_server TERM
[[ $code -eq 0 ]] || fail "view stopped by SIGTERM ends with $code"

expect 0 "$RIGSTEP" simulate four_bar.textproto --duration 2 --output one.mcap
expect 0 "$RIGSTEP" simulate four_bar.textproto --duration 2 --dt 0.002 --output two.mcap
expect 0 "$RIGSTEP" simulate four_bar.textproto --duration 1 --output short.mcap
head -c 24 /dev/urandom | base64 >token && chmod 600 token

# what needs no browser
expect 2 "$RIGSTEP" view four_bar.textproto --page-address 0.0.0.0 && says err 'no token is asked for'
expect 2 "$RIGSTEP" view four_bar.textproto --page-address somewhere && says err 'no numeric address'
expect 2 "$RIGSTEP" view four_bar.textproto --token-file /dev/null && says err 'is no file'
expect 2 "$RIGSTEP" view four_bar.textproto --control && says err 'needs a token'
expect 5 "$RIGSTEP" view 127.0.0.1:1 --page-port 0 && says err '127.0.0.1:1'
expect 130 timeout --preserve-status --signal=INT 0.5 "$RIGSTEP" view 127.0.0.1:1 --page-port 0 # does not wait on
expect 3 "$RIGSTEP" view nowhere.textproto
expect 2 "$RIGSTEP" view four_bar.textproto full_car.textproto --page-port 0 && says err 'only recordings'
expect 2 "$RIGSTEP" view 127.0.0.1:1 four_bar.textproto --page-port 0 && says err 'one live server'
expect 2 "$RIGSTEP" view 127.0.0.1:1 --picture live.svg && says err 'its mechanism file or a recording'
expect 2 "$RIGSTEP" view one.mcap two.mcap --picture two.svg && says err 'one picture shows one source'

export RIGSTEP SOURCE chromium
timeout 250 node "$SOURCE/tests/end_to_end/page/page_test.mjs" >browser.out 2>browser.err </dev/null || {
  cat browser.out
  fail "in the browser: $(tail -n 12 browser.err)"
}
cat browser.out
finish
