#include "server/studies/hamiltonian_geometries.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "proto/load_mechanism.h"
#include "server/output/text_file.h"
#include "server/studies/hamiltonian_tables.h"

namespace rigstep::server {

namespace {

struct Point {
  double x = 0.0, y = 0.0;
};

// Links of 1 m one after the other, each with its angle to the horizontal.
struct LinkChain {
  Point start;
  std::vector<double> degrees;
  bool start_on_ground = true, end_on_ground = true;
};

struct Shape {
  int number;
  const char* words;
  bool of_study;
  std::vector<LinkChain> chains;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {1, "one link down, two across, one up", true, {{{}, {-90, 0, 0, 90}}}},
      {2, "one link down, six across, one up", true, {{{}, {-90, 0, 0, 0, 0, 0, 0, 90}}}},
      {2, "two links down, four across, two up", false, {{{}, {-90, -90, 0, 0, 0, 0, 90, 90}}}},
      {2, "three links down, two across, three up", false, {{{}, {-90, -90, -90, 0, 0, 90, 90, 90}}}},
      {3,
       "one link down, three across, one up; a square of three more hangs from the middle one",
       true,
       {{{}, {-90, 0, 0, 0, 90}}, {{1, -1}, {-90, 0, 90}, false, false}}},
      {3,
       "the same, the square stands on the middle one",
       false,
       {{{}, {-90, 0, 0, 0, 90}}, {{1, -1}, {90, 0, -90}, false, false}}},
      {3,
       "case 1 twice, the second hangs from the corners of the first",
       false,
       {{{}, {-90, 0, 0, 90}}, {{0, -1}, {-90, 0, 0, 90}, false, false}}},
      {3,
       "case 1, a V of four hangs from its corners",
       false,
       {{{}, {-90, 0, 0, 90}}, {{0, -1}, {-60, -60, 60, 60}, false, false}}},
      {3,
       "case 1, a rhombus of four hangs from its middle",
       false,
       {{{}, {-90, 0, 0, 90}}, {{1, -1}, {-135, -45, 45, 135}, false, false}}},
      {3,
       "one link down, four across, one up; a straight post of two from the ground above to the middle",
       false,
       {{{}, {-90, 0, 0, 0, 0, 90}}, {{2, 1}, {-90, -90}, true, false}}},
      {3,
       "the same, the post stands on the ground below",
       false,
       {{{}, {-90, 0, 0, 0, 0, 90}}, {{2, -3}, {90, 90}, true, false}}}};
  return all;
}

// The parts of a mechanism file.
struct Description {
  std::string bodies;
  std::vector<std::string> joints;
};

// Where links meet: the first one there carries a joint to each of the others.
class Meeting {
 public:
  void add(Point at, const std::string& body) {
    auto& first = first_[{std::lround(1e6 * at.x), std::lround(1e6 * at.y)}];
    if (first.empty())
      first = body;
    else
      joints.push_back(
          fmt::format("joint {{ name: \"j{}\" type: REVOLUTE first: \"{}\" second: \"{}\" at_start {{ point {{ x: {} "
                      "y: {} }} axis {{ z: 1 }} }} }}\n",
                      joints.size() + 1, first, body, at.x, at.y));
  }
  std::vector<std::string> joints;

