#include "server/live/replay.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "core/index3/compile/plan.h"
#include "proto/bounds.h"
#include "proto/printable.h"
#include "proto/recording_reader.h"
#include "rt/cycle.h"
#include "rt/thread_setup.h"
#include "server/live/commission_verdict.h"
#include "server/live/recorder.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

constexpr double kOtherBuildTolerance = 1e-9;  // [m, m/s, ...] between builds or processors that round differently

void check_header(const std::string& path, const wire::RecordingHeader& header, const Mechanism& mechanism) {
  if (header.mechanism_id() != mechanism.id())
    throw wire::RecordingError(path, "its mechanism reads differently in this version than when it was recorded",
                               "replay it with version " + header.product_version());
}

// Step of the last full state before this one; 0: there is none.
std::uint64_t full_state_before(const std::string& path, std::uint64_t step) {
  wire::RecordingReader reader(path);
  wire::RecordedStep ignored;
  wire::RecordedState state;
  std::uint64_t found = 0;
  for (;;) {
    const auto item = reader.next(ignored, state);
    if (item == wire::RecordingReader::Item::end || ignored.step() >= step) return found;
    if (item == wire::RecordingReader::Item::state) found = state.step();
  }
}

// One re-run: feeds recorded inputs to the same cycle as the live run and looks at the states.
class Replay {
 public:
  // resume_at: step of the full state that it begins with; 0: the start
  Replay(const std::string& path, const OnReplayedStep& on_step, std::uint64_t resume_at, ReplayReport& report)
      : report_(report),
        on_step_(on_step),
        resume_at_(resume_at),
        path_(path),
        reader_(path),
        mechanism_(mechanism_of(reader_.header())),
        checked_((check_header(path, reader_.header(), mechanism_.mechanism), true)),
        stepper_(make_stepper(mechanism_, settings_of(reader_.header()))),
        cycle_(stepper_, {}, {}) {
    const wire::RecordingHeader& header = reader_.header();
    report_.recording = path;
    report_.mechanism = mechanism_.mechanism.name();
    report_.same_build = header.compiler() == build_fingerprint() && header.cpu() == cpu_fingerprint();
    if (!report_.same_build) report_.recorded_on = header.compiler() + " on " + header.cpu();
    if (!header.commissioning().empty()) {
      report_.commissioning = parse_commission_verdict(header.commissioning());
      if (report_.commissioning.is_discarded()) report_.commissioning = header.commissioning();
    }
    restore(header.start_state(), header.start_step(),
            header.has_start_state_step() ? header.start_state_step() : header.start_step(), header.start_parameter());
    last_recorded_ = header.start_step();
    knows_snapshot_ = header.start_step() == 0 && header.from_snapshot().empty() && resume_at_ == 0;
    behind_gap_ = resume_at_ > header.start_step();
    if (stepper_.state().hash() != header.start_hash()) differ(header.start_step());
  }

  void run(const std::function<void(std::uint64_t)>& progress) {
    wire::RecordedStep step;
    wire::RecordedState state;
    for (;;) {
      const auto item = reader_.next(step, state);
      if (item == wire::RecordingReader::Item::end) break;
      if (item == wire::RecordingReader::Item::state)
        compare(state);
      else if (!repeat(from_message(step)))
        break;
      if (progress && (report_.steps & 0xfff) == 0) progress(cycle_.answer().step);
    }
    report_.not_converged = cycle_.not_converged().steps;
    report_.damage = reader_.damage_text();
    if (reader_.footer()) report_.reason = reader_.footer()->reason();
  }

 private:
  void require_size(const google::protobuf::RepeatedField<double>& state) const {
    const auto size = static_cast<std::size_t>(state.size());
    if (size != stepper_.state().flat_size() && size != stepper_.state().flat_size_without_low())
      throw wire::RecordingError(path_, "a recorded state does not fit its mechanism",
                                 "the file is damaged: use a copy");
  }

