// The header: from where the scene is seen, what is drawn, light and dark, and what the keys do.
import { Vector3 } from "three";
import { byId, button, element, toggle } from "./elements";
import type { SceneView, Shown } from "./scene_view";

const toggles: [keyof Shown, string, string][] = [
  ["grid", "Grid", "ground grid (g)"],
  ["masses", "Masses", "mass centres (m)"],
  ["frames", "Frames", "frames of the bodies (f)"],
  ["axes", "Axes", "axes of the joints (a)"],
  ["reactions", "Reactions", "forces and torques in the joints (r)"],
  ["forces", "Forces", "forces and torques on bodies (l)"],
  ["trace", "Trace", "path of the selected body (t)"],
];

function keyOf(title: string): string {
  return title.slice(-2, -1);
}

export function isDark(): boolean {
  const set = document.documentElement.dataset["theme"];
  return set === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : set === "dark";
}

export class Header {
  private readonly buttons = new Map<string, HTMLButtonElement>(); // by their keys
  private readonly help = byId<HTMLDialogElement>("help");

  // home: from where the scene is seen at first.
  constructor(view: SceneView, home: () => Vector3, onTheme: () => void) {
    const directions: [string, string, () => Vector3][] = [
      ["Home", "as at first (0)", home],
      ["Front", "along y (1)", () => new Vector3(0, -1, 0)],
      ["Side", "along x (2)", () => new Vector3(1, 0, 0)],
      ["Top", "along z (3)", () => new Vector3(0, 0, 1)],
    ];
    for (const [label, title, toward] of directions) this.add("views", title, button(label, title, () => view.lookFrom(toward())));
    const parallel = "parallel projection (p)";
    this.add("views", parallel, toggle("Parallel", parallel, false, (yes) => view.camera.setParallel(yes)));
    for (const [name, label, title] of toggles) this.add("toggles", title, toggle(label, title, view.shown[name], (yes) => view.setShown(name, yes)));
    const theme = button("Dark", "light or dark (d)", () => {
      document.documentElement.dataset["theme"] = isDark() ? "light" : "dark";
      onTheme();
    });
    this.add("toggles", theme.title, theme);
    this.add("toggles", "what the keys do (?)", button("Keys", "what the keys do (?)", () => this.help.showModal()));
    this.makeHelp();
  }

  // False: the key means nothing here.
  press(key: string): boolean {
    const pressed = this.buttons.get(key);
    pressed?.click();
    return pressed !== undefined;
  }

  private add(place: string, title: string, made: HTMLButtonElement): void {
    this.buttons.set(keyOf(title), made);
    byId(place).append(made);
  }

  private makeHelp(): void {
    const rows: [string, string][] = [
      ["0 1 2 3", "look from home, front, side, top"],
      ["p", "parallel projection"],
      ...toggles.map(([, , title]) => [keyOf(title), title.slice(0, -4)] as [string, string]),
      ["d", "light or dark"],
      ["space", "play or pause"],
      ["left, right", "one step back or on"],
      ["Esc", "select nothing"],
      ["[ and ]", "the bookmark of a recording begins or ends here"],
      ["shift and drag", "pull a body with a spring"],
    ];
    const list = element("dl");
    for (const [key, what] of rows) list.append(element("dt", {}, key), element("dd", {}, what));
    this.help.append(element("h2", {}, "Keys"), list, button("Close", "close", () => this.help.close()));
  }
}
