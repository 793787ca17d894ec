// The pointer over the scene: names, what is chosen, and bodies that are pulled.
import { type Object3D, Raycaster, Vector2, Vector3 } from "three";
import type { Camera } from "./camera";
import type { Batches } from "./geometry";
import { type Part, partOf } from "./parts";
import type { Posture } from "./posture";

// What the pointer may find.
export interface Pickable {
  batches: Batches;
  posture: Posture;
}

const hoverEvery = 50; // [ms]
const stillClick = 4; // pixels

export class Picking {
  onPick: (part: Part | null, local: Vector3 | null) => void = () => undefined; // local: of a body, where it was hit
  onHover: (part: Part | null, x: number, y: number) => void = () => undefined;
  pulls = false; // without a key, too: for fingers
  onDrag: ((body: number, point: Vector3, target: Vector3 | null) => void) | null = null;
  private dragging: { body: number; local: Vector3; depth: number } | null = null;
  private pressed: { x: number; y: number } | null = null;
  private lastHover = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly camera: Camera,
    private readonly pickable: () => Pickable | null,
  ) {
    canvas.addEventListener("pointerdown", (event) => this.press(event), true);
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerleave", () => this.onHover(null, 0, 0));
    canvas.addEventListener("pointerup", (event) => this.release(event));
  }

  private at(event: PointerEvent): Vector2 {
    const box = this.canvas.getBoundingClientRect();
    return new Vector2((2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height);
  }

  private pick(event: PointerEvent): { part: Part; point: Vector3 } | null {
    const batches = this.pickable()?.batches.all() ?? [];
    const ray = new Raycaster();
    ray.setFromCamera(this.at(event), this.camera.now);
    const meshes = batches.map((batch) => batch.mesh).filter((mesh): mesh is NonNullable<typeof mesh> => mesh !== null) as Object3D[];
    for (const hit of ray.intersectObjects(meshes, false)) {
      const batch = batches.find((candidate) => candidate.mesh === hit.object);
      const part = partOf(batch?.owners[hit.instanceId ?? -1] ?? -1);
      if (part !== null) return { part, point: hit.point };
    }
    return null;
  }

  private press(event: PointerEvent): void {
    this.pressed = { x: event.clientX, y: event.clientY };
    if (this.onDrag === null || event.button !== 0 || !(event.shiftKey || event.altKey || this.pulls)) return;
    const hit = this.pick(event);
    const body = hit?.part.kind === "body" ? this.pickable()?.posture.matrices[hit.part.index] : undefined;
    if (hit === null || body === undefined) return; // beside all bodies the camera turns
    this.camera.turns = false;
    const depth = hit.point.clone().project(this.camera.now).z;
    this.dragging = { body: hit.part.index, local: hit.point.clone().applyMatrix4(body.clone().invert()), depth };
    this.canvas.setPointerCapture(event.pointerId);
    event.stopImmediatePropagation();
  }

  private move(event: PointerEvent): void {
    if (this.dragging !== null) {
      const at = this.at(event);
      const target = new Vector3(at.x, at.y, this.dragging.depth).unproject(this.camera.now);
      this.onDrag?.(this.dragging.body, this.dragging.local, target);
      return;
    }
    if (event.buttons !== 0 || event.timeStamp - this.lastHover < hoverEvery) return;
    this.lastHover = event.timeStamp;
    this.onHover(this.pick(event)?.part ?? null, event.offsetX, event.offsetY);
  }

  private release(event: PointerEvent): void {
    if (this.dragging !== null) {
      this.onDrag?.(this.dragging.body, this.dragging.local, null);
      this.dragging = null;
      this.camera.turns = true;
      return;
    }
    const pressed = this.pressed;
    if (pressed !== null && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) < stillClick) this.choose(event);
  }

  private choose(event: PointerEvent): void {
    const hit = this.pick(event);
    const body = hit?.part.kind === "body" ? this.pickable()?.posture.matrices[hit.part.index] : undefined;
    this.onPick(hit?.part ?? null, hit !== null && body !== undefined ? hit.point.clone().applyMatrix4(body.clone().invert()) : null);
  }
}
