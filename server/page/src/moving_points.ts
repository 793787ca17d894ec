// Points and lines whose coordinates are new at each instant, in buffers that stay.
import { BufferAttribute, BufferGeometry, DynamicDrawUsage, Line, LineSegments, Points } from "three";

export class MovingPoints {
  private room = 0; // vertices
  private count = 0;
  private positions = new Float32Array(0);
  private colours = new Float32Array(0);

  constructor(
    readonly object: Points | LineSegments | Line,
    private readonly coloured = false,
  ) {
    object.frustumCulled = false;
    object.visible = false;
  }

  begin(): void {
    this.count = 0;
  }

  add(x: number, y: number, z: number, colour?: readonly [number, number, number]): void {
    if (this.count === this.room) this.grow();
    this.positions.set([x, y, z], 3 * this.count);
    if (this.coloured && colour !== undefined) this.colours.set(colour, 3 * this.count);
    ++this.count;
  }

  end(): void {
    const geometry = this.object.geometry as BufferGeometry;
    this.object.visible = this.count > 0;
    geometry.setDrawRange(0, this.count);
    for (const name of this.coloured ? ["position", "color"] : ["position"]) {
      const attribute = geometry.getAttribute(name) as BufferAttribute | undefined;
      if (attribute !== undefined) attribute.needsUpdate = true;
    }
  }

  private grow(): void {
    this.room = Math.max(64, 2 * this.room);
    const larger = (old: Float32Array): Float32Array<ArrayBuffer> => {
      const made = new Float32Array(3 * this.room);
      made.set(old);
      return made;
    };
    this.positions = larger(this.positions);
    this.colours = this.coloured ? larger(this.colours) : this.colours;
    this.object.geometry.dispose();
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(this.positions, 3).setUsage(DynamicDrawUsage));
    if (this.coloured) geometry.setAttribute("color", new BufferAttribute(this.colours, 3).setUsage(DynamicDrawUsage));
    this.object.geometry = geometry;
  }
}
