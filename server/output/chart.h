// Line charts as standalone SVG files. Offline.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rigstep::server {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool is_marks = false;  // circles alone
};

struct Chart {
  std::string title, x_label, y_label;
  bool log_x = true, log_y = true;  // decades; values must be positive then
  std::vector<ChartLine> lines;
  bool is_curve = false;  // of many points: no marks, and the y axis need not begin at zero
};

std::string to_svg(const Chart& chart);
// One below the other.
std::string to_svg(const std::vector<Chart>& panels);

// A grid of cells, each of the colour of one of the names: which of them wins where.
struct RegionMap {
  std::string title, x_label, y_label;
  std::vector<double> x, y;        // of the columns and rows
  std::vector<std::string> names;  // at most eight
  std::vector<int> winner;         // (y x x) index of a name, row by row
};

std::string to_svg(const RegionMap& map);

// Throws FileError.
void write_svg(const RegionMap& map, const std::string& path);
void write_svg(const Chart& chart, const std::string& path);

}  // namespace rigstep::server
