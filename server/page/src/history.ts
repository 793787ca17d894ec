// The last minutes of a live run, or all of a recording: columns over time.
import { Vector3 } from "three";
import type { Motion, Track } from "./model";
import { Player } from "./player";
import { Posture } from "./posture";

const most = 36_000; // instants: ten minutes at 60 a second

export interface Series {
  count: number;
  time: Float64Array;
  values: Float64Array[]; // of each column
}

export class History {
  private time = new Float64Array(0);
  private values: Float64Array[] = [];
  private first = 0; // of the ring
  private count = 0;

  reset(columns: number): void {
    this.time = new Float64Array(most);
    this.values = Array.from({ length: columns }, () => new Float64Array(most));
    this.first = this.count = 0;
  }

  push(motion: Motion): void {
    if (motion.values.length !== this.values.length) this.reset(motion.values.length);
    const newest = this.count > 0 ? (this.time[(this.first + this.count - 1) % most] ?? 0) : Number.NEGATIVE_INFINITY;
    if (motion.time === newest) return;
    if (motion.time < newest) this.first = this.count = 0; // set back
    const at = (this.first + this.count) % most;
    this.time[at] = motion.time;
    motion.values.forEach((value, k) => {
      const column = this.values[k];
      if (column !== undefined) column[at] = value;
    });
    if (this.count < most) ++this.count;
    else this.first = (this.first + 1) % most;
  }

  // In order of time.
  series(columns: number[]): Series {
    const unroll = (ring: Float64Array): Float64Array => {
      const out = new Float64Array(this.count);
      const end = Math.min(this.first + this.count, most);
      out.set(ring.subarray(this.first, end));
      out.set(ring.subarray(0, this.count - (end - this.first)), end - this.first);
      return out;
    };
    return { count: this.count, time: unroll(this.time), values: columns.map((k) => unroll(this.values[k] ?? this.time)) };
  }
}

function seriesOf(track: Track, columns: number[]): Series {
  return {
    count: track.frames,
    time: track.time,
    values: columns.map((k) => track.values.subarray(k * track.frames, (k + 1) * track.frames)),
  };
}

// Between two instants of a run; no number before its first and after its last.
function valueAt(track: Track, column: Float64Array, time: number): number {
  const last = track.time[track.frames - 1] ?? Number.NaN;
  if (!(time >= (track.time[0] ?? Number.NaN) - 1e-9 && time <= last + 1e-9)) return Number.NaN;
  const k = Player.frameAt(track, time);
  const begin = track.time[k] ?? time;
  const end = track.time[Math.min(k + 1, track.frames - 1)] ?? begin;
  const from = column[k] ?? Number.NaN;
  const to = column[Math.min(k + 1, track.frames - 1)] ?? from;
  return end > begin ? from + ((to - from) * (time - begin)) / (end - begin) : from;
}

// Columns of each run, then the second less the first; at the instants of the first, and of others that go on longer.
export function seriesOfRuns(tracks: Track[], columns: number[]): Series {
  const first = tracks[0];
  if (first === undefined) return { count: 0, time: new Float64Array(0), values: [] };
  if (tracks.length === 1) return seriesOf(first, columns);
  const time = [...first.time];
  for (const track of tracks.slice(1)) {
    const last = time[time.length - 1] ?? Number.NEGATIVE_INFINITY;
    time.push(...track.time.filter((t) => t > last + 1e-9));
  }
  const values = tracks.flatMap((track) => seriesOf(track, columns).values.map((column) => Float64Array.from(time, (t) => valueAt(track, column, t))));
  for (let k = 0; k < columns.length; ++k) {
    const [one, two] = [values[k], values[columns.length + k]];
    values.push(Float64Array.from(time, (_, at) => (two?.[at] ?? Number.NaN) - (one?.[at] ?? Number.NaN)));
  }
  return { count: time.length, time: Float64Array.from(time), values };
}

// Where a point of a body goes: its places in the frames of a run, no more than `most` of them.
export function pathOf(track: Track, body: number, point: Vector3, most: number): number[] {
  const bodies = track.poses.length / (7 * track.frames);
  const every = Math.ceil(track.frames / most);
  const posture = new Posture(bodies);
  const path: number[] = [];
  for (let k = 0; k < track.frames; k += every)
    if (posture.set(track.poses.subarray(7 * bodies * k, 7 * bodies * (k + 1)))) path.push(...posture.worldOf({ body, point: point.toArray() }, new Vector3()).toArray());
  return path;
}
