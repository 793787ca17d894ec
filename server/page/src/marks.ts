// What is drawn over the scene: mass centres, frames, joint axes, the path of a point, and marks of what is wrong.
import { CanvasTexture, Group, Line, LineBasicMaterial, LineSegments, Points, PointsMaterial, Vector3 } from "three";
import { BufferGeometry } from "three";
import { type Motion, type Point, type Scene, mark as instant } from "./model";
import { MovingPoints } from "./moving_points";
import type { Part } from "./parts";
import type { Posture } from "./posture";

export interface Overlays {
  masses: boolean;
  frames: boolean;
  axes: boolean;
  trace: boolean;
}

export const traceLength = 2000; // points
const manyBodies = 200;

type Sign = "mass" | "!" | "~" | "=";

// A disc in four quarters, the mark of a mass centre; or a ring with a sign.
function markTexture(sign: Sign, colour: string): CanvasTexture {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext("2d");
  if (pen !== null && sign === "mass") {
    for (let k = 0; k < 4; ++k) {
      pen.beginPath();
      pen.moveTo(32, 32);
      pen.arc(32, 32, 28, (k * Math.PI) / 2, ((k + 1) * Math.PI) / 2);
      pen.fillStyle = k % 2 === 0 ? "#fff" : colour;
      pen.fill();
    }
    pen.beginPath();
    pen.arc(32, 32, 28, 0, 2 * Math.PI);
    pen.lineWidth = 5;
    pen.strokeStyle = colour;
    pen.stroke();
  } else if (pen !== null) {
    pen.beginPath();
    pen.arc(32, 32, 26, 0, 2 * Math.PI);
    pen.lineWidth = 8;
    pen.strokeStyle = pen.fillStyle = colour;
    pen.stroke();
    pen.font = "bold 38px sans-serif";
    pen.textAlign = "center";
    pen.fillText(sign, 32, 46);
  }
  return new CanvasTexture(canvas);
}

function points(sign: Sign, colour: string, size: number): MovingPoints {
  const material = new PointsMaterial({ map: markTexture(sign, colour), size, sizeAttenuation: false, transparent: true, depthTest: false });
  const made = new Points(new BufferGeometry(), material);
  made.renderOrder = 3;
  return new MovingPoints(made);
}

export function segments(colour: string, coloured = false): MovingPoints {
  const material = new LineBasicMaterial({ color: colour, vertexColors: coloured, depthTest: false });
  const made = new LineSegments(new BufferGeometry(), material);
  made.renderOrder = 2;
  return new MovingPoints(made, coloured);
}

const frameColours = [
  [0.85, 0.15, 0.1],
  [0.1, 0.6, 0.1],
  [0.1, 0.15, 0.9],
] as const;

export class Marks {
  readonly group = new Group();
  found: Part[] = []; // with a finding
  faulty = { body: -1, joint: -1 };
  traced: Point | null = null;
  pull: [Point, Vector3] | null = null; // a point of a body, and where it is pulled to
  wholePath: number[] | null = null; // of the traced point, where it is known; else what is seen of it
  private readonly masses: MovingPoints;
  private readonly wrong = points("!", "#d0341f", 26);
  private readonly singular = points("~", "#b86a00", 26);
  private readonly redundant = points("=", "#1f6390", 15);
  private readonly spring = segments("#0f766e");
  private readonly frames = segments("#ffffff", true);
  private readonly axes = segments("#b8860b");
  private readonly path = new MovingPoints(new Line(new BufferGeometry(), new LineBasicMaterial({ color: "#c2410c" })));
  private trail: number[] = [];
  private readonly at = new Vector3();

  constructor(private readonly scene: Scene) {
    this.masses = points("mass", "#1d2530", scene.bodies.length > manyBodies ? 5 : 11);
    for (const drawn of [this.masses, this.wrong, this.singular, this.redundant, this.spring, this.frames, this.axes, this.path]) this.group.add(drawn.object);
  }

