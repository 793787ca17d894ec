// Measures the page without a graphics processor: frames a second, and what the browser and the server of the page
// take. Nothing passes or fails. Usage, from the repository's root, after a build:
//   RIGSTEP=build/test/server/rigstep node tests/end_to_end/page/frame_rates.mjs [FOLDER_OF_ANOTHER_BUNDLE]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, loadavg } from "node:os";
import { join } from "node:path";
import { cpuSeconds, launch } from "./measuring.mjs";

const { RIGSTEP } = process.env;
const folder = mkdtempSync(join(tmpdir(), "frame_rates"));
const measured = 6000; // [ms]

// A chain on hinges.
function chain(bodies) {
  let text = `name: "chain_${bodies}" gravity { z: -9.81 }\n`;
  for (let k = 0; k < bodies; ++k)
    text += `body { name: "b${k}" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } position { x: ${k + 0.5} } }
      joint { name: "j${k}" type: REVOLUTE first: "${k === 0 ? "ground" : `b${k - 1}`}" second: "b${k}" at_start { point { x: ${k} } axis { y: 1 } } }\n`;
  return text;
}

const { browser, connected } = await launch();

async function measure(file) {
  const server = spawn(RIGSTEP, ["view", file, "--page-port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const link = await new Promise((resolve) => server.stdout.on("data", (data) => resolve(String(data).trim())));
  const page = await connected.newPage({ viewport: { width: 1280, height: 800 } });
  if (process.argv[2] !== undefined) await page.route("**/page.js", (route) => route.fulfill({ path: join(process.argv[2], "page.js") }));
  await page.goto(link);
  await page.waitForFunction(() => window.rigstep?.frames() > 0 && document.querySelector("#tree [role=option]"));
  await page.keyboard.press("Space");
  await page.waitForFunction(() => window.rigstep.time() > 0.2, undefined, { timeout: 60_000 });
  const cpu = () => [cpuSeconds(browser.process().pid), cpuSeconds(server.pid)];
  const [before, frames, begin] = [cpu(), await page.evaluate(() => window.rigstep.frames()), Date.now()];
  await page.waitForTimeout(measured);
  const seconds = (Date.now() - begin) / 1000;
  const rate = ((await page.evaluate(() => window.rigstep.frames())) - frames) / seconds;
  const [inBrowser, inServer] = cpu().map((now, k) => (100 * (now - before[k])) / seconds);
  const bodies = await page.evaluate(() => window.rigstep.bodies());
  console.log(`${String(bodies).padStart(5)} bodies: ${rate.toFixed(1)} frames a second; the browser takes ${inBrowser.toFixed(0)} % of a core, ${((10 * inBrowser) / rate).toFixed(0)} ms a frame; the server of the page, with the steps, ${inServer.toFixed(0)} %`);
  await page.close();
  server.kill("SIGTERM");
}

console.log(`load of the machine before: ${loadavg().map((load) => load.toFixed(1)).join(" ")}`);
for (const name of ["four_bar", "full_car", "chain_128"]) await measure(`config/mechanisms/${name}.textproto`);
writeFileSync(join(folder, "chain_1024.textproto"), chain(1024));
await measure(join(folder, "chain_1024.textproto"));
await browser.close();
rmSync(folder, { recursive: true });
process.exit(0);
