// The last minutes of a live run, or all of a recording: columns over time.
import type { Motion, Track } from "./model";

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

export function seriesOf(track: Track, columns: number[]): Series {
  return {
    count: track.frames,
    time: track.time,
    values: columns.map((k) => track.values.subarray(k * track.frames, (k + 1) * track.frames)),
  };
}
