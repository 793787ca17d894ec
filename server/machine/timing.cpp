#include "server/machine/timing.h"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "server/output/quantile.h"

namespace rigstep::server {

namespace {

using Clock = std::chrono::steady_clock;

double us_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::micro>(b - a).count();
}

constexpr int kAccumulators = 12;  // independent, so that they hide the latency of an addition

#if defined(__x86_64__)
[[gnu::target("avx512f")]] double loop_512(long rounds) {
  __m512d x[kAccumulators];
  for (__m512d& v : x) v = _mm512_set1_pd(1.0);
  const __m512d a = _mm512_set1_pd(0.999999), b = _mm512_set1_pd(1e-6);
  for (long r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (__m512d& v : x) v = _mm512_fmadd_pd(v, a, b);
  double sum = 0.0;
  for (const __m512d& v : x) sum += v[0];
  return sum;
}

[[gnu::target("avx2,fma")]] double loop_256(long rounds) {
  __m256d x[kAccumulators];
  for (__m256d& v : x) v = _mm256_set1_pd(1.0);
  const __m256d a = _mm256_set1_pd(0.999999), b = _mm256_set1_pd(1e-6);
  for (long r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (__m256d& v : x) v = _mm256_fmadd_pd(v, a, b);
  double sum = 0.0;
  for (const __m256d& v : x) sum += v[0];
  return sum;
}
#endif

double loop_any(long rounds) {
  double x[kAccumulators];
  for (double& v : x) v = 1.0;
  for (long r = 0; r < rounds; ++r)
    for (double& v : x) v = v * 0.999999 + 1e-6;
  double sum = 0.0;
  for (const double v : x) sum += v;
  return sum;
}

double rate(double (*loop)(long), int width) {
  constexpr long kRounds = 200'000;
  double best = 0.0;
  for (int k = 0; k < 20; ++k) {
    const auto begin = Clock::now();
    volatile double sink = loop(kRounds);
    static_cast<void>(sink);
    best = std::max(best, 1.0 * kAccumulators * width * kRounds / (1e-6 * us_between(begin, Clock::now())));
  }
  return best;
}

}  // namespace

TimingProtocol full_protocol() { return {}; }
TimingProtocol quick_protocol() { return {5, 20, 2, 0.005, 1.0}; }

double clock_cost_us() {
  std::vector<double> costs(10'001);
  for (double& c : costs) {
    const auto begin = Clock::now();
    c = us_between(begin, Clock::now());
  }
  return quantile(costs, 0.5);
}

StepTimes time_steps(const TimedSolver& solver, const TimingProtocol& protocol) {
  constexpr std::size_t kMostSamples = 2'000'000;
  std::vector<double> times;
  times.reserve(kMostSamples + static_cast<std::size_t>(protocol.window));
  const auto start = Clock::now();
  const auto longer_than = [start](double seconds) { return us_between(start, Clock::now()) > 1e6 * seconds; };
  for (int k = 0; k < protocol.warm_up && !longer_than(0.5 * protocol.longest); ++k) solver.step();
  solver.save();
  for (int repeat = 0; times.size() < kMostSamples; ++repeat) {
    if (repeat >= protocol.repeats && longer_than(protocol.budget)) break;
    if (repeat > 0 && longer_than(protocol.longest)) break;
    solver.restore();
    for (int k = 0; k < protocol.window && (k == 0 || !longer_than(protocol.longest)); ++k) {
      const auto begin = Clock::now();
      solver.step();
      times.push_back(us_between(begin, Clock::now()));
    }
  }
  const double clock = clock_cost_us();
  const auto without_clock = [clock](double t) { return std::max(0.0, t - clock); };
  StepTimes result;
  result.samples = times.size();
  result.lowest = without_clock(quantile(times, 0.0));
  result.median = without_clock(quantile(times, 0.5));
  result.p999 = without_clock(quantile(times, 0.999));
  return result;
}

double peak_multiply_adds() {
#if defined(__x86_64__)
  double best = 0.0;
  if (__builtin_cpu_supports("avx512f")) best = std::max(best, rate(loop_512, 8));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = std::max(best, rate(loop_256, 4));
  if (best > 0.0) return best;
#endif
  return rate(loop_any, 1);
}

}  // namespace rigstep::server
