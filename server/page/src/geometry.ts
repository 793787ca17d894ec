// Unit geometries and the batches that draw many of them in one call.
import {
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  Color,
  CylinderGeometry,
  InstancedMesh,
  Material,
  Matrix4,
  MeshLambertMaterial,
  Quaternion,
  SphereGeometry,
  TubeGeometry,
  Curve,
  Vector3,
} from "three";
import { toCreasedNormals } from "three/addons/utils/BufferGeometryUtils.js";

const coilLength = 6; // per radius, where the wire is round

class Helix extends Curve<Vector3> {
  constructor() {
    super();
  }

  override getPoint(t: number, target = new Vector3()): Vector3 {
    const angle = 2 * Math.PI * 8 * t;
    const ends = Math.min(1, 12 * t, 12 * (1 - t)); // begins and ends on the axis
    return target.set(ends * Math.cos(angle), ends * Math.sin(angle), coilLength * t);
  }
}

function tubeGeometry(inner: number, segments: number): BufferGeometry {
  const outside = new CylinderGeometry(1, 1, 1, segments, 1, true).rotateX(Math.PI / 2);
  const positions: number[] = [];
  const ring = (k: number): [number, number] => {
    const angle = (2 * Math.PI * k) / segments;
    return [Math.cos(angle), Math.sin(angle)];
  };
  for (let k = 0; k < segments; ++k) {
    const [x, y] = ring(k);
    const [u, v] = ring(k + 1);
    const quad = (a: number[], b: number[], c: number[], d: number[]): void => {
      positions.push(...a, ...b, ...c, ...a, ...c, ...d);
    };
    for (const side of [-1, 1]) {
      const z = 0.5 * side;
      const ends = [
        [x, y, z],
        [u, v, z],
        [inner * u, inner * v, z],
        [inner * x, inner * y, z],
      ] as const;
      if (side < 0) quad([...ends[0]], [...ends[3]], [...ends[2]], [...ends[1]]);
      else quad([...ends[0]], [...ends[1]], [...ends[2]], [...ends[3]]);
    }
    quad([inner * x, inner * y, -0.5], [inner * x, inner * y, 0.5], [inner * u, inner * v, 0.5], [inner * u, inner * v, -0.5]);
  }
  const flat = outside.toNonIndexed();
  const mantle = flat.getAttribute("position").array;
  const all = new Float32Array(mantle.length + positions.length);
  all.set(mantle);
  all.set(positions, mantle.length);
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(all, 3));
  return toCreasedNormals(geometry, 0.6);
}

export function meshGeometry(vertices: Float32Array, corners: Uint32Array): BufferGeometry {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(vertices, 3));
  geometry.setIndex(new BufferAttribute(corners, 1));
  return toCreasedNormals(geometry, 0.6);
}

// How round things are: where no graphics processor draws, corners cost more than anything else.
export type Detail = "fine" | "plain" | "coarse";
const segmentsRound: Record<Detail, number> = { fine: 28, plain: 14, coarse: 8 };

export function unitGeometry(name: string, detail: Detail): BufferGeometry {
  const round = segmentsRound[detail];
  if (name === "box") return new BoxGeometry(1, 1, 1);
  if (name === "sphere") return new SphereGeometry(1, round, round / 2);
  if (name === "cone") return new CylinderGeometry(0, 1, 1, round).rotateX(Math.PI / 2);
  if (name === "coil") return new TubeGeometry(new Helix(), detail === "fine" ? 160 : 64, 0.16, detail === "fine" ? 6 : 3).scale(1, 1, 1 / coilLength);
  if (name.startsWith("tube:")) return tubeGeometry(Number(name.slice(5)), round + 6);
  return new CylinderGeometry(1, 1, 1, round).rotateX(Math.PI / 2);
}

// Instances of one geometry. They are numbered in the order in which they are reserved.
export class Batch {
  private readonly colours: Color[] = [];
  readonly owners: number[] = []; // what an instance is, as its maker counts
  mesh: InstancedMesh | null = null;
  readonly halfLength: number; // along z

  constructor(
    private readonly geometry: BufferGeometry,
    private readonly opacity: number,
  ) {
    geometry.computeBoundingBox();
    this.halfLength = geometry.boundingBox?.max.z ?? 0;
  }

  reserve(colour: string, owner: number): number {
    this.colours.push(new Color(colour));
    this.owners.push(owner);
    return this.owners.length - 1;
  }

  build(): InstancedMesh {
    const material = new MeshLambertMaterial({ transparent: this.opacity < 1, opacity: this.opacity, depthWrite: this.opacity >= 1 });
    const mesh = new InstancedMesh(this.geometry, material, this.owners.length);
    mesh.frustumCulled = false;
    this.colours.forEach((colour, k) => mesh.setColorAt(k, colour));
    mesh.renderOrder = this.opacity < 1 ? 1 : 0;
    this.mesh = mesh;
    return mesh;
  }

  set(index: number, matrix: Matrix4): void {
    this.mesh?.setMatrixAt(index, matrix);
  }

  colour(index: number, light: number, mark: string | null): void {
    const own = this.colours[index];
    if (own === undefined || this.mesh === null) return;
    const shown = mark === null ? own.clone().lerp(new Color("#ffffff"), light) : new Color(mark);
    this.mesh.setColorAt(index, shown);
    if (this.mesh.instanceColor !== null) this.mesh.instanceColor.needsUpdate = true;
  }

  changed(): void {
    if (this.mesh === null) return;
    this.mesh.instanceMatrix.needsUpdate = true;
    this.mesh.boundingSphere = null; // for picking
  }

  dispose(): void {
    this.geometry.dispose();
    if (this.mesh !== null) {
      (this.mesh.material as Material).dispose();
      this.mesh.dispose();
    }
  }
}

// The batches of a scene, by geometry and opacity.
export class Batches {
  private readonly batches = new Map<string, Batch>();
  private list: Batch[] = [];

  constructor(readonly detail: Detail) {}

  of(name: string, opacity: number): Batch {
    return this.made(`${name}/${opacity}`, opacity, () => unitGeometry(name, this.detail));
  }

  made(key: string, opacity: number, make: () => BufferGeometry): Batch {
    let batch = this.batches.get(key);
    if (batch === undefined) {
      batch = new Batch(make(), opacity);
      this.batches.set(key, batch);
      this.list = [...this.batches.values()];
    }
    return batch;
  }

  all(): Batch[] {
    return this.list;
  }

  paint(look: (owner: number) => { light: number; mark: string | null }): void {
    for (const batch of this.list)
      batch.owners.forEach((owner, k) => {
        const { light, mark } = look(owner);
        batch.colour(k, light, mark);
      });
  }

  dispose(): void {
    for (const batch of this.list) batch.dispose();
  }
}

const zAxis = new Vector3(0, 0, 1);
const direction = new Vector3();
const middle = new Vector3();
const turn = new Quaternion();
const stretch = new Vector3();

// Of a unit geometry along z, between two points. centred: its origin is its middle, else its beginning.
export function between(from: Vector3, to: Vector3, radius: number, centred: boolean, into: Matrix4): Matrix4 {
  direction.subVectors(to, from);
  const length = Math.max(direction.length(), 1e-9);
  turn.setFromUnitVectors(zAxis, direction.divideScalar(length));
  middle.copy(from);
  if (centred) middle.add(to).multiplyScalar(0.5);
  return into.compose(middle, turn, stretch.set(radius, radius, length));
}
