// What measurements of the page share: a browser without a graphics processor, and processor time.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { chromium } = createRequire(`${process.cwd()}/server/page/package.json`)("playwright-core");

// Of a process and all that it has started [s]; ticks are hundredths.
export function cpuSeconds(pid) {
  const fields = (id) => readFileSync(`/proc/${id}/stat`, "utf8").replace(/.*\) /, "").split(" ");
  const children = (id) => {
    try {
      return readFileSync(`/proc/${id}/task/${id}/children`, "utf8").split(" ").filter((child) => child !== "");
    } catch {
      return [];
    }
  };
  try {
    const own = fields(pid);
    return (Number(own[11]) + Number(own[12])) / 100 + children(pid).reduce((sum, child) => sum + cpuSeconds(child), 0);
  } catch {
    return 0; // it has ended
  }
}

// browser: its process; connected: to open pages in.
export async function launch() {
  const browser = await chromium.launchServer({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  });
  return { browser, connected: await chromium.connect(browser.wsEndpoint()) };
}
