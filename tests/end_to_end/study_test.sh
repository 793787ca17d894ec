#!/usr/bin/env bash
# Runs two studies in full, with brief times, and checks what is certain of them. figures_test.sh has all studies, quick.
source "$(dirname "$0")/lib.sh"

# holds NAME CLAIMS: the study ends, the claims that begin so agree, and whatever does not agree has a reason
holds() {
  timeout 250 "$RIGSTEP" study "$1" --brief-times --json --output study >out 2>err </dev/null || fail "study $1 ended with $?"
  assert_json out "d['brief_times']"
  assert_json out "all(any(f['claim'].startswith(claim) and f['agrees'] for f in d['findings']) for claim in ($2))"
  assert_json out "all(bool(f['reason']) != f['agrees'] for f in d['findings'])"
}

holds index3 '
  "Double pendulum: positions", "Double pendulum: constraint violations", "Double pendulum: the total energy is well",
  "Four-bar: it passes the singular pose", "Four-bar: constraint violations", "Four-bar: the total energy oscillates little",
  "Multilink pendulum: constraint violations", "128 links: no convergence with alpha = 1e6 and 1e7",
  "128 links: wrong results with alpha = 1e8", "128 links: stable with alpha = 1e9",
  "The kinetic energy is the largest at 5.22 s", "The drop is 0.06 %", "The drop is numerical damping",
  "The tangent can be kept over the iterations", "Projections can use the tangent of the last", "The norm of the last of three increments"'
holds tree '
  "Operations of EMH grow linearly on a chain", "Operations of DAH grow with the cube of the number of bodies on a chain",
  "Operations of HZU grow linearly on a chain", "Operations of EMH grow linearly on a carousel",
  "Operations of DAH grow linearly on a carousel", "Operations of HZU grow with the cube of the number of bodies on a carousel",
  "Operations of EMH grow linearly on a binary tree", "The operations of EMH", "The operations of DAH", "The operations of HZU",
  "DAH is the cheapest for short chains", "Both approaches, with three structures each, are the same equations"'
finish
