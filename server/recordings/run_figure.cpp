#include "server/recordings/run_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "proto/config_text.h"
#include "server/output/chart.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kSvgIntervals = 700, kPageIntervals = 4'000;

// Of each of so many intervals the first, lowest and highest finite value, in their order.
std::vector<std::pair<double, double>> thinned(const RunTable& run, std::size_t column, std::size_t intervals) {
  const std::vector<double>& value = run.value[column];
  std::vector<std::pair<double, double>> points;
  const std::size_t each = (value.size() + intervals - 1) / intervals;
  for (std::size_t begin = 0; begin < value.size(); begin += each) {
    const std::size_t end = std::min(begin + each, value.size());
    std::size_t first = begin;
    while (first < end && !std::isfinite(value[first])) ++first;
    if (first == end) continue;
    std::size_t low = first, high = first;
    for (std::size_t k = first; k < end; ++k) {
      if (!std::isfinite(value[k])) continue;
      if (value[k] < value[low]) low = k;
      if (value[k] > value[high]) high = k;
    }
    for (const std::size_t k : std::set<std::size_t>{first, low, high})
      points.emplace_back(exact_seconds(run.sim_time_ns[k]), value[k]);
  }
  return points;
}

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Panel {
  std::string unit;
  std::vector<Curve> curves;
};

// One for each unit, in the order of the columns.
std::vector<Panel> panels_of(const RunFigure& figure, std::size_t intervals) {
  std::vector<Panel> panels;
  for (std::size_t r = 0; r < figure.runs.size(); ++r)
    for (std::size_t k = 0; k < figure.runs[r].columns.size(); ++k) {
      const RunColumn& column = figure.runs[r].columns[k];
      auto panel = std::find_if(panels.begin(), panels.end(), [&](const Panel& p) { return p.unit == column.unit; });
      if (panel == panels.end()) panel = panels.insert(panels.end(), Panel{.unit = column.unit, .curves = {}});
      const std::string of_run = r < figure.names.size() ? " (" + figure.names[r] + ")" : "";
      panel->curves.push_back({column.name + of_run, thinned(figure.runs[r], k, intervals)});
    }
  return panels;
}

// The page draws what stands in `data`. No part of it comes from a recording but the names, as JSON.
constexpr const char* kPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Rigstep</title><style>
body { font: 14px sans-serif; margin: 1em; }
canvas { width: 100%; height: 260px; border: 1px solid #ddd; cursor: crosshair; display: block; }
h2 { font-size: 14px; margin: 1em 0 0.2em; } label { margin-right: 1em; white-space: nowrap; }
</style></head><body><h1 id="title"></h1><p>Drag to zoom in time, double-click to see all. <span id="at"></span></p>
<div id="panels"></div><h2>Events</h2><ul id="events"></ul><script>
const data = @DATA@;
const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f"];
document.getElementById("title").textContent = document.title = data.title;
const times = data.panels.flatMap((p) => p.curves.flatMap((c) => [c.t[0], c.t[c.t.length - 1]])).filter(Number.isFinite);
const all = [Math.min(...times), Math.max(...times)];
let view = [...all], pressed = null, left = 70;
const draws = [];
function ticks(low, high, most) {
  const raw = (high - low) / most, decade = 10 ** Math.floor(Math.log10(raw));
  const step = decade * [1, 2, 5, 10].find((s) => s * decade >= raw);
  const list = [];
  for (let n = 0, k = Math.ceil(low / step); n < 20 && (k + n) * step <= high; ++n) list.push((k + n) * step);
  return list;
}
function first_after(t, time) {
  let low = 0, high = t.length;
  while (low < high) { const mid = (low + high) >> 1; if (t[mid] < time) low = mid + 1; else high = mid; }
  return low;
}
for (const panel of data.panels) {
  const head = document.createElement("h2"), canvas = document.createElement("canvas");
  panel.curves.forEach((curve, k) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox"; box.checked = curve.shown = true;
    box.onchange = () => { curve.shown = box.checked; draw_all(); };
    label.style.color = colours[k % colours.length];
    label.append(box, curve.name + (panel.unit.empty() ? "" : " [" + panel.unit + "]"));
    head.append(label);
  });
  document.getElementById("panels").append(head, canvas);
  const time_at = (event) => view[0] + (view[1] - view[0]) * (event.offsetX - left) / (canvas.clientWidth - left);
  canvas.onmousedown = (event) => { pressed = time_at(event); };
  canvas.onmouseup = (event) => {
    const from = pressed, to = time_at(event);
    pressed = null;
    const least = Math.max((view[1] - view[0]) / 200, 1e-9 * Math.abs(view[1]));
    if (from !== null && Math.abs(to - from) > least) view = [Math.min(from, to), Math.max(from, to)];
    draw_all();
  };
  canvas.ondblclick = () => { view = [...all]; draw_all(); };
  canvas.onmousemove = (event) => { document.getElementById("at").textContent = "t = " + time_at(event).toPrecision(6) + " s"; };
  draws.push(() => {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight, bottom = height - 22;
    canvas.width = width * scale; canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    let low = Infinity, high = -Infinity;
    const shown = panel.curves.filter((curve) => curve.shown);
    for (const curve of shown)
      for (let k = Math.max(0, first_after(curve.t, view[0]) - 1); k < curve.t.length && curve.t[k] <= view[1]; ++k) {
        low = Math.min(low, curve.y[k]); high = Math.max(high, curve.y[k]);
      }
    if (!Number.isFinite(low)) low = high = 0;
    const least = Math.max(1e-9 * Math.max(Math.abs(low), Math.abs(high)), 1e-300);
    if (!(high - low > least)) { const half = high > low ? least : Math.max(0.5, least); low -= half; high += half; }
    const x = (t) => left + (width - left) * (t - view[0]) / (view[1] - view[0]);
    const y = (v) => bottom - (bottom - 8) * (v - low) / (high - low);
    pen.font = "11px sans-serif"; pen.strokeStyle = "#e4e4e4"; pen.fillStyle = "#333";
    for (const t of ticks(view[0], view[1], 8)) { pen.beginPath(); pen.moveTo(x(t), 8); pen.lineTo(x(t), bottom); pen.stroke(); pen.fillText(+t.toPrecision(8), x(t) - 10, height - 6); }
    for (const v of ticks(low, high, 5)) { pen.beginPath(); pen.moveTo(left, y(v)); pen.lineTo(width, y(v)); pen.stroke(); pen.fillText(+v.toPrecision(5), 4, y(v) + 4); }
    pen.strokeStyle = "#c00";
    for (const event of data.events) { pen.beginPath(); pen.moveTo(x(event.t), 8); pen.lineTo(x(event.t), bottom); if (x(event.t) >= left) pen.stroke(); }
    pen.save(); pen.beginPath(); pen.rect(left, 0, width - left, bottom); pen.clip();
    panel.curves.forEach((curve, k) => {
      if (!curve.shown) return;
      pen.strokeStyle = colours[k % colours.length]; pen.lineWidth = 1.3; pen.beginPath();
      for (let i = Math.max(0, first_after(curve.t, view[0]) - 1); i < curve.t.length; ++i) {
        pen.lineTo(x(curve.t[i]), y(curve.y[i]));
        if (curve.t[i] > view[1]) break;
      }
      pen.stroke();
    });
    pen.restore();
  });
}
function draw_all() { for (const draw of draws) draw(); }
for (const event of data.events) {
  const item = document.createElement("li");
  item.textContent = event.t.toFixed(6) + " s: " + event.text;
  document.getElementById("events").append(item);
}
window.onresize = draw_all;
draw_all();
</script></body></html>
)html";

