#!/usr/bin/env bash
# The figures that bench and study write, their pages, and what they refuse. No time is asserted: it runs beside others.
source "$(dirname "$0")/lib.sh"

# --- bench: 0 with plausible numbers, no timing asserted; other engines only where they were built
expect 0 "$RIGSTEP" bench step --quick --json --config-dir "$SOURCE/config" --output figures
is_json out && silent err && assert_json out 'd["schema"] == 1 and d["machine"]["peak_multiply_adds_per_s"] > 1e6'
assert_json out '{(r["mechanism"], r["bodies"]) for r in d["rows"] if r["solver"] == "literal"} >= {("spherical_chain", 2),
  ("spherical_chain", 8), ("revolute_chain", 2), ("revolute_chain", 8), ("four_bar", 3)}'
assert_json out '{r["bodies"] for r in d["rows"] if r["mechanism"] == "motor_chain" and r["solver"] == "rigstep"} >= {2, 8}'
assert_json out 'sum(r["solver"] == "literal_tuned" for r in d["rows"]) == 5'
assert_json out 'all(abs(sum(r["phases"].values()) - 1) < 1e-9 for r in d["rows"] if r.get("phases"))'
assert_json out 'all(r.get("problem") or 0 < r["lowest_us"] <= r["median_us"] <= r["p999_us"] for r in d["rows"])'
assert_json out 'all(r["samples"] >= 20 and r["bytes_per_body"] > 100 and r["efficiency"] * r["threads"] == r["speedup"]
  for r in d["rows"] if r["solver"] == "rigstep")'
grep -q '^spherical_chain,8,rigstep,1,0\.01,' figures/step.csv || fail "step.csv has no line of the chain of 8"
"$python" -c 'import sys, xml.dom.minidom as x; [x.parse(f) for f in sys.argv[1:]]' figures/*.svg || fail "a figure is not XML"
expect 0 "$RIGSTEP" bench step --quick --without-peers --mechanism spherical_chain --bodies 3 && says out '^spherical_chain +3 rigstep'
expect 0 "$RIGSTEP" bench error --quick --json --without-peers --config-dir "$SOURCE/config" --duration 0.5 --output errors
is_json out && assert_json out '{r["mechanism"] for r in d["rows"]} == {"spherical_chain", "four_bar", "stewart", "full_car"}'
assert_json out '{r.get("differs") for r in d["rows"]} == {None, "drivers: springs instead", "motors, tyres: springs instead"}'
assert_json out 'all(abs(p["ms"] - 0.5 * p["ms_per_second"]) < 1e-9 * p["ms"] for r in d["rows"] for p in r["reached"])'
assert_json out 'all(len(r["points"]) > 2 and r["points"][-1]["error_m"] < 0.1 * next(p["error_m"] for p in r["points"] if p["dt_s"] == 0.1)
  for r in d["rows"] if not r["solver"].startswith("rigstep order 4"))'
[ "$(awk -F, '{print NF}' errors/error.csv | sort -u)" = 9 ] || fail "error.csv: lines of different length"
assert_json out 'all({p["iterations"] for p in r["points"]} == ({1, 2, 3} if "fewer" in r["solver"] else {3})
  for r in d["rows"] if r["solver"].startswith("rigstep"))'
assert_json out 'sum(r["points"][-1]["error_m"] < 1e-3 for r in d["rows"] if r["solver"] == "rigstep order 4") == 4'
# --against: ratios to the printed form of the same run; slower is verdict no, whatever the machine does meanwhile
scaled() { python3 -c "import json,sys; d=json.load(open('figures/step.json'));
for r in d['rows']:
  if r['solver'] == 'rigstep' and 'lowest_us' in r: r['lowest_us'] *= $1
json.dump(d, open('$2', 'w'))"; }
scaled 100 slow_before.json && scaled 0.01 fast_before.json
compare=("$RIGSTEP" bench step --quick --without-peers --mechanism spherical_chain --bodies 2)
expect 0 "${compare[@]}" --against slow_before.json && says out 'against slow_before.json' && says out '^spherical_chain +2 +1 .* %$'
expect 1 "${compare[@]}" --against fast_before.json && says out '^spherical_chain +2 +1 .* %  slower$'
echo '{}' >none.json && expect 2 "${compare[@]}" --against none.json && says err 'none\.json.*no result of'
sed 's/"processor": "/"processor": "another /' figures/step.json >another.json
expect 2 "${compare[@]}" --against another.json && says err 'another\.json.*measured on "another'
expect 0 "$RIGSTEP" bench loop "$SOURCE/config/rigs/ci_loopback.textproto" --seconds 0.1 --rounds 1 --json
assert_json out 'len(d["beside_the_step"]["phases"]) == 7 and d["beside_the_step"]["channels"] == 38'
assert_json out 'abs(sum(p["us"] for p in d["beside_the_step"]["phases"]) - d["beside_the_step"]["sum_us"]) < 1e-9'
assert_json out 'd["beside_the_step"]["sum_us"] > 0 and len(d["rows"]) == 6 and d["deadlines"] > 0'

expect 0 "$RIGSTEP" bench loop "$SOURCE/config/rigs/ci_loopback.textproto" --misses 0.5 --json
assert_json out 'd["missed"] == sum(d[k] for k in ("core_taken", "clock_jumped", "slower", "woken_late", "own_work", "not_kept"))'
assert_json out 'd["problem"] == "" and d["deadlines"] >= 500 and d["beside_us"] > 0 and len(d["realtime"]) > 3'
# work that takes longer than the period is told as such, and a limit of misses ends nothing
sed "s#../mechanisms/four_bar#$SOURCE/config/mechanisms/full_car#; s/^period_us.*/period_us: 20/; s/consecutive: 0/consecutive: 3/" \
  "$SOURCE/config/rigs/ci_loopback.textproto" >slow.textproto
