// One thread alone makes no call of the OpenMP run-time: each of its barriers costs more than the arithmetic between
// two of them. GCC's run-time is watched by standing in for its entry points.
#include <doctest/doctest.h>

#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"
#include "core/offline/index3_literal.h"
#include "tests/support/reference.h"

#if defined(__GNUC__) && !defined(__clang__)
#include <dlfcn.h>

namespace {

int calls = 0;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags) {
  ++calls;
  static const auto kNext = next<void (*)(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
  kNext(work, data, threads, flags);
}

extern "C" void GOMP_barrier() {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  static const auto kNext = next<void (*)()>("GOMP_barrier");
  kNext();
}

using namespace rigstep;
using namespace rigstep::test;

namespace {

template <class Work>
int calls_of(const Work& work) {
  calls = 0;
  work();
  return calls;
}

}  // namespace

TEST_CASE("divide and conquer: an evaluation on one thread makes no call of the OpenMP run-time, on two it does") {
  const Mechanism m = mechanism("hdca_case2");
  offline::Scenario scenario;
  scenario.mechanism = &m;
  scenario.instants = {0.0};
  CHECK(calls_of(offline::hamiltonian_dca_evaluation(scenario, 1)) == 0);
  CHECK(calls_of(offline::featherstone_dca_evaluation(scenario, 1)) == 0);
  CHECK(calls_of(offline::hamiltonian_dca_evaluation(scenario, 2)) > 0);
  CHECK(calls_of(offline::featherstone_dca_evaluation(scenario, 2)) > 0);
}

TEST_CASE("literal form: a step on one thread makes no call of the OpenMP run-time, on two it does") {
  const Mechanism m = mechanism("chain_8");
  for (const int threads : {1, 2}) {
    offline::LiteralSettings settings;
    settings.threads = threads;
    offline::LiteralStepper stepper(m, settings);
    CHECK((calls_of([&] { stepper.step(); }) > 0) == (threads > 1));
  }
}
#endif