// As it may stand in a script: no text of it can end that.
std::string script_text(const nlohmann::json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace))
    text += c == '<' ? "\\u003c" : std::string(1, c);
  return text;
}

}  // namespace

std::string to_svg(const RunFigure& figure) {
  std::vector<Chart> charts;
  for (Panel& panel : panels_of(figure, kSvgIntervals)) {
    Chart chart{.title = charts.empty() ? figure.title : std::string(),
                .x_label = "time [s]",
                .y_label = panel.unit.empty() ? "" : "[" + panel.unit + "]",
                .log_x = false,
                .log_y = false,
                .lines = {},
                .is_curve = true};
    for (Curve& curve : panel.curves) chart.lines.push_back({std::move(curve.name), std::move(curve.points)});
    charts.push_back(std::move(chart));
  }
  return to_svg(charts);
}

std::string to_html(const RunFigure& figure) {
  nlohmann::json panels = nlohmann::json::array(), events = nlohmann::json::array();
  for (const Panel& panel : panels_of(figure, kPageIntervals)) {
    nlohmann::json curves = nlohmann::json::array();
    for (const Curve& curve : panel.curves) {
      std::vector<double> t, y;
      for (const auto& [at, value] : curve.points) t.push_back(at), y.push_back(value);
      curves.push_back({{"name", curve.name}, {"t", std::move(t)}, {"y", std::move(y)}});
    }
    panels.push_back({{"unit", panel.unit}, {"curves", std::move(curves)}});
  }
  for (const RunEvent& event : figure.events) events.push_back({{"t", event.time}, {"text", event.text}});
  const std::string data = script_text({{"title", figure.title}, {"panels", panels}, {"events", events}});
  std::string page = kPage;
  constexpr std::string_view kPlace = "@DATA@";
  return page.replace(page.find(kPlace), kPlace.size(), data);
}

void require_figure(const std::string& path) {
  if (!path.ends_with(".svg") && !path.ends_with(".html"))
    throw config::ConfigError("\"" + path + "\" is no figure: name an .svg or an .html");
  require_writable(path);
}

void write_figure(const RunFigure& figure, const std::string& path) {
  require_figure(path);
  write_text(path, path.ends_with(".svg") ? to_svg(figure) : to_html(figure));
}

}  // namespace rigstep::server