  forgetTrace(): void {
    this.trail = [];
  }

  place(posture: Posture, motion: Motion, shown: Overlays): void {
    this.placeBodies(posture, shown);
    this.placeJoints(posture, motion, shown);
    this.placeConnections(posture);
    this.placeTrace(posture, shown);
    this.spring.begin();
    if (this.pull !== null)
      for (const end of [posture.worldOf(this.pull[0], this.at), this.pull[1]]) this.spring.add(end.x, end.y, end.z);
    this.spring.end();
  }

  private placeBodies(posture: Posture, shown: Overlays): void {
    const length = 9 * this.scene.thickness;
    const tip = new Vector3();
    this.masses.begin();
    this.frames.begin();
    this.scene.bodies.forEach((body, i) => {
      const matrix = posture.matrices[i];
      if (matrix === undefined) return;
      const { x, y, z } = this.at.setFromMatrixPosition(matrix);
      if (shown.masses && body.sketched) this.masses.add(x, y, z);
      if (shown.frames)
        frameColours.forEach((colour, k) => {
          tip.set(0, 0, 0).setComponent(k, length).applyMatrix4(matrix);
          this.frames.add(x, y, z, colour);
          this.frames.add(tip.x, tip.y, tip.z, colour);
        });
    });
    this.masses.end();
    this.frames.end();
  }

  private placeJoints(posture: Posture, motion: Motion, shown: Overlays): void {
    const length = 9 * this.scene.thickness;
    const isSingular = (motion.marks & instant.nearSingular) !== 0;
    for (const drawn of [this.axes, this.wrong, this.singular, this.redundant]) drawn.begin();
    this.scene.joints.forEach((joint, j) => {
      const { x, y, z } = posture.worldOf({ body: joint.first, point: joint.point }, this.at);
      if (this.isFound("joint", j) || this.faulty.joint === j) this.wrong.add(x, y, z);
      else if (isSingular && joint.inLoop) this.singular.add(x, y, z);
      else if (joint.redundant) this.redundant.add(x, y, z);
      if (!shown.axes) return;
      const axis = posture.turned(joint.axis, joint.first).multiplyScalar(length);
      this.axes.add(x - axis.x, y - axis.y, z - axis.z);
      this.axes.add(x + axis.x, y + axis.y, z + axis.z);
    });
    this.scene.bodies.forEach((_, i) => {
      if (this.faulty.body !== i && !this.isFound("body", i)) return;
      const [x = 0, y = 0, z = 0] = posture.positionOf(i);
      this.wrong.add(x, y, z);
    });
  }

  // In the middle of a force element that a finding is about.
  private placeConnections(posture: Posture): void {
    this.scene.lines.forEach((line, k) => {
      if (!this.isFound("line", k) || line.points.length === 0) return;
      const middle = new Vector3();
      for (const point of line.points) middle.add(posture.worldOf(point, this.at));
      middle.divideScalar(line.points.length);
      this.wrong.add(middle.x, middle.y, middle.z);
    });
    for (const drawn of [this.axes, this.wrong, this.singular, this.redundant]) drawn.end();
  }

  private isFound(kind: Part["kind"], index: number): boolean {
    return this.found.some((part) => part.kind === kind && part.index === index);
  }

  private placeTrace(posture: Posture, shown: Overlays): void {
    const { traced } = this;
    if (shown.trace && traced !== null && this.wholePath === null) {
      this.trail.push(...posture.worldOf(traced, this.at).toArray());
      if (this.trail.length > 3 * traceLength) this.trail.splice(0, this.trail.length - 3 * traceLength);
    }
    const path = this.wholePath ?? this.trail;
    this.path.begin();
    if (shown.trace && traced !== null)
      for (let k = 0; k + 2 < path.length; k += 3) this.path.add(path[k] ?? 0, path[k + 1] ?? 0, path[k + 2] ?? 0);
    this.path.end();
  }
}
