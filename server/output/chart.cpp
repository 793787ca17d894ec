#include "server/output/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "server/output/markup.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

constexpr double kWidth = 760.0, kHeight = 480.0;
constexpr double kLeft = 80.0, kRight = 210.0, kTop = 45.0, kBottom = 60.0;
constexpr double kLegendRow = 18.0;
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#000000", "#7f7f7f"};

// One direction of the chart: values -> pixels, and where its ticks are.
class Axis {
 public:
  Axis(bool log, bool from_zero, double low, double high, double from, double to) : log_(log), from_(from), to_(to) {
    if (log_) {
      low_ = std::floor(std::log10(low) + 1e-9);
      high_ = std::max(low_ + 1.0, std::ceil(std::log10(high) - 1e-9));
      for (double d = low_; d <= high_ + 0.5; d += 1.0) ticks_.push_back(std::pow(10.0, d));
    } else {
      if (from_zero) low = std::min(low, 0.0);
      // between neighbouring numbers there is nothing to divide
      const double least = std::max(1e-9 * std::max(std::abs(low), std::abs(high)), 1e-300);
      if (!(high > low)) low -= std::max(0.5, least), high += std::max(0.5, least);
      if (high - low < least) low -= least, high += least;
      const double raw = (high - low) / 6.0, decade = std::pow(10.0, std::floor(std::log10(raw)));
      const double steps[] = {1.0, 2.0, 5.0, 10.0};
      const double step = decade * *std::find_if(steps, steps + 3, [&](double s) { return s * decade >= raw; });
      const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
      low_ = step * first;
      high_ = step * last;
      for (int k = 0; k <= static_cast<int>(last - first); ++k) ticks_.push_back(step * (first + k));
    }
  }
  double at(double value) const {
    const double v = log_ ? std::log10(value) : value;
    return from_ + (to_ - from_) * (v - low_) / (high_ - low_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  bool log_;
  double from_, to_, low_ = 0.0, high_ = 1.0;
  std::vector<double> ticks_;
};

std::string text(double x, double y, const char* anchor, const std::string& what, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escape_markup(what));
}

std::string line(double x1, double y1, double x2, double y2, const char* colour, const std::string& more = "") {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1, x2,
                     y2, colour, more);
}

// The legend stands beside the panel and may be longer than that.
double height_of(const Chart& chart) {
  return std::max(kHeight, kTop + 20.0 + kLegendRow * static_cast<double>(chart.lines.size()));
}

// Of lines of one colour.
std::string dashes(std::size_t line) {
  const std::size_t kind = line / std::size(kColours);
  return kind == 0 ? "" : fmt::format(" stroke-dasharray=\"{} 3\"", 12 / (1 + kind % 4));
}

std::string opening(const std::string& title, double height = kHeight) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
             "font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             kWidth, height) +
         text(kLeft, 25.0, "start", title, " font-size=\"17\" font-weight=\"bold\"");
}

std::string labels(const std::string& x, const std::string& y) {
  return text(0.5 * (kLeft + kWidth - kRight), kHeight - 18.0, "middle", x) +
         fmt::format("<g transform=\"translate(20 {:.1f}) rotate(-90)\">{}</g>\n", 0.5 * (kTop + kHeight - kBottom),
                     text(0.0, 0.0, "middle", y));
}

}  // namespace

