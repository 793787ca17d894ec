// Channels over time: one axis a unit, zoom by dragging, a cursor, events as marks; CSV and PNG of what is shown.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "./history";
import type { Column, Event } from "./model";

const palette = ["#2f7fb8", "#d97a22", "#3f9a62", "#9a62b0", "#c85050", "#8a8f98", "#b59a2c", "#3aa3ad"];

export interface Curve {
  column: Column;
  name: string; // of the run, where there are several
  dashed: boolean;
}

const labelOf = (curve: Curve): string => `${curve.name}${curve.column.name} [${curve.column.unit}]`;

// Empty where a run has no value.
const finite = (value: number | undefined): number | "" => (value !== undefined && Number.isFinite(value) ? value : "");

function save(name: string, href: string): void {
  const link = document.createElement("a");
  link.download = name;
  link.href = href;
  link.click();
}

export class Plots {
  private plot: uPlot | null = null;
  private curves: Curve[] = [];
  private series: Series = { count: 0, time: new Float64Array(0), values: [] };
  private events: Event[] = [];
  private now: number | null = null;
  private marked: [number, number] | null = null;
  private zoomed = false; // by hand: a live plot does not follow then
  private colours = { text: "#333", grid: "#ddd", back: "#fff" };
  onTime: (time: number) => void = () => undefined;

  constructor(private readonly place: HTMLElement) {
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(place);
  }

  setColours(text: string, grid: string, back: string): void {
    this.colours = { text, grid, back };
    const { series } = this;
    this.make(this.curves);
    this.series = series;
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(this.place.clientWidth, 100), height: Math.max(this.place.clientHeight - 34, 80) };
  }

  make(curves: Curve[]): void {
    this.plot?.destroy();
    this.plot = null;
    this.curves = curves;
    this.series = { count: 0, time: new Float64Array(0), values: [] }; // those of other columns
    this.zoomed = false;
    if (curves.length === 0) return;
    const units = [...new Set(curves.map((curve) => curve.column.unit))];
    const axis = { stroke: this.colours.text, grid: { stroke: this.colours.grid, width: 1 }, ticks: { stroke: this.colours.grid } };
    const options: uPlot.Options = {
      ...this.size(),
      cursor: { drag: { x: true, y: false } },
      legend: { live: true },
      scales: { x: { time: false } },
      axes: [
        { ...axis, label: "t [s]", labelSize: 18, size: 34 },
        ...units.map((unit, k) => ({ ...axis, scale: unit, label: `[${unit}]`, side: k % 2 === 0 ? 3 : 1, size: 56, labelSize: 16, grid: { show: k === 0, stroke: this.colours.grid } }) satisfies uPlot.Axis),
      ],
      series: [
        { label: "t [s]", value: (_, v: number | null) => (v === null ? "" : v.toFixed(4)) },
        ...curves.map((curve, k) => ({
          label: labelOf(curve),
          scale: curve.column.unit,
          stroke: palette[k % palette.length] ?? "#888",
          width: 1.5,
          ...(curve.dashed ? { dash: [5, 4] } : {}),
          points: { show: false },
          value: (_: uPlot, v: number | null) => (v === null ? "" : v.toPrecision(5)),
        })),
      ],
      hooks: { draw: [(plot) => this.drawMarks(plot)], ready: [(plot) => this.watchClicks(plot)], setSelect: [() => (this.zoomed = true)] },
    };
    this.plot = new uPlot(options, this.data(), this.place);
  }

  private data(): uPlot.AlignedData {
    return [this.series.time, ...this.curves.map((_, k) => this.series.values[k] ?? new Float64Array(this.series.count))];
  }

  // follow: the newest seconds of a live run.
  update(series: Series, events: Event[], now: number | null, follow: number | null): void {
    this.series = series;
    this.events = events;
    this.now = now;
    if (this.plot === null) return;
    const end = series.time[series.count - 1] ?? 0;
    this.plot.setData(this.data(), follow === null && !this.zoomed);
    if (follow === null || this.zoomed) return;
    const begin = Math.max(series.time[0] ?? 0, end - follow);
    if (begin < end) this.plot.setScale("x", { min: begin, max: end }); // one instant has no ticks
  }

  setNow(time: number): void {
    this.now = time;
    this.plot?.redraw(false, false);
  }

  // What lies between is shaded.
  setMarked(marked: [number, number] | null): void {
    this.marked = marked;
    this.plot?.redraw(false, false);
  }

  // A live plot goes on with the newest seconds.
  follow(): void {
    this.zoomed = false;
  }

  showAround(time: number, seconds: number): void {
    this.zoomed = true;
    this.now = time;
    this.plot?.setScale("x", { min: time - 0.5 * seconds, max: time + 0.5 * seconds });
  }

  private watchClicks(plot: uPlot): void {
    let pressed = 0;
    plot.over.addEventListener("pointerdown", (event) => (pressed = event.clientX));
    plot.over.addEventListener("pointerup", (event) => {
      if (Math.abs(event.clientX - pressed) < 3) this.onTime(plot.posToVal(event.offsetX, "x"));
    });
    plot.over.addEventListener("dblclick", () => (this.zoomed = false)); // all is shown again
  }

  private drawMarks(plot: uPlot): void {
    const pen = plot.ctx;
    const { left, top, width, height } = plot.bbox;
    const at = (time: number): number => plot.valToPos(time, "x", true);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    if (this.marked !== null) {
      pen.fillStyle = "rgba(47, 127, 184, 0.15)";
      pen.fillRect(at(this.marked[0]), top, at(this.marked[1]) - at(this.marked[0]), height);
    }
    for (const event of this.events) {
      pen.fillStyle = "#d0341f";
      pen.fillRect(at(event.time) - 1, top, 2, height);
    }
    if (this.now !== null) {
      pen.fillStyle = this.colours.text;
      pen.fillRect(at(this.now), top, 1, height);
    }
    pen.restore();
  }

  saveCsv(name: string): void {
    const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = this.plot?.scales["x"] ?? {};
    const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
    const lines = [["t [s]", ...this.curves.map(labelOf)].map(quoted).join(",")];
    for (let k = 0; k < this.series.count; ++k) {
      const time = this.series.time[k] ?? 0;
      if (time < (min ?? time) || time > (max ?? time)) continue;
      lines.push([time, ...this.series.values.map((column) => finite(column[k]))].join(","));
    }
    save(`${name}.csv`, URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" })));
  }

  // With its names, on the background of the page.
  savePng(name: string): void {
    if (this.plot === null) return;
    const drawn = this.plot.ctx.canvas;
    const line = 16 * devicePixelRatio;
    const canvas = document.createElement("canvas");
    canvas.width = drawn.width;
    canvas.height = drawn.height + line * (this.curves.length + 1);
    const pen = canvas.getContext("2d");
    if (pen === null) return;
    pen.fillStyle = this.colours.back;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(drawn, 0, 0);
    pen.font = `${0.75 * line}px sans-serif`;
    pen.textBaseline = "middle";
    this.curves.forEach((curve, k) => {
      const middle = drawn.height + line * (k + 0.5);
      pen.fillStyle = palette[k % palette.length] ?? "#888";
      pen.fillRect(line, middle - 0.1 * line, 1.5 * line, 0.2 * line);
      pen.fillStyle = this.colours.text;
      pen.fillText(labelOf(curve) + (curve.dashed ? " (dashed)" : ""), 3 * line, middle);
    });
    save(`${name}.png`, canvas.toDataURL("image/png"));
  }
}
