// The page: what the server shows, in three dimensions and over time.
import { Vector3 } from "three";
import { command, getScene, getSteps, getTrack, watch } from "./api";
import { Banner } from "./banner";
import { initialDirection } from "./camera";
import { byId, button, element, number, toggle } from "./elements";
import { Header, isDark } from "./header";
import { History, pathOf, seriesOfRuns } from "./history";
import { Inspector } from "./inspector";
import { traceLength } from "./marks";
import { type Event, type Motion, type Scene, type Status, mark } from "./model";
import "./page.css";
import { type Part, partOfFinding } from "./parts";
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
const mostLiveEvents = 30; // likewise, the newest of a live run

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const banner = new Banner();
const refuse = (text: string): void => banner.refuse(text);

function ask(request: Record<string, unknown>): void {
  command(request).then(
    () => refuse(""),
    (error: unknown) => refuse(messageOf(error)),
  );
}

function applyTheme(): void {
  const dark = isDark();
  view.setColours(dark ? "#161a20" : "#f7f8fa", dark ? "#2b323c" : "#dde2e8");
  plots.setColours(dark ? "#c7ced8" : "#3a4450", dark ? "#2b323c" : "#e4e8ed", dark ? "#1d222a" : "#ffffff");
  refreshPlots();
}

const home = (): Vector3 => (scene === null ? new Vector3(0, -1, 0) : initialDirection(scene));
const header = new Header(view, home, applyTheme);

function onKey(event: KeyboardEvent): void {
  const target = event.target;
  const isTyped = target instanceof HTMLInputElement && (target.type === "checkbox" ? event.key === " " : target !== slider);
  if (event.ctrlKey || event.metaKey || event.altKey || isTyped || target instanceof HTMLSelectElement) return;
  if (event.key === " " && !(target instanceof HTMLButtonElement)) playOrPause();
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") stepBy(event.key === "ArrowLeft" ? -1 : 1);
  else if (event.key === "Escape") select(null, null);
  else if (event.key === "[" || event.key === "]") setBookmark(event.key === "[" ? 0 : 1);
  else if (!header.press(event.key)) return;
  event.preventDefault();
}

// ---- selection ----

let selected: { part: Part; name: string; point: Vector3 | null } | null = null;

// point: of a body, where it was hit.
function select(part: Part | null, point: Vector3 | null): void {
  selected = part === null ? null : { part, name: namesOf(part.kind)[part.index] ?? "", point };
  inspector.select(part);
  const track = scene?.kind === "recording" && part?.kind === "body" ? player.tracks[0] : undefined;
  const path = track === undefined || part === null ? null : pathOf(track, part.index, point ?? new Vector3(), traceLength);
  view.select(part, point, path);
  if (view.motion !== null) inspector.update(view.motion);
}

function namesOf(kind: Part["kind"]): string[] {
  if (scene === null) return [];
  return { body: scene.bodies, joint: scene.joints, line: scene.lines }[kind].map((one: { name: string }) => one.name);
}

// In another scene, what is called the same.
function selectAgain(): void {
  if (selected === null) return;
  const { part, name, point } = selected;
  const index = namesOf(part.kind).indexOf(name);
  select(index < 0 ? null : { kind: part.kind, index }, point);
}

inspector.onSelect = (part) => select(part, null);
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
    if (player.playing) player.playing = false;
    else player.play();
  } else if (scene?.kind === "mechanism") ask({ do: status.playing === true ? "pause" : "play" });
  else if (scene?.kind === "live") {
    paused = !paused;
    if (!paused) plots.follow();
  }
  showPlaying();
}

function stepBy(steps: number): void {
  if (scene?.kind === "recording")
    player.step(steps).then(
      () => (showPlaying(), showInstant()),
      (error: unknown) => refuse(messageOf(error)),
    );
  else if (scene?.kind === "mechanism" && steps > 0) ask({ do: "step" });
}

const rest = 250; // of the slider, before the very step is fetched [ms]
let resting = 0;

