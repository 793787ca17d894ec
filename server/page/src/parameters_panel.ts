// Parameters with value and range; tunable ones can be moved where that is permitted.
import { element, number } from "./elements";
import type { Parameter, Scene } from "./model";

type Ask = (request: Record<string, unknown>) => void;

const rampSeconds = 0.1; // of a live run: no jump

export class ParametersPanel {
  readonly place = element("section", { className: "panel" });
  private shown: { parameter: Parameter; told: HTMLElement; slider: HTMLInputElement | null }[] = [];

  // Permitted: of a mechanism file everybody, since only the page's own copy changes; live with the token.
  show(scene: Scene, ask: Ask): void {
    this.place.hidden = scene.parameters.length === 0 || scene.kind === "recording";
    const mayChange = scene.kind === "mechanism" || scene.control;
    const ramp = scene.kind === "live" ? Math.round(rampSeconds / scene.period) : 0;
    this.shown = scene.parameters.map((parameter) => {
      const told = element("output");
      const slider = mayChange && parameter.tunable ? this.slider(parameter, (value) => ask({ do: "set", name: parameter.name, value, ramp })) : null;
      return { parameter, told, slider };
    });
    this.place.replaceChildren(
      element("h2", {}, "Parameters"),
      ...this.shown.map(({ parameter, told, slider }) => {
        const range = `${number(parameter.minimum, 4)} to ${number(parameter.maximum, 4)}${parameter.tunable ? "" : ", fixed"}`;
        return element("div", { className: "set" }, element("span", {}, parameter.name), told, ...(slider === null ? [] : [slider]), element("small", {}, range));
      }),
    );
    this.update({});
  }

  update(values: Record<string, number>): void {
    for (const { parameter, told, slider } of this.shown) {
      const value = values[parameter.name] ?? parameter.value;
      told.textContent = `${number(value)} ${parameter.unit}`;
      if (slider !== null && document.activeElement !== slider) slider.value = String(value);
    }
  }

  private slider(parameter: Parameter, change: (value: number) => void): HTMLInputElement {
    const { minimum, maximum } = parameter;
    const made = element("input", { type: "range", min: String(minimum), max: String(maximum), step: "any" });
    made.setAttribute("aria-label", `${parameter.name} in ${parameter.unit}`);
    made.onchange = () => change(Number(made.value));
    return made;
  }
}
