// The way to the server: the same origin, with the token of the link where there is one.
import type { Motion, Scene, Status, Track } from "./model";

const tokenName = "rigstep-token";

function takeToken(): string {
  const found = /^#token=([\x21-\x7e]+)$/.exec(location.hash);
  if (found?.[1] !== undefined) {
    sessionStorage.setItem(tokenName, found[1]);
    history.replaceState(null, "", location.pathname); // not on the screen, not in a screenshot
  }
  return sessionStorage.getItem(tokenName) ?? "";
}

const token = takeToken();

export class Refused extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text);
  }
}

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token !== "") headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  const told: unknown = await response.json().catch(() => null);
  const text = typeof told === "object" && told !== null && "error" in told ? String(told.error) : response.statusText;
  throw new Refused(response.status, text);
}

export async function getScene(): Promise<Scene> {
  return (await (await ask("/api/scene")).json()) as Scene;
}

export interface Mesh {
  vertices: Float32Array;
  corners: Uint32Array;
}

export async function getMesh(index: number): Promise<Mesh> {
  const buffer = await (await ask(`/api/mesh/${index}`)).arrayBuffer();
  const [vertices = 0, triangles = 0] = new Uint32Array(buffer, 0, 2);
  return {
    vertices: new Float32Array(buffer, 8, 3 * vertices),
    corners: new Uint32Array(buffer, 8 + 12 * vertices, 3 * triangles),
  };
}

function toTrack(buffer: ArrayBuffer): Track {
  const [frames = 0, bodies = 0, columns = 0, forces = 0] = new Uint32Array(buffer, 0, 4);
  let at = 16;
  const numbers = (count: number): Float64Array => {
    const all = new Float64Array(buffer, at, count);
    at += 8 * count;
    return all;
  };
  const time = numbers(frames);
  const step = numbers(frames);
  const marks = numbers(frames);
  const values = numbers(columns * frames);
  const poses = new Float32Array(buffer, at, 7 * bodies * frames);
  return { frames, time, step, marks, values, poses, forces: new Float32Array(buffer, at + poses.byteLength, forces * frames) };
}

export async function getTrack(index: number): Promise<Track> {
  return toTrack(await (await ask(`/api/track/${index}`)).arrayBuffer());
}

// Every step from this one on, as many as the server gives at a time.
export async function getSteps(index: number, from: number): Promise<Track> {
  return toTrack(await (await ask(`/api/steps/${index}/${Math.max(1, Math.round(from))}`)).arrayBuffer());
}

export async function command(request: Record<string, unknown>): Promise<unknown> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) };
  return (await ask("/api/command", init)).json();
}

export interface Handlers {
  scene(): void;
  motion(motion: Motion): void;
  status(status: Status): void;
  connected(yes: boolean, why: string): void;
}

function toMotion(bytes: Uint8Array): Motion {
  const buffer = bytes.slice().buffer; // begins at a multiple of eight
  const [time = 0, step = 0, marks = 0] = new Float64Array(buffer, 0, 3);
  const [values = 0, poses = 0, forces = 0] = new Uint32Array(buffer, 24, 3);
  const floats = 40 + 8 * values;
  return {
    time,
    step,
    marks,
    values: new Float64Array(buffer, 40, values),
    poses: new Float32Array(buffer, floats, poses),
    forces: new Float32Array(buffer, floats + 4 * poses, forces),
  };
}

const headBytes = 8;
const mostBytes = 64 << 20; // of a message

// Reads one stream to its end.
async function readStream(reader: ReadableStreamDefaultReader<Uint8Array>, to: Handlers): Promise<void> {
  let rest = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(rest.length + value.length);
    joined.set(rest);
    joined.set(value, rest.length);
    rest = joined;
    while (rest.length >= headBytes) {
      const head = new DataView(rest.buffer, rest.byteOffset, headBytes);
      const kind = head.getUint32(0, true);
      const length = head.getUint32(4, true);
      if (length > mostBytes) throw new Error("a message is too long");
      if (rest.length < headBytes + length) break;
      const content = rest.subarray(headBytes, headBytes + length);
      rest = rest.subarray(headBytes + length);
      if (kind === 0) to.scene();
      else if (kind === 1) to.motion(toMotion(content));
      else if (kind === 2) to.status(JSON.parse(new TextDecoder().decode(content)) as Status);
    }
  }
}

const patience = 1000; // before it is tried again [ms]

// Watches for ever: a server that was restarted is found again.
export async function watch(to: Handlers): Promise<never> {
  for (;;) {
    try {
      const response = await ask("/api/stream");
      if (response.body === null) throw new Error("no stream");
      to.connected(true, "");
      await readStream(response.body.getReader(), to);
      to.connected(false, "the server has ended the connection");
    } catch (error) {
      to.connected(false, error instanceof Refused ? error.message : "the server does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, patience));
  }
}
