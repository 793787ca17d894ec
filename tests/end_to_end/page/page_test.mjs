// What page_test.sh has a browser do. Exits with 1 at the first thing that is wrong.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { Agent } from "node:http";
import { ask, requestInRequest, start, statuses, stop, view } from "./servers.mjs";

const { RIGSTEP, SOURCE, chromium: browserPath } = process.env;
const packages = createRequire(`${SOURCE}/server/page/package.json`);
const { chromium } = packages("playwright-core");
const axe = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");

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
    if (message.type() === "error" && !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|status of (401|409)/.test(message.text())) complaints.push(message.text());
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

// What a button of the plots saves.
async function saved(page, label) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#transport button:has-text('${label}')`)]);
  return readFileSync(await download.path());
}

const rowsOf = (csv) => String(csv).trim().split("\n").map((line) => line.split(","));

// ---- a mechanism file ----

// A saved text whose fault is told beside the scene.
async function showsFinding(page, text, finding) {
  const saved = Date.now();
  writeFileSync("four_bar.textproto", text);
  await page.waitForFunction((t) => document.querySelector("#findings").textContent.includes(t), finding);
  console.log(`"${finding}" is told after ${Date.now() - saved} ms`);
}

// A file that is wrong from the beginning: what is wrong is told, and it appears once it is right.
async function testBroken() {
  writeFileSync("broken.textproto", 'name: "broken" body { nme: "A" }\n');
  const server = await view("broken.textproto", "--page-port", "0");
  const page = await open(server.link);
  await page.waitForFunction(() => /nme/.test(document.querySelector("#banner").textContent) && !document.querySelector("#banner").hidden);
  writeFileSync("broken.textproto", 'name: "mended" body { name: "A" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } }\n');
  await page.waitForFunction(() => document.querySelector("h1").textContent === "mended" && document.querySelector("#banner").hidden);
  await page.close();
  await stop(server);
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
  // and what was selected stays
  await page.click("#tree [role=option]:first-child");
  await page.waitForSelector("#inspector table");
  writeFileSync("four_bar.textproto", text.replace("name: \"four_bar\"", "name: \"four_bar_changed\"").replace("axis { z: 1 }", "axis { z: 2 }"));
  await page.waitForTimeout(1000);
  assert.match(await page.textContent("#inspector"), /mass.*kg/, "a saved change takes away what was selected");
  writeFileSync("four_bar.textproto", text.replace("mass:", "mas:"));
  await page.waitForFunction(() => /mas/.test(document.querySelector("#banner").textContent) && !document.querySelector("#banner").hidden);
  assert.equal(await page.textContent("h1"), "four_bar_changed");
  // an axis that is wrong is told
  await showsFinding(page, text.replace(/axis \{ z: 1 \}/, "axis { x: 0.1 z: 1 }"), "nothing can move: the axis of joint");
  assert.deepEqual((await numbers(page, "found")).map((part) => part.kind), ["joint"], "the joint of the finding is not marked");
  // and so is a spring of a wrong length
  await showsFinding(page, `name: "hung" gravity { z: -9.81 } body { name: "load" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { z: -1 } }
    spring { name: "coil" stiffness: 1000 rest: 5 between_points { first: "ground" second: "load" } }`, "its rest 5 m");
  assert.deepEqual(await numbers(page, "found"), [{ kind: "line", index: 0 }], "the spring of the finding is not marked");
  // a spring that hangs acts, and its parameter can be moved; a step that fails is marked
  const hung = (force) => `name: "hung" gravity { z: -9.81 } body { name: "load" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { z: -1 } }
    joint { name: "slide" type: PRISMATIC first: "ground" second: "load" at_start { point {} axis { z: 1 } } }
    spring { name: "coil" stiffness: 100 damping: 5 rest: 0.9 between_points { first: "ground" second: "load" } }
    load { name: "blow" body: "load" force { z: ${force} } }
    parameter { name: "payload" of: "load.mass" minimum: 500 g maximum: 5 }`;
  writeFileSync("four_bar.textproto", hung(0));
  await page.waitForSelector("#side .set input");
  await page.locator("#scene").press("l");
  await page.waitForFunction(() => /longest arrow 10 N/.test(document.querySelector("#scale").dataset.forces)); // 100 N/m over 0.1 m
  await page.locator("#side .set input").evaluate((input) => ((input.value = "3"), input.dispatchEvent(new Event("change"))));
  await page.waitForFunction(() => document.querySelector("#side .set output").textContent === "3 kg");
  writeFileSync("four_bar.textproto", hung("1e200"));
  await page.waitForFunction(() => document.querySelector("#side .set output").textContent === "1 kg");
  await page.locator("#scene").press("Space");
  await page.waitForFunction(() => (window.rigstep.marks() & 4) !== 0 && document.querySelector("#alarms").textContent.includes("fault"));
  assert.match(await page.textContent("#banner"), /the step failed/);
  await page.screenshot({ path: "fault.png" });
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
  const energy = async (time) => (await at(time), numbers(page, "value", "total energy"));
  const [begin, middle, end] = [await energy(0.01), await energy(1), await energy(1.9)];
  assert.ok(Math.abs(middle - begin) < 0.01 && Math.abs(end - begin) < 0.01, `the energy is ${begin}, ${middle}, ${end} J`);

  // the numbers of what is selected are those of the instant that is shown
  await page.click("#tree [role=option]:first-child");
  const shown = (await at(1.2)).time;
  const x = await numbers(page, "position", "A");
  await page.waitForFunction((text) => document.querySelector("#inspector").textContent.includes(text), String(Number(x[0].toPrecision(4))).slice(0, 5));
  assert.ok(Math.abs(shown - 1.2) < 0.02);

  // step by step, each of them, and back
  await at(1.0);
  await page.waitForFunction(() => Math.abs(window.rigstep.time() - 1) < 1e-9); // the very step, not the nearest frame
  const step = await numbers(page, "step");
  const time = await numbers(page, "time");
  for (const [key, wanted] of [["ArrowRight", step + 1], ["ArrowRight", step + 2], ["ArrowLeft", step + 1]]) {
    await page.locator("#scene").press(key);
    await page.waitForFunction((k) => window.rigstep.step() === k, wanted);
  }
  assert.ok(Math.abs((await numbers(page, "time")) - time - 0.001) < 1e-9, "one step on is another time");
  const exact = [await numbers(page, "value", "A_pose.x"), await numbers(page, "value", "A_pose.y"), await numbers(page, "value", "A_pose.z")];
  assert.ok(isNear(await numbers(page, "position", "A"), exact, 1e-6), "the step that is drawn is another one");

  // the same with the slider in hand; a bookmark is played again and again, and both of its ends are found
  await slider.focus();
  await slider.press("ArrowRight");
  await page.waitForFunction((k) => window.rigstep.step() === k, step + 2);
  for (const [key, moment] of [["]", 0.6], ["[", 0.4]]) {
    await at(moment);
    await page.keyboard.press(key);
  }
  await page.keyboard.press("Space");
  await page.waitForFunction(() => window.rigstep.time() > 0.5);
  await page.waitForFunction(() => window.rigstep.time() < 0.45); // it began again
  await page.keyboard.press("Space");
  const ends = [];
  for (const label of ["⇤", "⇥"]) {
    await page.click(`#transport button:has-text('${label}')`);
    ends.push(await numbers(page, "time"));
  }
  assert.ok(isNear(ends, [0.4, 0.6], 0.02), `the ends of the bookmark are at ${ends}`);
  // backwards
  await page.fill("#transport input[type=number]", "-1");
  await page.locator("#transport input[type=number]").press("Enter");
  await page.locator("#scene").press("Space");
  await page.waitForFunction(() => window.rigstep.time() < 0.5);
  await page.locator("#scene").press("Space");

  // arrows
  assert.equal(await page.getAttribute("#scale", "data-forces"), "");
  await page.locator("#scene").press("r");
  await page.waitForFunction(() => /longest arrow [\d.e+]+ N/.test(document.querySelector("#scale").dataset.forces));
  assert.ok((await page.locator(".u-legend .u-series").count()) >= 4, "two runs are not plotted over each other");
  await checkAccessible(page, "the view of recordings");
  await page.screenshot({ path: "recording.png" });
  assert.equal((await saved(page, "PNG")).subarray(1, 4).toString(), "PNG");
  await page.close();
  await stop(server);
}

