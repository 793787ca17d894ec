// The mechanism in three dimensions.
import {
  AmbientLight,
  BufferAttribute,
  BufferGeometry,
  CanvasTexture,
  Color,
  DirectionalLight,
  GridHelper,
  Group,
  HemisphereLight,
  Line as ThreeLine,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Object3D,
  OrthographicCamera,
  PerspectiveCamera,
  Points,
  PointsMaterial,
  Quaternion,
  Raycaster,
  Scene as ThreeScene,
  Vector2,
  Vector3,
  WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { getMesh } from "./api";
import { Batch, between, meshGeometry, unitGeometry } from "./geometry";
import type { Motion, Point, Scene, Solid } from "./model";

export type Part = { kind: "body" | "joint" | "line"; index: number };

export interface Shown {
  grid: boolean;
  frames: boolean;
  axes: boolean;
  reactions: boolean;
  trace: boolean;
  masses: boolean;
}

interface Instance {
  batch: Batch;
  index: number;
  body: number;
  local: Matrix4;
}

interface LineInstance {
  batch: Batch;
  index: number;
  from: Point;
  to: Point;
  radius: number;
  centred: boolean;
  part: number; // of the length from `from`, where it ends
}

const manySolids = 1500; // beyond, shapes are coarser
const traceLength = 2000;

function vector(v: readonly number[]): Vector3 {
  return new Vector3(v[0] ?? 0, v[1] ?? 0, v[2] ?? 0);
}

function quaternion(p: readonly number[]): Quaternion {
  return new Quaternion(p[1] ?? 0, p[2] ?? 0, p[3] ?? 0, p[0] ?? 1);
}

// A disc in four quarters, the mark of a mass centre; or a warning.
function markTexture(kind: "mass" | "warning"): CanvasTexture {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext("2d");
  if (pen !== null && kind === "mass") {
    for (let k = 0; k < 4; ++k) {
      pen.beginPath();
      pen.moveTo(32, 32);
      pen.arc(32, 32, 28, (k * Math.PI) / 2, ((k + 1) * Math.PI) / 2);
      pen.fillStyle = k % 2 === 0 ? "#fff" : "#1d2530";
      pen.fill();
    }
    pen.beginPath();
    pen.arc(32, 32, 28, 0, 2 * Math.PI);
    pen.lineWidth = 5;
    pen.strokeStyle = "#1d2530";
    pen.stroke();
  } else if (pen !== null) {
    pen.beginPath();
    pen.arc(32, 32, 26, 0, 2 * Math.PI);
    pen.lineWidth = 8;
    pen.strokeStyle = "#d0341f";
    pen.stroke();
    pen.fillStyle = "#d0341f";
    pen.font = "bold 38px sans-serif";
    pen.textAlign = "center";
    pen.fillText("!", 32, 46);
  }
  return new CanvasTexture(canvas);
}

export class SceneView {
  readonly shown: Shown = { grid: true, frames: false, axes: false, reactions: false, trace: false, masses: true };
  readonly software: boolean;
  framesDrawn = 0;
  framesPerSecond = 0;
  motion: Motion | null = null;
  onPick: (part: Part | null) => void = () => undefined;
  onHover: (part: Part | null, x: number, y: number) => void = () => undefined;
  onDrag: ((body: number, point: Vector3, target: Vector3 | null) => void) | null = null;

  private readonly renderer: WebGLRenderer;
  private readonly world = new ThreeScene();
  private readonly perspective = new PerspectiveCamera(38, 1, 0.01, 1000);
  private readonly parallel = new OrthographicCamera(-1, 1, 1, -1, -1000, 1000);
  private camera: PerspectiveCamera | OrthographicCamera = this.perspective;
  private controls: OrbitControls;
  private content = new Group();
  private scene: Scene | null = null;
  private instances: Instance[] = [];
  private lines: LineInstance[] = [];
  private batches = new Map<string, Batch>();
  private bodyMatrices: Matrix4[] = [];
  private grid: GridHelper | null = null;
  private frames: LineSegments | null = null;
  private axes: LineSegments | null = null;
  private reactions: LineSegments | null = null;
  private masses: Points | null = null;
  private marks: Points | null = null;
  private trace: ThreeLine | null = null;
  private ghost: Group | null = null;
  private tracePoints: number[] = [];
  private selected: Part | null = null;
  private marked: number[] = []; // joints with a finding
  private faulty = { body: -1, joint: -1 };
  private looksFirst = false; // at the first poses of a scene
  private parallelHeight = 1;
  private dirty = true;
  private ticks: number[] = [];
  private dragging: { body: number; local: Vector3; depth: number } | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const probe = document.createElement("canvas").getContext("webgl2");
    const info = probe?.getExtension("WEBGL_debug_renderer_info");
    const name: unknown = probe !== null && info ? probe?.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
    this.software = /swiftshader|llvmpipe|software/i.test(String(name));
    probe?.getExtension("WEBGL_lose_context")?.loseContext();
    this.renderer = new WebGLRenderer({ canvas, antialias: !this.software, preserveDrawingBuffer: true });
    this.renderer.setPixelRatio(this.software ? 1 : Math.min(devicePixelRatio, 2));
    this.controls = this.makeControls(this.perspective);
    const key = new DirectionalLight("#ffffff", 1.7);
    key.position.set(-1, -2, 3);
    this.world.add(new HemisphereLight("#ffffff", "#8a8f98", 1.5), new AmbientLight("#ffffff", 0.35), key, this.content);
    this.world.up.set(0, 0, 1);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement ?? canvas);
    this.resize();
    requestAnimationFrame((now) => this.tick(now));
  }

  setColours(background: string, grid: string): void {
    this.world.background = new Color(background);
    this.gridColour = grid;
    this.buildGrid();
    this.dirty = true;
  }
  private gridColour = "#d8dde3";

  async show(scene: Scene, keepsCamera: boolean): Promise<void> {
    this.clear();
    this.scene = scene;
    this.bodyMatrices = scene.bodies.map(() => new Matrix4());
    const meshes = await Promise.all(Array.from({ length: scene.meshes }, (_, k) => getMesh(k).catch(() => null)));
    const detail = scene.solids.length > manySolids || (this.software && scene.solids.length > 400) ? 0 : 1;
    scene.solids.forEach((solid) => this.addSolid(solid, scene, detail, meshes));
    scene.lines.forEach((line, k) => this.addLine(line.kind, line.points, k, scene, detail));
    for (const tyre of scene.tyres) this.batch("cylinder", 1, detail).reserve("#2a2d33", 3e6 + scene.tyres.indexOf(tyre));
    for (const batch of this.batches.values()) this.content.add(batch.build());
    this.buildGrid();
    this.buildMarks(scene);
    this.tracePoints = [];
    this.looksFirst = !keepsCamera;
    if (this.motion !== null) this.place(this.motion);
    this.paint();
    this.dirty = true;
  }

  // Another run of the same mechanism, seen through.
  setGhost(poses: Float32Array | null): void {
    if (this.ghost !== null) this.content.remove(this.ghost);
    this.ghost = null;
    if (poses === null || this.scene === null) return;
    const positions: number[] = [];
    const matrices = this.matricesOf(poses);
    for (const joint of this.scene.joints) {
      for (const [body, point] of [
        [joint.first, joint.point],
        [joint.second, joint.secondPoint],
      ] as const) {
        if (body < 0) continue;
        const m = matrices[body];
        if (m === undefined) continue;
        const centre = new Vector3().setFromMatrixPosition(m);
        positions.push(...vector(point).applyMatrix4(m).toArray(), ...centre.toArray());
      }
    }
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(positions), 3));
    this.ghost = new Group();
    this.ghost.add(new LineSegments(geometry, new LineBasicMaterial({ color: "#c2410c" })));
    this.content.add(this.ghost);
    this.dirty = true;
  }

  place(motion: Motion): void {
    this.motion = motion;
    const scene = this.scene;
    if (scene === null || motion.poses.length !== 7 * scene.bodies.length) return;
    this.bodyMatrices = this.matricesOf(motion.poses);
    const m = new Matrix4();
    for (const instance of this.instances) {
      const body = this.bodyMatrices[instance.body];
      instance.batch.set(instance.index, body === undefined ? instance.local : m.multiplyMatrices(body, instance.local));
    }
    const from = new Vector3();
    const to = new Vector3();
    for (const line of this.lines) {
      this.worldOf(line.from, from);
      this.worldOf(line.to, to);
      if (line.part < 1) to.lerpVectors(from, to, line.part);
      line.batch.set(line.index, between(from, to, line.radius, line.centred, m));
    }
    this.placePatches(scene);
    for (const batch of this.batches.values()) batch.changed();
    this.placeOverlays(scene, motion);
    if (this.looksFirst) this.lookFrom(this.initialDirection(scene));
    this.looksFirst = false;
    this.dirty = true;
  }

  positionsOf(body: number): number[] {
    const m = this.bodyMatrices[body];
    return m === undefined ? [] : new Vector3().setFromMatrixPosition(m).toArray();
  }

  select(part: Part | null): void {
    this.selected = part;
    this.tracePoints = [];
    this.paint();
  }

  mark(joints: number[], failedBody: number, failedJoint: number): void {
    this.marked = joints;
    this.faulty = { body: failedBody, joint: failedJoint };
    this.paint();
    if (this.motion !== null) this.place(this.motion);
    this.dirty = true;
  }

  setShown(name: keyof Shown, yes: boolean): void {
    this.shown[name] = yes;
    if (name === "trace") this.tracePoints = [];
    if (this.motion !== null) this.place(this.motion);
    if (this.grid !== null) this.grid.visible = this.shown.grid;
    this.dirty = true;
  }

  lookFrom(toward: Vector3): void {
    const scene = this.scene;
    if (scene === null) return;
    const up = vector(scene.up);
    if (Math.abs(up.dot(toward)) > 0.999) up.copy(Math.abs(toward.y) < 0.9 ? new Vector3(0, 1, 0) : new Vector3(1, 0, 0));
    const { centre, distance, height } = this.fit(toward, up);
    this.parallelHeight = height;
    for (const camera of [this.perspective, this.parallel]) {
      camera.up.copy(up);
      camera.position.copy(centre).addScaledVector(toward, distance);
    }
    this.perspective.near = 0.005 * scene.size;
    this.perspective.far = 60 * scene.size;
    this.parallel.zoom = 1;
    this.controls.dispose();
    this.controls = this.makeControls(this.camera);
    this.controls.target.copy(centre);
    this.controls.update();
    this.resize();
  }

  // Where the camera sees all that is drawn, and no more.
  private fit(toward: Vector3, up: Vector3): { centre: Vector3; distance: number; height: number } {
    const right = new Vector3().crossVectors(up, toward).normalize();
    const above = new Vector3().crossVectors(toward, right);
    const points = this.instances.flatMap((instance) => {
      const placed = instance.local.clone();
      const body = this.bodyMatrices[instance.body];
      if (body !== undefined) placed.premultiply(body);
      const half = instance.batch.halfLength;
      return [-half, half].map((z) => new Vector3(0, 0, z).applyMatrix4(placed));
    });
    if (points.length === 0) points.push(vector(this.scene?.centre ?? [0, 0, 0]));
    const range = (axis: Vector3): [number, number] => {
      const all = points.map((p) => p.dot(axis));
      return [Math.min(...all), Math.max(...all)];
    };
    const margin = 4 * (this.scene?.thickness ?? 0);
    const [left, rightmost] = range(right);
    const [low, high] = range(above);
    const [far, near] = range(toward);
    const centre = new Vector3()
      .addScaledVector(right, 0.5 * (left + rightmost))
      .addScaledVector(above, 0.5 * (low + high))
      .addScaledVector(toward, 0.5 * (far + near));
    const aspect = this.perspective.aspect;
    const height = Math.max(high - low, (rightmost - left) / aspect) + 2 * margin;
    const distance = (0.58 * height) / Math.tan((0.5 * this.perspective.fov * Math.PI) / 180) + 0.5 * (near - far);
    return { centre, distance, height };
  }

  setParallel(yes: boolean): void {
    const from = this.camera;
    this.camera = yes ? this.parallel : this.perspective;
    this.camera.position.copy(from.position);
    this.camera.up.copy(from.up);
    const target = this.controls.target.clone();
    this.controls.dispose();
    this.controls = this.makeControls(this.camera);
    this.controls.target.copy(target);
    this.controls.update();
    this.resize();
  }

  isParallel(): boolean {
    return this.camera === this.parallel;
  }

  initialDirection(scene: Scene): Vector3 {
    const normal = vector(scene.normal);
    const up = vector(scene.up);
    if (normal.lengthSq() > 0.5) return normal.addScaledVector(up, 0.12).normalize();
    const ahead = Math.abs(up.x) < 0.7 ? new Vector3(1, 0, 0) : new Vector3(0, 1, 0);
    const front = ahead.addScaledVector(up, -up.dot(ahead)).normalize();
    const right = front.clone().cross(up);
    return front.addScaledVector(right, 1.35).addScaledVector(up, 0.8).normalize();
  }

  // ---- making ----

  private batch(name: string, opacity: number, detail: number): Batch {
    const key = `${name}/${opacity}`;
    let batch = this.batches.get(key);
    if (batch === undefined) {
      batch = new Batch(unitGeometry(name, detail), opacity);
      this.batches.set(key, batch);
    }
    return batch;
  }

  private addInstance(batch: Batch, solid: Solid, owner: number, at: Vector3, scale: Vector3): void {
    const index = batch.reserve(solid.colour.slice(0, 7), owner);
    const turn = quaternion(solid.orientation);
    const local = new Matrix4().compose(vector(solid.position).add(at.applyQuaternion(turn)), turn, scale);
    this.instances.push({ batch, index, body: solid.body, local });
  }

  private addSolid(solid: Solid, scene: Scene, detail: number, meshes: ({ vertices: Float32Array; corners: Uint32Array } | null)[]): void {
    const alpha = solid.colour.length > 7 ? Number.parseInt(solid.colour.slice(7), 16) / 255 : 1;
    const opacity = alpha < 0.999 ? Math.round(10 * alpha) / 10 : 1;
    const owner = solid.joint >= 0 ? 1e6 + solid.joint : solid.body;
    const [a, b, c] = solid.size;
    const add = (name: string, at: Vector3, scale: Vector3): void =>
      this.addInstance(this.batch(name, opacity, detail), solid, owner, at, scale);
    const origin = (): Vector3 => new Vector3();
    if (solid.kind === "box") add("box", origin(), vector(solid.size));
    else if (solid.kind === "sphere") add("sphere", origin(), new Vector3(a, a, a));
    else if (solid.kind === "cylinder") add("cylinder", origin(), new Vector3(a, a, c));
    else if (solid.kind === "tube") add(`tube:${(b / a).toFixed(3)}`, origin(), new Vector3(a, a, c));
    else if (solid.kind === "capsule") {
      add("cylinder", origin(), new Vector3(a, a, c));
      if (detail > 0 || solid.role === "shape")
        for (const side of [-0.5, 0.5]) add("sphere", new Vector3(0, 0, side * c), new Vector3(a, a, a));
    } else {
      const mesh = meshes[solid.mesh];
      if (mesh === null || mesh === undefined) return;
      const key = `mesh:${solid.mesh}/${opacity}`;
      if (!this.batches.has(key)) this.batches.set(key, new Batch(meshGeometry(mesh.vertices, mesh.corners), opacity));
      const batch = this.batches.get(key);
      if (batch !== undefined) this.addInstance(batch, solid, owner, origin(), new Vector3(a, a, a));
    }
    void scene;
  }

  private addLine(kind: string, points: Point[], index: number, scene: Scene, detail: number): void {
    const r = scene.thickness;
    const add = (name: string, colour: string, from: Point, to: Point, radius: number, centred: boolean, part = 1): void => {
      const batch = this.batch(name, 1, detail);
      this.lines.push({ batch, index: batch.reserve(colour, 2e6 + index), from, to, radius, centred, part });
    };
    for (let k = 0; k + 1 < points.length; ++k) {
      const from = points[k];
      const to = points[k + 1];
      if (from === undefined || to === undefined) continue;
      if (kind === "spring") add("coil", "#3f8f68", from, to, 2 * r, false);
      else if (kind === "rod") add("cylinder", "#6b7788", from, to, 0.7 * r, true);
      else if (kind === "rope") add("cylinder", "#8a6d3b", from, to, 0.3 * r, true);
      else {
        add("cylinder", "#6b7788", from, to, 0.4 * r, true);
        add("cylinder", "#4a5564", from, to, 1.1 * r, true, 0.55);
      }
    }
  }

  private buildGrid(): void {
    if (this.grid !== null) this.content.remove(this.grid);
    const scene = this.scene;
    if (scene === null) return;
    const decade = 10 ** Math.floor(Math.log10(scene.size / 5));
    const cell = [5, 2, 1].map((k) => k * decade).find((length) => length <= scene.size / 5) ?? decade;
    const cells = 2 * Math.ceil((1.4 * scene.size) / cell / 2) * 2;
    const grid = new GridHelper(cells * cell, cells, this.gridColour, this.gridColour);
    const tyre = scene.tyres[0];
    const up = tyre === undefined ? vector(scene.up) : vector(tyre.roadNormal);
    const ground = tyre === undefined ? vector(scene.centre).addScaledVector(up, -0.52 * scene.size) : vector(tyre.roadPoint);
    const centre = vector(scene.centre);
    centre.addScaledVector(up, -up.dot(centre.clone().sub(ground)));
    grid.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), up);
    grid.position.copy(centre);
    grid.visible = this.shown.grid;
    this.grid = grid;
    this.content.add(grid);
    const scale = document.getElementById("scale");
    if (scale !== null) scale.textContent = `grid ${Number(cell.toPrecision(3))} m`;
  }

  private buildMarks(scene: Scene): void {
    const points = (kind: "mass" | "warning", size: number): Points => {
      const material = new PointsMaterial({ map: markTexture(kind), size, sizeAttenuation: false, transparent: true, depthTest: false });
      const made = new Points(new BufferGeometry(), material);
      made.renderOrder = 3;
      made.frustumCulled = false;
      return made;
    };
    const segments = (coloured: boolean, colour: string): LineSegments => {
      const made = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ color: colour, vertexColors: coloured, depthTest: false }));
      made.renderOrder = 2;
      made.frustumCulled = false;
      return made;
    };
    this.masses = points("mass", scene.bodies.length > 200 ? 5 : 11);
    this.marks = points("warning", 26);
    this.frames = segments(true, "#ffffff");
    this.axes = segments(false, "#b8860b");
    this.reactions = segments(false, "#c2410c");
    this.trace = new ThreeLine(new BufferGeometry(), new LineBasicMaterial({ color: "#c2410c" }));
    this.trace.frustumCulled = false;
    this.content.add(this.masses, this.marks, this.frames, this.axes, this.reactions, this.trace);
  }

  private clear(): void {
    for (const batch of this.batches.values()) batch.dispose();
    this.batches = new Map();
    this.instances = [];
    this.lines = [];
    this.content.clear();
    this.grid = null;
    this.ghost = null;
    this.selected = null;
  }

  // ---- placing ----

  private matricesOf(poses: Float32Array): Matrix4[] {
    const one = new Vector3(1, 1, 1);
    return Array.from({ length: poses.length / 7 }, (_, i) => {
      const p = poses.subarray(7 * i, 7 * i + 7);
      return new Matrix4().compose(vector([...p.subarray(0, 3)]), quaternion([...p.subarray(3)]), one);
    });
  }

  private worldOf(point: Point, into: Vector3): Vector3 {
    into.set(point.point[0], point.point[1], point.point[2]);
    const body = this.bodyMatrices[point.body];
    return body === undefined ? into : into.applyMatrix4(body);
  }

  private placePatches(scene: Scene): void {
    const m = new Matrix4();
    const batch = this.batches.get("cylinder/1");
    if (batch === undefined) return;
    const first = batch.owners.length - scene.tyres.length;
    scene.tyres.forEach((tyre, k) => {
      const centre = this.worldOf({ body: tyre.body, point: tyre.centre }, new Vector3());
      const body = this.bodyMatrices[tyre.body];
      const axis = vector(tyre.axis);
      if (body !== undefined) axis.transformDirection(body);
      const n = vector(tyre.roadNormal);
      const down = n.clone().addScaledVector(axis, -n.dot(axis)).normalize().multiplyScalar(-tyre.radius);
      const lowest = centre.add(down);
      const height = n.dot(lowest.clone().sub(vector(tyre.roadPoint)));
      lowest.addScaledVector(n, -height);
      const radius = height < 0 ? Math.min(0.4 * tyre.radius, Math.sqrt(-2 * height * tyre.radius)) : 0;
      batch.set(first + k, between(lowest.clone().addScaledVector(n, -1e-3 * tyre.radius), lowest.addScaledVector(n, 4e-3 * tyre.radius), radius, true, m));
    });
  }

  private static fill(object: Points | LineSegments | ThreeLine | null, positions: number[], colours?: number[]): void {
    if (object === null) return;
    object.visible = positions.length > 0;
    object.geometry.dispose();
    object.geometry = new BufferGeometry();
    object.geometry.setAttribute("position", new BufferAttribute(new Float32Array(positions), 3));
    if (colours !== undefined) object.geometry.setAttribute("color", new BufferAttribute(new Float32Array(colours), 3));
  }

  private placeOverlays(scene: Scene, motion: Motion): void {
    const masses: number[] = [];
    const frames: number[] = [];
    const colours: number[] = [];
    const length = 9 * scene.thickness;
    scene.bodies.forEach((body, i) => {
      const m = this.bodyMatrices[i];
      if (m === undefined) return;
      const at = new Vector3().setFromMatrixPosition(m);
      if (this.shown.masses && body.sketched) masses.push(at.x, at.y, at.z);
      if (!this.shown.frames) return;
      for (let k = 0; k < 3; ++k) {
        const tip = new Vector3().setComponent(k, length).applyMatrix4(m);
        frames.push(at.x, at.y, at.z, tip.x, tip.y, tip.z);
        for (let end = 0; end < 2; ++end) colours.push(k === 0 ? 0.85 : 0.1, k === 1 ? 0.6 : 0.15, k === 2 ? 0.9 : 0.1);
      }
    });
    SceneView.fill(this.masses, masses);
    SceneView.fill(this.frames, frames, colours);
    this.placeJointOverlays(scene, motion, length);
    this.placeTrace();
  }

  private placeJointOverlays(scene: Scene, motion: Motion, length: number): void {
    const axes: number[] = [];
    const marks: number[] = [];
    const arrows: number[] = [];
    let largest = 0;
    for (let j = 0; j + 2 < motion.reactions.length; j += 3)
      largest = Math.max(largest, Math.hypot(...motion.reactions.subarray(j, j + 3)));
    scene.joints.forEach((joint, j) => {
      const at = this.worldOf({ body: joint.first, point: joint.point }, new Vector3());
      if (this.marked.includes(j) || this.faulty.joint === j) marks.push(at.x, at.y, at.z);
      if (this.shown.axes) {
        const axis = vector(joint.axis);
        const body = this.bodyMatrices[joint.first];
        if (body !== undefined) axis.transformDirection(body);
        axes.push(...at.clone().addScaledVector(axis, -length).toArray(), ...at.clone().addScaledVector(axis, length).toArray());
      }
      if (this.shown.reactions && largest > 0 && motion.reactions.length >= 3 * scene.joints.length) {
        const force = vector([...motion.reactions.subarray(3 * j, 3 * j + 3)]).multiplyScalar((0.22 * scene.size) / largest);
        pushArrow(arrows, at, force);
      }
    });
    SceneView.fill(this.axes, axes);
    SceneView.fill(this.marks, marks);
    SceneView.fill(this.reactions, arrows);
    const scale = document.getElementById("scale");
    if (scale !== null) scale.dataset["reaction"] = this.shown.reactions && largest > 0 ? `longest arrow ${largest.toPrecision(3)} N` : "";
  }

  private placeTrace(): void {
    if (this.shown.trace && this.selected?.kind === "body") {
      this.tracePoints.push(...this.positionsOf(this.selected.index));
      if (this.tracePoints.length > 3 * traceLength) this.tracePoints.splice(0, this.tracePoints.length - 3 * traceLength);
    }
    SceneView.fill(this.trace, this.shown.trace && this.tracePoints.length > 3 ? this.tracePoints : []);
  }

  // What is selected is lighter; what is at fault is red.
  private paint(): void {
    const chosen = this.selected === null ? -9 : { body: 0, joint: 1e6, line: 2e6 }[this.selected.kind] + this.selected.index;
    for (const batch of this.batches.values())
      batch.owners.forEach((owner, k) => {
        const fails = (owner >= 0 && owner === this.faulty.body) || (this.faulty.joint >= 0 && owner === 1e6 + this.faulty.joint);
        batch.colour(k, owner === chosen ? 0.35 : 0, fails ? "#d0341f" : null);
      });
    this.dirty = true;
  }

  // ---- the canvas ----

  private makeControls(camera: PerspectiveCamera | OrthographicCamera): OrbitControls {
    const controls = new OrbitControls(camera, this.canvas);
    controls.enableDamping = false;
    controls.zoomSpeed = 1.6;
    controls.addEventListener("change", () => (this.dirty = true));
    return controls;
  }

  private resize(): void {
    const box = (this.canvas.parentElement ?? this.canvas).getBoundingClientRect();
    const width = Math.max(box.width, 1);
    const height = Math.max(box.height, 1);
    this.renderer.setSize(width, height, false);
    this.perspective.aspect = width / height;
    this.perspective.updateProjectionMatrix();
    const half = 0.56 * this.parallelHeight;
    this.parallel.left = (-half * width) / height;
    this.parallel.right = (half * width) / height;
    this.parallel.top = half;
    this.parallel.bottom = -half;
    this.parallel.near = -50 * half;
    this.parallel.far = 50 * half;
    this.parallel.updateProjectionMatrix();
    this.dirty = true;
  }

  private tick(now: number): void {
    requestAnimationFrame((next) => this.tick(next));
    if (!this.dirty) return;
    this.dirty = false;
    this.renderer.render(this.world, this.camera);
    ++this.framesDrawn;
    this.ticks.push(now);
    while (this.ticks.length > 1 && now - (this.ticks[0] ?? now) > 2000) this.ticks.shift();
    const span = now - (this.ticks[0] ?? now);
    this.framesPerSecond = span > 200 ? (1000 * (this.ticks.length - 1)) / span : 0;
  }

  private rayAt(event: PointerEvent): Raycaster {
    const box = this.canvas.getBoundingClientRect();
    const at = new Vector2((2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height);
    const ray = new Raycaster();
    ray.setFromCamera(at, this.camera);
    return ray;
  }

  private pick(event: PointerEvent): { part: Part; point: Vector3 } | null {
    const hits = this.rayAt(event).intersectObjects(
      [...this.batches.values()].map((batch) => batch.mesh).filter((mesh): mesh is NonNullable<typeof mesh> => mesh !== null) as Object3D[],
      false,
    );
    for (const hit of hits) {
      const batch = [...this.batches.values()].find((candidate) => candidate.mesh === hit.object);
      const owner = batch?.owners[hit.instanceId ?? -1];
      if (owner === undefined || owner < 0 || owner >= 3e6) continue;
      const kind = owner >= 2e6 ? "line" : owner >= 1e6 ? "joint" : "body";
      return { part: { kind, index: owner % 1e6 }, point: hit.point };
    }
    return null;
  }

  private listen(): void {
    let pressed: { x: number; y: number } | null = null;
    let lastHover = 0;
    this.canvas.addEventListener("pointerdown", (event) => {
      pressed = { x: event.clientX, y: event.clientY };
      if (this.onDrag === null || event.button !== 0 || !(event.shiftKey || event.altKey)) return;
      const hit = this.pick(event);
      const body = hit?.part.kind === "body" ? this.bodyMatrices[hit.part.index] : undefined;
      if (hit === null || body === undefined) return;
      this.controls.enabled = false;
      const depth = hit.point.clone().project(this.camera).z;
      this.dragging = { body: hit.part.index, local: hit.point.clone().applyMatrix4(body.clone().invert()), depth };
      this.canvas.setPointerCapture(event.pointerId);
      event.stopImmediatePropagation();
    }, true);
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.dragging !== null) return this.dragTo(event);
      if (event.buttons !== 0 || event.timeStamp - lastHover < 50) return;
      lastHover = event.timeStamp;
      this.onHover(this.pick(event)?.part ?? null, event.offsetX, event.offsetY);
    });
    this.canvas.addEventListener("pointerleave", () => this.onHover(null, 0, 0));
    this.canvas.addEventListener("pointerup", (event) => {
      if (this.dragging !== null) {
        this.onDrag?.(this.dragging.body, this.dragging.local, null);
        this.dragging = null;
        this.controls.enabled = true;
        return;
      }
      if (pressed !== null && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) < 4)
        this.onPick(this.pick(event)?.part ?? null);
    });
  }

  private dragTo(event: PointerEvent): void {
    if (this.dragging === null) return;
    const box = this.canvas.getBoundingClientRect();
    const x = (2 * (event.clientX - box.left)) / box.width - 1;
    const y = 1 - (2 * (event.clientY - box.top)) / box.height;
    const target = new Vector3(x, y, this.dragging.depth).unproject(this.camera);
    this.onDrag?.(this.dragging.body, this.dragging.local, target);
  }
}

// A line with two barbs.
function pushArrow(into: number[], from: Vector3, along: Vector3): void {
  const tip = from.clone().add(along);
  into.push(...from.toArray(), ...tip.toArray());
  const aside = new Vector3().crossVectors(along, Math.abs(along.z) < 0.9 * along.length() ? new Vector3(0, 0, 1) : new Vector3(1, 0, 0));
  aside.setLength(0.06 * along.length());
  for (const side of [-1, 1])
    into.push(...tip.toArray(), ...tip.clone().addScaledVector(along, -0.15).addScaledVector(aside, side).toArray());
}
