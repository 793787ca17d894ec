#include <fmt/format.h>

#include <cmath>

#include "core/offline/featherstone_dca.h"
#include "proto/load_mechanism.h"
#include "server/output/chart.h"
#include "server/output/text_file.h"
#include "server/studies/index3.h"
#include "server/studies/printed_run.h"

namespace rigstep::server {

namespace {

constexpr std::int64_t kStep = 10'000'000;     // [ns] in all three cases
constexpr double kLink = 1.0;                  // [m]
constexpr double kReferenceTolerance = 1e-10;  // of what the circles show
constexpr double kReproduced = 0.01;           // of a link: the motion is that of the reference
constexpr double kConserved = 0.01;            // of the largest kinetic energy
constexpr const char* kLevels[] = {"positions", "velocities", "accelerations"};

using Pick = std::function<double(const PrintedSample&)>;

ChartLine curve(const std::string& name, const PrintedRun& run, const Pick& pick, double until) {
  ChartLine line{name, {}};
  for (const PrintedSample& at : run.samples)
    if (at.time <= until + 1e-9) line.points.push_back({at.time, pick(at)});
  return line;
}

ChartLine circles(int axis, const offline::Trajectory& run,
                  const std::function<double(const offline::Instant&)>& pick) {
  ChartLine line{fmt::format("{}, reference", "xyz"[axis]), {}, true};
  for (const offline::Instant& at : run.instants) line.points.push_back({at.time, pick(at)});
  return line;
}

Chart over_time(const std::string& title, const std::string& label, std::vector<ChartLine> lines, bool log = false) {
  Chart chart{title, "time [s]", label, false, log, std::move(lines), true};
  return chart;
}

class Figures {
 public:
  Figures(const StudyRequest& study, StudyPart& part) : study_(study), part_(part) {}
  void add(const std::string& file, const Chart& chart, const std::string& caption) {
    write_svg(chart, (study_.folder / file).string());
    part_.figures.push_back({file, caption});
  }

