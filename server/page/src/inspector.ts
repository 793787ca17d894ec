// What there is: findings, bodies and joints to choose from, and the numbers of the one that is chosen.
import { byId, element, number, table } from "./elements";
import type { Motion, Scene } from "./model";
import { type Part, partOfFinding } from "./parts";

const mostParts = 400; // that are listed at a time

export class Inspector {
  onSelect: (part: Part) => void = () => undefined;
  private scene: Scene | null = null;
  private selected: Part | null = null;
  private readonly tree = byId("tree");
  private readonly filter = byId<HTMLInputElement>("filter");
  private shownAt = 0;
  private newest: Motion | null = null; // that is not shown yet

  constructor() {
    this.filter.addEventListener("input", () => this.list());
    this.tree.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      const all = [...this.tree.querySelectorAll<HTMLElement>("[role=option]")];
      if (step === 0 || all.length === 0) return;
      event.preventDefault();
      event.stopPropagation();
      const at = all.findIndex((item) => item.getAttribute("aria-selected") === "true");
      all[Math.max(0, Math.min(all.length - 1, at + step))]?.click();
    });
  }

  show(scene: Scene): void {
    this.scene = scene;
    this.selected = null;
    this.list();
    byId("inspector").replaceChildren();
    const findings = byId("findings");
    findings.hidden = scene.findings.length + scene.problems.length === 0;
    findings.replaceChildren(
      ...scene.findings.map((finding) => {
        const item = element("button", { type: "button", className: `finding ${finding.severity}` }, finding.text);
        item.onclick = () => {
          const part = partOfFinding(scene, finding);
          if (part !== null) this.onSelect(part);
        };
        return item;
      }),
      ...scene.problems.map((problem) => element("p", { className: "finding warning" }, problem)),
    );
  }

  select(part: Part | null): void {
    this.selected = part;
    for (const item of this.tree.querySelectorAll<HTMLElement>("[role=option]")) {
      const mine = part !== null && item.dataset["part"] === `${part.kind}${part.index}`;
      item.setAttribute("aria-selected", String(mine));
      if (mine) item.scrollIntoView({ block: "nearest" });
    }
    this.shownAt = 0;
    byId("inspector").replaceChildren();
  }

  private list(): void {
    const scene = this.scene;
    if (scene === null) return;
    const wanted = this.filter.value.toLowerCase();
    const items: HTMLElement[] = [];
    const add = (part: Part, name: string, detail: string, colour: string): void => {
      if (items.length >= mostParts || !`${name} ${detail}`.toLowerCase().includes(wanted)) return;
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = colour;
      const item = element("div", { className: "part" }, swatch, element("span", {}, name), element("small", {}, detail));
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.dataset["part"] = `${part.kind}${part.index}`;
      item.onclick = () => this.onSelect(part);
      items.push(item);
    };
    scene.bodies.forEach((body, index) => add({ kind: "body", index }, body.name, `${number(body.mass)} kg`, body.colour));
    scene.joints.forEach((joint, index) => add({ kind: "joint", index }, joint.name, joint.type, "transparent"));
    this.tree.replaceChildren(...items);
  }

  // What is shown at the next tick().
  update(motion: Motion): void {
    this.newest = motion;
  }

  // At most some times a second: reading needs time.
  tick(now: number): void {
    if (this.newest === null || now - this.shownAt < 100 || this.scene === null || this.selected === null) return;
    this.shownAt = now;
    const rows = this.rows(this.scene, this.selected, this.newest);
    this.newest = null;
    byId("inspector").replaceChildren(element("h2", {}, this.nameOf(this.selected)), table(rows));
  }

  nameOf(part: Part): string {
    const scene = this.scene;
    if (scene === null) return "";
    if (part.kind === "body") return scene.bodies[part.index]?.name ?? "";
    if (part.kind === "joint") return scene.joints[part.index]?.name ?? "";
    const line = scene.lines[part.index];
    return line === undefined ? "" : `${line.kind} ${line.name}`;
  }

  private rows(scene: Scene, part: Part, motion: Motion): [string, string][] {
    const bodyName = (index: number): string => scene.bodies[index]?.name ?? "ground";
    const vector = (v: ArrayLike<number>, digits = 5): string => Array.from(v, (x) => number(x, digits)).join("  ");
    if (part.kind === "body") {
      const body = scene.bodies[part.index];
      const pose = motion.poses.subarray(7 * part.index, 7 * part.index + 7);
      if (body === undefined) return [];
      return [
        ["mass", `${number(body.mass)} kg`],
        ["moments", `${vector(body.inertia, 4)} kg m²`],
        ["position", `${vector(pose.subarray(0, 3))} m`],
        ["Euler parameters", vector(pose.subarray(3), 4)],
      ];
    }
    if (part.kind === "joint") {
      const joint = scene.joints[part.index];
      if (joint === undefined) return [];
      const rows: [string, string][] = [
        ["type", joint.type],
        ["between", `${bodyName(joint.first)} and ${bodyName(joint.second)}`],
        ["free", joint.freedoms.join(", ") || "nothing measured"],
        ["axis", `${vector(joint.axis, 4)} in ${bodyName(joint.first)}`],
      ];
      const load = motion.forces.subarray(6 * part.index, 6 * part.index + 6);
      if (load.length === 6)
        rows.push(["force", `${vector(load.subarray(0, 3), 4)} N on ${bodyName(joint.second)}`], ["torque", `${vector(load.subarray(3), 4)} N m`]);
      for (const finding of scene.findings) if (finding.joint === part.index) rows.push([finding.severity, finding.text]);
      return rows;
    }
    const line = scene.lines[part.index];
    return line === undefined ? [] : [["kind", line.kind], ["between", line.points.map((p) => bodyName(p.body)).join(", ")]];
  }
}