expect 0 "$RIGSTEP" bench loop slow.textproto --misses 0.3 --json && assert_json out 'd["own_work"] > 0.3 * d["deadlines"]'
sed "s#../mechanisms#$SOURCE/config/mechanisms#; s/BEST_EFFORT/ENFORCE cpu: 1023/" "$SOURCE/config/rigs/ci_loopback.textproto" >enforce.textproto
expect 4 "$RIGSTEP" bench loop enforce.textproto --misses 0.3 && says err 'loop core 1023: refused'

expect 0 "$RIGSTEP" bench step --quick --without-peers --mechanism spherical_chain --bodies 8 --instruction-set x86-64 --threads 1
expect 2 "$RIGSTEP" bench step --quick --instruction-set x86-64-v9 && says err '"x86-64-v9"'
expect 2 "$RIGSTEP" bench step --mechanism no_such_mechanism && says err 'no_such_mechanism'
expect 2 "$RIGSTEP" bench step --quick --peers no_such_file && says err 'no_such_file'
expect 2 "$RIGSTEP" bench step --bodies 0
expect 2 "$RIGSTEP" bench error --mechanism leg --config-dir "$SOURCE/config"
expect 2 "$RIGSTEP" bench

# --- study: 0 with tables, figures and a page, whatever agrees; 4 where they cannot be written
expect 4 "$RIGSTEP" study tree --quick --output /dev/null/study && says err '/dev/null/study'
expect 4 "$RIGSTEP" study all --quick --output /dev/null/study && says err '/dev/null/study'
expect 0 "$RIGSTEP" study all --quick --json --output studies && is_json out
assert_json out '[s["name"] for s in d["studies"]] == ["index3", "hamiltonian", "tree", "complement"]'
# nothing without its source, and nothing that does not agree without a reason
assert_json out 'all(f["source"] and f["criterion"] and f["ours"] and f["outcome"] in ("yes", "no", "open")
  and f["agrees"] == (f["outcome"] == "yes") and bool(f["reason"]) != f["agrees"] for s in d["studies"] for f in s["findings"])'
# what is certain holds in quick runs, too
assert_json out 'all(any(claim in f["claim"] and f["agrees"] for f in s["findings"]) for s, claims in zip(d["studies"], (
    ("no convergence with alpha = 1e6", "stable with alpha = 1e9", "Double pendulum: positions", "Four-bar: constraint violations"),
    ("Case 1: HDCA satisfies the velocity", "Case 2: HDCA satisfies the velocity", "Case 3: HDCA satisfies the velocity"),
    ("EMH grow linearly on a chain", "EMH grow linearly on a carousel", "The operations of EMH", "same equations"),
    ("independent program", "four freedoms", "One partition"))) for claim in claims)'
for file in index3/{case_4_2,case_4_3,case_4_4,penalties,speed,phases}.csv \
  hamiltonian/{accuracy_case1.csv,accuracy_case3.csv,efficiency.csv} \
  tree/{operations,times,selection,pipelayer,growth}.csv complement/{times,drift,drift_over_time,ranks}.csv; do
  [[ -s studies/$file ]] || fail "study all wrote no $file"
done
[[ $(wc -l < studies/complement/times.csv) -eq 97 ]] || fail "times.csv has not two struts x three stabilisations x two tolerances x eight methods"
"$python" - studies <<'EOF' || fail "report.html is not the pages of the studies in one file"
import html.parser, pathlib, re, sys
folder = pathlib.Path(sys.argv[1])
figures, ids, links, open_tags, text = 0, [], [], [], []
class Report(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        global figures
        attrs = dict(attrs)
        assert tag not in ("script", "img", "link", "iframe") and "src" not in attrs, tag
        figures += tag == "svg"
        ids.extend(v for k, v in attrs.items() if k == "id")
        links.extend(v for k, v in attrs.items() if k == "href")
        if tag != "meta": open_tags.append(tag)
    def handle_endtag(self, tag): assert open_tags.pop() == tag, tag
    def handle_data(self, data): text.append(data)
Report().feed((folder / "report.html").read_text())
pages = [p.read_text() for p in sorted(folder.glob("*/*.md"))]
shown = [f for page in pages for f in re.findall(r"^!\[.*\]\((.*)\)$", page, re.M)]
assert not open_tags and len(ids) == len(set(ids))
assert len(pages) == 4 and figures == len(shown) > 70, (figures, len(shown))
assert all(l[0] == "#" and l[1:] in ids for l in links) and len(links) > sum(p.count("\n## ") for p in pages)
text = "".join(text)
assert text.index("What was found") < text.index("Contents") and "Machine: " in text and "Measured " in text and "Load of" in text
for page in pages:
    for claim in re.findall(r"^\| ([^|`*]+) \| [^|]+ \| [^|]+ \| (?:yes|\*\*no\*\*|\*\*open\*\*) \|", page, re.M):
        assert claim in text, claim
EOF
# ... as a browser shows it: light, dark, narrow and printed. Pictures are left in this test's folder.
if chromium=$(command -v chromium) && [[ -d $SOURCE/server/page/node_modules/playwright-core ]]; then
  export SOURCE chromium
  timeout 120 node "$SOURCE/tests/end_to_end/page/study_page.mjs" studies/report.html >browser.out 2>browser.err </dev/null ||
    fail "report.html in the browser: $(tail -n 12 browser.err)"
else
  echo "skipped: no chromium or no npm packages of the page here, so that no browser has shown report.html"
fi
expect 2 "$RIGSTEP" study
expect 4 "$RIGSTEP" bench step --quick --output /dev/null/x && says err '/dev/null/x'

finish