 private:
  const StudyRequest& study_;
  StudyPart& part_;
};

void write_table(const StudyRequest& study, const std::string& file, const PrintedRun& run, int watched) {
  std::string text =
      "t_s,x_m,y_m,z_m,vx_m_s,vy_m_s,vz_m_s,ax_m_s2,ay_m_s2,az_m_s2,Fx_N,Fy_N,Fz_N,kinetic_J,potential_J,energy_J,"
      "positions,velocities,accelerations\n";
  for (const PrintedSample& at : run.samples) {
    text += fmt::format("{:g}", at.time);
    for (const Vec3* vector : {&at.r_0[static_cast<std::size_t>(watched)], &at.v_0, &at.a_0, &at.force_0})
      text += fmt::format(",{:.9g},{:.9g},{:.9g}", vector->x(), vector->y(), vector->z());
    text += fmt::format(",{:.9g},{:.9g},{:.6e},{:.3e},{:.3e},{:.3e}\n", at.kinetic, at.potential, at.energy(),
                        at.violation[0], at.violation[1], at.violation[2]);
  }
  write_text(study.folder / file, text);
}

Chart violation_chart(const std::string& title, const PrintedRun& run, double until) {
  std::vector<ChartLine> lines;
  for (std::size_t level = 0; level < 3; ++level)
    lines.push_back(curve(
        kLevels[level], run, [level](const PrintedSample& at) { return std::max(kSmallest, at.violation[level]); },
        until));
  return over_time(title, "norm of all constraints [SI units]", std::move(lines), true);
}

Chart vector_chart(const std::string& title, const std::string& label, const PrintedRun& run, double until,
                   const std::function<Vec3(const PrintedSample&)>& vector, bool spatial) {
  std::vector<ChartLine> lines;
  for (int axis = 0; axis < (spatial ? 3 : 2); ++axis)
    lines.push_back(curve(
        std::string(1, "xyz"[axis]), run, [&](const PrintedSample& at) { return vector(at)[axis]; }, until));
  return over_time(title, label, std::move(lines));
}

offline::Trajectory reference(const Mechanism& mechanism, double duration) {
  offline::Scenario scenario;
  scenario.mechanism = &mechanism;
  for (int k = 0; 0.25 * k <= duration + 1e-9; ++k) scenario.instants.push_back(0.25 * k);
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = kReferenceTolerance;
  return offline::featherstone_dca(scenario, options);
}

// The four-bar as its one freedom moves, through the singular pose on the right branch: 3.5 phi'' = -2 g cos(phi), by
// Runge-Kutta's method.
offline::Trajectory exact_four_bar(double duration) {
  constexpr double kShort = 1e-4, kStart = 0.7853981633974483, kGravity = 9.81;
  const auto acceleration = [](double phi) { return -2.0 * kGravity * std::cos(phi) / 3.5; };
  double phi = kStart, rate = 0.0;
  offline::Trajectory run;
  for (long k = 0; static_cast<double>(k) * kShort <= duration + 1e-9; ++k) {
    if (k % 2500 == 0) {
      offline::Instant& at = run.instants.emplace_back();
      at.time = static_cast<double>(k) * kShort;
      const Vec3 link(std::cos(phi), std::sin(phi), 0.0);
      at.body.resize(3);
      at.body[0].r_0 = 0.5 * link;
      at.body[1].r_0 = link + 0.5 * Vec3::UnitY();
      at.body[2].r_0 = 0.5 * link + Vec3::UnitY();
    }
    const double h = kShort, a1 = acceleration(phi), v2 = rate + 0.5 * h * a1;
    const double a2 = acceleration(phi + 0.5 * h * rate), v3 = rate + 0.5 * h * a2;
    const double a3 = acceleration(phi + 0.5 * h * v2), v4 = rate + h * a3, a4 = acceleration(phi + h * v3);
    phi += h / 6.0 * (rate + 2.0 * v2 + 2.0 * v3 + v4);
    rate += h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4);
  }
  return run;
}

double mean_energy(const PrintedRun& run, double from, double until) {
  double sum = 0.0, count = 0.0;
  for (const PrintedSample& at : run.samples)
    if (at.time >= from && at.time <= until) sum += at.energy(), count += 1.0;
  return sum / count;
}

// compare(sample, instant) at the instants of the reference, as far as the run came
template <class Compare>
void at_instants(const PrintedRun& run, const offline::Trajectory& reference, double dt, const Compare& compare) {
  for (const offline::Instant& at : reference.instants) {
    const auto k = static_cast<std::size_t>(std::lround(at.time / dt));
    if (k >= run.samples.size()) break;
    compare(run.samples[k], at);
  }
}

// Largest distance of a mass centre from the reference at its instants [m].
double distance(const PrintedRun& run, const offline::Trajectory& reference, double dt) {
  double largest = 0.0;
  at_instants(run, reference, dt, [&](const PrintedSample& sample, const offline::Instant& at) {
    for (std::size_t b = 0; b < at.body.size(); ++b)
      largest = std::max(largest, (sample.r_0[b] - at.body[b].r_0).norm());
  });
  return largest;
}

// Largest difference of the force of the first joint, and the largest force [N].
std::pair<double, double> force_difference(const PrintedRun& run, const offline::Trajectory& reference, double dt) {
  double largest = 0.0, force = 0.0;
  at_instants(run, reference, dt, [&](const PrintedSample& sample, const offline::Instant& at) {
    largest = std::max(largest, (sample.force_0 - at.reaction[0].force_0).norm());
    force = std::max(force, at.reaction[0].force_0.norm());
  });
  return {largest, force};
}

// Whether positions are satisfied best, then velocities, then accelerations; the claim of figures 5 and 7.
Finding levels_finding(const std::string& which, const std::string& source, const PrintedRun& run) {
  return {fmt::format("{}: constraint violations are kept under control, those of positions the smallest", which),
          source,
          "positions below velocities below accelerations, positions below 1e-3 of a link",
          fmt::format("largest norms {:.1e} m, {:.1e} m/s, {:.1e} m/s^2", run.largest_violation(0),
                      run.largest_violation(1), run.largest_violation(2)),
          agrees_if(run.largest_violation(0) < run.largest_violation(1) &&
                    run.largest_violation(1) < run.largest_violation(2) && run.largest_violation(0) < 1e-3 * kLink),
          "one pass of a projection leaves eps / (eps + W) of a violation, eps = 4 / (alpha dt^2): it grows as alpha "
          "falls"};
}

Finding energy_finding(const std::string& claim, const std::string& source, const PrintedRun& run) {
  const double kinetic = run.highest_kinetic().kinetic, error = run.largest_energy_error();
  return {claim,
          source,
          "within 1 % of the largest kinetic energy over the whole run",
          fmt::format("at most {:.3g} J off, {:.2g} % of {:.4g} J", error, 100.0 * error / kinetic, kinetic),
          agrees_if(error < kConserved * kinetic),
          "the error of the trapezoidal rule, which falls with the square of the step"};
}

offline::LiteralSettings settings(double alpha, int iterations) {
  offline::LiteralSettings of;
  of.dt_ns = kStep;
  of.alpha = alpha;
  of.iterations = iterations;
  return of;
}

StudyPart double_pendulum(const StudyRequest& study) {
  StudyPart part;
  Figures figures(study, part);
  const Mechanism m = config::load_mechanism(study.mechanism_file("double_pendulum")).mechanism;
  const double duration = study.quick ? 1.0 : 10.0, much_longer = study.quick ? 2.0 : 1000.0;
  const PrintedRun run = run_printed(m, settings(1e6, 3), duration, 0);
  const PrintedRun far = run_printed(m, settings(1e6, 3), much_longer, 0);
  const PrintedRun sharp = run_printed(m, settings(1e10, 3), much_longer, 0);
  const offline::Trajectory exact = reference(m, duration);
  write_table(study, "case_4_2.csv", run, 0);

  Chart positions = vector_chart(
      "Spatial double pendulum: position of body A", "r [m]", run, duration,
      [](const PrintedSample& at) { return at.r_0[0]; }, true);
  for (int axis = 0; axis < 3; ++axis)
    positions.lines.push_back(
        circles(axis, exact, [axis](const offline::Instant& at) { return at.body[0].r_0[axis]; }));
  figures.add("figure4_position.svg", positions,
              "Figure 4, left: position of body A. The curves run through the circles of the independent solver.");
  Chart force = vector_chart(
      "Spatial double pendulum: constraint force at joint 1", "F [N]", run, duration,
      [](const PrintedSample& at) { return at.force_0; }, true);
  for (int axis = 0; axis < 3; ++axis)
    force.lines.push_back(
        circles(axis, exact, [axis](const offline::Instant& at) { return at.reaction[0].force_0[axis]; }));
  figures.add("figure4_force.svg", force, "Figure 4, right: what joint 1 exerts on body A, with the same circles.");
  figures.add("figure5_violation.svg", violation_chart("Spatial double pendulum: constraint violations", run, duration),
              "Figure 5, left: positions are satisfied best, accelerations worst; none of them grows.");
  figures.add("figure5_energy.svg",
              over_time("Spatial double pendulum: total energy", "E [J]",
                        {curve("total energy", run, &PrintedSample::energy, duration)}),
              "Figure 5, right: the energy stays within hundredths of a joule of zero.");

  const double early = mean_energy(far, 0.0, 0.1 * much_longer),
               late = mean_energy(far, 0.9 * much_longer, much_longer);
  const double apart = distance(run, exact, 1e-9 * kStep);
  const auto [force_apart, largest_force] = force_difference(run, exact, 1e-9 * kStep);
  part.findings = {
      {"Double pendulum: positions and constraint forces match those of another program", "section 4.2, figure 4",
       "positions within 1 % of a link, forces of joint 1 within 1 % of the largest, at all instants",
       fmt::format("at most {:.1e} m and {:.1e} of {:.0f} N apart over {:g} s", apart, force_apart, largest_force,
                   duration),
       agrees_if(apart < kReproduced * kLink && force_apart < kReproduced * largest_force),
       "the error of the trapezoidal rule, which falls with the square of the step"},
      levels_finding("Double pendulum", "section 4.2, figure 5", run),
      energy_finding("Double pendulum: the total energy is well conserved, approximately zero", "section 4.2, figure 5",
                     run),
      {"Double pendulum: over longer simulations a slight tendency to lose energy", "section 4.2, figure 5",
       "the mean of the last tenth of 1000 s is below that of the first, by less than 1 % of the largest kinetic "
       "energy",
       fmt::format("{:+.2e} J in the first tenth of {:g} s, {:+.2e} J in the last", early, much_longer, late),
       agrees_if(far.blown_up_at == 0 && late < early && early - late < kConserved * far.highest_kinetic().kinetic),
       fmt::format("one pass of the projections with 1e6 leaves a part of every violation, and energy with it. With "
                   "1e10 the mean "
                   "goes from {:+.2e} J to {:+.2e} J",
                   mean_energy(sharp, 0.0, 0.1 * much_longer), mean_energy(sharp, 0.9 * much_longer, much_longer))}};
  part.summary = {fmt::format(
      "The double pendulum of section 4.2 goes where an independent solver takes it, to {:.1e} m in {:g} s at "
      "steps of 10 ms, with the paper's penalty factor 1e6.",
      apart, duration)};
  return part;
}

StudyPart four_bar(const StudyRequest& study) {
  StudyPart part;
  Figures figures(study, part);
  const Mechanism m = config::load_mechanism(study.mechanism_file("four_bar")).mechanism;
  const double duration = study.quick ? 1.5 : 30.0, shown = std::min(duration, 10.0);
  const PrintedRun run = run_printed(m, settings(1e6, 4), duration, 0);
  const offline::Trajectory exact = exact_four_bar(duration);
  write_table(study, "case_4_3.csv", run, 0);

  struct Plot {
    const char *file, *title, *label, *caption;
    std::function<Vec3(const PrintedSample&)> vector;
  };
  const Plot plots[] = {{"figure6_position.svg", "Four-bar: position of body A", "r [m]",
                         "Figure 6: position of body A, with circles of the exact motion of its one freedom.",
                         [](const PrintedSample& at) { return at.r_0[0]; }},
                        {"figure6_velocity.svg", "Four-bar: velocity of body A", "v [m/s]",
                         "Figure 6: velocity of body A, smooth through the poses where the links are in line.",
                         [](const PrintedSample& at) { return at.v_0; }},
                        {"figure6_acceleration.svg", "Four-bar: acceleration of body A", "a [m/s^2]",
                         "Figure 6: acceleration of body A; nothing jumps where the links are in line.",
                         [](const PrintedSample& at) { return at.a_0; }},
                        {"figure6_force.svg", "Four-bar: constraint load at joint 1", "F [N]",
                         "Figure 6: what joint 1 exerts on body A, without sudden changes.",
                         [](const PrintedSample& at) { return at.force_0; }}};
  for (const Plot& plot : plots) {
    Chart chart = vector_chart(plot.title, plot.label, run, shown, plot.vector, false);
    if (&plot == &plots[0])
      for (int axis = 0; axis < 2; ++axis) {
        chart.lines.push_back(
            circles(axis, exact, [axis](const offline::Instant& at) { return at.body[0].r_0[axis]; }));
        std::erase_if(chart.lines.back().points, [&](const auto& point) { return point.first > shown; });
      }
    figures.add(plot.file, chart, plot.caption);
  }
  figures.add("figure7_violation.svg", violation_chart("Four-bar: constraint violations", run, duration),
              "Figure 7, left: bounded over 30 s of passes through the singular pose; positions are satisfied best.");
  figures.add(
      "figure7_energy.svg",
      over_time("Four-bar: total energy", "E [J]", {curve("total energy", run, &PrintedSample::energy, duration)}),
      "Figure 7, right: small oscillations, and next to no loss.");

  const double apart = distance(run, exact, 1e-9 * kStep);
  part.findings = {
      {"Four-bar: it passes the singular pose again and again, with redundant constraints, and matches another program",
       "section 4.3, figure 6", "no blow-up, and positions within 1 % of a link to the end",
       fmt::format("at most {:.1e} m apart over {:g} s", apart, duration),
       agrees_if(run.blown_up_at == 0 && apart < kReproduced * kLink),
       "where it takes the other branch the distance is of the size of a link"},
      levels_finding("Four-bar", "section 4.3, figure 7", run),
      energy_finding("Four-bar: the total energy oscillates little", "section 4.3, figure 7", run),
      {"Four-bar: a tendency to marginal loss of energy", "section 4.3, figure 7",
       "the mean of the last second is below that of the first", "", Outcome::open, ""}};
  // one swing takes 4.05 s
  const double swing = std::min(4.0548, 0.5 * duration), first = mean_energy(run, 0.0, swing),
               last = mean_energy(run, duration - swing, duration);
  Finding& loss = part.findings.back();
  loss.criterion =
      "the mean over the last swing is below that over the first, by less than 1 % of the largest kinetic energy";
  loss.ours = fmt::format("{:+.2e} J in the first swing, {:+.2e} J in the last", first, last);
  loss.outcome = agrees_if(last < first && first - last < kConserved * run.highest_kinetic().kinetic);
  loss.reason = "the loss by projections with the paper's alpha, 1e6, is smaller than what the steps waver by";
  part.summary = {
      fmt::format("The four-bar of section 4.3 keeps to its branch through the singular pose for {:g} s, within {:.1e} "
                  "m of the exact "
                  "motion of its one freedom.",
                  duration, apart)};
  return part;
}

StudyPart multilink_pendulum(const StudyRequest& study) {
  StudyPart part;
  Figures figures(study, part);
  const Mechanism m = config::load_mechanism(study.mechanism_file("chain_128")).mechanism;
  const int links = static_cast<int>(m.bodies().size()), last = links - 1;
  const double duration = study.quick ? 2.0 : 10.0;
  const PrintedRun run = run_printed(m, settings(1e9, 3), duration, last);
  write_table(study, "case_4_4.csv", run, last);

  Chart snapshots{fmt::format("Swinging chain of {} bodies", links), "x [m]", "y [m]", false, false, {}, true};
  for (int k = 0; k <= 10; ++k) {
    const auto step = static_cast<std::size_t>(std::lround(0.1 * k * duration / (1e-9 * kStep)));
    if (step >= run.samples.size()) break;
    ChartLine line{fmt::format("{:g} s", run.samples[step].time), {{0.0, 0.0}}};
    for (const Vec3& at : run.samples[step].r_0) line.points.push_back({at.x(), at.y()});
    snapshots.lines.push_back(std::move(line));
  }
  figures.add("figure9_snapshots.svg", snapshots,
              "Figure 9: the chain from the straight start on; at the bottom its end whips round.");
  figures.add("figure10_position.svg",
              vector_chart(
                  "Multilink pendulum: position of the last body", "r [m]", run, duration,
                  [last](const PrintedSample& at) { return at.r_0[static_cast<std::size_t>(last)]; }, false),
              "Figure 10, left: a swing, then fast motion of small amplitude.");
  figures.add("figure10_velocity.svg",
              vector_chart(
                  "Multilink pendulum: velocity of the last body", "v [m/s]", run, duration,
                  [](const PrintedSample& at) { return at.v_0; }, false),
              "Figure 10, left: the whip shows as a peak of the velocity.");
  figures.add("figure10_force.svg",
              vector_chart(
                  "Multilink pendulum: constraint load at joint 1", "F [N]", run, duration,
                  [](const PrintedSample& at) { return at.force_0; }, false),
              "Figure 10, right: the load at joint 1 is the largest when the chain is vertical.");
  figures.add("figure10_energies.svg",
              over_time("Multilink pendulum: energies", "E [J]",
                        {curve(
                             "kinetic", run, [](const PrintedSample& at) { return at.kinetic; }, duration),
                         curve(
                             "potential", run, [](const PrintedSample& at) { return at.potential; }, duration),
                         curve("total", run, &PrintedSample::energy, duration)}),
              "Figure 10, right: potential energy turns into kinetic energy and back, the total stays.");
  figures.add("figure11_violation.svg", violation_chart("Multilink pendulum: constraint violations", run, duration),
              "Figure 11, left: the whip disturbs the constraints, and they settle again.");
  figures.add("figure11_energy.svg",
              over_time("Multilink pendulum: total energy", "E [J]",
                        {curve("total energy", run, &PrintedSample::energy, duration)}),
              "Figure 11, right: the dip of the whip, which is the trapezoidal rule's error.");
  part.findings = {levels_finding("Multilink pendulum", "section 4.4, figure 11", run)};
  return part;
}

}  // namespace

StudyPart index3_cases(const StudyRequest& study) {
  StudyPart all;
  int done = 0;
  for (StudyPart (*perform)(const StudyRequest&) : {double_pendulum, four_bar, multilink_pendulum}) {
    all.add(perform(study));
    study.progress(++done / 3.0);
  }
  return all;
}

}  // namespace rigstep::server