  using Numbers = google::protobuf::RepeatedField<double>;
  void restore(const Numbers& state, std::uint64_t step, std::uint64_t state_step, const Numbers& parameters) {
    require_size(state);
    cycle_.resume_at({state.data(), static_cast<std::size_t>(state.size())}, step, state_step,
                     {parameters.data(), static_cast<std::size_t>(parameters.size())});
  }

  // False: no more is wanted.
  bool repeat(const StepRecord& record) {
    if (record.step > last_recorded_ + 1) report_.not_recorded += record.step - last_recorded_ - 1;
    last_recorded_ = record.step;
    if (record.step != cycle_.answer().step + (record.is_step() ? 1 : 0)) behind_gap_ = true;
    if (leads_to_unknown_state(record.transition)) behind_gap_ = true;
    if (record.transition == Transition::snapshot) knows_snapshot_ = !behind_gap_;
    if (behind_gap_) {
      if (record.is_step()) ++report_.not_compared;
      newest_hash_ = record.state_hash;
      newest_transitions_ = record.transitions;
      return !record.is_step() || !on_step_ || on_step_({record, nullptr, nullptr, nullptr});
    }
    cycle_.repeat(record);
    if (cycle_.answer().step != record.step || stepper_.state().hash() != record.state_hash) differ(record.step);
    if ((record.flags & kFaulted) != 0)
      report_.fault = fmt::format("after step {}: {}", record.step, why_stopped(mechanism_.mechanism, record));
    if (!record.is_step()) return true;
    ++report_.steps;
    report_.inaccurate += (record.flags & kInaccurate) != 0;
    return !on_step_ || on_step_({record, &stepper_.state(), &cycle_.answer().outputs, &stepper_});
  }

  // The recording does not hold what it leads to, but the full state behind it.
  bool leads_to_unknown_state(Transition transition) const {
    const bool to_file = transition == Transition::reset_to_file;
    const bool to_start = transition == Transition::reset_to_start && !reader_.header().from_snapshot().empty();
    return to_file || to_start || (transition == Transition::reset_to_snapshot && !knows_snapshot_);
  }

  void compare(const wire::RecordedState& state) {
    if (behind_gap_ && state.step() == last_recorded_ && state.step() >= resume_at_) {
      restore(state.state(), state.step(), state.has_state_step() ? state.state_step() : state.step(),
              state.parameter());
      behind_gap_ = false;
      // the record of a transition may be missing, too
      if (state.transitions() == newest_transitions_ && stepper_.state().hash() != newest_hash_) differ(state.step());
    } else if (!behind_gap_ && state.step() == cycle_.answer().step) {
      require_size(state.state());
      ++report_.states;
      measure(state);
    }
  }

  // largest difference of a body's numbers at a full state; kept is the first one, of another build the largest
  void measure(const wire::RecordedState& state) {
    const index3::State& x = stepper_.state();
    double largest = 0.0;
    std::size_t body = 0;
    for (std::size_t i = 0; i < x.body.size(); ++i) {
      double numbers[index3::kDoublesPerBody];
      std::memcpy(numbers, &x.body[i], sizeof numbers);
      for (int k = 0; k < index3::kDoublesPerBody; ++k) {
        const double d = std::abs(numbers[k] - state.state(static_cast<int>(i) * index3::kDoublesPerBody + k));
        if (!(d <= largest)) {
          largest = d;
          body = i;
        }
      }
    }
    if (report_.verdict != ReplayReport::Verdict::bit_exact) ++report_.states_after_difference;
    if (largest == 0.0) return;
    differ(state.step());
    if (report_.difference_step > 0 && (report_.same_build || !(largest > report_.difference))) return;
    report_.difference = largest;
    report_.difference_body = mechanism_.mechanism.bodies()[body].name;
    report_.difference_step = state.step();
  }

  void differ(std::uint64_t step) {
    if (report_.verdict != ReplayReport::Verdict::bit_exact) return;
    report_.verdict = ReplayReport::Verdict::differs;
    report_.first_difference = step;
  }

