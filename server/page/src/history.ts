// The last minutes of a live run, or all of a recording: columns over time.
import type { Motion, Track } from "./model";
import { Player } from "./player";

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

// Between two instants of a run.
function valueAt(track: Track, column: Float64Array, time: number): number {
  const k = Player.frameAt(track, time);
  const begin = track.time[k] ?? time;
  const end = track.time[Math.min(k + 1, track.frames - 1)] ?? begin;
  const from = column[k] ?? Number.NaN;
  const to = column[Math.min(k + 1, track.frames - 1)] ?? from;
  return end > begin ? from + ((to - from) * (time - begin)) / (end - begin) : from;
}

// Columns of each run, then the second less the first; at the instants of the first.
export function seriesOfRuns(tracks: Track[], columns: number[]): Series {
  const first = tracks[0];
  if (first === undefined) return { count: 0, time: new Float64Array(0), values: [] };
  const series = seriesOf(first, columns);
  for (const track of tracks.slice(1))
    for (const column of seriesOf(track, columns).values) series.values.push(Float64Array.from(first.time, (t) => valueAt(track, column, t)));
  if (tracks.length > 1)
    for (let k = 0; k < columns.length; ++k) {
      const [one, two] = [series.values[k], series.values[columns.length + k]];
      series.values.push(Float64Array.from(first.time, (_, at) => (two?.[at] ?? Number.NaN) - (one?.[at] ?? Number.NaN)));
    }
  return series;
}
