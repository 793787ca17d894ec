// Bodies and joints: solids that bodies carry, drawn in batches.
import { Matrix4, Vector3 } from "three";
import type { Mesh } from "./api";
import { Batch, type Batches, meshGeometry } from "./geometry";
import type { Scene, Solid } from "./model";
import { ownerOf } from "./parts";
import { type Posture, quaternion, vector } from "./posture";

interface Instance {
  batch: Batch;
  index: number;
  body: number;
  local: Matrix4;
}

export class Solids {
  private readonly instances: Instance[] = [];
  private readonly placed = new Matrix4();

  constructor(
    scene: Scene,
    private readonly batches: Batches,
    meshes: (Mesh | null)[],
  ) {
    scene.solids.forEach((solid) => this.addSolid(solid, meshes));
  }

  place(posture: Posture): void {
    for (const { batch, index, body, local } of this.instances) {
      const matrix = posture.matrices[body];
      batch.set(index, matrix === undefined ? local : this.placed.multiplyMatrices(matrix, local));
    }
  }

  // Ends of all solids, for the camera; of the bodies alone: without those that stand on the ground.
  ends(posture: Posture, bodiesAlone: boolean): Vector3[] {
    return this.instances.flatMap(({ batch, body, local }) => {
      if (bodiesAlone && body < 0) return [];
      const matrix = posture.matrices[body];
      const placed = matrix === undefined ? local : this.placed.multiplyMatrices(matrix, local);
      return [-batch.halfLength, batch.halfLength].map((z) => new Vector3(0, 0, z).applyMatrix4(placed));
    });
  }

  private addInstance(batch: Batch, solid: Solid, at: Vector3, scale: Vector3): void {
    const owner = solid.joint >= 0 ? ownerOf.joint(solid.joint) : ownerOf.body(solid.body);
    const index = batch.reserve(solid.colour.slice(0, 7), owner);
    const turn = quaternion(solid.orientation);
    const local = new Matrix4().compose(vector(solid.position).add(at.applyQuaternion(turn)), turn, scale);
    this.instances.push({ batch, index, body: solid.body, local });
  }

  private addSolid(solid: Solid, meshes: (Mesh | null)[]): void {
    const alpha = solid.colour.length > 7 ? Number.parseInt(solid.colour.slice(7), 16) / 255 : 1;
    const opacity = alpha < 0.999 ? Math.round(10 * alpha) / 10 : 1;
    const [a, b, c] = solid.size;
    const add = (name: string, at: Vector3, scale: Vector3): void =>
      this.addInstance(this.batches.of(name, opacity), solid, at, scale);
    const origin = (): Vector3 => new Vector3();
    if (solid.kind === "box") add("box", origin(), vector(solid.size));
    else if (solid.kind === "sphere") add("sphere", origin(), new Vector3(a, a, a));
    else if (solid.kind === "cylinder") add("cylinder", origin(), new Vector3(a, a, c));
    else if (solid.kind === "tube") add(`tube:${(b / a).toFixed(3)}`, origin(), new Vector3(a, a, c));
    else if (solid.kind === "capsule") {
      add("cylinder", origin(), new Vector3(a, a, c));
      if (this.batches.detail !== "coarse" || solid.role === "shape")
        for (const side of [-0.5, 0.5]) add("sphere", new Vector3(0, 0, side * c), new Vector3(a, a, a));
    } else {
      const mesh = meshes[solid.mesh];
      if (mesh === null || mesh === undefined) return;
      const batch = this.batches.made(`mesh:${solid.mesh}/${opacity}`, opacity, () => meshGeometry(mesh.vertices, mesh.corners));
      this.addInstance(batch, solid, origin(), new Vector3(a, a, a));
    }
  }
}
