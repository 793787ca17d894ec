// Memory for keys: locked where the system grants it, left out of core dumps, between guard pages, and wiped when it is
// given back. One owner; made at load.
#pragma once

#include <sodium.h>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace rigstep::wire {

template <class T>
class Secret {
 public:
  static_assert(std::is_trivially_destructible_v<T>, "what it points to would not be wiped");

  Secret() : held_(allocate()) {
    ::new (static_cast<void*>(held_.get())) T();
    locked_ = sodium_mlock(held_.get(), kBytes) == 0;
  }

  T& operator*() const noexcept { return *held_; }
  T* operator->() const noexcept { return held_.get(); }
  // False: the system did not lock it, so that it may be written to swap space. `ulimit -l` limits that.
  bool locked() const noexcept { return locked_; }

 private:
  // a multiple of the alignment, since sodium_malloc puts the end of the memory at the end of a page
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);
  static constexpr std::size_t kBytes = (sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;

  static T* allocate() {
    void* const memory = sodium_init() < 0 ? nullptr : sodium_malloc(kBytes);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  struct Free {
    void operator()(T* memory) const noexcept { sodium_free(memory); }
  };

  std::unique_ptr<T, Free> held_;
  bool locked_ = false;
};

}  // namespace rigstep::wire
