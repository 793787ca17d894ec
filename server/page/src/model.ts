// What the server tells; the counterpart of server/view.
export type Vector = [number, number, number];
export type Turn = [number, number, number, number]; // e0 e1 e2 e3

export interface Solid {
  kind: "box" | "cylinder" | "tube" | "sphere" | "capsule" | "mesh";
  role: "shape" | "link" | "joint" | "support" | "wheel";
  body: number; // -1: the ground
  joint: number; // that it stands for, -1: none
  mesh: number;
  size: Vector; // [m]
  position: Vector; // from the mass centre [m]
  orientation: Turn;
  colour: string; // #rrggbbaa
}

export interface Point {
  body: number;
  point: Vector;
}

export interface Line {
  kind: "spring" | "damper" | "rope" | "rod";
  name: string;
  points: Point[];
}

export interface Body {
  name: string;
  mass: number; // [kg]
  inertia: Vector; // about x, y, z of the body [kg m^2]
  colour: string;
  sketched: boolean;
}

export interface Joint {
  name: string;
  type: string;
  first: number;
  second: number;
  point: Vector; // in the first body [m]
  axis: Vector; // likewise
  secondPoint: Vector; // in the second body [m]
  inLoop: boolean; // a loop goes through it
  redundant: boolean; // some of its constraints repeat what others say
  freedoms: string[];
}

export interface Tyre {
  name: string;
  body: number;
  centre: Vector;
  axis: Vector;
  radius: number;
  roadPoint: Vector;
  roadNormal: Vector;
}

export interface Finding {
  severity: "error" | "warning" | "note";
  joint: number;
  body: number;
  connection: string; // name of a force element, empty: none
  text: string;
}

export interface Column {
  name: string;
  unit: string;
}

export interface Event {
  time: number; // [s]
  text: string;
}

export interface Input extends Column {
  lower: number | null; // of the rig file; null: none, or not known
  upper: number | null;
  mostChange: number | null; // a step
  safe: number;
}

export interface Parameter extends Column {
  value: number; // declared
  minimum: number;
  maximum: number;
  tunable: boolean;
}

export interface Scene {
  kind: "mechanism" | "recording" | "live";
  name: string;
  source: string;
  gravity: Vector;
  up: Vector;
  normal: Vector; // of the plane of motion towards the viewer; zero: none
  centre: Vector;
  size: number;
  thickness: number;
  bodies: Body[];
  joints: Joint[];
  solids: Solid[];
  lines: Line[];
  tyres: Tyre[];
  meshes: number;
  columns: Column[];
  findings: Finding[];
  problems: string[];
  tracks: string[]; // of recordings: their names
  events: Event[][];
  control: boolean;
  inputs: Input[];
  parameters: Parameter[];
  forces: { name: string; body: number }[]; // that act beside the joints' reactions
  period: number; // [s]
}

// Times over quarters of octaves, counted from firstQuarter on.
export interface Distribution {
  name: string;
  count: number;
  p50: number; // [ns]
  p99: number;
  p999: number;
  max: number;
  firstQuarter: number;
  quarters: number[];
}

export interface Status {
  problem?: string; // why what is shown is not what the file says now
  playing?: boolean;
  speed?: number;
  progress?: number; // of the replay, 0..1
  loaded?: number; // tracks
  connected?: boolean;
  loop?: string;
  fault?: string;
  failedBody?: number;
  failedJoint?: number;
  controller?: string;
  inputAge?: number; // [steps]
  hint?: string; // what is odd without being wrong
  counters?: [string, number][];
  distributions?: Distribution[];
  parameters?: Record<string, number>; // values that act now
  controllerAddress?: string;
  observers?: number;
  recordingError?: string;
  clock?: string;
  events?: Event[];
}

// Bits of what is wrong with an instant.
export const mark = { notConverged: 1, nearSingular: 2, faulted: 4, inaccurate: 8 };

// One instant. poses: 7 numbers a body; forces: force and torque on the second body of each joint at its point, then
// point, force and torque of each of Scene.forces, all in the world; or none.
export interface Motion {
  time: number;
  step: number;
  marks: number;
  values: Float64Array;
  poses: Float32Array;
  forces: Float32Array;
}

// A recording's instants: frame k has values[column * frames + k] and poses[(k * bodies + body) * 7 ...].
export interface Track {
  frames: number;
  time: Float64Array;
  step: Float64Array;
  marks: Float64Array;
  values: Float64Array;
  poses: Float32Array;
  forces: Float32Array;
}