// The second run ends before the first: behind its end there is no difference.
async function testDifference() {
  const server = await view("one.mcap", "short.mcap", "--page-port", "0");
  const page = await open(server.link);
  await page.waitForFunction(() => document.querySelectorAll(".u-legend .u-series").length >= 4);
  await page.waitForFunction(() => Number(document.querySelector("#transport input[type=range]")?.max) > 1.9);
  const rows = rowsOf(await saved(page, "CSV")).slice(1).map((row) => row.map((cell) => (cell === "" ? null : Number(cell))));
  const [early, late] = [rows.find(([t]) => t > 0.5), rows.at(-1)];
  assert.ok(Math.abs(late[0] - 2) < 0.02 && Number.isFinite(late[1]), "the longer run is cut");
  assert.deepEqual(late.slice(2), [null, null], "a run has values behind its end");
  assert.ok(Math.abs(early[3] - (early[2] - early[1])) < 1e-12 && Math.abs(early[3]) < 1e-6, "the difference is another one");
  await page.close();
  await stop(server);
}

// A browser that cannot draw in three dimensions shows the rest.
async function testWithoutWebGl() {
  const server = await view("four_bar.textproto", "--page-port", "0");
  const browser = await chromium.launch({ executablePath: browserPath, headless: true, args: ["--no-sandbox", "--disable-3d-apis", "--disable-gpu"] });
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(server.link);
  await page.waitForFunction(() => document.querySelector("#tree [role=option]") && document.querySelector("#stage .warning"));
  await page.keyboard.press("Space");
  await page.waitForFunction(() => window.rigstep.time() > 0.1);
  assert.match(await page.textContent("#stage .warning"), /no WebGL/);
  assert.deepEqual(errors, []);
  await browser.close();
  await stop(server);
}

