// Poses for people who watch: at most 60 times a second, and only while somebody does.
#include "rt/pose_mailbox.h"

#include <doctest/doctest.h>

namespace rigstep::rt {
namespace {

index3::State state_of(std::size_t bodies, double x) {
  index3::State state;
  state.body.resize(bodies);
  for (std::size_t i = 0; i < bodies; ++i) {
    state.body[i].r = Vec3(x, static_cast<double>(i), 0.0);
    state.body[i].p = EulerParameters(1.0, 0.0, 0.0, 0.0);
  }
  return state;
}

StepRecord record_of(double input) {
  StepRecord record;
  record.wake_up_ns = 1500;
  record.step_ns = 2500;
  record.position_residual = 0.5;
  record.inputs.value[0] = input;
  return record;
}

const StepRecord record = record_of(7.0);

}  // namespace

TEST_CASE("nothing is written while nobody watches") {
  PoseMailbox mailbox(2, 1, 1'000'000);
  for (std::uint64_t k = 1; k < 1000; ++k) mailbox.offer(state_of(2, 1.0), record, k, 0);
  CHECK(mailbox.take() == nullptr);
}

TEST_CASE("who watches gets at most 60 instants a second, each once, with all bodies") {
  PoseMailbox mailbox(2, 1, 1'000'000);
  mailbox.want(true);
  int frames = 0;
  for (std::uint64_t k = 1; k <= 1000; ++k) {
    mailbox.offer(state_of(2, static_cast<double>(k)), record, k, static_cast<std::int64_t>(k) * 1'000'000);
    const PoseFrame* frame = mailbox.take();
    if (frame == nullptr) continue;
    ++frames;
    CHECK(frame->step == k);
    CHECK(frame->sim_time_ns == static_cast<std::int64_t>(k) * 1'000'000);
    REQUIRE(frame->numbers.size() == 14);
    CHECK(frame->numbers[0] == static_cast<float>(k));
    CHECK(frame->numbers[8] == 1.0f);
    CHECK(frame->numbers[10] == 1.0f);
    REQUIRE(frame->inputs.size() == 1);
    CHECK(frame->inputs[0] == 7.0f);
    CHECK(frame->wake_up_us == doctest::Approx(1.5));
    CHECK(frame->step_us == doctest::Approx(2.5));
    CHECK(frame->position_residual == 0.5f);
  }
  CHECK(frames <= 60);
  CHECK(frames >= 55);
}

TEST_CASE("the newest instant is taken, never an older one") {
  PoseMailbox mailbox(1, 1, 100'000'000);
  mailbox.want(true);
  for (std::uint64_t k = 1; k <= 5; ++k) mailbox.offer(state_of(1, static_cast<double>(k)), record, k, 0);
  const PoseFrame* frame = mailbox.take();
  REQUIRE(frame != nullptr);
  CHECK(frame->step == 5);
  CHECK(mailbox.take() == nullptr);
}

TEST_CASE("a mechanism of more bodies than are watched has no poses") {
  PoseMailbox mailbox(kMostWatchedBodies + 1, 1, 1'000'000'000);
  mailbox.want(true);
  mailbox.offer(state_of(kMostWatchedBodies + 1, 1.0), record, 1, 0);
  CHECK(mailbox.bodies() == 0);
  CHECK(mailbox.take() == nullptr);
}

}  // namespace rigstep::rt
