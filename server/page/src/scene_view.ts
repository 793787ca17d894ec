// The mechanism in three dimensions: what the scene holds, drawn at the instant that is shown.
import {
  AmbientLight,
  Box3,
  BufferAttribute,
  BufferGeometry,
  Color,
  DirectionalLight,
  GridHelper,
  Group,
  HemisphereLight,
  LineBasicMaterial,
  LineSegments,
  Scene as ThreeScene,
  Vector3,
  WebGLRenderer,
} from "three";
import { getMesh } from "./api";
import { Arrows, type ShownForces } from "./arrows";
import { Camera } from "./camera";
import { Connections } from "./connections";
import { byId } from "./elements";
import { Batches } from "./geometry";
import { Marks, type Overlays } from "./marks";
import type { Motion, Scene } from "./model";
import { ownerOf, type Part } from "./parts";
import { Picking } from "./picking";
import { Posture, vector } from "./posture";
import { Solids } from "./solids";

export interface Shown extends Overlays, ShownForces {
  grid: boolean;
}

const followEvery = 250; // [ms]
const mostReach = 4; // of the size at the start: what is seen of the places that bodies have been to
const manySolids = 1500; // beyond, shapes are coarser
const manyInSoftware = 100; // likewise, where no graphics processor draws

// What is made anew for each scene.
interface Content {
  scene: Scene;
  posture: Posture;
  batches: Batches;
  solids: Solids;
  connections: Connections;
  marks: Marks;
  arrows: Arrows;
}

export class SceneView {
  readonly shown: Shown = { grid: true, frames: false, axes: false, reactions: false, forces: false, trace: false, masses: true };
  readonly software: boolean;
  readonly camera: Camera;
  readonly picking: Picking;
  framesDrawn = 0;
  motion: Motion | null = null;