  ReplayReport& report_;
  const OnReplayedStep& on_step_;
  const std::uint64_t resume_at_;
  std::string path_;
  wire::RecordingReader reader_;
  config::LoadedMechanism mechanism_;
  bool checked_;
  index3::Stepper stepper_;
  rt::Cycle cycle_;
  std::uint64_t last_recorded_ = 0;  // step of the newest record
  bool behind_gap_ = false;          // until the full state that the cycle writes after a gap
  std::uint64_t newest_hash_ = 0;    // of the newest record behind a gap, and its transitions
  std::uint32_t newest_transitions_ = 0;
  bool knows_snapshot_ = false;  // the one that a reset to a snapshot would take
};

}  // namespace

ReplayReport replay(const std::string& path, const std::function<void(std::uint64_t)>& progress,
                    const OnReplayedStep& on_step, std::uint64_t from) {
  rt::set_floating_point_mode();
  ReplayReport report;
  const auto begin = std::chrono::steady_clock::now();
  Replay(path, on_step, from == 0 ? 0 : full_state_before(path, from), report).run(progress);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  using Verdict = ReplayReport::Verdict;
  const bool close = report.states > 0 && report.difference <= kOtherBuildTolerance;
  if (report.verdict == Verdict::bit_exact && report.steps == 0) report.verdict = Verdict::nothing_replayed;
  if (report.verdict == Verdict::differs && !report.same_build && close) report.verdict = Verdict::within_tolerance;
  return report;
}

nlohmann::json ReplayReport::json() const {
  const char* verdicts[] = {"bit_exact", "within_tolerance", "differs", "nothing_replayed"};
  return {{"schema", 1},
          {"verdict", verdicts[static_cast<int>(verdict)]},
          {"recording", recording},
          {"mechanism", mechanism},
          {"steps", steps},
          {"not_converged_steps", not_converged},
          {"inaccurate_steps", inaccurate},
          {"states", states},
          {"not_recorded", not_recorded},
          {"not_compared", not_compared},
          {"first_difference", first_difference},
          {"difference_step", difference_step},
          {"difference_body", difference_body},
          {"difference", difference},
          {"same_build", same_build},
          {"recorded_on", recorded_on},
          {"damage", damage},
          {"reason", reason},
          {"fault", fault},
          {"commissioning", commissioning},
          {"seconds", seconds}};
}

std::string ReplayReport::text() const {
  std::string out = fmt::format("{}: {}, {} steps replayed in {:.2f} s\n", wire::printable_line(recording), mechanism,
                                steps, seconds);
  if (!same_build)
    out += fmt::format("recorded by another build or processor: {}\n", wire::printable_line(recorded_on));
  if (not_recorded > 0 || not_compared > 0)
    out += fmt::format("{} steps were not recorded, {} more not compared until the next full state\n", not_recorded,
                       not_compared);
  if (not_converged > 0) out += fmt::format("{} of the steps had not converged\n", not_converged);
  if (inaccurate > 0) out += fmt::format("{} of the steps erred by more than the limit\n", inaccurate);
  if (!commissioning.is_null()) out += fmt::format("commissioned: {}\n", commission_verdict_text(commissioning));
  if (!fault.empty()) out += fmt::format("the run faulted {}\n", fault);
  if (!damage.empty()) out += fmt::format("damaged at {}; everything before it was replayed\n", damage);
  if (verdict == Verdict::nothing_replayed) return out + "no verdict: there is no step to compare\n";
  if (verdict == Verdict::bit_exact) return out + fmt::format("bit-exact over {} steps\n", steps);
  if (verdict == Verdict::within_tolerance)
    return out + fmt::format(
                     "not bit-exact from step {} on, as expected of another build; within {:.1e} at every full "
                     "state (largest {:.2e}, body {})\n",
                     first_difference, kOtherBuildTolerance, difference, difference_body);
  out += fmt::format("DIFFERS from step {} on", first_difference);
  if (difference_step > 0)
    out += fmt::format("; at the full state of step {} by {:.3e}, most in body {}", difference_step, difference,
                       difference_body);
  else if (states_after_difference > 0)
    out += "; yet every full state after it agrees, so that only what was recorded of that step differs";
  else
    out += "; the run ended before the next full state, so that only the hash tells";
  return out + "\n";
}

}  // namespace rigstep::server
