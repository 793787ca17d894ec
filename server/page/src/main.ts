// The page: what the server shows, in three dimensions and over time.
import { Vector3 } from "three";
import { command, getScene, getSteps, getTrack, watch } from "./api";
import { initialDirection } from "./camera";
import { byId, button, element, number } from "./elements";
import { Header, isDark } from "./header";
import { History, seriesOfRuns } from "./history";
import { Inspector } from "./inspector";
import { type Event, type Motion, type Scene, type Status, mark } from "./model";
import "./page.css";
import type { Part } from "./parts";
import { Player } from "./player";
import { Plots, type Curve } from "./plots";
import { SceneView } from "./scene_view";
import { SidePanel } from "./side_panel";

const view = new SceneView(byId<HTMLCanvasElement>("scene"));
const inspector = new Inspector();
const plots = new Plots(byId("plot"));
const panel = new SidePanel();
const history = new History();
const player = new Player(getSteps);

let scene: Scene | null = null;
let status: Status = {};
let chosen: number[] = []; // columns that are plotted
let seconds = 20; // of a live plot
let paused = false;
let plotDue = 0;

const mostEvents = 200; // that are listed

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

function applyTheme(): void {
  const dark = isDark();
  view.setColours(dark ? "#161a20" : "#f7f8fa", dark ? "#2b323c" : "#dde2e8");
  plots.setColours(dark ? "#c7ced8" : "#3a4450", dark ? "#2b323c" : "#e4e8ed");
  plotDue = 0;
}

const home = (): Vector3 => (scene === null ? new Vector3(0, -1, 0) : initialDirection(scene));
const header = new Header(view, home, applyTheme);

function onKey(event: KeyboardEvent): void {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  if (event.key === " " && !(target instanceof HTMLButtonElement)) playOrPause();
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") stepBy(event.key === "ArrowLeft" ? -1 : 1);
  else if (event.key === "Escape") select(null);
  else if (!header.press(event.key)) return;
  event.preventDefault();
}

// ---- selection ----

function select(part: Part | null): void {
  inspector.select(part);
  view.select(part);
  if (view.motion !== null) inspector.update(view.motion, performance.now() + 1000);
}

inspector.onSelect = select;
view.picking.onPick = select;
view.picking.onHover = (part, x, y) => {
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

function stepBy(steps: number): void {
  if (scene?.kind === "recording")
    player.step(steps).then(
      () => (showPlaying(), showInstant()),
      (error: unknown) => banner(messageOf(error)),
    );
  else if (scene?.kind === "mechanism" && steps > 0) ask({ do: "step" });
}

const rest = 250; // of the slider, before the very step is fetched [ms]
let resting = 0;

function seek(time: number): void {
  if (scene?.kind !== "recording") return;
  player.seek(time);
  showInstant();
  clearTimeout(resting);
  resting = setTimeout(() => void player.fetchSteps().then(() => !player.playing && showInstant()).catch(() => undefined), rest);
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
    else place.append(button("◀", "one step back (left)", () => stepBy(-1)), button("▶", "one step on (right)", () => stepBy(1)), slider);
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
      if (shown.kind === "recording") plots.update(seriesOfRuns(player.tracks, chosen), eventsNow(), player.time, null);
    };
    return element("label", {}, box, `${column.name} [${column.unit}]`);
  });
  byId("channels").replaceChildren(...boxes);
}

function eventsNow(): Event[] {
  return scene?.kind === "live" ? (status.events ?? []) : (scene?.events.flat() ?? []);
}

// Of a recording, to go there.
function eventButtons(shown: Scene): HTMLElement[] {
  if (shown.kind !== "recording") return [];
  return shown.events.flat().slice(0, mostEvents).map((event) => button(`${number(event.time, 6)} s  ${event.text}`, "go there", () => seek(event.time)));
}

function updatePlots(now: number): void {
  if (now < plotDue || scene === null || chosen.length === 0) return;
  plotDue = now + (view.software ? 250 : 100);
  if (scene.kind === "recording") return;
  if (scene.kind === "live" && paused) return;
  plots.update(history.series(chosen), eventsNow(), null, seconds);
}

