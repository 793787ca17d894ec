// The threads that share a step: an OpenMP team, opened once and pinned, that waits between calls without the kernel's
// help. Owned by the stepper; split() belongs to the loop thread.
//
// The caller never waits without bound: when a partner is late, split() gives up and says so, and the caller goes on
// alone with memory that no partner touches.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstring>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

namespace rigstep::index3 {

class Team {
 public:
  // threads: the caller included, at least 2.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const noexcept { return threads_; }
  // Handles of all but the caller, as many as the OpenMP runtime has granted.
  std::span<const pthread_t> partners() const noexcept { return partners_; }

  // All partners wait for work.
  bool is_ready() const noexcept { return busy_.load(std::memory_order_acquire) == 0; }

  // f(part) on every thread, part 0 on the caller's. False: a partner was late and may still be at it, with a copy of
  // f. Only when ready.
  template <class F>
  bool split(const F& f) noexcept {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(work_), "kept for late partners");
    std::memcpy(work_, &f, sizeof(F));
    call_ = [](const void* work, int part) noexcept { (*static_cast<const F*>(work))(part); };
    start();
    f(0);
    return finish();
  }

 private:
  void start() noexcept;
  bool finish() noexcept;
  void serve(int part) noexcept;

  int threads_;
  void (*call_)(const void* work, int part) noexcept = nullptr;
  alignas(16) unsigned char work_[96] = {};
  unsigned floating_point_mode_ = 0;  // of the caller: it decides bits
  alignas(64) std::atomic<unsigned> round_{0};
  alignas(64) std::atomic<int> busy_{0};
  alignas(64) std::atomic<bool> stop_{false};
  std::vector<pthread_t> partners_;  // filled in before the constructor returns
  std::atomic<int> missing_;         // of those
  std::thread host_;
};

}  // namespace rigstep::index3
