// Plays recordings: an instant of the tracks for each moment of the page.
import type { Motion, Track } from "./model";

export class Player {
  tracks: Track[] = [];
  playing = false;
  speed = 1;
  time = 0;

  get start(): number {
    return this.tracks[0]?.time[0] ?? 0;
  }

  get end(): number {
    const track = this.tracks[0];
    return track?.time[track.frames - 1] ?? 0;
  }

  // True: it has moved.
  advance(seconds: number): boolean {
    if (!this.playing || this.tracks.length === 0) return false;
    this.time += this.speed * seconds;
    if (this.time >= this.end) {
      this.time = this.end;
      this.playing = false;
    }
    return true;
  }

  seek(time: number): void {
    this.time = Math.max(this.start, Math.min(this.end, time));
  }

  step(frames: number): void {
    const track = this.tracks[0];
    if (track === undefined) return;
    this.playing = false;
    const at = Player.frameAt(track, this.time) + frames;
    this.time = track.time[Math.max(0, Math.min(track.frames - 1, at))] ?? this.time;
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

  motion(which: number): Motion | null {
    const track = this.tracks[which];
    if (track === undefined || track.frames === 0) return null;
    const k = Player.frameAt(track, this.time);
    const size = track.poses.length / track.frames;
    const columns = track.values.length / track.frames;
    return {
      time: track.time[k] ?? 0,
      step: track.step[k] ?? 0,
      values: Float64Array.from({ length: columns }, (_, c) => track.values[c * track.frames + k] ?? Number.NaN),
      poses: track.poses.subarray(k * size, (k + 1) * size),
      reactions: new Float32Array(0),
    };
  }
}