function seek(time: number): void {
  if (scene?.kind === "live") return showMoment(time);
  if (scene?.kind !== "recording") return;
  player.seek(time);
  showInstant();
  clearTimeout(resting);
  resting = setTimeout(() => void player.fetchSteps().then(() => !player.playing && showInstant()).catch(() => undefined), rest);
}

// Of a live run: the plots stand, with this moment in their middle.
function showMoment(time: number): void {
  paused = true;
  showPlaying();
  plots.showAround(time, Math.min(seconds, 10));
}

plots.onTime = (time) => {
  if (scene?.kind === "recording") seek(time);
};

// which: the begin or the end of the bookmark, here; where it stands there already it is taken away.
function setBookmark(which: 0 | 1): void {
  if (scene?.kind !== "recording") return;
  player.bookmark[which] = player.bookmark[which] === player.time ? null : player.time;
  plots.setMarked(player.marked);
}

function goToBookmark(which: 0 | 1): void {
  const time = player.bookmark[which];
  if (time === null) refuse("the bookmark has no such end yet: set it with [ or ]");
  else seek(time);
}

function showPlaying(): void {
  const goes = scene?.kind === "recording" ? player.playing : scene?.kind === "live" ? !paused : status.playing === true;
  playButton.textContent = goes ? "Pause" : "Play";
}

function makeTransport(shown: Scene): void {
  const place = byId("transport");
  place.replaceChildren(playButton);
  if (shown.kind !== "live") {
    if (shown.kind === "mechanism") place.append(button("Step", "one step (right)", () => stepBy(1)), button("Reset", "to the start", () => ask({ do: "reset" })));
    else
      place.append(
        button("◀", "one step back (left)", () => stepBy(-1)),
        button("▶", "one step on (right)", () => stepBy(1)),
        slider,
        button("[", "the bookmark begins here ([)", () => setBookmark(0)),
        button("]", "the bookmark ends here (])", () => setBookmark(1)),
        button("⇤", "to the begin of the bookmark", () => goToBookmark(0)),
        button("⇥", "to the end of the bookmark", () => goToBookmark(1)),
      );
    if (shown.kind === "mechanism") place.append(toggle("Pull", "bodies are pulled with a spring, without a key", view.picking.pulls, (yes) => (view.picking.pulls = yes)));
    const speed = element("input", { type: "number", title: "speed: times that of the clock; below zero: backwards", value: String(player.speed), step: "any" });
    if (shown.kind === "mechanism") speed.min = "0";
    speed.setAttribute("aria-label", "speed");
    speed.setAttribute("list", "speeds");
    speed.onchange = () => {
      const factor = Number(speed.value);
      if (!Number.isFinite(factor) || factor === 0) return;
      player.speed = factor;
      if (shown.kind === "mechanism") ask({ do: "speed", factor });
    };
    place.append(element("datalist", { id: "speeds" }, ...[0.01, 0.1, 0.25, 0.5, 1, 2, 5].map((factor) => element("option", { value: String(factor) }))));
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
      refreshPlots();
    };
    return element("label", {}, box, `${column.name} [${column.unit}]`);
  });
  byId("channels").replaceChildren(...boxes);
}

// What is plotted now, also while the plots stand.
function refreshPlots(): void {
  if (scene?.kind === "recording") {
    plots.update(seriesOfRuns(player.tracks, chosen), eventsNow(), player.time, null);
    plots.setMarked(player.marked);
  } else plots.update(history.series(chosen), eventsNow(), null, paused ? null : seconds);
}

function eventsNow(): Event[] {
  return scene?.kind === "live" ? (status.events ?? []) : (scene?.events.flat() ?? []);
}

// To go there.
function eventButtons(events: Event[]): HTMLElement[] {
  return events.map((event) => button(`${number(event.time, 6)} s  ${event.text}`, "go there", () => seek(event.time)));
}

function updatePlots(now: number): void {
  if (now < plotDue || scene === null || chosen.length === 0) return;
  plotDue = now + (view.software ? 250 : 100);
  if (scene.kind === "recording") return;
  if (scene.kind === "live" && paused) return;
  refreshPlots();
}

