// Force elements between points of bodies: springs as coils that stretch, dampers, ropes, rods; contact patches of tyres.
import { Matrix4, Vector3 } from "three";
import { type Batch, type Batches, between } from "./geometry";
import type { Line, Point, Scene, Tyre } from "./model";
import { ownerOf } from "./parts";
import { type Posture, vector } from "./posture";

interface Stretched {
  batch: Batch;
  index: number;
  from: Point;
  to: Point;
  radius: number;
  centred: boolean;
  part: number; // of the length from `from`, where it ends
}

export class Connections {
  private readonly lines: Stretched[] = [];
  private readonly patches: { batch: Batch; index: number; tyre: Tyre }[] = [];
  private readonly from = new Vector3();
  private readonly to = new Vector3();
  private readonly matrix = new Matrix4();

  constructor(
    scene: Scene,
    private readonly batches: Batches,
  ) {
    scene.lines.forEach((line, k) => this.addLine(line, k, scene.thickness));
    for (const tyre of scene.tyres) {
      const batch = batches.of("cylinder", 1);
      this.patches.push({ batch, index: batch.reserve("#2a2d33", ownerOf.nothing), tyre });
    }
  }

  place(posture: Posture): void {
    for (const line of this.lines) {
      posture.worldOf(line.from, this.from);
      posture.worldOf(line.to, this.to);
      if (line.part < 1) this.to.lerpVectors(this.from, this.to, line.part);
      line.batch.set(line.index, between(this.from, this.to, line.radius, line.centred, this.matrix));
    }
    for (const { batch, index, tyre } of this.patches) this.placePatch(batch, index, tyre, posture);
  }

  private addLine(line: Line, index: number, r: number): void {
    const add = (name: string, colour: string, from: Point, to: Point, radius: number, centred: boolean, part = 1): void => {
      const batch = this.batches.of(name, 1);
      this.lines.push({ batch, index: batch.reserve(colour, ownerOf.line(index)), from, to, radius, centred, part });
    };
    for (let k = 0; k + 1 < line.points.length; ++k) {
      const from = line.points[k];
      const to = line.points[k + 1];
      if (from === undefined || to === undefined) continue;
      if (line.kind === "spring") add("coil", "#3f8f68", from, to, 2 * r, false);
      else if (line.kind === "rod") add("cylinder", "#6b7788", from, to, 0.7 * r, true);
      else if (line.kind === "rope") add("cylinder", "#8a6d3b", from, to, 0.3 * r, true);
      else {
        add("cylinder", "#6b7788", from, to, 0.4 * r, true);
        add("cylinder", "#4a5564", from, to, 1.1 * r, true, 0.55);
      }
    }
  }

  // A disc on the road where the tyre is pressed in, as wide as its chord.
  private placePatch(batch: Batch, index: number, tyre: Tyre, posture: Posture): void {
    const axis = posture.turned(tyre.axis, tyre.body);
    const n = vector(tyre.roadNormal);
    const down = n.clone().addScaledVector(axis, -n.dot(axis)).normalize().multiplyScalar(-tyre.radius);
    const lowest = posture.worldOf({ body: tyre.body, point: tyre.centre }, this.from).add(down);
    const height = n.dot(lowest.clone().sub(vector(tyre.roadPoint)));
    lowest.addScaledVector(n, -height);
    const radius = height < 0 ? Math.min(0.4 * tyre.radius, Math.sqrt(-2 * height * tyre.radius)) : 0;
    this.to.copy(lowest).addScaledVector(n, 4e-3 * tyre.radius);
    lowest.addScaledVector(n, -1e-3 * tyre.radius);
    batch.set(index, between(lowest, this.to, radius, true, this.matrix));
  }
}
