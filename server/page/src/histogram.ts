// A distribution of times as a figure: counts by quarters of octaves, both axes logarithmic, the deadline as a line.
import { element, number } from "./elements";
import type { Distribution } from "./model";

const width = 270;
const height = 74;
const foot = 13;
const names: Record<string, string> = {
  wake_up_ns: "wake-up after the deadline",
  step_ns: "step",
  hand_off_ns: "from the loop to the link",
  reply_ns: "reply",
  round_trip_ns: "round trip to this page's server",
};

function drawn(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}

// [ns]
function beginOf(quarter: number): number {
  return quarter < 4 ? 32 * quarter : 2 ** (Math.floor(quarter / 4) + 6) * (1 + (quarter % 4) / 4);
}

function timeText(ns: number): string {
  if (ns < 1e3) return `${number(ns, 3)} ns`;
  return ns < 1e6 ? `${number(ns / 1e3, 3)} µs` : `${number(ns / 1e6, 3)} ms`;
}

// period: [s], the deadline.
export function histogram(distribution: Distribution, period: number): HTMLElement {
  const deadline = 1e9 * period;
  const name = names[distribution.name] ?? distribution.name;
  const numbers = `median ${timeText(distribution.p50)}, 99 % ${timeText(distribution.p99)}, 99.9 % ${timeText(distribution.p999)}, longest ${timeText(distribution.max)}`;
  const made = element("figure", { className: "histogram" }, element("figcaption", {}, name), element("small", {}, numbers));
  const used = distribution.quarters.map((count, k) => ({ count, quarter: k + distribution.firstQuarter })).filter(({ count }) => count > 0);
  const first = used[0];
  const last = used.at(-1);
  if (first === undefined || last === undefined) return made;
  const least = Math.log2(Math.min(Math.max(beginOf(first.quarter), 32), deadline / 2));
  const most = Math.log2(Math.max(beginOf(last.quarter + 1), 1.5 * deadline));
  const x = (ns: number): number => (width * (Math.log2(Math.max(ns, 2 ** least)) - least)) / (most - least);
  const tallest = Math.max(...used.map(({ count }) => Math.log10(1 + count)));
  const figure = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${name}: ${numbers}; deadline ${timeText(deadline)}` });
  for (const { count, quarter } of used) {
    const begin = x(beginOf(quarter));
    const tall = ((height - foot) * Math.log10(1 + count)) / tallest;
    figure.append(
      drawn("rect", {
        class: beginOf(quarter) >= deadline ? "late" : "bar",
        x: begin,
        y: height - foot - tall,
        width: Math.max(x(beginOf(quarter + 1)) - begin - 0.5, 0.8),
        height: tall,
      }),
    );
  }
  for (let decade = 1; decade <= 1e10; decade *= 10)
    if (Math.log2(decade) >= least && Math.log2(decade) < most - 0.6) figure.append(drawn("text", { x: x(decade) + 1, y: height - 2 }, timeText(decade)));
  figure.append(drawn("line", { class: "deadline", x1: x(deadline), x2: x(deadline), y1: 0, y2: height - foot }));
  made.append(figure);
  return made;
}
