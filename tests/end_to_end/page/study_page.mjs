// What figures_test.sh has a browser do with the page of `rigstep study all`: shows it light, dark and narrow, prints it,
// and leaves pictures of all of it in this test's folder. Exits with 1 at the first thing that is wrong.
// Usage: node study_page.mjs REPORT.html
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { SOURCE, chromium: executablePath } = process.env;
const { chromium } = createRequire(`${SOURCE}/server/page/package.json`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const link = pathToFileURL(resolve(process.argv[2])).href;

const page = await browser.newPage();
page.setDefaultTimeout(100_000);
const complaints = [];
page.on("console", (message) => complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(error.message));
page.on("request", (request) => request.url() === link || complaints.push(`loads ${request.url()}`));
await page.goto(link);

// As a reader meets it: colours, and what is laid out where.
async function show(colorScheme, width, picture) {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height: 900 });
  if (picture !== undefined) await page.screenshot({ path: picture, fullPage: true });
  return page.evaluate(() => {
    const brightness = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part) / 3, 0);
    const { color, backgroundColor } = getComputedStyle(document.body);
    const figures = [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect());
    return {
      text: brightness(color),
      ground: brightness(backgroundColor),
      overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      figures: figures.length,
      smallest: Math.min(...figures.map(({ width, height }) => Math.min(width, height))),
      sideBySide: figures.filter((figure, k) => k > 0 && figure.top === figures[k - 1].top).length,
      first: document.querySelector("h2").textContent,
    };
  });
}

const light = await show("light", 1600, "study_light.png");
const dark = await show("dark", 1600, "study_dark.png");
const narrow = await show("light", 400);
assert.equal(light.first, "What was found");
assert.ok(light.ground > 200 && light.text < 60, `light: text ${light.text} on ${light.ground}`);
assert.ok(dark.ground < 60 && dark.text > 200, `dark: text ${dark.text} on ${dark.ground}`);
assert.ok(light.figures > 70 && light.smallest > 150 && light.sideBySide > light.figures / 2, JSON.stringify(light));
assert.equal(light.overflow, 0, "light: wider than the window");
assert.equal(narrow.overflow, 0, "narrow: wider than the window");

const printed = await page.pdf({ path: "study.pdf", format: "A4" });
assert.ok(printed.length > 100_000 && printed.subarray(0, 5).toString() === "%PDF-", "nothing is printed");
assert.deepEqual(complaints, [], "the browser complains");
await browser.close();
