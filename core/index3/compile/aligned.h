// A block of doubles that starts on a cache line, as the lanes need it. Sized once, at load time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace rigstep::index3 {

class AlignedDoubles {
 public:
  AlignedDoubles() = default;
  AlignedDoubles(std::size_t size, double value)
      : size_(size), values_(static_cast<double*>(::operator new(bytes(size), kAlignment))) {
    std::fill_n(values_.get(), size, value);
  }
  double* data() const noexcept { return values_.get(); }
  std::size_t size() const noexcept { return size_; }
  double& operator[](std::size_t k) const noexcept { return values_.get()[k]; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  static std::size_t bytes(std::size_t size) { return std::max<std::size_t>(1, size) * sizeof(double); }
  struct Free {
    void operator()(double* p) const noexcept { ::operator delete(p, kAlignment); }
  };
  std::size_t size_ = 0;
  std::unique_ptr<double[], Free> values_;
};

}  // namespace rigstep::index3