// ---- a live run ----

async function testLive() {
  const rig = "rig.textproto";
  // like those of the tests below: under the range from which the kernel takes ports for connections
  const port = 21900 + Math.floor(Math.random() * 90);
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
  await page.waitForSelector("#side .histogram .bar");
  assert.ok((await page.locator("#side .histogram .deadline").count()) >= 2, "the deadline is not shown");
  await checkAccessible(page, "the live view");
  await page.screenshot({ path: "live.png" });

  // a wrong token shows nothing of the run
  const stranger = await context.newPage();
  await stranger.goto(`${server.found[1]}#token=${"x".repeat(32)}`);
  await stranger.waitForFunction(() => /token/.test(document.querySelector("#banner").textContent));
  assert.equal(await stranger.locator("#tree [role=option]").count(), 0, "a wrong token sees the bodies");
  await stranger.close();

  // operating, with the token of the page
  await page.locator("#scene").press("r");
  await page.waitForFunction(() => document.querySelector("#scale").dataset.forces.includes("no output of the server tells a reaction"));
  await page.click("#side button:has-text('Hold')");
  await page.waitForFunction(() => document.querySelector("#state").textContent === "holding");
  await page.click("#side button:has-text('Run')");
  await page.waitForFunction(() => document.querySelector("#state").textContent === "running");
  // both are events, and lead to their moment in the plots, which stand then
  await page.click("#side button:has-text('holding')");
  await page.waitForFunction(() => document.querySelector("#transport button").textContent === "Play");
  await page.locator("#scene").press("Space");

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

// ---- operating ----

// A cart that the page pushes; when it lets go, the run faults.
async function testOperating() {
  const port = 22100 + Math.floor(Math.random() * 90);
  writeFileSync("cart.textproto", `name: "cart" body { name: "cart" mass: 2 inertia { xx: 1 yy: 1 zz: 1 } }
    joint { name: "rail" type: PRISMATIC first: "ground" second: "cart" at_start { point {} axis { x: 1 } } }
    input { name: "push" joint_effort { joint: "rail" } }
    gravity { z: -10 } output { name: "x" joint_coordinate { joint: "rail" } } output { name: "rail" joint_reaction { joint: "rail" } }
    parameter { name: "payload" of: "cart.mass" minimum: 1 kg maximum: 4 kg }\n`);
  writeFileSync("cart_rig.textproto", `mechanism: "cart.textproto" link { port: ${port} timeout_steps: 20000 } recording { path: "cart.mcap" }
    realtime { deadline_misses_until_fault { consecutive: 0 per_second: 0 } } stale_input { rule: HOLD fault_after_steps: 0 }
    lifecycle { control_lost: FAULT } input { channel: "push" minimum: -5 maximum: 5 most_change_per_step: 0.01 }
    view { port: ${port + 100} token_file: "token" control: true }\n`);
  const server = await start(["serve", "cart_rig.textproto"], /view: (\S+)/);
  const page = await open(`${server.found[1]}#token=${readFileSync("token", "utf8").trim()}`);
  const state = (wanted) => page.waitForFunction((text) => document.querySelector("#state").textContent === text, wanted);
  const press = (label) => page.click(`#side button:has-text('${label}')`);
  await state("ready");
  assert.match(await page.textContent("#side"), /-5 to 5, at most 10 N a second/);
  await page.locator("#scene").press("r");
  await page.waitForFunction(() => document.querySelector("#scale").dataset.forces.startsWith("longest arrow 20 N")); // 2 kg
  await press("Take the inputs");
  await state("running");
  const zeros = Date.now();
  await page.waitForFunction(() => document.querySelector("#side .warning")?.textContent.includes("all inputs are zero"));
  console.log(`inputs of zero are told after ${Date.now() - zeros} ms`);
  await page.locator("#side input[aria-label='push in N']").fill("5");
  await page.waitForFunction(() => window.rigstep.value("x") > 0.1 && window.rigstep.value("input push") === 5 && window.rigstep.value("step") > 0);
  await page.waitForFunction(() => /Inputs that act\s*push\s*5 N/.test(document.querySelector("#side").textContent) && document.querySelector("#side .warning") === null);
  await page.locator("#side input[aria-label='payload in kg']").evaluate((input) => ((input.value = "3"), input.dispatchEvent(new Event("change"))));
  await page.waitForFunction(() => /payload\s*3 kg/.test(document.querySelector("#side").textContent));
  await page.waitForSelector("#side button:has-text('payload = 3 kg')");
  // while the plots stand, another channel has its own values
  await page.locator("#scene").press("Space");
  await page.uncheck("#channels label:has-text('x [m]') input");
  await page.check("#channels label:has-text('rail.fz') input");
  const [head, ...rows] = rowsOf(await saved(page, "CSV"));
  assert.match(head[1], /rail\.fz/);
  assert.ok(rows.slice(20).every((row) => Number(row[1]) > 15), `the reaction is plotted as ${rows.at(-1)}`);
  await page.locator("#scene").press("Space");
  // what is refused is told long enough
  await press("To the start");
  await page.waitForFunction(() => /refuses/.test(document.querySelector("#banner").textContent));
  await page.waitForTimeout(1500);
  assert.ok(await page.locator("#banner").isVisible(), "a refusal is gone at once");
  await page.screenshot({ path: "operated.png" });
  await press("Let go");
  await state("faulted");
  await checkAccessible(page, "the operated view"); // not before: it holds the page up, and a page that stands lets go
  await page.waitForFunction(() => (window.rigstep.marks() & 4) !== 0 && document.querySelector("#alarms").textContent.includes("fault"));
  assert.match(await page.textContent("#banner"), /control/);
  await press("To the start");
  await state("ready");
  await page.waitForFunction(() => document.querySelector("#alarms").hidden && window.rigstep.value("x") < 1e-3);

  // who only looks has nothing to change
  const looking = await view(`127.0.0.1:${port}`, "--page-port", "0"); // asks the server for its mechanism
  const { bodies, joints } = JSON.parse((await ask(looking.link, "/api/scene")).text);
  assert.deepEqual([bodies.map((body) => body.name), joints.map((joint) => joint.name)], [["cart"], ["rail"]], "the server's mechanism is another one");
  const other = await open(looking.link);
  await other.waitForFunction(() => /payload/.test(document.querySelector("#side").textContent));
  // but events of the run lead to their moments
  const offered = await other.locator("#side button:visible:not([title='go there']), #side input:visible").evaluateAll((all) => all.map((each) => each.outerHTML));
  assert.deepEqual(offered, [], "who only looks could operate");
  const json = { "Content-Type": "application/json" };
  for (const body of ['{"do":"drive","who":"x","inputs":[1]}', '{"do":"set","name":"payload","value":2,"ramp":0}'])
    assert.equal((await ask(looking.link, "/api/command", { method: "POST", headers: json, body })).status, 403);
  await page.close();
  await stop(server);
  // another mechanism runs there now
  writeFileSync("sledge.textproto", readFileSync("cart.textproto", "utf8").replaceAll('"cart"', '"sledge"').replace("cart.mass", "sledge.mass"));
  writeFileSync("cart_rig.textproto", readFileSync("cart_rig.textproto", "utf8").replace("cart.textproto", "sledge.textproto").replace("cart.mcap", "sledge.mcap"));
  const next = await start(["serve", "cart_rig.textproto"], /view: (\S+)/);
  await other.waitForFunction(() => document.querySelector("h1").textContent === "sledge" && document.querySelector("#state").textContent === "ready" && document.querySelector("#banner").hidden);
  await other.close();
  await stop(looking);
  await stop(next);

  // what was recorded of it
  const recorded = await view("cart.mcap", "--page-port", "0");
  const later = await open(recorded.link);
  await later.waitForSelector("#side .histogram .bar");
  assert.ok((await later.locator("#side button:has-text('fault')").count()) > 0, "the fault is no event of the recording");
  await later.close();
  await stop(recorded);
}

// A body that spins too fast for one iteration a step.
async function testNotConverged() {
  const port = 22300 + Math.floor(Math.random() * 90);
  writeFileSync("spin.textproto", `name: "spin" body { name: "A" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } angular_velocity { z: 1000 } }
    joint { name: "a" type: REVOLUTE first: "ground" second: "A" at_start { point {} axis { z: 1 } } }\n`);
  writeFileSync("spin_rig.textproto", `mechanism: "spin.textproto" link { port: ${port} } solver { iterations: 1 order: 4 error_limit { orientation: 0.01 deg } }
    lifecycle { start: AT_ONCE } realtime { deadline_misses_until_fault { consecutive: 0 per_second: 0 } } view { port: ${port + 100} }\n`);
  const server = await start(["serve", "spin_rig.textproto"], /view: (\S+)/);
  const page = await open(server.found[1]);
  await page.waitForFunction(() => (window.rigstep.marks() & 9) === 9 &&
    ["not converged", "step error above its limit"].every((text) => document.querySelector("#alarms").textContent.includes(text)));
  await page.waitForFunction(() => ["not_converged_steps", "inaccurate_steps"].every((text) => document.querySelector("#side").textContent.includes(text)));
  assert.ok(await page.locator("#alarms").isVisible(), "the mark of a step that has not converged is hidden");
  const first = await numbers(page, "time");
  await page.waitForFunction((t) => window.rigstep.time() > t, first); // while it moves
  await page.screenshot({ path: "not_converged.png" });
  await page.close();
  await stop(server);
}

// A run that is held when the page opens: one instant, of which an axis of time has no ticks.
async function testOneInstant() {
  const port = 22500 + Math.floor(Math.random() * 90);
  const at = `127.0.0.1:${port}`;
  writeFileSync("held_rig.textproto", `mechanism: "four_bar.textproto" link { port: ${port} } lifecycle { start: HELD } view { port: ${port + 100} }\n`);
  const server = await start(["serve", "held_rig.textproto"], /view: (\S+)/);
  execFileSync(RIGSTEP, ["step", at, "--steps", "1000"], { stdio: "ignore" });
  while (JSON.parse(execFileSync(RIGSTEP, ["status", at, "--json"])).step < 1000) await new Promise((resolve) => setTimeout(resolve, 100));
  const page = await open(server.found[1]);
  await page.waitForFunction(() => window.rigstep.time() === 1);
  const drawn = await numbers(page, "frames");
  await page.waitForFunction((count) => window.rigstep.frames() > count + 30, drawn); // the plots, too
  assert.deepEqual(complaints, []);
  await page.close();
  await stop(server);
}

// ---- many bodies; what is hostile ----

async function testMany() {
  const server = await view("chain_128.textproto", "--page-port", "0");
  const page = await open(server.link);
  await page.keyboard.press("Space");
  await page.waitForFunction(() => window.rigstep.time() > 0.1);
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
  // a request that another one hides in its body is not answered; bodies without a bound are not read
  assert.deepEqual(await statuses(server.link, requestInRequest), ["403"]);
  const json = { "Content-Type": "application/json" };
  for (const headers of [{ "Transfer-Encoding": "chunked" }, { "Content-Encoding": "gzip" }])
    assert.equal((await ask(server.link, "/api/command", { method: "POST", headers: { ...json, ...headers }, body: "{}" })).status, 411);
  assert.deepEqual(await statuses(server.link, (host) => [`POST /api/command HTTP/1.1\r\n${host}Content-Type: application/json\r\n\r\n`]), ["411"]);
  for (const body of ["[".repeat(60_000), '{"do":"speed","factor":1e999}'])
    assert.equal((await ask(server.link, "/api/command", { method: "POST", headers: json, body })).status, 400);
  assert.equal((await ask(server.link, "/api/command", { method: "POST", headers: json, body: '{"do":"drag","body":1e300,"point":[0,0,0],"target":[0,0,0]}' })).status, 409);
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
for (const test of [testPolicy, testBroken, testMechanism, testRecordings, testDifference, testWithoutWebGl, testLive, testOperating, testNotConverged, testOneInstant, testMany].filter((one) => wanted.test(one.name))) {
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
