#include "server/commands/assembled_start.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/mechanism/assembly.h"
#include "core/mechanism/orientation.h"
#include "proto/printable.h"
#include "proto/write_mechanism.h"
#include "server/exit_code.h"
#include "server/live/session.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

constexpr double kNothing = 1e-12;  // [m], [rad], [m/s] or [rad/s]: rounding

// From the start as it is written to the assembled one.
struct Move {
  const Body& to;
  double distance, turn, velocity, angular_velocity;  // [m] [rad] [m/s] [rad/s]

  Move(const Body& from, const Body& body)
      : to(body),
        distance((body.position_0 - from.position_0).norm()),
        turn(angle_between(from.orientation, body.orientation)),
        velocity((body.velocity_0 - from.velocity_0).norm()),
        angular_velocity((body.angular_velocity_0 - from.angular_velocity_0).norm()) {}
  bool is_nothing() const { return std::max({distance, turn, velocity, angular_velocity}) < kNothing; }

 private:
  static double angle_between(const EulerParameters& p, const EulerParameters& q) {
    const EulerParameters inverse{p[0], -p[1], -p[2], -p[3]};
    const EulerParameters turn = product(q, inverse);
    return 2.0 * std::atan2(turn.tail<3>().norm(), std::abs(turn[0]));
  }
};

struct AssembledStart {
  std::vector<Body> bodies;
  std::vector<Move> moves;
  double gap = 0.0;
  bool is_closed = true;
};

// Where the file holds something at the start, loading has assembled it already.
AssembledStart assembled(const config::LoadedMechanism& loaded) {
  AssembledStart start;
  if (loaded.as_written) {
    start.bodies = loaded.mechanism.bodies();
  } else {
    Assembled found = assemble(loaded.mechanism, {});
    start.bodies = std::move(found.bodies);
    start.gap = std::max(found.gap, found.rate_gap);
    start.is_closed = found.closed;
  }
  const std::vector<Body>& written = (loaded.as_written ? *loaded.as_written : loaded.mechanism).bodies();
  for (std::size_t i = 0; i < written.size(); ++i) start.moves.emplace_back(written[i], start.bodies[i]);
  return start;
}

double largest(const AssembledStart& start, double Move::*member) {
  double most = 0.0;
  for (const Move& move : start.moves) most = std::max(most, move.*member);
  return most;
}

nlohmann::json to_json(const AssembledStart& start) {
  nlohmann::json bodies = nlohmann::json::object();
  const auto numbers = [](const auto& vector) {
    return std::vector<double>(vector.data(), vector.data() + vector.size());
  };
  for (const Move& move : start.moves)
    if (!move.is_nothing())
      bodies[move.to.name] = {{"moved_m", move.distance},
                              {"turned_rad", move.turn},
                              {"velocity_changed_m_s", move.velocity},
                              {"angular_velocity_changed_rad_s", move.angular_velocity},
                              {"position", numbers(move.to.position_0)},
                              {"orientation", numbers(move.to.orientation)},
                              {"velocity", numbers(move.to.velocity_0)},
                              {"angular_velocity", numbers(move.to.angular_velocity_0)}};
  return {{"schema", 1},
          {"closed", start.is_closed},
          {"residual", start.gap},
          {"largest_move_m", largest(start, &Move::distance)},
          {"largest_turn_rad", largest(start, &Move::turn)},
          {"moved_bodies", bodies}};
}

void print_vector(const char* field, const Vec3& v, const char* unit) {
  print_text("        {:<17} {{ x: {:.17g} y: {:.17g} z: {:.17g} }}  # {}\n", field, v[0], v[1], v[2], unit);
}

double or_nothing(double change) { return change < kNothing ? 0.0 : change; }

void print_move(const Move& move) {
  print_text("    {:<20} moved {:.6g} m, turned {:.6g} rad; velocity by {:.6g} m/s, angular velocity by {:.6g} rad/s\n",
             move.to.name, or_nothing(move.distance), or_nothing(move.turn), or_nothing(move.velocity),
             or_nothing(move.angular_velocity));
  if (move.distance >= kNothing) print_vector("position", move.to.position_0, "[m]");
  const EulerParameters& p = move.to.orientation;
  if (move.turn >= kNothing)
    print_text("        {:<17} {{ e0: {:.17g} e1: {:.17g} e2: {:.17g} e3: {:.17g} }}\n", "orientation", p[0], p[1],
               p[2], p[3]);
  if (move.velocity >= kNothing) print_vector("velocity", move.to.velocity_0, "[m/s]");
  if (move.angular_velocity >= kNothing) print_vector("angular_velocity", move.to.angular_velocity_0, "[rad/s]");
}

void print_start(const AssembledStart& start, bool is_led) {
  const auto still =
      std::count_if(start.moves.begin(), start.moves.end(), [](const Move& m) { return m.is_nothing(); });
  print_text("nearest start    {}: {:.1e} m or rad stay open{}\n", start.is_closed ? "found" : "NOT FOUND", start.gap,
             is_led ? "; what `start` holds is held" : "; nothing is held (`start` in the file would)");
  for (const Move& move : start.moves)
    if (!move.is_nothing()) print_move(move);
  if (still > 0) print_text("    {} of {} bodies stay as they are written\n", still, start.moves.size());
}

// Nothing but a mechanism is replaced by one.
void require_replaceable(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return;
  try {
    load_mechanism_file(path);
  } catch (const Error&) {
    throw config::ConfigError("--write: " + path + " is no mechanism file and is kept: name another file");
  }
}

}  // namespace

int assemble_start(const config::LoadedMechanism& loaded, const AssembleRequest& request) {
  require_replaceable(request.write);
  const AssembledStart start = assembled(loaded);
  if (request.json)
    print_json(to_json(start));
  else
    print_start(start, loaded.as_written.has_value());
  if (!start.is_closed) {
    print_error("rigstep: {}: no consistent pose near the start: check lengths, axes and the start pose", loaded.path);
    return kExitMechanism;
  }
  if (request.write.empty()) return kExitOk;
  if (std::all_of(start.moves.begin(), start.moves.end(), [](const Move& move) { return move.is_nothing(); }))
    throw config::ConfigError("--write: " + request.write +
                              " is not written, since nothing would change: the start of " + loaded.path +
                              " satisfies every joint as it is: leave --write out");
  const config::EditedText edited = config::with_start(loaded, start.bodies);
  write_text(request.write, edited.text);
  if (!request.json)
    print_text("wrote            {}: {} places differ from {}, comments and layout are kept\n",
               wire::printable_line(request.write), edited.changed, wire::printable_line(loaded.path));
  return kExitOk;
}

}  // namespace rigstep::server
