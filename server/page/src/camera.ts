// The camera: perspective or parallel, turned and zoomed by the pointer, from where all is seen.
import { OrthographicCamera, PerspectiveCamera, Vector3 } from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import type { Scene } from "./model";
import { vector } from "./posture";

// From where a scene is seen at first.
export function initialDirection(scene: Scene): Vector3 {
  const normal = vector(scene.normal);
  const up = vector(scene.up);
  if (normal.lengthSq() > 0.5) return normal.addScaledVector(up, 0.12).normalize();
  const ahead = Math.abs(up.x) < 0.7 ? new Vector3(1, 0, 0) : new Vector3(0, 1, 0);
  const front = ahead.addScaledVector(up, -up.dot(ahead)).normalize();
  const right = front.clone().cross(up);
  return front.addScaledVector(right, 1.35).addScaledVector(up, 0.8).normalize();
}

export class Camera {
  onChange: () => void = () => undefined;
  isMoved = false; // by hand, since it looked at all
  private readonly perspective = new PerspectiveCamera(38, 1, 0.01, 1000);
  private readonly parallel = new OrthographicCamera(-1, 1, 1, -1, -1000, 1000);
  private controls: OrbitControls;
  private parallelHeight = 1;
  private aspect = 1;
  now: PerspectiveCamera | OrthographicCamera = this.perspective;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.controls = this.makeControls();
  }

  // The pointer turns it; false: it does something else.
  set turns(yes: boolean) {
    this.controls.enabled = yes;
  }

  // toward: from what is looked at to the camera. points: that must be seen.
  lookFrom(toward: Vector3, points: Vector3[], scene: Scene): void {
    const up = vector(scene.up);
    if (Math.abs(up.dot(toward)) > 0.999) up.copy(Math.abs(toward.y) < 0.9 ? new Vector3(0, 1, 0) : new Vector3(1, 0, 0));
    const { centre, distance, height } = this.fit(toward, up, points.length > 0 ? points : [vector(scene.centre)], 4 * scene.thickness);
    this.parallelHeight = height;
    for (const camera of [this.perspective, this.parallel]) {
      camera.up.copy(up);
      camera.position.copy(centre).addScaledVector(toward, distance);
    }
    this.perspective.near = 0.005 * scene.size;
    this.perspective.far = 60 * scene.size;
    this.parallel.zoom = 1;
    this.aim(centre);
    this.isMoved = false;
  }

  // From what is looked at to the camera.
  get direction(): Vector3 {
    return this.now.position.clone().sub(this.controls.target).normalize();
  }

  sees(points: Vector3[]): boolean {
    this.now.updateMatrixWorld();
    return points.every((point) => {
      const { x, y } = point.clone().project(this.now);
      return Math.abs(x) <= 1 && Math.abs(y) <= 1;
    });
  }

  setParallel(yes: boolean): void {
    const from = this.now;
    this.now = yes ? this.parallel : this.perspective;
    this.now.position.copy(from.position);
    this.now.up.copy(from.up);
    this.aim(this.controls.target.clone());
  }

  resize(aspect: number): void {
    this.aspect = aspect;
    this.perspective.aspect = aspect;
    this.perspective.updateProjectionMatrix();
    const half = 0.56 * this.parallelHeight;
    this.parallel.left = -half * aspect;
    this.parallel.right = half * aspect;
    this.parallel.top = half;
    this.parallel.bottom = -half;
    this.parallel.near = -50 * half;
    this.parallel.far = 50 * half;
    this.parallel.updateProjectionMatrix();
    this.onChange();
  }

  private aim(target: Vector3): void {
    this.controls.dispose();
    this.controls = this.makeControls();
    this.controls.target.copy(target);
    this.controls.update();
    this.resize(this.aspect);
  }

  // Where all of the points are seen, and no more.
  private fit(toward: Vector3, up: Vector3, points: Vector3[], margin: number): { centre: Vector3; distance: number; height: number } {
    const right = new Vector3().crossVectors(up, toward).normalize();
    const above = new Vector3().crossVectors(toward, right);
    const range = (axis: Vector3): [number, number] => {
      let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      for (const point of points) [least, most] = [Math.min(least, point.dot(axis)), Math.max(most, point.dot(axis))];
      return [least, most];
    };
    const [left, rightmost] = range(right);
    const [low, high] = range(above);
    const [far, near] = range(toward);
    const centre = new Vector3()
      .addScaledVector(right, 0.5 * (left + rightmost))
      .addScaledVector(above, 0.5 * (low + high))
      .addScaledVector(toward, 0.5 * (far + near));
    const height = Math.max(high - low, (rightmost - left) / this.aspect) + 2 * margin;
    const distance = (0.58 * height) / Math.tan((0.5 * this.perspective.fov * Math.PI) / 180) + 0.5 * (near - far);
    return { centre, distance, height };
  }

  private makeControls(): OrbitControls {
    const controls = new OrbitControls(this.now, this.canvas);
    controls.enableDamping = false;
    controls.zoomSpeed = 1.6;
    controls.addEventListener("change", () => this.onChange());
    controls.addEventListener("start", () => (this.isMoved = true));
    return controls;
  }
}
