// The page: what the server shows, in three dimensions and over time.
import { Vector3 } from "three";
import { command, getScene, getTrack, watch } from "./api";
import { byId, button, element, number, toggle } from "./elements";
import { History, seriesOf } from "./history";
import { Inspector } from "./inspector";
import { LivePanel } from "./live_panel";
import type { Event, Motion, Scene, Status, Track } from "./model";
import "./page.css";
import { Player } from "./player";
import { Plots, type Curve } from "./plots";
import { SceneView, type Part, type Shown } from "./scene_view";

const view = new SceneView(byId<HTMLCanvasElement>("scene"));
const inspector = new Inspector();
const plots = new Plots(byId("plot"));
const panel = new LivePanel();
const history = new History();
const player = new Player();

let scene: Scene | null = null;
let status: Status = {};
let chosen: number[] = []; // columns that are plotted
let seconds = 20; // of a live plot
let paused = false;
let plotDue = 0;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function banner(text: string): void {
  const place = byId("banner");
  place.textContent = text;
  place.hidden = text === "";
}

function ask(request: Record<string, unknown>): void {
  command(request).then(
    () => undefined,
    (error: unknown) => banner(messageOf(error)),
  );
}

// ---- light and dark ----

function dark(): boolean {
  const set = document.documentElement.dataset["theme"];
  return set === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : set === "dark";
}

function applyTheme(): void {
  const isDark = dark();
  view.setColours(isDark ? "#161a20" : "#f7f8fa", isDark ? "#2b323c" : "#dde2e8");
  plots.setColours(isDark ? "#c7ced8" : "#3a4450", isDark ? "#2b323c" : "#e4e8ed");
  plotDue = 0;
}

// ---- the header ----

const directions: [string, string, () => Vector3][] = [
  ["Home", "as at first (0)", () => (scene === null ? new Vector3(0, -1, 0) : view.initialDirection(scene))],
  ["Front", "along y (1)", () => new Vector3(0, -1, 0)],
  ["Side", "along x (2)", () => new Vector3(1, 0, 0)],
  ["Top", "along z (3)", () => new Vector3(0, 0, 1)],
];

const toggles: [keyof Shown, string, string][] = [
  ["grid", "Grid", "ground grid (g)"],
  ["masses", "Masses", "mass centres (m)"],
  ["frames", "Frames", "frames of the bodies (f)"],
  ["axes", "Axes", "axes of the joints (a)"],
  ["reactions", "Reactions", "forces in the joints (r)"],
  ["trace", "Trace", "path of the selected body (t)"],
];

const toggleButtons = new Map<string, HTMLButtonElement>();

function makeHeader(): void {
  byId("views").append(...directions.map(([label, title, toward]) => button(label, title, () => view.lookFrom(toward()))));
  const parallel = toggle("Parallel", "parallel projection (p)", false, (yes) => view.setParallel(yes));
  toggleButtons.set("p", parallel);
  byId("views").append(parallel);
  for (const [name, label, title] of toggles) {
    const made = toggle(label, title, view.shown[name], (yes) => view.setShown(name, yes));
    toggleButtons.set(title.slice(-2, -1), made);
    byId("toggles").append(made);
  }
  const theme = button("Dark", "light or dark (d)", () => {
    document.documentElement.dataset["theme"] = dark() ? "light" : "dark";
    applyTheme();
  });
  toggleButtons.set("d", theme);
  byId("toggles").append(theme, button("Keys", "what the keys do (?)", () => byId<HTMLDialogElement>("help").showModal()));
}

function makeHelp(): void {
  const rows: [string, string][] = [
    ["0 1 2 3", "look from home, front, side, top"],
    ["p", "parallel projection"],
    ...toggles.map(([, , title]) => [title.slice(-2, -1), title.slice(0, -4)] as [string, string]),
    ["d", "light or dark"],
    ["space", "play or pause"],
    ["left, right", "one instant back or on"],
    ["Esc", "select nothing"],
    ["shift and drag", "pull a body with a spring"],
  ];
  const list = element("dl");
  for (const [key, what] of rows) list.append(element("dt", {}, key), element("dd", {}, what));
  byId("help").append(element("h2", {}, "Keys"), list, button("Close", "close", () => byId<HTMLDialogElement>("help").close()));
}

