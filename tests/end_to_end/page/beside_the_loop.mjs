// Measures what browsers that watch do to a loop: the car at 1 kHz, without the page, and with the page in four tabs.
// Nothing passes or fails. Usage, from the repository's root, after a build:
//   RIGSTEP=build/test/server/rigstep node tests/end_to_end/page/beside_the_loop.mjs [SECONDS]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { cpuSeconds, launch } from "./measuring.mjs";

const { RIGSTEP } = process.env;
const seconds = Number(process.argv[2] ?? 60);
const folder = mkdtempSync(join(tmpdir(), "beside_the_loop"));
const rig = join(folder, "rig.textproto");
writeFileSync(rig, `mechanism: "${resolve("config/mechanisms/full_car.textproto")}" lifecycle { start: AT_ONCE }
  link { port: 0 } realtime { deadline_misses_until_fault { consecutive: 0 per_second: 0 } } stale_input { rule: HOLD fault_after_steps: 0 }
  view { port: 8479 }\n`);

function serve(options) {
  const child = spawn(RIGSTEP, ["serve", rig, "--duration", String(seconds), "--json", ...options], { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  child.stdout.on("data", (data) => (out += data));
  const isThere = new Promise((ready) => child.stderr.on("data", (data) => /view: http/.test(String(data)) && ready()));
  return { child, isThere, ended: new Promise((end) => child.on("exit", () => end(JSON.parse(out)))) };
}

const us = (value) => value.toFixed(1).padStart(8);
async function measure(tabs) {
  const { browser, connected } = tabs > 0 ? await launch() : {};
  const server = serve([]);
  await server.isThere;
  const pages = await Promise.all(Array.from({ length: tabs }, () => connected.newPage({ viewport: { width: 1280, height: 800 } })));
  for (const page of pages) await page.goto("http://127.0.0.1:8479/");
  let cpu = 0;
  let inBrowser = 0;
  const timer = setInterval(() => {
    cpu = Math.max(cpu, cpuSeconds(server.child.pid));
    if (browser !== undefined) inBrowser = cpuSeconds(browser.process().pid);
  }, 200);
  const summary = await server.ended;
  clearInterval(timer);
  await browser?.close();
  const { p50, p99, max } = summary.wake_up_us;
  console.log(`${tabs} tabs: wake-up p50 ${us(p50)} us, p99 ${us(p99)} us, max ${us(max)} us; step p50 ${us(summary.step_us.p50)} us; ${summary.missed_deadlines} of ${summary.steps} deadlines missed; the server takes ${((100 * cpu) / seconds).toFixed(0)} % of a core, the browsers ${((100 * inBrowser) / seconds).toFixed(0)} %`);
}

console.log(`load of the machine before: ${loadavg().map((load) => load.toFixed(1)).join(" ")}`);
for (const tabs of [0, 4, 0, 4]) await measure(tabs);
rmSync(folder, { recursive: true });
process.exit(0);