  private readonly renderer: WebGLRenderer | null; // null: the browser cannot draw in three dimensions
  private readonly world = new ThreeScene();
  private readonly group = new Group();
  private content: Content | null = null;
  private grid: GridHelper | null = null;
  private gridColour = "#d8dde3";
  private ghost: LineSegments | null = null;
  private ghostPosture: Posture | null = null;
  private selected: Part | null = null;
  private looksFirst: (() => Vector3) | null = null; // at the first poses of a scene
  private dirty = true;
  private reach = new Box3(); // where ends of bodies have been
  private travels = false; // far from where it began
  private followDue = 0;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const probe = document.createElement("canvas").getContext("webgl2");
    const info = probe?.getExtension("WEBGL_debug_renderer_info");
    const name: unknown = probe !== null && info ? probe?.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
    this.software = /swiftshader|llvmpipe|software/i.test(String(name));
    probe?.getExtension("WEBGL_lose_context")?.loseContext();
    // opaque: what lies behind it need not be mixed in
    const context = probe === null ? null : canvas.getContext("webgl2", { alpha: false, antialias: !this.software });
    this.renderer = context === null ? null : new WebGLRenderer({ canvas, context });
    this.renderer?.setPixelRatio(this.software ? 1 : Math.min(devicePixelRatio, 2));
    this.camera = new Camera(canvas);
    this.camera.onChange = () => (this.dirty = true);
    this.picking = new Picking(canvas, this.camera, () => this.content);
    const key = new DirectionalLight("#ffffff", 1.7);
    key.position.set(-1, -2, 3);
    this.world.add(new HemisphereLight("#ffffff", "#8a8f98", 1.5), new AmbientLight("#ffffff", 0.35), key, this.group);
    this.world.up.set(0, 0, 1);
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement ?? canvas);
    this.resize();
    requestAnimationFrame(() => this.tick());
  }

  setColours(background: string, grid: string): void {
    this.world.background = new Color(background);
    this.gridColour = grid;
    this.buildGrid();
    this.dirty = true;
  }

  get canDraw(): boolean {
    return this.renderer !== null;
  }

  // look: from where at first; null: the camera stays.
  async show(scene: Scene, look: (() => Vector3) | null): Promise<void> {
    const meshes = await Promise.all(Array.from({ length: scene.meshes }, (_, k) => getMesh(k).catch(() => null)));
    this.clear();
    const isMany = scene.solids.length > (this.software ? manyInSoftware : manySolids);
    const batches = new Batches(isMany ? "coarse" : this.software ? "plain" : "fine");
    this.content = {
      scene,
      posture: new Posture(scene.bodies.length),
      batches,
      solids: new Solids(scene, batches, meshes),
      connections: new Connections(scene, batches),
      marks: new Marks(scene),
      arrows: new Arrows(scene),
    };
    for (const batch of batches.all()) this.group.add(batch.build());
    this.group.add(this.content.marks.group, this.content.arrows.group);
    this.buildGrid();
    this.looksFirst = look;
    if (look !== null) {
      this.reach.makeEmpty();
      this.travels = false;
    }
    if (this.motion !== null) this.place(this.motion);
    this.paint();
    this.dirty = true;
  }

  // Another run of the same mechanism, as lines.
  setGhost(poses: Float32Array | null): void {
    const content = this.content;
    if (poses === null || content === null) {
      if (this.ghost !== null) this.ghost.visible = false;
      return;
    }
    this.ghostPosture ??= new Posture(content.scene.bodies.length);
    if (!this.ghostPosture.set(poses)) return;
    const positions: number[] = [];
    const at = new Vector3();
    for (const joint of content.scene.joints)
      for (const [body, point] of [
        [joint.first, joint.point],
        [joint.second, joint.secondPoint],
      ] as const)
        if (body >= 0) positions.push(...this.ghostPosture.worldOf({ body, point }, at).toArray(), ...this.ghostPosture.positionOf(body));
    if (this.ghost === null) {
      this.ghost = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ color: "#c2410c" }));
      this.ghost.frustumCulled = false;
      this.ghost.geometry.setAttribute("position", new BufferAttribute(new Float32Array(positions.length), 3));
      this.group.add(this.ghost);
    }
    const attribute = this.ghost.geometry.getAttribute("position") as BufferAttribute;
    attribute.set(positions);
    attribute.needsUpdate = true;
    this.ghost.visible = true;
    this.dirty = true;
  }

  place(motion: Motion): void {
    this.motion = motion;
    const content = this.content;
    if (content === null || !content.posture.set(motion.poses)) return;
    content.solids.place(content.posture);
    content.connections.place(content.posture);
    for (const batch of content.batches.all()) batch.changed();
    content.marks.place(content.posture, motion, this.shown);
    const forces = content.arrows.place(content.posture, motion, this.shown);
    if (byId("scale").dataset["forces"] !== forces) byId("scale").dataset["forces"] = forces;
    if (this.looksFirst !== null) this.lookFrom(this.looksFirst());
    this.looksFirst = null;
    this.follow(performance.now());
    this.dirty = true;
  }

  private seen(content: Content): Vector3[] {
    const masses = content.scene.bodies.map((_, i) => new Vector3(...content.posture.positionOf(i)));
    return [...content.solids.ends(content.posture, this.travels), ...masses];
  }

  // What leaves the view is followed, until somebody turns the camera.
  private follow(now: number): void {
    const content = this.content;
    if (content === null || now < this.followDue) return;
    this.followDue = now + followEvery;
    const ends = this.seen(content);
    for (const end of ends) this.reach.expandByPoint(end);
    // what travels is gone after, with some room around it
    if (this.reach.getSize(new Vector3()).length() > mostReach * content.scene.size) {
      this.travels = true;
      this.reach.setFromPoints(this.seen(content)).expandByScalar(0.5 * content.scene.size);
    }
    if (!this.camera.isMoved && !this.camera.sees(ends)) this.lookFrom(this.camera.direction);
  }

  positionsOf(body: number): number[] {
    return this.content?.posture.positionOf(body) ?? [];
  }

  // point: of a body, whose path is drawn; path: all of it, where it is known.
  select(part: Part | null, point: Vector3 | null, path: number[] | null): void {
    this.selected = part;
    if (this.content !== null) {
      const { marks } = this.content;
      marks.traced = part?.kind === "body" ? { body: part.index, point: (point ?? new Vector3()).toArray() } : null;
      marks.wholePath = path;
      marks.forgetTrace();
    }
    this.paint();
    if (this.motion !== null) this.place(this.motion);
  }

  // Parts that are marked, as findings are about them.
  get found(): Part[] {
    return this.content?.marks.found ?? [];
  }

  // A spring from a point of a body to where it is pulled; null: none.
  pull(body: number, point: Vector3, target: Vector3 | null): void {
    if (this.content === null) return;
    this.content.marks.pull = target === null ? null : [{ body, point: point.toArray() }, target];
    if (this.motion !== null) this.place(this.motion);
  }

  // Parts that findings are about; body or joint of a fault, -1: none.
  mark(found: Part[], body: number, joint: number): void {
    if (this.content === null) return;
    this.content.marks.found = found;
    this.content.marks.faulty = { body, joint };
    this.paint();
    if (this.motion !== null) this.place(this.motion);
  }

  setShown(name: keyof Shown, yes: boolean): void {
    this.shown[name] = yes;
    if (name === "trace") this.content?.marks.forgetTrace();
    if (this.motion !== null) this.place(this.motion);
    if (this.grid !== null) this.grid.visible = this.shown.grid;
    this.dirty = true;
  }

  lookFrom(toward: Vector3): void {
    const content = this.content;
    if (content === null) return;
    const { min, max } = this.reach;
    const corners = this.reach.isEmpty() ? [] : [min.x, max.x].flatMap((x) => [min.y, max.y].flatMap((y) => [min.z, max.z].map((z) => new Vector3(x, y, z))));
    this.camera.lookFrom(toward, [...this.seen(content), ...corners], content.scene);
  }

  private buildGrid(): void {
    if (this.grid !== null) this.group.remove(this.grid);
    const scene = this.content?.scene;
    if (scene === undefined) return;
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
    this.group.add(grid);
    byId("scale").textContent = `grid ${Number(cell.toPrecision(3))} m`;
  }

  private clear(): void {
    this.content?.batches.dispose();
    this.content = null;
    this.group.clear();
    this.grid = this.ghost = this.ghostPosture = null;
    this.selected = null;
  }

  // What is selected is lighter; what is at fault is red.
  private paint(): void {
    const content = this.content;
    if (content === null) return;
    const chosen = this.selected === null ? -9 : ownerOf[this.selected.kind](this.selected.index);
    const { body, joint } = content.marks.faulty;
    content.batches.paint((owner) => ({
      light: owner === chosen ? 0.35 : 0,
      mark: (owner >= 0 && owner === body) || (joint >= 0 && owner === ownerOf.joint(joint)) ? "#d0341f" : null,
    }));
    this.dirty = true;
  }

  private resize(): void {
    const box = (this.canvas.parentElement ?? this.canvas).getBoundingClientRect();
    const width = Math.max(box.width, 1);
    const height = Math.max(box.height, 1);
    this.renderer?.setSize(width, height, false);
    this.camera.resize(width / height);
    this.dirty = true;
  }

  private tick(): void {
    requestAnimationFrame(() => this.tick());
    if (!this.dirty || this.renderer === null) return;
    this.dirty = false;
    this.renderer.render(this.world, this.camera.now);
    ++this.framesDrawn;
  }
}
