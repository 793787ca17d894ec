// The inputs of a live run by hand, while no rig is in control. What is set goes on being sent as long as the page is
// there: a closed page lets go.
import { command } from "./api";
import { button, element, number } from "./elements";
import type { Input, Scene, Status } from "./model";

const again = 400; // what is set is told anew; the server lets go after four seconds without [ms]
const sendEvery = 100; // at most, while a slider is moved [ms]
const who = crypto.getRandomValues(new Uint32Array(4)).join("-"); // this page among others

export class InputsPanel {
  readonly place = element("section", { className: "panel" });
  private readonly take = button("Take the inputs", "be in control, with what is set here", () => this.toggle());
  private readonly told = element("small");
  private fields: HTMLInputElement[] = [];
  private timer = 0;
  private sentAt = 0;
  private isSending = false;
  private fail: (text: string) => void = () => undefined;

  show(scene: Scene, fail: (text: string) => void): void {
    this.letGo();
    this.fail = fail;
    this.place.hidden = scene.kind !== "live" || !scene.control || scene.inputs.length === 0;
    if (this.place.hidden) return;
    this.fields = [];
    const rows = scene.inputs.map((input) => this.row(input, scene.period));
    this.place.replaceChildren(element("h2", {}, "Inputs"), element("div", { className: "operate" }, this.take, this.told), ...rows);
  }

  update(status: Status): void {
    const controller = status.controller ?? "";
    const isTaken = controller !== "" && this.timer === 0;
    this.take.disabled = isTaken;
    this.told.textContent = isTaken ? `${controller} is in control` : "";
  }

  private toggle(): void {
    if (this.timer !== 0) return this.letGo();
    this.timer = setInterval(() => this.send(), again);
    this.take.textContent = "Let go";
    this.take.setAttribute("aria-pressed", "true");
    for (const field of this.fields) field.disabled = false;
    this.send();
  }

  private letGo(): void {
    if (this.timer !== 0) command({ do: "let_go", who }).catch(() => undefined);
    clearInterval(this.timer);
    this.timer = 0;
    this.take.textContent = "Take the inputs";
    this.take.setAttribute("aria-pressed", "false");
    for (const field of this.fields) field.disabled = true;
  }

  // What is not sent now follows with the next one.
  private send(): void {
    if (this.isSending || performance.now() - this.sentAt < sendEvery) return;
    this.isSending = true;
    this.sentAt = performance.now();
    command({ do: "drive", who, inputs: this.fields.map((field) => field.valueAsNumber || 0) })
      .catch((error: unknown) => {
        this.letGo();
        this.fail(String(error instanceof Error ? error.message : error));
      })
      .finally(() => (this.isSending = false));
  }

  // A slider where the rig file has a range, else a number.
  private row(input: Input, period: number): HTMLElement {
    const { lower, upper, mostChange } = input;
    const isRange = lower !== null && upper !== null;
    const field = element("input", { type: isRange ? "range" : "number", step: "any", disabled: true });
    if (lower !== null) field.min = String(lower);
    if (upper !== null) field.max = String(upper);
    field.value = String(input.safe);
    field.setAttribute("aria-label", `${input.name} in ${input.unit}`);
    const told = element("output", {}, `${number(input.safe)} ${input.unit}`);
    field.oninput = () => {
      told.textContent = `${number(field.valueAsNumber)} ${input.unit}`;
      if (this.timer !== 0) this.send();
    };
    this.fields.push(field);
    const limits = [isRange ? `${number(lower, 4)} to ${number(upper, 4)}` : "no range in the rig file", mostChange === null ? "" : `at most ${number(mostChange / period, 4)} ${input.unit} a second`];
    return element("div", { className: "set" }, element("span", {}, input.name), told, field, element("small", {}, limits.filter((text) => text !== "").join(", ")));
  }
}
