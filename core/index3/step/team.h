// The threads that share a step: an OpenMP team, opened once and pinned, that waits between calls without the kernel's
// help. Owned by the stepper; split() belongs to the loop thread.
//
// The caller never waits without bound: when a worker is late, it gives up, and goes on alone with memory that no
// worker touches.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
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
  std::span<const pthread_t> workers() const noexcept { return workers_; }

  // All workers wait for work.
  bool is_ready() const noexcept { return busy_.load(std::memory_order_acquire) == 0; }

  // f(part) on every thread, part 0 on the caller's. False: a worker was late and may still be at it, with a copy of
  // f. Only when ready.
  template <class F>
  bool split(const F& f) noexcept {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof(Order::work), "kept for late workers");
    std::memcpy(order_.work, &f, sizeof(F));
    order_.call = [](const void* work, int part) noexcept { (*static_cast<const F*>(work))(part); };
    start();
    f(0);
    int spins = 0;
    return wait(0, spins, [this] { return is_ready(); });
  }

  // Within f: until something holds that others bring about. spins: those of all waits that count together. False: the
  // caller has given up waiting, now or before.
  template <class Condition>
  bool wait(int part, int& spins, const Condition& holds) noexcept {
    for (; !holds(); ++spins) {
      if (given_up_.load(std::memory_order_relaxed)) return false;
      if (part == 0 && spins >= kSpinsForWorker) given_up_.store(true, std::memory_order_relaxed);
      relax();
    }
    return true;
  }

  // Of calls of split: which one this is.
  unsigned call() const noexcept { return order_.round.load(std::memory_order_relaxed); }

 private:
  static constexpr int kSpinsForWorker = 20'000;  // about 0.2 ms; its share of a step takes less

  void start() noexcept;
  void serve(int part) noexcept;
  static void relax() noexcept;

  // All that workers wait for and then need, on one cache line. Processors fetch two at a time.
  struct alignas(128) Order {
    std::atomic<unsigned> round{0};
    std::uint64_t floating_point_mode = 0;  // of the caller: it decides bits
    void (*call)(const void* work, int part) noexcept = nullptr;
    alignas(8) unsigned char work[40] = {};
  };

  int threads_;
  Order order_;
  alignas(128) std::atomic<int> busy_{0};
  alignas(128) std::atomic<bool> stop_{false};
  std::atomic<bool> given_up_{false};
  std::vector<pthread_t> workers_;  // filled in before the constructor returns
  std::atomic<int> missing_;        // of those
  std::thread host_;
};

}  // namespace rigstep::index3
