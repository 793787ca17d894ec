#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "server/bench/mechanisms.h"
#include "server/bench/solvers.h"
#include "server/output/chart.h"
#include "server/output/text_file.h"
#include "server/studies/index3.h"

namespace rigstep::server {

namespace {

constexpr double kStepLength = 0.01;                      // [s]
constexpr double kRealTime = 1e4;                         // [us] of such a step
constexpr int kRounds = 3;                                // in which all solvers take turns
constexpr int kPaperThreads = 8;                          // the paper's cores
constexpr double kPaperPhaseShares[] = {81.0, 9.5, 9.5};  // [%] Newton, velocities, accelerations

std::vector<int> chain_lengths(const StudyRequest& study) {
  return study.quick ? std::vector{2, 8, 32} : std::vector{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
}

std::vector<int> thread_counts() {
  std::vector<int> counts;
  for (int t = 1; t <= std::min(kPaperThreads, most_threads()); ++t) counts.push_back(t);
  return counts;
}

double median_time(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A chain of some size.
struct SpeedSample {
  int bodies = 0;
  std::vector<double> printed_us, stepper_us;  // (threads) of a step
  double printed_bytes = 0.0;                  // that the printed form works on
  double printed_lowest_us = 0.0;              // of it, on one thread: other work on the machine only adds to times
  offline::LiteralPhases phases;               // as printed: the last tangent for the projections
  offline::LiteralPhases modified;             // ... and the first one for all iterations
  double printed_at_1e9 = 0.0, printed_increment = 0.0,
         stepper_increment = 0.0;  // largest norm of the last one over 10 s [m, -]
  double share(double offline::LiteralPhases::*phase) const {
    return 100.0 * phases.*phase / (phases.newton + phases.velocities + phases.accelerations);
  }
};

// Medians over rounds in which all of them take turns.
void measure_times(const StudyRequest& study, const Mechanism& m, const std::vector<int>& threads,
                   SpeedSample& sample) {
  TimingProtocol protocol = quick_protocol();
  protocol.budget = study.brief_times ? 0.01 : 0.1;
  const std::size_t count = threads.size();
  std::size_t bytes = 0;
  std::vector<std::vector<double>> printed(count), stepper(count);
  for (int round = 0; round < (study.brief_times ? 1 : kRounds); ++round)
    for (std::size_t t = 0; t < count; ++t) {
      const StepTimes times = time_steps(timed_literal(m, kStepLength, false, &bytes, threads[t]), protocol);
      printed[t].push_back(times.median);
      if (t == 0 && (round == 0 || times.lowest < sample.printed_lowest_us))
        sample.printed_lowest_us = times.lowest, sample.printed_bytes = static_cast<double>(bytes);
      stepper[t].push_back(time_steps(timed_stepper(m, kStepLength, {.threads = threads[t]}), protocol).median);
    }
  for (std::size_t t = 0; t < count; ++t) {
    sample.printed_us.push_back(median_time(printed[t]));
    sample.stepper_us.push_back(median_time(stepper[t]));
  }
}

// The tangent of the last iteration serves the projections, as printed.
offline::LiteralPhases measure_phases(const StudyRequest& study, const Mechanism& m, bool modified_newton) {
  offline::LiteralSettings settings;
  settings.alpha = 1e9;
  settings.modified_newton = modified_newton;
  settings.refactorise_for_projections = false;
  settings.measure_phases = true;
  offline::LiteralStepper stepper(m, settings);
  const int steps = study.brief_times ? 20 : std::max(50, 20000 / static_cast<int>(m.bodies().size()));
  for (int k = 0; k < steps; ++k) stepper.step();
  return stepper.phases();
}

// The paper names the penalty factor of 128 links, 1e9, and none for other sizes. With it, and with one that suffices
// for all.
void find_increments(const StudyRequest& study, const Mechanism& m, SpeedSample& sample) {
  const int steps = study.quick ? 50 : 1000;
  offline::LiteralSettings settings;
  settings.alpha = 1e9;
  offline::LiteralStepper smaller(m, settings);
  settings.alpha = 1e12;
  offline::LiteralStepper printed(m, settings);
  index3::Settings own;
  own.dt_ns = settings.dt_ns;
  index3::Stepper stepper(m, own);
  for (int k = 0; k < steps; ++k) {
    if (std::isfinite(sample.printed_at_1e9)) sample.printed_at_1e9 = std::max(sample.printed_at_1e9, smaller.step());
    sample.printed_increment = std::max(sample.printed_increment, printed.step());
    sample.stepper_increment = std::max(sample.stepper_increment, stepper.step(Inputs{}).last_increment);
  }
}

void write_tables(const std::vector<SpeedSample>& samples, const std::vector<int>& threads,
                  const std::filesystem::path& folder) {
  std::string times = "bodies,threads,printed_us,stepper_us,printed_speedup,stepper_speedup\n";
  std::string phases =
      "bodies,newton_percent,velocities_percent,accelerations_percent,printed_increment,stepper_increment\n";
  for (const SpeedSample& s : samples) {
    for (std::size_t t = 0; t < threads.size(); ++t)
      times += fmt::format("{},{},{:.3f},{:.3f},{:.3f},{:.3f}\n", s.bodies, threads[t], s.printed_us[t],
                           s.stepper_us[t], s.printed_us[0] / s.printed_us[t], s.stepper_us[0] / s.stepper_us[t]);
    phases += fmt::format("{},{:.2f},{:.2f},{:.2f},{:.3e},{:.3e}\n", s.bodies, s.share(&offline::LiteralPhases::newton),
                          s.share(&offline::LiteralPhases::velocities), s.share(&offline::LiteralPhases::accelerations),
                          s.printed_increment, s.stepper_increment);
  }
  write_text(folder / "speed.csv", times);
  write_text(folder / "phases.csv", phases);
}

using Value = std::function<double(const SpeedSample&, std::size_t t)>;

// Against sizes with one line for each number of threads, or against threads with one line for each size.
Chart by_size(const std::string& title, const std::string& label, bool log, const std::vector<SpeedSample>& samples,
              const std::vector<int>& threads, const std::vector<std::pair<std::string, Value>>& values) {
  Chart chart{title, "bodies", label, true, log, {}};
  for (const auto& [name, value] : values)
    for (std::size_t t = 0; t < threads.size(); ++t) {
      ChartLine line{fmt::format("{}, {} thread{}", name, threads[t], threads[t] > 1 ? "s" : ""), {}};
      for (const SpeedSample& s : samples) line.points.push_back({s.bodies, value(s, t)});
      chart.lines.push_back(std::move(line));
    }
  return chart;
}

Chart by_threads(const std::string& title, const std::string& label, bool log, const std::vector<SpeedSample>& samples,
                 const std::vector<int>& threads, const Value& value) {
  Chart chart{title, "threads", label, false, log, {}};
  for (const SpeedSample& s : samples) {
    ChartLine line{fmt::format("{} bodies", s.bodies), {}};
    for (std::size_t t = 0; t < threads.size(); ++t) line.points.push_back({threads[t], value(s, t)});
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

void draw(const std::vector<SpeedSample>& samples, const std::vector<int>& threads, const std::filesystem::path& folder,
          StudyPart& part) {
  const auto add = [&](const std::string& file, const Chart& chart, const std::string& caption) {
    write_svg(chart, (folder / file).string());
    part.figures.push_back({file, caption});
  };
  const Value printed = [](const SpeedSample& s, std::size_t t) { return s.printed_us[t]; };
  const Value stepper = [](const SpeedSample& s, std::size_t t) { return s.stepper_us[t]; };
  const Value speedup = [](const SpeedSample& s, std::size_t t) { return s.printed_us[0] / s.printed_us[t]; };
  const Value own_speedup = [](const SpeedSample& s, std::size_t t) { return s.stepper_us[0] / s.stepper_us[t]; };
  const auto efficiency = [&threads](const Value& of) {
    return Value([of, &threads](const SpeedSample& s, std::size_t t) { return of(s, t) / threads[t]; });
  };
  Chart sequential = by_size("Sequential performance", "time of a step [us]", true, samples, {1},
                             {{"printed form", printed}, {"stepper", stepper}});
  ChartLine newton{"printed form, Newton alone", {}}, linear{"linear in the bodies", {}},
      real_time{"real time at 10 ms", {}};
  const SpeedSample& middle = samples[samples.size() / 2];
  for (const SpeedSample& s : samples) {
    newton.points.push_back({s.bodies, 0.01 * s.share(&offline::LiteralPhases::newton) * s.printed_us[0]});
    linear.points.push_back({s.bodies, middle.printed_us[0] * s.bodies / middle.bodies});
    real_time.points.push_back({s.bodies, kRealTime});
  }
  for (ChartLine* line : {&newton, &linear, &real_time}) sequential.lines.push_back(std::move(*line));
  add("figure12a_sequential.svg", sequential,
      "Figure 12a: the printed form on one thread, beside a line that is linear in the bodies; Newton's iterations "
      "take "
      "most of it.");
  add("figure12b_threads.svg",
      by_threads("Parallel performance, printed form", "time of a step [us]", true, samples, threads, printed),
      "Figure 12b: threads pay on long chains; short ones wait for each other at the barriers of every level.");
  const std::pair<std::string, Value> forms[] = {{"printed form", speedup}, {"stepper", own_speedup}};
  add("figure13a_speedup.svg", by_size("Speed-up by size", "speed-up", false, samples, threads, {forms[0], forms[1]}),
      "Figure 13a: the longer the chain, the larger the speed-up, of the paper's scheme (a loop with a barrier for "
      "every "
      "level) as of the stepper's (one part of the tree for each thread).");
  add("figure13b_speedup.svg",
      by_threads("Speed-up by threads, printed form", "speed-up", false, samples, threads, speedup),
      "Figure 13b: the same by threads.");
  add("figure14a_efficiency.svg",
      by_size("Parallel efficiency by size", "efficiency", false, samples, threads,
              {{"printed form", efficiency(speedup)}, {"stepper", efficiency(own_speedup)}}),
      "Figure 14a: efficiency rises with the size.");
  add("figure14b_efficiency.svg",
      by_threads("Parallel efficiency by threads, printed form", "efficiency", false, samples, threads,
                 efficiency(speedup)),
      "Figure 14b: efficiency falls with the threads.");
}

// p where the lowest time of the printed form grows as N^p
double cost_power(const SpeedSample& from, const SpeedSample& to) {
  return std::log(to.printed_lowest_us / from.printed_lowest_us) /
         std::log(static_cast<double>(to.bodies) / from.bodies);
}

// As the system tells it.
std::string own_cache() {
  const double size = 1e-6 * static_cast<double>(sysconf(_SC_LEVEL2_CACHE_SIZE));
  return size > 0.0 ? fmt::format("The core's own cache here has {:.1f} MB", size)
                    : "The system does not tell its caches";
}

// From sample `half` on: between which neighbours a body becomes dearer, and how the time grows on both sides of it.
std::string why_not_linear(const std::vector<SpeedSample>& samples, std::size_t half) {
  const auto a_body = [&samples](std::size_t k) { return samples[k].printed_lowest_us / samples[k].bodies; };
  std::size_t at = half + 1;
  for (std::size_t k = half + 1; k < samples.size(); ++k)
    if (a_body(k) / a_body(k - 1) > a_body(at) / a_body(at - 1)) at = k;
  std::string text = fmt::format(
      "a body becomes dearer most from {:.2f} us in a chain of {} to {:.2f} in one of {}, whose data have {:.1f} and "
      "{:.1f} MB. {}",
      a_body(at - 1), samples[at - 1].bodies, a_body(at), samples[at].bodies, 1e-6 * samples[at - 1].printed_bytes,
      1e-6 * samples[at].printed_bytes, own_cache());
  if (at - 1 > half)
    text += fmt::format("; from {} to {} the time grows as N^{:.2f}", samples[half].bodies, samples[at - 1].bodies,
                        cost_power(samples[half], samples[at - 1]));
  if (at + 1 < samples.size())
    text += fmt::format("; from {} to {} as N^{:.2f}", samples[at].bodies, samples.back().bodies,
                        cost_power(samples[at], samples.back()));
  return text;
}

// What a tangent costs in solutions, if three iterations with so many tangents take this share [%] of a step and two
// projections of one solution each the rest.
double solutions_of_a_tangent(double newton, double tangents) {
  return (2.0 * newton / (100.0 - newton) - 3.0) / tangents;
}

// What a step of 128 bodies takes of its 10 ms.
std::string real_time_of_128(const std::vector<SpeedSample>& samples) {
  const auto found = std::ranges::find(samples, 128, &SpeedSample::bodies);
  if (found == samples.end()) return "128 bodies were not measured";
  return fmt::format("{:.2f} of the 10 ms of a step on one thread", 1e-3 * found->printed_us[0]);
}

std::vector<Finding> find(const std::vector<SpeedSample>& samples, const std::vector<int>& threads) {
  const SpeedSample &first = samples.front(), &last = samples.back();
  double share[3] = {};
  for (const SpeedSample& s : samples) {
    share[0] += s.share(&offline::LiteralPhases::newton) / static_cast<double>(samples.size());
    share[1] += s.share(&offline::LiteralPhases::velocities) / static_cast<double>(samples.size());
    share[2] += s.share(&offline::LiteralPhases::accelerations) / static_cast<double>(samples.size());
  }
  double modified = 0.0;  // [%] of Newton's method
  for (const SpeedSample& s : samples)
    modified += 100.0 * s.modified.newton / (s.modified.newton + s.modified.velocities + s.modified.accelerations) /
                static_cast<double>(samples.size());
  bool near = true;
  for (int k = 0; k < 3; ++k) near = near && std::abs(share[k] - kPaperPhaseShares[k]) < 3.0;
  const std::size_t half = samples.size() / 2, most = threads.size() - 1;
  const double power = cost_power(samples[half], last);
  const bool enough = threads.back() >= kPaperThreads;
  const std::string cores =
      fmt::format("this machine has {} of the paper's {} cores: run it on one that has", threads.back(), kPaperThreads);
  const auto gain = [&](const SpeedSample& s) { return s.printed_us[0] / s.printed_us[most]; };
  return {
      {"The norm of the last of three increments stays below 1e-7 for 2 bodies", "section 5.2",
       "below 1e-7 over 10 s with alpha = 1e9, the paper's of section 4.4",
       fmt::format("{:.1e}; {:.1e} with 1e12; the stepper {:.1e}", first.printed_at_1e9, first.printed_increment,
                   first.stepper_increment),
       agrees_if(first.printed_at_1e9 < 1e-7),
       "the remainder of Newton's method, which the geometric stiffness lowers"},
      {"... and below 1e-3 for 1024 bodies", "section 5.2",
       "below 1e-3 over 10 s with alpha = 1e9, the paper's of section 4.4",
       fmt::format("{} for {}; {:.1e} with 1e12; the stepper {:.1e}",
                   std::isfinite(last.printed_at_1e9) ? fmt::format("{:.1e}", last.printed_at_1e9) : "it blows up",
                   last.bodies, last.printed_increment, last.stepper_increment),
       agrees_if(last.printed_at_1e9 < 1e-3),
       fmt::format(
           "tried with 1e12, beyond the range of equation (21), 1e6 to 1e9: it is {:.1e} then. With 1e9 one pass "
           "of the iteration hardly contracts on chains longer than 128 links. The paper does not say with "
           "which factor it ran {} bodies",
           last.printed_increment, last.bodies)},
      {"The cost is linear in the number of bodies", "section 5.2, figure 12a",
       fmt::format("lowest time as N^0.9 to N^1.1 from {} to {} bodies", samples[half].bodies, last.bodies),
       fmt::format("N^{:.2f}", power), agrees_if(power > 0.9 && power < 1.1), why_not_linear(samples, half)},
      {"Newton takes 81 % of the time, each projection 9.5 %", "section 5.2", "each share within 3 percentage points",
       fmt::format("{:.1f} / {:.1f} / {:.1f} %, mean over all sizes", share[0], share[1], share[2]), agrees_if(near),
       fmt::format(
           "these are three tangents, and one solution for each projection. With one tangent for all iterations, as "
           "section 6 suggests, Newton takes {:.1f} %. The rest is what a tangent costs in solutions: by its shares "
           "the paper's costs 1.8 if it makes three, 5.5 if it makes one; by our shares it costs {:.1f} and {:.1f}",
           modified, solutions_of_a_tangent(share[0], 3.0), solutions_of_a_tangent(modified, 1.0))},
      {"The speed-up and the efficiency rise with the size", "section 5.2, figures 13a and 14a",
       fmt::format("the speed-up on {} threads is larger for {} bodies than for {}", threads.back(), last.bodies,
                   first.bodies),
       fmt::format("{:.2f} against {:.2f}", gain(last), gain(first)),
       threads.size() < 2 ? Outcome::open : agrees_if(gain(last) > gain(first)),
       threads.size() < 2
           ? cores
           : "other programs on the same cores stop a thread for which all others wait at the next barrier"},
      {"The speed-up saturates, the efficiency falls with the threads", "section 5.2, figures 13b and 14b",
       "the efficiency on 8 threads is below that on 2, for every size",
       enough
           ? fmt::format("{:.2f} on {} threads for {} bodies", gain(last) / threads.back(), threads.back(), last.bodies)
           : fmt::format("measured on {} threads", threads.back()),
       !enough ? Outcome::open
               : agrees_if(std::ranges::all_of(samples,
                                               [&](const SpeedSample& s) {
                                                 return gain(s) / threads.back() <
                                                        0.5 * s.printed_us[0] / s.printed_us[1];
                                               })),
       enough ? "" : cores},
      {"128 bodies run in real time from four cores on", "section 5.2, figure 12b", "the paper's machine and program",
       real_time_of_128(samples), Outcome::open,
       "a time of the paper's processor of 2007, and its curve is in a figure that is missing"}};
}

std::string tables(const std::vector<SpeedSample>& samples, const std::vector<int>& threads) {
  std::string text =
      "## Sizes, section 5.2\n\nShares of a step as printed; largest norm of the last of three increments. The paper: "
      "81 / 9.5 / "
      "9.5 %, 1e-7 for 2 bodies, 1e-3 for 1024.\n\n"
      "| bodies | Newton | velocities | accelerations | increment, printed form | stepper "
      "|\n|---|---|---|---|---|---|\n";
  for (const SpeedSample& s : samples)
    text += fmt::format("| {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1e} | {:.1e} |\n", s.bodies,
                        s.share(&offline::LiteralPhases::newton), s.share(&offline::LiteralPhases::velocities),
                        s.share(&offline::LiteralPhases::accelerations), s.printed_increment, s.stepper_increment);
  text +=
      "\n## Times of a step\n\nMedians of rounds in which all take turns [us], in brackets the speed-up.\n\n| bodies |";
  std::string rule = "|---|";
  for (const char* form : {"printed form", "stepper"})
    for (const int t : threads) text += fmt::format(" {}, {} |", form, t), rule += "---|";
  text += "\n" + rule + "\n";
  for (const SpeedSample& s : samples) {
    text += fmt::format("| {} |", s.bodies);
    for (const std::vector<double>* us : {&s.printed_us, &s.stepper_us})
      for (const double time : *us) text += fmt::format(" {:.1f} ({:.2f}) |", time, us->front() / time);
    text += '\n';
  }
  return text + '\n';
}

}  // namespace

StudyPart index3_speed(const StudyRequest& study) {
  const std::vector<int> threads = thread_counts(), all = chain_lengths(study);
  std::vector<SpeedSample> samples;
  double total = 0.0, done = 0.0;
  for (const int bodies : all) total += 20.0 + bodies;
  for (const int bodies : all) {
    SpeedSample& sample = samples.emplace_back();
    sample.bodies = bodies;
    const Mechanism m = make_chain(bodies, JointType::spherical);
    measure_times(study, m, threads, sample);
    sample.phases = measure_phases(study, m, false);
    sample.modified = measure_phases(study, m, true);
    find_increments(study, m, sample);
    done += 20.0 + bodies;
    study.progress(done / total);
  }
  StudyPart part;
  write_tables(samples, threads, study.folder);
  draw(samples, threads, study.folder, part);
  part.findings = find(samples, threads);
  part.text = tables(samples, threads);
  part.summary = {
      fmt::format("Three Newton iterations leave {:.0e} for 2 bodies and {:.0e} for {} (the paper 1e-7 and 1e-3) with "
                  "a penalty factor that suffices for both, 1e12; the stepper leaves {:.0e} and {:.0e}.",
                  samples.front().printed_increment, samples.back().printed_increment, samples.back().bodies,
                  samples.front().stepper_increment, samples.back().stepper_increment)};
  return part;
}

}  // namespace rigstep::server
