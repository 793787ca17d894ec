// The link and the loop of a live run: who is in control, ages, losses, times against the deadline; and, where it is
// permitted, what changes the run.
import { command } from "./api";
import { byId, button, element, number, table } from "./elements";
import type { Scene, Status } from "./model";

type Distribution = NonNullable<Status["distributions"]>[number];

// Quantiles as bars against the period.
function bars(distribution: Distribution, period: number): HTMLElement {
  const deadline = 1e9 * period;
  const row = element("figure", { className: "bars" }, element("figcaption", {}, distribution.name.replace("_ns", "")));
  for (const [name, value] of [
    ["p50", distribution.p50],
    ["p99", distribution.p99],
    ["p99.9", distribution.p999],
    ["max", distribution.max],
  ] as const) {
    const meter = element("meter", { min: 0, max: 1.2 * deadline, high: deadline, low: 0.5 * deadline, optimum: 0, value });
    meter.setAttribute("aria-label", `${distribution.name} ${name}`);
    row.append(element("span", {}, name), meter, element("span", {}, `${number(value / 1000, 4)} µs`));
  }
  return row;
}

export class LivePanel {
  private readonly place = byId("side");
  private readonly told = element("div", { className: "told" });
  private readonly operate = element("div", { className: "operate" });

  show(scene: Scene, fail: (text: string) => void): void {
    this.place.hidden = scene.kind !== "live";
    this.place.replaceChildren(this.operate, this.told);
    this.operate.replaceChildren();
    if (scene.kind !== "live" || !scene.control) return;
    const ask = (what: string, more: Record<string, unknown> = {}): void => {
      command({ do: what, ...more }).catch((error: unknown) => fail(String(error instanceof Error ? error.message : error)));
    };
    for (const [label, what] of [
      ["Run", "run"],
      ["Hold", "hold"],
      ["Reset fault", "reset_fault"],
      ["To the start", "reset_to_start"],
      ["Black box", "black_box"],
    ] as const)
      this.operate.append(button(label, label, () => ask(what)));
  }

  update(status: Status, scene: Scene): void {
    if (scene.kind !== "live") return;
    const rows: [string, string][] = [["in control", status.controller === undefined || status.controller === "" ? "nobody" : status.controller]];
    if (status.inputAge !== undefined) rows.push(["age of inputs", `${status.inputAge} steps`]);
    if (status.clock !== undefined) rows.push(["clock", status.clock]);
    const counts = (status.counters ?? []).map(([name, count]): [string, string] => [name.replaceAll("_", " "), String(count)]);
    const times = (status.distributions ?? []).map((distribution) => bars(distribution, scene.period));
    this.told.replaceChildren(table(rows), ...times, table(counts));
  }
}
