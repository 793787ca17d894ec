// What stands for core/index3/step/team.cpp in a plugin: a host's threads are its own, so that every step is made by
// one thread and nothing needs OpenMP. Instance never asks for more.
#include "core/index3/step/team.h"
#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

Team::Team(int threads) : threads_(threads), missing_(0) {
  throw MechanismError("threads", std::to_string(threads) + " were asked for", "a plugin steps with one thread");
}
Team::~Team() = default;
void Team::start() noexcept {}
void Team::serve(int) noexcept {}
void Team::relax() noexcept {}

}  // namespace rigstep::index3
