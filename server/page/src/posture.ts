// Where bodies are at the instant that is shown.
import { Matrix4, Quaternion, Vector3 } from "three";
import type { Point } from "./model";

const one = new Vector3(1, 1, 1);

export function vector(v: ArrayLike<number>): Vector3 {
  return new Vector3(v[0] ?? 0, v[1] ?? 0, v[2] ?? 0);
}

export function quaternion(p: ArrayLike<number>): Quaternion {
  return new Quaternion(p[1] ?? 0, p[2] ?? 0, p[3] ?? 0, p[0] ?? 1);
}

export class Posture {
  readonly matrices: Matrix4[];
  private readonly place = new Vector3();
  private readonly turn = new Quaternion();

  constructor(bodies: number) {
    this.matrices = Array.from({ length: bodies }, () => new Matrix4());
  }

  // poses: 7 numbers a body. False: they are of another mechanism.
  set(poses: Float32Array): boolean {
    if (poses.length !== 7 * this.matrices.length) return false;
    this.matrices.forEach((matrix, i) => {
      const k = 7 * i;
      this.place.set(poses[k] ?? 0, poses[k + 1] ?? 0, poses[k + 2] ?? 0);
      this.turn.set(poses[k + 4] ?? 0, poses[k + 5] ?? 0, poses[k + 6] ?? 0, poses[k + 3] ?? 1);
      matrix.compose(this.place, this.turn, one);
    });
    return true;
  }

  worldOf(point: Point, into: Vector3): Vector3 {
    into.set(point.point[0], point.point[1], point.point[2]);
    const matrix = this.matrices[point.body];
    return matrix === undefined ? into : into.applyMatrix4(matrix);
  }

  // A direction that a body carries; -1: the ground.
  turned(direction: ArrayLike<number>, body: number): Vector3 {
    const turned = vector(direction);
    const matrix = this.matrices[body];
    return matrix === undefined ? turned : turned.transformDirection(matrix);
  }

  positionOf(body: number): number[] {
    const matrix = this.matrices[body];
    return matrix === undefined ? [] : new Vector3().setFromMatrixPosition(matrix).toArray();
  }
}
