// Line charts as standalone SVG files. Offline.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rigstep::server {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::string title, x_label, y_label;
  bool log_x = true, log_y = true;  // decades; values must be positive then
  std::vector<ChartLine> lines;
};

std::string to_svg(const Chart& chart);

// Throws FileError.
void write_svg(const Chart& chart, const std::string& path);

}  // namespace rigstep::server