// ---- what comes ----

// What is wrong with the instant that is shown.
function showAlarms(motion: Motion): void {
  const alarms = [
    [mark.faulted, "fault"],
    [mark.notConverged, "step not converged"],
    [mark.inaccurate, "step error above its limit"],
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
  inspector.update(motion);
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
  refreshPlots();
  showInstant();
}

async function showScene(): Promise<void> {
  const shown = await getScene();
  const isSame = scene !== null && scene.name === shown.name && scene.kind === shown.kind;
  const columns = scene?.columns.length;
  scene = shown;
  document.title = `${shown.name} · Rigstep`;
  byId("name").textContent = shown.name;
  byId("kind").textContent = `${shown.kind} · ${shown.source}`;
  if (!isSame || chosen.some((k) => k >= shown.columns.length)) chosen = shown.columns.length > 0 ? [0] : [];
  if (!isSame) player.forget();
  if (!isSame || columns !== shown.columns.length) history.reset(shown.columns.length);
  inspector.show(shown);
  panel.show(shown, eventButtons(shown.kind === "recording" ? shown.events.flat().slice(0, mostEvents) : []), refuse);
  makeTransport(shown);
  makeChannels(shown);
  plots.make(curves());
  await view.show(shown, isSame ? null : home);
  markParts(shown, -1, -1);
  if (isSame) selectAgain();
  else selected = null;
  view.picking.onDrag = shown.kind === "mechanism" ? drag : null;
  panel.update(status, shown, view.motion);
  if (shown.kind === "recording") await loadTracks();
}

let marked = "";

// What findings and a fault are about.
function markParts(shown: Scene, failedBody: number, failedJoint: number): void {
  marked = `${failedBody} ${failedJoint}`;
  const parts = shown.findings.filter((f) => f.severity !== "note" || f.connection !== "").map((f) => partOfFinding(shown, f));
  view.mark(parts.filter((part) => part !== null), failedBody, failedJoint);
}

let dragSent = 0;

function drag(body: number, point: Vector3, target: Vector3 | null): void {
  const now = performance.now();
  view.pull(body, point, target);
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
  banner.say([told.problem ?? "", fault].filter((text) => text !== "").join("\n"));
  const state = byId("state");
  const isStopped = (told.failedBody ?? -1) >= 0 || (told.failedJoint ?? -1) >= 0;
  const progress = told.progress !== undefined && told.progress < 1 ? `replaying ${Math.round(100 * told.progress)} %` : "";
  state.textContent = progress || (told.loop ?? (told.playing === true ? "playing" : told.connected === false ? "not connected" : isStopped ? "stopped" : "ready"));
  state.classList.toggle("bad", fault !== "" || isStopped || told.connected === false);
  if (scene !== null) {
    panel.update(told, scene, view.motion);
    if (scene.kind === "live") panel.showEvents(eventButtons((told.events ?? []).slice(-mostLiveEvents).reverse()));
    const [body, joint] = [told.failedBody ?? -1, told.failedJoint ?? -1];
    if (marked !== `${body} ${joint}`) markParts(scene, body, joint);
  }
  showPlaying();
  if ((told.loaded ?? 0) > loaded) loadTracks().catch((error: unknown) => banner.say(messageOf(error)));
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
  banner.tick(now);
  inspector.tick(now);
  showTime(now);
  updatePlots(now);
}

if (!view.canDraw) {
  const note = "This browser has no WebGL: nothing is drawn here. Plots, numbers and operations are there.";
  byId("stage").append(element("p", { className: "finding warning" }, note));
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
    found: () => view.found,
  },
});

void watch({
  scene: () => showScene().catch((error: unknown) => banner.say(messageOf(error))),
  motion: (motion) => {
    history.push(motion);
    newest = motion;
  },
  status: showStatus,
  connected: (yes, why) => {
    document.documentElement.dataset["connected"] = String(yes);
    if (yes) banner.say("");
    else {
      byId("state").textContent = "not connected";
      byId("state").classList.add("bad");
      banner.say(why);
    }
  },
});
