// Plays recordings: an instant of the tracks for each moment of the page. Tracks have frames at display rate; around
// the moment at which it stands, every step is there once it has been asked for.
import type { Motion, Track } from "./model";

const before = 300; // steps that are fetched before the one that is wanted

export class Player {
  tracks: Track[] = [];
  playing = false;
  speed = 1;
  time = 0;
  bookmark: [number | null, number | null] = [null, null]; // its ends: what lies between is played again and again
  private exact: (Track | undefined)[] = []; // every step of a while, of each run
  private fetching: Promise<unknown> = Promise.resolve();

  // fetch: every step of a run from this one on.
  constructor(private readonly fetch: (run: number, from: number) => Promise<Track>) {}

  get start(): number {
    return this.tracks[0]?.time[0] ?? 0;
  }

  // Of the run that goes on longest.
  get end(): number {
    return this.tracks.reduce((end, track) => Math.max(end, track.time[track.frames - 1] ?? 0), this.start);
  }

  // Both ends of the bookmark in order; null: one of them is not set.
  get marked(): [number, number] | null {
    const [a, b] = this.bookmark;
    return a === null || b === null ? null : [Math.min(a, b), Math.max(a, b)];
  }

  forget(): void {
    this.tracks = [];
    this.exact = [];
    this.playing = false;
    this.bookmark = [null, null];
  }

  // Backwards, too. True: it has moved.
  advance(seconds: number): boolean {
    if (!this.playing || this.tracks.length === 0) return false;
    const [begin, end] = this.marked ?? [this.start, this.end];
    this.time += this.speed * seconds;
    const isOver = this.speed < 0 ? this.time <= begin : this.time >= end;
    if (isOver && this.marked !== null) this.time = this.speed < 0 ? end : begin;
    else if (isOver) {
      this.time = this.speed < 0 ? begin : end;
      this.playing = false;
    }
    return true;
  }

  // From the other end where there is nothing left to play.
  play(): void {
    if (this.speed >= 0 && this.time >= this.end) this.time = this.start;
    if (this.speed < 0 && this.time <= this.start) this.time = this.end;
    this.playing = true;
  }

  seek(time: number): void {
    this.time = Math.max(this.start, Math.min(this.end, time));
  }

  // Every step of the runs around the present moment. One after the other, as the server makes them.
  fetchSteps(): Promise<unknown> {
    this.fetching = this.fetching.then(() => this.fetchMissing());
    return this.fetching;
  }

  // By single steps of the first run.
  async step(count: number): Promise<void> {
    this.playing = false;
    if (this.tracks.length === 0) return;
    const goal = this.stepNow(0) + count;
    const covers = (track: Track | undefined): boolean => track !== undefined && goal >= (track.step[0] ?? 0) && goal <= (track.step[track.frames - 1] ?? 0);
    if (!covers(this.exact[0])) {
      this.exact[0] = undefined;
      await this.fetchSteps();
    }
    const track = covers(this.exact[0]) ? this.exact[0] : this.tracks[0];
    if (track === undefined) return;
    const at = track.step.findIndex((step) => step >= goal);
    this.time = track.time[at < 0 ? track.frames - 1 : at] ?? this.time;
  }

  private stepNow(run: number): number {
    const track = this.trackNow(run);
    return track === undefined ? 0 : (track.step[Player.frameAt(track, this.time)] ?? 0);
  }

  private covers(track: Track | undefined): boolean {
    return track !== undefined && track.frames > 1 && this.time >= (track.time[0] ?? 0) && this.time <= (track.time[track.frames - 1] ?? 0);
  }

  private trackNow(run: number): Track | undefined {
    const exact = this.exact[run];
    return this.covers(exact) ? exact : this.tracks[run];
  }

  private async fetchMissing(): Promise<void> {
    for (let run = 0; run < this.tracks.length; ++run)
      if (!this.covers(this.exact[run])) this.exact[run] = await this.fetch(run, this.stepNow(run) - before);
  }

  static frameAt(track: Track, time: number): number {
    let low = 0;
    let high = track.frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((track.time[middle] ?? 0) <= time + 1e-9) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  motion(run: number): Motion | null {
    const track = this.trackNow(run);
    if (track === undefined || track.frames === 0) return null;
    const k = Player.frameAt(track, this.time);
    const ofFrame = (numbers: Float32Array): Float32Array => {
      const size = numbers.length / track.frames;
      return numbers.subarray(k * size, (k + 1) * size);
    };
    const columns = track.values.length / track.frames;
    return {
      time: track.time[k] ?? 0,
      step: track.step[k] ?? 0,
      marks: track.marks[k] ?? 0,
      values: Float64Array.from({ length: columns }, (_, c) => track.values[c * track.frames + k] ?? Number.NaN),
      poses: ofFrame(track.poses),
      forces: ofFrame(track.forces),
    };
  }
}
