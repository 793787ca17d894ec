// What is said over the scene: what is wrong as long as it is, and what was refused, for a while.
import { byId } from "./elements";

const refusalFor = 8000; // [ms]

export class Banner {
  private lasting = "";
  private refused = "";
  private refusedUntil = 0;
  private readonly place = byId("banner");

  say(text: string): void {
    this.lasting = text;
    this.tick(performance.now());
  }

  // Empty: what was asked for last was done.
  refuse(text: string): void {
    this.refused = text;
    this.refusedUntil = performance.now() + refusalFor;
    this.tick(performance.now());
  }

  tick(now: number): void {
    if (now >= this.refusedUntil) this.refused = "";
    const text = [this.lasting, this.refused].filter((one) => one !== "").join("\n");
    if (this.place.textContent === text) return;
    this.place.textContent = text;
    this.place.hidden = text === "";
  }
}