function onKey(event: KeyboardEvent): void {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  const direction = directions["0123".indexOf(event.key)];
  if (event.key.length === 1 && direction !== undefined) view.lookFrom(direction[2]());
  else if (event.key === " " && !(target instanceof HTMLButtonElement)) playOrPause();
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") stepBy(event.key === "ArrowLeft" ? -1 : 1);
  else if (event.key === "Escape") select(null);
  else if (event.key === "?") byId<HTMLDialogElement>("help").showModal();
  else if (toggleButtons.has(event.key)) toggleButtons.get(event.key)?.click();
  else return;
  event.preventDefault();
}

// ---- selection ----

function select(part: Part | null): void {
  inspector.select(part);
  view.select(part);
  if (view.motion !== null) inspector.update(view.motion, performance.now() + 1000);
}

inspector.onSelect = select;
view.onPick = select;
view.onHover = (part, x, y) => {
  const tip = byId("tip");
  tip.hidden = part === null;
  if (part === null) return;
  tip.textContent = inspector.nameOf(part);
  tip.style.left = `${x + 14}px`;
  tip.style.top = `${y + 10}px`;
};

// ---- playing ----

const playButton = button("Play", "play or pause (space)", () => playOrPause());
const slider = element("input", { type: "range", min: "0", max: "1", step: "any", value: "0" });
slider.setAttribute("aria-label", "time");
slider.oninput = () => seek(Number(slider.value));

function playOrPause(): void {
  if (scene?.kind === "recording") {
    if (player.time >= player.end) player.time = player.start;
    player.playing = !player.playing;
    showPlaying();
  } else if (scene?.kind === "mechanism") ask({ do: status.playing === true ? "pause" : "play" });
  else if (scene?.kind === "live") paused = !paused;
  showPlaying();
}

function stepBy(frames: number): void {
  if (scene?.kind === "recording") {
    player.step(frames);
    showInstant();
  } else if (scene?.kind === "mechanism" && frames > 0) ask({ do: "step" });
}

function seek(time: number): void {
  if (scene?.kind !== "recording") return;
  player.seek(time);
  showInstant();
}

plots.onTime = seek;

function showPlaying(): void {
  const goes = scene?.kind === "recording" ? player.playing : scene?.kind === "live" ? !paused : status.playing === true;
  playButton.textContent = goes ? "Pause" : "Play";
}

function makeTransport(shown: Scene): void {
  const place = byId("transport");
  place.replaceChildren(playButton);
  if (shown.kind !== "live") {
    if (shown.kind === "mechanism") place.append(button("Step", "one step (right)", () => stepBy(1)), button("Reset", "to the start", () => ask({ do: "reset" })));
    else place.append(button("◀", "one instant back (left)", () => stepBy(-1)), button("▶", "one instant on (right)", () => stepBy(1)), slider);
    const speed = element("select", { title: "speed" });
    speed.setAttribute("aria-label", "speed");
    for (const factor of [0.01, 0.1, 0.25, 0.5, 1, 2, 5]) speed.append(element("option", { value: String(factor), selected: factor === 1 }, `${factor} ×`));
    speed.onchange = () => {
      player.speed = Number(speed.value);
      if (shown.kind === "mechanism") ask({ do: "speed", factor: Number(speed.value) });
    };
    place.append(speed);
  } else {
    const span = element("select", { title: "seconds that are plotted" });
    span.setAttribute("aria-label", "seconds that are plotted");
    for (const s of [5, 20, 60, 300, 600]) span.append(element("option", { value: String(s), selected: s === seconds }, `${s} s`));
    span.onchange = () => (seconds = Number(span.value));
    place.append(span);
  }
  place.append(
    button("CSV", "what is plotted, as a table", () => plots.saveCsv(shown.name)),
    button("PNG", "what is plotted, as a picture", () => plots.savePng(shown.name)),
  );
  showPlaying();
}