std::string to_svg(const Chart& chart) {
  double low[2] = {1e300, 1e300}, high[2] = {chart.is_curve ? -1e300 : 0.0, chart.is_curve ? -1e300 : 0.0};
  for (const ChartLine& l : chart.lines)
    for (const auto& [px, py] : l.points) {
      low[0] = std::min(low[0], px);
      high[0] = std::max(high[0], px);
      low[1] = std::min(low[1], py);
      high[1] = std::max(high[1], py);
    }
  const bool is_empty = low[0] > high[0] || (!chart.is_curve && high[0] <= 0.0);
  if (is_empty) low[0] = low[1] = high[0] = high[1] = 1.0;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const Axis x(chart.log_x, !chart.is_curve, low[0], high[0], kLeft, right),
      y(chart.log_y, !chart.is_curve, low[1], high[1], bottom, kTop);

  std::string svg = opening(chart.title, height_of(chart));
  for (const double t : x.ticks()) {
    svg += line(x.at(t), kTop, x.at(t), bottom, "#dddddd");
    svg += text(x.at(t), bottom + 18.0, "middle", fmt::format("{:g}", t));
  }
  for (const double t : y.ticks()) {
    svg += line(kLeft, y.at(t), right, y.at(t), "#dddddd");
    svg += text(kLeft - 8.0, y.at(t) + 4.0, "end", fmt::format("{:g}", t));
  }
  svg += line(kLeft, bottom, right, bottom, "black") + line(kLeft, kTop, kLeft, bottom, "black");
  svg += labels(chart.x_label, chart.y_label);
  for (std::size_t k = 0; k < chart.lines.size(); ++k) {
    const char* colour = kColours[k % std::size(kColours)];
    std::string points, marks;
    for (const auto& [px, py] : chart.lines[k].points) {
      points += fmt::format("{:.1f},{:.1f} ", x.at(px), y.at(py));
      if (chart.is_curve && !chart.lines[k].is_marks) continue;
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.at(px), y.at(py), colour);
    }
    if (chart.lines[k].is_marks) points.clear();
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n{}", points,
                       colour, dashes(k), marks);
    const double row = kTop + 10.0 + kLegendRow * static_cast<double>(k);
    svg += line(right + 12.0, row, right + 34.0, row, colour, dashes(k)) +
           text(right + 40.0, row + 4.0, "start", chart.lines[k].name);
  }
  return svg + "</svg>\n";
}

std::string to_svg(const std::vector<Chart>& panels) {
  double height = 0.0;
  std::string inner;
  for (const Chart& panel : panels) {
    inner += fmt::format("<svg y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\">\n{}</svg>\n", height, kWidth,
                         height_of(panel), to_svg(panel));
    height += height_of(panel);
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\">\n", kWidth, height) +
         inner + "</svg>\n";
}

std::string to_svg(const RegionMap& map) {
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const double width = (right - kLeft) / static_cast<double>(map.x.size());
  const double height = (bottom - kTop) / static_cast<double>(map.y.size());
  std::string svg = opening(map.title);
  for (std::size_t row = 0; row < map.y.size(); ++row)
    for (std::size_t column = 0; column < map.x.size(); ++column)
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                         kLeft + width * static_cast<double>(column), bottom - height * static_cast<double>(row + 1),
                         width, height, kColours[map.winner[row * map.x.size() + column]]);
  for (std::size_t column = 0; column < map.x.size(); ++column)
    svg += text(kLeft + width * (static_cast<double>(column) + 0.5), bottom + 18.0, "middle",
                fmt::format("{:g}", map.x[column]));
  for (std::size_t row = 0; row < map.y.size(); ++row)
    svg += text(kLeft - 8.0, bottom - height * (static_cast<double>(row) + 0.5) + 4.0, "end",
                fmt::format("{:g}", map.y[row]));
  svg += labels(map.x_label, map.y_label);
  for (std::size_t k = 0; k < map.names.size(); ++k) {
    const double row = kTop + 10.0 + 18.0 * static_cast<double>(k);
    svg +=
        line(right + 12.0, row, right + 34.0, row, kColours[k]) + text(right + 40.0, row + 4.0, "start", map.names[k]);
  }
  return svg + "</svg>\n";
}

void write_svg(const Chart& chart, const std::string& path) { write_text(path, to_svg(chart)); }
void write_svg(const RegionMap& map, const std::string& path) { write_text(path, to_svg(map)); }

}  // namespace rigstep::server
