// Recorded runs as figures: an SVG file, or a web page of its own in which one can zoom. Offline.
#pragma once

#include <string>
#include <vector>

#include "server/recordings/recorded_run.h"
#include "server/recordings/run_info.h"

namespace rigstep::server {

// Runs drawn over one another: the same columns of each.
struct RunFigure {
  std::string title;
  std::vector<std::string> names;  // of the runs, empty for a single one
  std::vector<RunTable> runs;
  std::vector<RunEvent> events;  // of a single run
};

// A panel for each unit, curves of at most 12,000 points that keep every extreme value.
std::string to_svg(const RunFigure& figure);
// Drag to zoom, double-click to see all. Needs nothing from a network.
std::string to_html(const RunFigure& figure);

// By the name's end: .svg or .html. Throws config::ConfigError for another, FileError where it cannot be written.
void require_figure(const std::string& path);  // before long work; writes nothing
void write_figure(const RunFigure& figure, const std::string& path);

}  // namespace rigstep::server
