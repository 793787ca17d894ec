#include "server/view/input_driver.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/mechanism/mechanism.h"
#include "rt/clock.h"

namespace rigstep::server {
namespace {

// Chosen: a page that a loaded machine draws in software stands for up to three seconds.
constexpr std::int64_t kLetsGoAfterNs = 4'000'000'000;
constexpr std::int64_t kPeriodsBetween = 4;  // inputs: well within the age from which they are stale
constexpr std::int64_t kShortestNs = 1'000'000, kLongestNs = 20'000'000;

}  // namespace

InputDriver::InputDriver(const RigClientOptions& options, const std::vector<InputPolicy>& limits)
    : client_(options),
      period_s_(1e-9 * static_cast<double>(client_.server().period_ns)),
      asked_ns_(rt::MonotonicClock::now_ns()) {
  if (client_.server().lockstep)
    throw Error("the rig has the clock of this server (lockstep): the page cannot send inputs");
  const std::size_t count = client_.server().inputs.size();
  for (std::size_t k = 0; k < count; ++k) {
    const InputPolicy policy = k < limits.size() ? limits[k] : InputPolicy{};
    lower_.push_back(policy.minimum);
    upper_.push_back(policy.maximum);
    rate_.push_back(std::min(policy.most_change_per_step / period_s_, policy.maximum - policy.minimum));
    value_.push_back(policy.safe);
  }
  targets_ = value_;
  thread_ = std::thread([this] { run(); });
}

InputDriver::~InputDriver() {
  stopping_ = true;
  thread_.join();
}

void InputDriver::set(const std::vector<double>& targets) {
  if (ended_) throw Error("the page is not in control any more: take control again");
  if (targets.size() != value_.size()) throw Error("these are not the values of all inputs");
  for (const double target : targets)
    if (!std::isfinite(target)) throw Error("an input is no finite number");
  asked_ns_ = rt::MonotonicClock::now_ns();
  const std::lock_guard lock(mutex_);
  targets_ = targets;
}

void InputDriver::move(double seconds) {
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0; k < value_.size(); ++k) {
    const double target = std::clamp(targets_[k], lower_[k], upper_[k]), most = rate_[k] * seconds;
    value_[k] += std::clamp(target - value_[k], -most, most);
  }
}

void InputDriver::run() {
  const std::int64_t every_ns = std::clamp(kPeriodsBetween * client_.server().period_ns, kShortestNs, kLongestNs);
  while (!stopping_ && !client_.displaced()) {
    const std::int64_t now_ns = rt::MonotonicClock::now_ns();
    if (now_ns - asked_ns_ > kLetsGoAfterNs) break;
    move(1e-9 * static_cast<double>(every_ns));
    client_.send(value_);
    for (std::int64_t until = now_ns + every_ns; rt::MonotonicClock::now_ns() < until;) {
      client_.wait_until(until);
      auto arrival = client_.receive();
      while (arrival != RigClient::Arrival::nothing && arrival != RigClient::Arrival::goodbye)
        arrival = client_.receive();
      if (arrival == RigClient::Arrival::goodbye) stopping_ = true;
      if (stopping_) break;
    }
  }
  client_.leave("the page has let go");
  ended_ = true;
}

}  // namespace rigstep::server
