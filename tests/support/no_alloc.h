// Counts what the calling thread allocates while a scope is armed: malloc and its relatives, and through them operator
// new. Include in ONE source file of a test executable: it replaces the executable's allocation functions by ones that
// count and pass on to those of the C library. Under address, thread and memory sanitizers, which replace them
// themselves, nothing is counted and kCountsAllocations is false.
#pragma once

#include <malloc.h>
#ifdef __SSE2__
#include <mm_malloc.h>  // declares posix_memalign once more, which must come first
#endif

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RIGSTEP_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define RIGSTEP_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef RIGSTEP_COUNTS_ALLOCATIONS
#define RIGSTEP_COUNTS_ALLOCATIONS 1
#endif

namespace rigstep::test {

inline constexpr bool kCountsAllocations = RIGSTEP_COUNTS_ALLOCATIONS != 0;

// Plain thread-local data: touching it allocates nothing.
struct AllocationCounter {
  bool armed;
  long count;
};
inline thread_local AllocationCounter allocation_counter{};

inline void count_allocation() noexcept {
  if (allocation_counter.armed) ++allocation_counter.count;
}

// Counts from construction to destruction, in the thread that made it.
class AllocationCount {
 public:
  AllocationCount() noexcept { allocation_counter = {true, 0}; }
  ~AllocationCount() { allocation_counter.armed = false; }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  long count() const noexcept { return allocation_counter.count; }
};

// Number of allocations that `work` makes.
template <class Work>
long allocations(const Work& work) {
  const AllocationCount counter;
  work();
  return counter.count();
}

}  // namespace rigstep::test

#if RIGSTEP_COUNTS_ALLOCATIONS

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the C library's names
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* malloc(std::size_t size) noexcept {
  rigstep::test::count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  rigstep::test::count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) noexcept {
  rigstep::test::count_allocation();
  return __libc_realloc(block, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  rigstep::test::count_allocation();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  rigstep::test::count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  rigstep::test::count_allocation();
  void* const made = __libc_memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}
}  // extern "C"

#endif
