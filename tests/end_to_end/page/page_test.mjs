// What page_test.sh has a browser do. Exits with 1 at the first thing that is wrong.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { Agent, request } from "node:http";

const { RIGSTEP, SOURCE, chromium: browserPath } = process.env;
const packages = createRequire(`${SOURCE}/server/page/package.json`);
const { chromium } = packages("playwright-core");
const axe = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- servers ----

const running = new Set();

// A server in the background; resolves with its process and what `pattern` finds in its output.
function start(args, pattern) {
  const child = spawn(RIGSTEP, args, { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  return new Promise((resolve, reject) => {
    let text = "";
    const look = (data) => {
      text += data;
      const found = pattern.exec(text);
      if (found) resolve({ child, found });
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", () => reject(new Error(`rigstep ${args.join(" ")} ended: ${text}`)));
  });
}

async function stop({ child }) {
  running.delete(child);
  child.removeAllListeners("exit");
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

async function view(...args) {
  const server = await start(["view", ...args], /http:\/\/\S+/);
  return { ...server, link: server.found[0] };
}

process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

// A request as no browser would make it.
function ask(link, path, { method = "GET", headers = {}, body = "", agent } = {}) {
  const { hostname, port } = new URL(link);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent }, (answer) => {
      let text = "";
      answer.on("data", (data) => (text += data));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

// ---- the browser ----

mkdirSync("profile", { recursive: true });
const context = await chromium.launchPersistentContext("profile", {
  executablePath: browserPath,
  headless: true,
  viewport: { width: 1280, height: 800 },
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const complaints = [];
const elsewhere = [];

async function open(link) {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const { host } = new URL(link);
  page.on("console", (message) => {
    if (message.type() === "error" && !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|status of 401/.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (sent) => {
    const url = new URL(sent.url());
    if (url.protocol.startsWith("http") && url.host !== host) elsewhere.push(sent.url());
  });
  const begin = Date.now();
  await page.goto(link);
  await page.waitForFunction(() => window.rigstep?.frames() > 0 && document.querySelector("#tree [role=option]"));
  page.firstPicture = Date.now() - begin;
  return page;
}

const numbers = (page, name, ...args) => page.evaluate(([n, a]) => window.rigstep[n](...a), [name, args]);
const picture = (page) => page.locator("#scene").screenshot();
const isNear = (a, b, tolerance) => a.length === b.length && a.every((x, k) => Math.abs(x - b[k]) < tolerance);

async function checkAccessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.target).join(" ")}`), [], `${what} is not accessible`);
}

// ---- a mechanism file ----

// A saved text whose fault is told beside the scene.
async function showsFinding(page, text, finding) {
  const saved = Date.now();
  writeFileSync("four_bar.textproto", text);
  await page.waitForFunction((t) => document.querySelector("#findings").textContent.includes(t), finding);
  console.log(`"${finding}" is told after ${Date.now() - saved} ms`);
}

async function testMechanism() {
  const server = await view("four_bar.textproto", "--page-port", "0");
  const page = await open(server.link);
  console.log(`first picture after ${page.firstPicture} ms`);
  assert.equal(await page.textContent("h1"), "four_bar");
  const before = await picture(page);
  const start = await numbers(page, "position", "B");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => window.rigstep.time() > 0.3);
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelector("#state").textContent === "ready");
  assert.notDeepEqual(await picture(page), before, "the picture does not move");
  assert.ok(!isNear(await numbers(page, "position", "B"), start, 1e-3), "the body does not move");

  // selected by its name, it tells its numbers
  await page.click("#tree [role=option]:first-child");
  await page.waitForSelector("#inspector table");
  assert.match(await page.textContent("#inspector"), /mass.*kg/);
  await checkAccessible(page, "the view of a mechanism");
  await page.keyboard.press("d");
  await checkAccessible(page, "the dark view of a mechanism");
  await page.screenshot({ path: "mechanism_dark.png" });

  // a saved change appears, a wrong file is told and what was shown stays
  const text = readFileSync("four_bar.textproto", "utf8");
  const saved = Date.now();
  writeFileSync("four_bar.textproto", text.replace("name: \"four_bar\"", "name: \"four_bar_changed\""));
  await page.waitForFunction(() => document.querySelector("h1").textContent === "four_bar_changed");
  console.log(`a saved change is shown after ${Date.now() - saved} ms`);
  writeFileSync("four_bar.textproto", text.replace("mass:", "mas:"));
  await page.waitForFunction(() => /mas/.test(document.querySelector("#banner").textContent) && !document.querySelector("#banner").hidden);
  assert.equal(await page.textContent("h1"), "four_bar_changed");
  // an axis that is wrong is told
  await showsFinding(page, text.replace(/axis \{ z: 1 \}/, "axis { x: 0.1 z: 1 }"), "nothing can move");
  // and so is a spring of a wrong length
  await showsFinding(page, `name: "hung" gravity { z: -9.81 } body { name: "load" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { z: -1 } }
    spring { name: "coil" stiffness: 1000 rest: 5 between_points { first: "ground" second: "load" } }`, "its rest 5 m");
  writeFileSync("four_bar.textproto", text);
  await page.waitForFunction(() => document.querySelector("h1").textContent === "four_bar" && document.querySelector("#banner").hidden);
  await page.close();
  await stop(server);
}

// ---- recordings ----

async function testRecordings() {
  const server = await view("one.mcap", "two.mcap", "--page-port", "0");
  const page = await open(server.link);
  const slider = page.locator("#transport input[type=range]");
  await page.waitForFunction(() => Number(document.querySelector("#transport input")?.max) > 1.9);
  await slider.focus();
  const at = async (time) => {
    await slider.evaluate((input, t) => {
      input.value = t;
      input.dispatchEvent(new Event("input"));
    }, String(time));
    return { time: await numbers(page, "time"), B: await numbers(page, "position", "B"), phi: await numbers(page, "value", "phi") };
  };
  const early = await at(0.5);
  const late = await at(1.5);
  assert.ok(Math.abs(early.time - 0.5) < 0.02 && Math.abs(late.time - 1.5) < 0.02, "scrubbing goes elsewhere");
  assert.ok(!isNear(early.B, late.B, 1e-3), "scrubbing moves nothing");
  assert.ok(isNear((await at(0.5)).B, early.B, 1e-6), "the same instant is another pose");
  const pose = [await numbers(page, "value", "A_pose.x"), await numbers(page, "value", "A_pose.y"), await numbers(page, "value", "A_pose.z")];
  assert.ok(isNear(await numbers(page, "position", "A"), pose, 1e-5), "what is drawn is not what was recorded");
  assert.ok((await page.locator(".u-legend .u-series").count()) >= 4, "two runs are not plotted over each other");
  await checkAccessible(page, "the view of recordings");
  await page.screenshot({ path: "recording.png" });
  await page.close();
  await stop(server);
}

// ---- a live run ----

async function testLive() {
  const rig = "rig.textproto";
  const port = 47900 + Math.floor(Math.random() * 90);
  const pagePort = port + 100;
  writeFileSync(rig, `mechanism: "full_car.textproto"\nlink { port: ${port} }\nrealtime { mode: BEST_EFFORT deadline_misses_until_fault { consecutive: 0 per_second: 0 } }
    lifecycle { start: AT_ONCE }\nstale_input { rule: HOLD fault_after_steps: 0 }\nview { port: ${pagePort} token_file: "token" control: true }\n`);
  const serve = () => start(["serve", rig], /view: (\S+)/);
  let server = await serve();
  const token = readFileSync("token", "utf8").trim();
  const link = `${server.found[1]}#token=${token}`;
  const page = await open(link);
  assert.equal(new URL(page.url()).hash, "", "the token stays in the address");
  await page.waitForFunction(() => window.rigstep.time() > 0.2);
  const first = await numbers(page, "time");
  await page.waitForFunction((t) => window.rigstep.time() > t + 0.5, first);
  const told = [await numbers(page, "value", "chassis.x"), await numbers(page, "value", "chassis.y"), await numbers(page, "value", "chassis.z")];
  assert.ok(isNear(await numbers(page, "position", "chassis"), told, 1e-3), "what is drawn is not what the service says");
  const body = await numbers(page, "position", "chassis");
  assert.ok(Math.abs(body[2] - 0.55) < 0.05, `the chassis is shown at ${body}`);
  await page.waitForSelector("#side table");
  await page.waitForSelector("#side meter");
  await checkAccessible(page, "the live view");
  await sleep(1500);
  console.log(`full_car live: ${(await numbers(page, "framesPerSecond")).toFixed(0)} frames a second, software: ${await numbers(page, "software")}`);
  await page.screenshot({ path: "live.png" });

  // operating, with the token of the page
  await page.click("#side button:has-text('Hold')");
  await page.waitForFunction(() => document.querySelector("#state").textContent === "holding");
  await page.click("#side button:has-text('Run')");
  await page.waitForFunction(() => document.querySelector("#state").textContent === "running");

  // without it, or from elsewhere, nothing
  const json = { "Content-Type": "application/json" };
  const bearer = { Authorization: `Bearer ${token}` };
  for (const [headers, wanted] of [[{}, 401], [{ Authorization: `Bearer ${"x".repeat(32)}` }, 401], [bearer, 200],
    [{ ...bearer, Host: "rig.example.org" }, 421], [{ ...bearer, Origin: "http://example.org" }, 403], [{ ...bearer, "Sec-Fetch-Site": "cross-site" }, 403]])
    assert.equal((await ask(link, "/api/scene", { headers })).status, wanted, JSON.stringify(headers));
  const hold = { method: "POST", body: '{"do":"hold"}' };
  assert.equal((await ask(link, "/api/command", { ...hold, headers: json })).status, 401);
  assert.equal((await ask(link, "/api/command", { ...hold, headers: { ...json, ...bearer, Origin: "http://example.org" } })).status, 403);
  assert.equal((await ask(link, "/api/command", { ...hold, headers: bearer })).status, 415);
  assert.equal((await ask(link, "/api/command", { ...hold, body: "[1]", headers: { ...json, ...bearer } })).status, 400);
  assert.equal((await ask(link, "/api/command", { ...hold, body: " ".repeat(70_000), headers: { ...json, ...bearer } })).status, 413);

  // the server is started anew: the page finds it
  await stop(server);
  await page.waitForFunction(() => document.documentElement.dataset.connected === "false");
  server = await serve();
  await page.waitForFunction(() => document.documentElement.dataset.connected === "true" && document.querySelector("#state").textContent === "running");
  await page.close();
  await stop(server);
}

// ---- many bodies; what is hostile ----

async function testMany() {
  const server = await view("chain_128.textproto", "--page-port", "0");
  const page = await open(server.link);
  await page.keyboard.press("Space");
  await page.waitForFunction(() => window.rigstep.time() > 0.1);
  await sleep(2200);
  console.log(`chain of 128: ${(await numbers(page, "framesPerSecond")).toFixed(0)} frames a second`);
  await page.screenshot({ path: "chain_128.png" });
  await page.close();
  await stop(server);
}

async function testPolicy() {
  const server = await view("four_bar.textproto", "--page-port", "0");
  const answer = await ask(server.link, "/", { headers: { "Accept-Encoding": "br" } });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-encoding"], "br");
  const policy = answer.headers["content-security-policy"];
  assert.match(policy, /script-src 'self'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.equal((await ask(server.link, "/", { headers: { Host: "rebound.example.org" } })).status, 421);
  assert.equal((await ask(server.link, "/../../etc/passwd")).status, 404);
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  const flood = await Promise.all(Array.from({ length: 600 }, () =>
    ask(server.link, "/api/command", { agent, method: "POST", headers: { "Content-Type": "application/json" }, body: '{"do":"pause"}' })
      .catch(() => ({ status: 0 })))); // a connection that the server has closed meanwhile
  agent.destroy();
  assert.ok(flood.some((one) => one.status === 429), "commands have no limit");
  await stop(server);
}

let failed = false;
const wanted = new RegExp(process.argv[2] ?? ""); // names of tests, all where there is none
for (const test of [testPolicy, testMechanism, testRecordings, testLive, testMany].filter((one) => wanted.test(one.name))) {
  try {
    await test();
    console.log(`${test.name} passed`);
  } catch (error) {
    failed = true;
    console.error(`${test.name}: ${error.stack ?? error}`);
    const last = context.pages().at(-1);
    await last?.screenshot({ path: `${test.name}_failed.png` }).catch(() => undefined);
    console.error(await last?.evaluate(() => document.querySelector("#banner")?.textContent + " | " + document.querySelector("#state")?.textContent).catch(() => ""));
    await last?.close();
  }
}
await context.close();
if (complaints.length > 0) console.error(`console: ${complaints.join("\n")}`);
if (elsewhere.length > 0) console.error(`requests to elsewhere: ${elsewhere.join("\n")}`);
process.exit(failed || complaints.length > 0 || elsewhere.length > 0 ? 1 : 0);
