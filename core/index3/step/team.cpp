#include "core/index3/step/team.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rigstep::index3 {

namespace {

constexpr int kSpinsBeforeSleep = 100'000;  // of a worker without work, about a millisecond

std::uint64_t floating_point_mode() noexcept {
  std::uint64_t mode = 0;
#if defined(__x86_64__)
  mode = _mm_getcsr();
#elif defined(__aarch64__)
  asm volatile("mrs %0, fpcr" : "=r"(mode));
#endif
  return mode;
}

void set_floating_point_mode([[maybe_unused]] std::uint64_t mode) noexcept {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(mode));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

// worker k on the k-th of the allowed cores, counted from the last but one downwards: the loop has the last
void pin(int part) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int skip = part;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu)
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      return;
    }
}

}  // namespace

void Team::relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Team::Team(int threads)
    : threads_(threads), workers_(static_cast<std::size_t>(threads - 1)), missing_(threads - 1), host_([this] {
        const int workers = threads_ - 1;
#pragma omp parallel num_threads(workers)
        {
          const int part = omp_get_thread_num() + 1;
          pin(part);
          workers_[static_cast<std::size_t>(part - 1)] = pthread_self();
          // the environment may have limited the runtime to fewer
          const int absent = part == 1 ? workers - omp_get_num_threads() : 0;
          missing_.fetch_sub(1 + absent, std::memory_order_release);
          missing_.notify_one();
          serve(part);
          missing_.fetch_add(1, std::memory_order_release);
        }
        // orders what they did for those who cannot see the runtime's barrier
        missing_.load(std::memory_order_acquire);
      }) {
  for (int left = threads - 1; left > 0; left = missing_.load(std::memory_order_acquire)) missing_.wait(left);
  std::erase(workers_, pthread_t{});
}

Team::~Team() {
  stop_.store(true, std::memory_order_release);
  order_.round.fetch_add(1, std::memory_order_acq_rel);
  order_.round.notify_all();
  host_.join();
}

void Team::start() noexcept {
  order_.floating_point_mode = floating_point_mode();
  if (given_up_.load(std::memory_order_relaxed)) given_up_.store(false, std::memory_order_relaxed);
  busy_.store(threads_ - 1, std::memory_order_relaxed);
  order_.round.fetch_add(1, std::memory_order_release);
  order_.round.notify_all();  // a system call only if somebody has gone to sleep
}

void Team::serve(int part) noexcept {
  unsigned seen = 0;
  for (;;) {
    int spins = 0;
    while (order_.round.load(std::memory_order_acquire) == seen) {
      relax();
      if (++spins == kSpinsBeforeSleep) order_.round.wait(seen, std::memory_order_acquire);
    }
    seen = order_.round.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    set_floating_point_mode(order_.floating_point_mode);
    order_.call(order_.work, part);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace rigstep::index3
