#!/usr/bin/env bash
# What is certain of the paper that the stepper follows, in the full run of its study. figures_test.sh has all studies, quick.
source "$(dirname "$0")/lib.sh"

timeout 250 "$RIGSTEP" study index3 --json --output study >out 2>err </dev/null || fail "the study ended with $?"
assert_json out 'all(any(f["claim"].startswith(claim) and f["agrees"] for f in d["findings"]) for claim in (
  "Double pendulum: positions", "Double pendulum: constraint violations", "Double pendulum: the total energy is well",
  "Four-bar: it passes the singular pose", "Four-bar: constraint violations", "Four-bar: the total energy oscillates little",
  "Multilink pendulum: constraint violations", "128 links: no convergence with alpha = 1e6 and 1e7",
  "128 links: wrong results with alpha = 1e8", "128 links: stable with alpha = 1e9",
  "The kinetic energy is the largest at 5.22 s", "The drop is 0.06 %", "The drop is numerical damping",
  "The tangent can be kept over the iterations", "Projections can use the tangent of the last", "The norm of the last of three increments"))'
assert_json out 'all(bool(f["reason"]) != f["agrees"] for f in d["findings"])'
finish