// ---- plots ----

function curves(): Curve[] {
  if (scene === null) return [];
  const shown = scene;
  const runs = shown.kind === "recording" && player.tracks.length > 1 ? [...shown.tracks.slice(0, player.tracks.length), "difference"] : [""];
  return runs.flatMap((run, k) =>
    chosen.flatMap((index) => {
      const column = shown.columns[index];
      return column === undefined ? [] : [{ column, name: run === "" ? "" : `${run}: `, dashed: k > 0 }];
    }),
  );
}

function makeChannels(shown: Scene): void {
  const boxes = shown.columns.map((column, index) => {
    const box = element("input", { type: "checkbox", checked: chosen.includes(index) });
    box.onchange = () => {
      chosen = box.checked ? [...chosen, index] : chosen.filter((k) => k !== index);
      plots.make(curves());
      plotDue = 0;
      if (shown.kind === "recording") plots.update(recordingSeries(), eventsNow(), player.time, null);
    };
    return element("label", {}, box, `${column.name} [${column.unit}]`);
  });
  byId("channels").replaceChildren(...boxes);
}

function eventsNow(): Event[] {
  return scene?.kind === "live" ? (status.events ?? []) : (scene?.events.flat() ?? []);
}

function showEvents(): void {
  const place = byId("side");
  if (scene === null || scene.kind === "live") return;
  const events = scene.events.flat();
  place.hidden = events.length === 0;
  place.replaceChildren(
    ...events.slice(0, 200).map((event) => button(`${number(event.time, 6)} s  ${event.text}`, "go there", () => seek(event.time))),
  );
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

// Of each run, then the second less the first; at the instants of the first.
function recordingSeries(): { count: number; time: Float64Array; values: Float64Array[] } {
  const first = player.tracks[0];
  if (first === undefined) return { count: 0, time: new Float64Array(0), values: [] };
  const series = seriesOf(first, chosen);
  for (const track of player.tracks.slice(1)) {
    const other = seriesOf(track, chosen);
    for (const column of other.values) series.values.push(Float64Array.from(first.time, (t) => valueAt(track, column, t)));
  }
  if (player.tracks.length > 1)
    for (let k = 0; k < chosen.length; ++k) {
      const [one, two] = [series.values[k], series.values[chosen.length + k]];
      series.values.push(Float64Array.from(first.time, (_, at) => (two?.[at] ?? Number.NaN) - (one?.[at] ?? Number.NaN)));
    }
  return series;
}

function updatePlots(now: number): void {
  if (now < plotDue || scene === null || chosen.length === 0) return;
  plotDue = now + (view.software ? 250 : 100);
  if (scene.kind === "recording") return;
  if (scene.kind === "live" && paused) return;
  plots.update(history.series(chosen), eventsNow(), null, seconds);
}

// ---- what comes ----

function showMotion(motion: Motion): void {
  view.place(motion);
  byId("clock").textContent = `${motion.time.toFixed(3)} s`;
  inspector.update(motion, performance.now());
}

function showInstant(): void {
  const motion = player.motion(0);
  if (motion === null) return;
  showMotion(motion);
  view.setGhost(player.motion(1)?.poses ?? null);
  slider.value = String(player.time);
  plots.setNow(player.time);
}

let loading: Promise<void> = Promise.resolve();

// One after the other: both a scene and a status ask for it.
function loadTracks(): Promise<void> {
  loading = loading.then(loadMissingTracks, loadMissingTracks);
  return loading;
}

async function loadMissingTracks(): Promise<void> {
  if (scene?.kind !== "recording") return;
  const count = status.loaded ?? 0;
  while (player.tracks.length < count) {
    const track = await getTrack(player.tracks.length);
    player.tracks.push(track);
    if (player.tracks.length === 1) player.time = player.start;
  }
  if (player.tracks.length === 0) return;
  slider.min = String(player.start);
  slider.max = String(player.end);
  plots.make(curves());
  plots.update(recordingSeries(), eventsNow(), player.time, null);
  showInstant();
}

async function showScene(): Promise<void> {
  const shown = await getScene();
  const isSame = scene !== null && scene.name === shown.name && scene.kind === shown.kind;
  scene = shown;
  document.title = `${shown.name} · Rigstep`;
  byId("name").textContent = shown.name;
  byId("kind").textContent = `${shown.kind} · ${shown.source}`;
  if (!isSame || chosen.some((k) => k >= shown.columns.length)) chosen = shown.columns.length > 0 ? [0] : [];
  if (!isSame) player.tracks = [];
  history.reset(shown.columns.length);
  inspector.show(shown);
  panel.show(shown, banner);
  makeTransport(shown);
  makeChannels(shown);
  showEvents();
  plots.make(curves());
  await view.show(shown, isSame);
  view.mark(shown.findings.filter((f) => f.severity !== "note" && f.joint >= 0).map((f) => f.joint), -1, -1);
  view.onDrag = shown.kind === "mechanism" ? drag : null;
  if (shown.kind === "recording") await loadTracks();
}

let dragSent = 0;

function drag(body: number, point: Vector3, target: Vector3 | null): void {
  const now = performance.now();
  if (target === null) ask({ do: "release" });
  else if (now - dragSent > 40) {
    dragSent = now;
    ask({ do: "drag", body, point: point.toArray(), target: target.toArray() });
  }
}

function showStatus(told: Status): void {
  const loaded = status.loaded ?? 0;
  status = told;
  const fault = told.fault ?? "";
  banner([told.problem ?? "", fault].filter((text) => text !== "").join("\n"));
  const state = byId("state");
  const progress = told.progress !== undefined && told.progress < 1 ? `replaying ${Math.round(100 * told.progress)} %` : "";
  state.textContent = progress || (told.loop ?? (told.playing === true ? "playing" : told.connected === false ? "not connected" : "ready"));
  state.classList.toggle("bad", fault !== "" || told.connected === false);
  if (scene !== null) {
    panel.update(told, scene);
    const marked = scene.findings.filter((f) => f.severity !== "note" && f.joint >= 0).map((f) => f.joint);
    view.mark(marked, told.failedBody ?? -1, told.failedJoint ?? -1);
  }
  showPlaying();
  if ((told.loaded ?? 0) > loaded) loadTracks().catch((error: unknown) => banner(messageOf(error)));
}

let newest: Motion | null = null;

function frame(now: number, before: number): void {
  requestAnimationFrame((next) => frame(next, now));
  if (scene?.kind === "recording" && player.advance((now - before) / 1000)) {
    showInstant();
    if (!player.playing) showPlaying();
  }
  if (newest !== null) {
    showMotion(newest);
    newest = null;
  }
  updatePlots(now);
}

makeHeader();
makeHelp();
applyTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
addEventListener("keydown", onKey);
requestAnimationFrame((now) => frame(now, now));

// For tests and for measuring: what is drawn, as numbers.
Object.assign(window, {
  rigstep: {
    frames: () => view.framesDrawn,
    framesPerSecond: () => view.framesPerSecond,
    time: () => view.motion?.time ?? 0,
    position: (body: string) => view.positionsOf(scene?.bodies.findIndex((b) => b.name === body) ?? -1),
    value: (name: string) => view.motion?.values[scene?.columns.findIndex((c) => c.name === name) ?? -1] ?? Number.NaN,
    software: () => view.software,
  },
});

void watch({
  scene: () => showScene().catch((error: unknown) => banner(messageOf(error))),
  motion: (motion) => {
    history.push(motion);
    newest = motion;
  },
  status: showStatus,
  connected: (yes, why) => {
    document.documentElement.dataset["connected"] = String(yes);
    if (yes) banner("");
    else {
      byId("state").textContent = "not connected";
      byId("state").classList.add("bad");
      banner(why);
    }
  },
});