// ---- what comes ----

// What is wrong with the instant that is shown.
function showAlarms(motion: Motion): void {
  const alarms = [
    [mark.faulted, "fault"],
    [mark.notConverged, "step not converged"],
    [mark.nearSingular, "near a singular pose"],
  ] as const;
  const text = alarms.filter(([bit]) => (motion.marks & bit) !== 0).map(([, name]) => name).join(" · ");
  const place = byId("alarms");
  if (place.textContent !== text) place.textContent = text;
  place.hidden = text === "";
}

function showMotion(motion: Motion): void {
  view.place(motion);
  showAlarms(motion);
  timeShown = false;
  inspector.update(motion, performance.now());
}

let timeShown = true;
let timeDue = 0;

// The time beside the scene, as text, slider and line in the plots. Without a graphics processor a change outside of the
// scene takes the browser as long as the scene itself: then a few times a second.
function showTime(now: number): void {
  const motion = view.motion;
  if (timeShown || now < timeDue || motion === null) return;
  timeShown = true;
  timeDue = now + (view.software ? 200 : 0);
  if (scene?.kind === "recording") {
    byId("clock").textContent = `${motion.time.toFixed(4)} s · step ${motion.step}`;
    slider.value = String(player.time);
    plots.setNow(player.time);
  } else byId("clock").textContent = `${motion.time.toFixed(3)} s`;
}

function showInstant(): void {
  const motion = player.motion(0);
  if (motion === null) return;
  showMotion(motion);
  view.setGhost(player.motion(1)?.poses ?? null);
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
  plots.update(seriesOfRuns(player.tracks, chosen), eventsNow(), player.time, null);
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
  if (!isSame) player.forget();
  history.reset(shown.columns.length);
  inspector.show(shown);
  panel.show(shown, eventButtons(shown), banner);
  makeTransport(shown);
  makeChannels(shown);
  plots.make(curves());
  await view.show(shown, isSame ? null : home);
  markParts(shown, -1, -1);
  view.picking.onDrag = shown.kind === "mechanism" ? drag : null;
  panel.update(status, shown, view.motion);
  if (shown.kind === "recording") await loadTracks();
}

let marked = "";

// What findings and a fault are about.
function markParts(shown: Scene, failedBody: number, failedJoint: number): void {
  marked = `${failedBody} ${failedJoint}`;
  view.mark(shown.findings.filter((f) => f.severity !== "note" && f.joint >= 0).map((f) => f.joint), failedBody, failedJoint);
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
  const isStopped = (told.failedBody ?? -1) >= 0 || (told.failedJoint ?? -1) >= 0;
  const progress = told.progress !== undefined && told.progress < 1 ? `replaying ${Math.round(100 * told.progress)} %` : "";
  state.textContent = progress || (told.loop ?? (told.playing === true ? "playing" : told.connected === false ? "not connected" : isStopped ? "stopped" : "ready"));
  state.classList.toggle("bad", fault !== "" || isStopped || told.connected === false);
  if (scene !== null) {
    panel.update(told, scene, view.motion);
    const [body, joint] = [told.failedBody ?? -1, told.failedJoint ?? -1];
    if (marked !== `${body} ${joint}`) markParts(scene, body, joint);
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
  showTime(now);
  updatePlots(now);
}

applyTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
addEventListener("keydown", onKey);
requestAnimationFrame((now) => frame(now, now));

// For tests and for measuring: what is drawn, as numbers.
Object.assign(window, {
  rigstep: {
    frames: () => view.framesDrawn,
    time: () => view.motion?.time ?? 0,
    position: (body: string) => view.positionsOf(scene?.bodies.findIndex((b) => b.name === body) ?? -1),
    value: (name: string) => view.motion?.values[scene?.columns.findIndex((c) => c.name === name) ?? -1] ?? Number.NaN,
    bodies: () => scene?.bodies.length ?? 0,
    step: () => view.motion?.step ?? 0,
    marks: () => view.motion?.marks ?? 0,
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
