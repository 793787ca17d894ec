// Forces and torques as arrows: reactions of joints, and what else acts on bodies. Torques have two heads.
import { Group, Vector3 } from "three";
import { number } from "./elements";
import { segments } from "./marks";
import type { Motion, Scene } from "./model";
import type { Posture } from "./posture";

export interface ShownForces {
  reactions: boolean;
  forces: boolean;
}

const longest = 0.22; // of the scene's size
const perReaction = 6;
const perForce = 9;

export class Arrows {
  readonly group = new Group();
  private readonly drawn = {
    reactions: segments("#c2410c"),
    reactionTorques: segments("#a21caf"),
    forces: segments("#0f766e"),
    forceTorques: segments("#1d4ed8"),
  };
  private readonly from = new Vector3();

  constructor(private readonly scene: Scene) {
    for (const arrows of Object.values(this.drawn)) this.group.add(arrows.object);
  }

  // What the longest arrows mean, for people.
  place(posture: Posture, motion: Motion, shown: ShownForces): string {
    for (const arrows of Object.values(this.drawn)) arrows.begin();
    const firstForce = perReaction * this.scene.joints.length;
    const numbers = motion.forces;
    const has = numbers.length >= firstForce && numbers.length > 0;
    const reactions = this.scene.joints.map((_, j) => perReaction * j);
    const forces = this.scene.forces.map((_, k) => firstForce + perForce * k).filter((at) => at + perForce <= numbers.length);
    const largest = (begins: number[], offset: number): number =>
      begins.reduce((most, at) => Math.max(most, Math.hypot(numbers[at + offset] ?? 0, numbers[at + offset + 1] ?? 0, numbers[at + offset + 2] ?? 0)), 0);
    const force = has ? Math.max(shown.reactions ? largest(reactions, 0) : 0, shown.forces ? largest(forces, 3) : 0) : 0;
    const torque = has ? Math.max(shown.reactions ? largest(reactions, 3) : 0, shown.forces ? largest(forces, 6) : 0) : 0;
    const scaleOf = (most: number): number => (most > 0 ? (longest * this.scene.size) / most : 0);
    if (has && shown.reactions)
      reactions.forEach((at, j) => {
        const joint = this.scene.joints[j];
        if (joint === undefined) return;
        posture.worldOf({ body: joint.first, point: joint.point }, this.from);
        this.arrow(this.drawn.reactions, numbers, at, scaleOf(force), 1);
        this.arrow(this.drawn.reactionTorques, numbers, at + 3, scaleOf(torque), 2);
      });
    if (has && shown.forces)
      for (const at of forces) {
        this.from.set(numbers[at] ?? 0, numbers[at + 1] ?? 0, numbers[at + 2] ?? 0);
        this.arrow(this.drawn.forces, numbers, at + 3, scaleOf(force), 1);
        this.arrow(this.drawn.forceTorques, numbers, at + 6, scaleOf(torque), 2);
      }
    for (const arrows of Object.values(this.drawn)) arrows.end();
    if (!shown.reactions && !shown.forces) return "";
    if (!has) return this.scene.kind === "live" ? "no output of the server tells a reaction" : "forces are not known here";
    if (this.scene.kind === "live" && !shown.reactions) return "a live run tells reactions only: see its recording";
    return [force > 0 ? `longest arrow ${number(force, 3)} N` : "no forces now", torque > 0 ? `with two heads ${number(torque, 3)} N m` : ""].filter((text) => text !== "").join(", ");
  }

  // From `from` along three of the numbers: a line with two barbs for each head.
  private arrow(into: ReturnType<typeof segments>, numbers: Float32Array, at: number, scale: number, heads: number): void {
    const along = new Vector3(numbers[at] ?? 0, numbers[at + 1] ?? 0, numbers[at + 2] ?? 0).multiplyScalar(scale);
    const length = along.length();
    if (!(length > 1e-3 * longest * this.scene.size)) return;
    const add = (p: Vector3): void => into.add(p.x, p.y, p.z);
    add(this.from);
    add(this.from.clone().add(along));
    const aside = new Vector3().crossVectors(along, Math.abs(along.z) < 0.9 * length ? new Vector3(0, 0, 1) : new Vector3(1, 0, 0));
    aside.setLength(0.06 * length);
    for (let head = 0; head < heads; ++head) {
      const tip = this.from.clone().addScaledVector(along, 1 - 0.12 * head);
      for (const side of [-1, 1]) {
        add(tip);
        add(tip.clone().addScaledVector(along, -0.15).addScaledVector(aside, side));
      }
    }
  }
}