 private:
  std::map<std::pair<long, long>, std::string> first_;
};

Description describe(const Shape& shape) {
  Description made;
  Meeting meeting;
  int count = 0;
  for (const LinkChain& chain : shape.chains) {
    Point from = chain.start;
    if (chain.start_on_ground) meeting.add(from, "ground");
    for (std::size_t k = 0; k < chain.degrees.size(); ++k) {
      const double angle = chain.degrees[k] * std::acos(-1.0) / 180.0;
      const Point to{from.x + std::cos(angle), from.y + std::sin(angle)};
      const std::string body = fmt::format("link_{}", ++count);
      made.bodies += fmt::format(
          "body {{ name: \"{}\" mass: 1 inertia {{ xx: 1 yy: 1 zz: 1 }} position {{ x: {} y: {} }} orientation {{ e0: "
          "{} e3: {} }} }}\n",
          body, 0.5 * (from.x + to.x), 0.5 * (from.y + to.y), std::cos(0.5 * angle), std::sin(0.5 * angle));
      meeting.add(from, body);
      if (k + 1 == chain.degrees.size() && chain.end_on_ground) meeting.add(to, "ground");
      meeting.add(to, body);
      from = to;
    }
  }
  made.joints = meeting.joints;
  return made;
}

// Orders of n joints, n no multiple of a stride's factors beyond 1: every stride-th one, from an offset on.
constexpr std::size_t kStrides[] = {1, 3, 7, 9};
constexpr std::size_t kOffsets[] = {0, 3, 6};

Mechanism in_order(const Description& of, std::size_t stride, std::size_t offset) {
  std::string text = "name: \"trial\"\ngravity { y: -9.81 }\n" + of.bodies;
  const std::size_t n = of.joints.size();
  std::vector<bool> written(n, false);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t j = (offset + k * stride) % n;
    while (written[j]) j = (j + 1) % n;
    written[j] = true;
    text += of.joints[j];
  }
  return config::parse_mechanism(text, "trial").mechanism;
}

GeometryTrial try_shape(const Shape& shape) {
  GeometryTrial trial;
  trial.number = shape.number;
  trial.shape = shape.words;
  trial.of_study = shape.of_study;
  const Description description = describe(shape);
  for (const std::size_t stride : kStrides)
    for (const std::size_t offset : kOffsets) {
      const Mechanism mechanism = in_order(description, stride, offset);
      for (int form = 0; form < 2; ++form) {
        const long count = count_evaluations(form, mechanism, tolerance(kAccuracy));
        if (stride == 1 && offset == 0) trial.as_written[form] = count;
        trial.orders[form].add(static_cast<double>(count));
      }
    }
  return trial;
}

}  // namespace

int joint_orders() { return static_cast<int>(std::size(kStrides) * std::size(kOffsets)); }

std::vector<GeometryTrial> try_geometries(const StudyRequest& study) {
  std::vector<GeometryTrial> trials;
  if (study.quick) return trials;
  std::string text = "case,shape,hdca,hdca_least,hdca_most,dca,dca_least,dca_most\n";
  for (const Shape& shape : shapes()) {
    const GeometryTrial& t = trials.emplace_back(try_shape(shape));
    text += fmt::format("{},\"{}\",{},{},{},{},{},{}\n", t.number, t.shape, t.as_written[0], t.orders[0].low,
                        t.orders[0].high, t.as_written[1], t.orders[1].low, t.orders[1].high);
  }
  write_text(study.folder / "geometries.csv", text);
  return trials;
}

std::string geometry_table(const std::vector<GeometryTrial>& trials) {
  if (trials.empty()) return {};
  std::string text = fmt::format(
      "## Shapes that were tried\n\nFigure 4 of the paper, the starting positions, is not in the text that we have. "
      "Evaluations of 10 s by ode45 at 1e-6: with the joints chain by chain, and from the least to the most over {} "
      "orders of the same joints, which change the spanning tree and the joints that are cut. The study's shapes are "
      "marked by *.\n\n| case | shape | HDCA | over orders | the paper | DCA | over orders | the paper "
      "|\n|---|---|---|---|---|---|---|---|\n",
      joint_orders());
  for (const GeometryTrial& t : trials)
    text += fmt::format("| {} | {}{} | {} | {} to {} | {:.0f} | {} | {} to {} | {:.0f} |\n", t.number, t.shape,
                        t.of_study ? " *" : "", t.as_written[0], t.orders[0].low, t.orders[0].high,
                        paper_count(t.number - 1, 0, kAccuracy, 0), t.as_written[1], t.orders[1].low, t.orders[1].high,
                        paper_count(t.number - 1, 0, kAccuracy, 1));
  return text + "\n";
}

}  // namespace rigstep::server
