// What is told beside the plots: how a live run is operated, its inputs and parameters, the link, times against the
// deadline; of a recording its times.
import { command } from "./api";
import { button, byId, element, number, table } from "./elements";
import { histogram } from "./histogram";
import { InputsPanel } from "./inputs_panel";
import type { Motion, Scene, Status } from "./model";
import { ParametersPanel } from "./parameters_panel";

const operations = [
  ["Run", "go on, or begin", { do: "run" }],
  ["Hold", "time stands", { do: "hold" }],
  ["Step", "one step, then hold", { do: "step", steps: 1 }],
  ["Snapshot", "keep the present state", { do: "snapshot" }],
  ["To the snapshot", "set the run back to the state that was kept", { do: "reset_to_snapshot" }],
  ["To the start", "set the run back to its start", { do: "reset_to_start" }],
  ["Reset fault", "clear the latched fault", { do: "reset_fault" }],
  ["Black box", "have the last seconds written to a file", { do: "black_box" }],
] as const;

const mostInputs = 16; // that are listed

export class SidePanel {
  private readonly place = byId("side");
  private readonly operate = element("section", { className: "operate" });
  private readonly inputs = new InputsPanel();
  private readonly parameters = new ParametersPanel();
  private readonly link = element("section", { className: "panel" });
  private readonly times = element("section", { className: "panel" });
  private readonly events = element("section", { className: "panel" });

  // events: of a recording, as elements.
  show(scene: Scene, events: HTMLElement[], fail: (text: string) => void): void {
    const ask = (request: Record<string, unknown>): void => {
      command(request).then(
        () => fail(""),
        (error: unknown) => fail(String(error instanceof Error ? error.message : error)),
      );
    };
    const isOperated = scene.kind === "live" && scene.control;
    this.operate.replaceChildren(...(isOperated ? operations.map(([label, title, request]) => button(label, title, () => ask(request))) : []));
    this.operate.hidden = !isOperated;
    this.inputs.show(scene, fail);
    this.parameters.show(scene, ask);
    this.link.replaceChildren();
    this.times.replaceChildren();
    this.place.replaceChildren(this.operate, this.inputs.place, this.parameters.place, ...events, this.link, this.times, this.events);
    this.events.replaceChildren();
    this.place.hidden = scene.kind === "mechanism" && scene.parameters.length === 0;
  }

  // motion: the newest instant.
  update(status: Status, scene: Scene, motion: Motion | null): void {
    this.inputs.update(status);
    this.parameters.update(status.parameters ?? {});
    if (scene.kind === "live") this.link.replaceChildren(element("h2", {}, "Link"), ...this.hint(status), table(this.linkRows(status)), ...this.applied(scene, motion), table(this.counts(status)));
    const times = (status.distributions ?? []).filter((distribution) => distribution.max > 0); // simulations have none
    if (times.length > 0) this.times.replaceChildren(element("h2", {}, "Times, and the deadline"), ...times.map((distribution) => histogram(distribution, scene.period)));
  }

  // Of a live run, the newest first; as buttons.
  showEvents(buttons: HTMLElement[]): void {
    const texts = (of: Iterable<Element>): string => [...of].map((one) => one.textContent).join("\n");
    if (texts(buttons) === texts([...this.events.children].slice(1))) return; // else a click would miss them
    this.events.replaceChildren(...(buttons.length > 0 ? [element("h2", {}, "Events")] : []), ...buttons);
  }

  private linkRows(status: Status): [string, string][] {
    const controller = status.controller ?? "";
    const rows: [string, string][] = [["in control", controller === "" ? "nobody" : `${controller} at ${status.controllerAddress ?? ""}`]];
    if (status.inputAge !== undefined) rows.push(["age of inputs", `${status.inputAge} steps`]);
    if (status.observers !== undefined) rows.push(["observers", String(status.observers)]);
    if (status.clock !== undefined && status.clock !== "") rows.push(["clock", status.clock]);
    if (status.recordingError !== undefined && status.recordingError !== "") rows.push(["recording", status.recordingError]);
    return rows;
  }

  private hint(status: Status): HTMLElement[] {
    const hint = status.hint ?? "";
    return hint === "" ? [] : [element("p", { className: "finding warning" }, hint)];
  }

  // What acts, whoever is in control.
  private applied(scene: Scene, motion: Motion | null): HTMLElement[] {
    const first = scene.columns.findIndex((column) => column.name.startsWith("input "));
    if (first < 0 || motion === null || motion.values.length !== scene.columns.length) return [];
    const rows = scene.inputs.slice(0, mostInputs).map((input, k): [string, string] => [input.name, `${number(motion.values[first + k] ?? Number.NaN)} ${input.unit}`]);
    const more = scene.inputs.length - rows.length;
    return [element("h2", {}, more > 0 ? `Inputs that act (${more} more in the plots)` : "Inputs that act"), table(rows)];
  }

  private counts(status: Status): [string, string][] {
    return (status.counters ?? []).map(([name, count]) => [name.replaceAll("_", " "), String(count)]);
  }
}
