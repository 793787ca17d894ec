// What stands for the arenas of protobuf. Debian's libprotobuf.a is compiled for programs: its arenas reach a variable
// of the thread in a way that a shared library may not. Mechanism files are read into messages without an arena, so
// that none of these functions is ever called; the test `plugin` reads every mechanism of config/ through them.
#include <google/protobuf/arena.h>

#include <cstdlib>

// ThreadSafeArena::thread_cache_, of the size that it needs and without its alignment to a cache line: all libraries of
// a process share 1664 bytes for such variables, and a host may load dozens of units.
extern "C" {
extern __thread char rigstep_thread_cache[24] __asm__("_ZN6google8protobuf8internal15ThreadSafeArena13thread_cache_E");
__thread char rigstep_thread_cache[24] = {};
}

namespace google::protobuf {

namespace internal {

ThreadSafeArena::~ThreadSafeArena() { std::abort(); }
std::uint64_t ThreadSafeArena::SpaceAllocated() const { std::abort(); }
std::uint64_t ThreadSafeArena::SpaceUsed() const { std::abort(); }
void ThreadSafeArena::AddCleanup(void*, void (*)(void*)) { std::abort(); }

void* SerialArena::AllocateAlignedFallback(std::size_t, const AllocationPolicy*) { std::abort(); }

}  // namespace internal

void* Arena::AllocateAlignedWithHook(std::size_t, const std::type_info*) { std::abort(); }
void* Arena::AllocateAlignedWithHookForArray(std::size_t, const std::type_info*) { std::abort(); }
std::pair<void*, internal::SerialArena::CleanupNode*> Arena::AllocateAlignedWithCleanup(std::size_t,
                                                                                        const std::type_info*) {
  std::abort();
}

}  // namespace google::protobuf
