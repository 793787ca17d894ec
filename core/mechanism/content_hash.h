// The identity of a description: a hash of its content. Load time.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "core/mechanism/characteristic.h"
#include "core/mechanism/freedom.h"
#include "core/mechanism/time_function.h"

namespace rigstep {

// 64-bit FNV-1a over the content in a fixed order.
class ContentHash {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3u;
  }
  void add(const std::string& text) {
    add(static_cast<std::int64_t>(text.size()));
    add(text.data(), text.size());
  }
  void add(double value) { add(&value, sizeof value); }
  void add(std::int64_t value) { add(&value, sizeof value); }
  template <class Derived>
  void add(const Eigen::MatrixBase<Derived>& matrix) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j)
      for (Eigen::Index i = 0; i < matrix.rows(); ++i) add(static_cast<double>(matrix(i, j)));
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void add(Enum value) { add(static_cast<std::int64_t>(value)); }
  void integers(std::initializer_list<int> values) {
    for (const int i : values) add(static_cast<std::int64_t>(i));
  }
  void numbers(std::initializer_list<double> values) {
    for (const double x : values) add(x);
  }
  void add(const JointFrame& frame) {
    add(frame.point_b);
    add(frame.axes_b);
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

inline void add_term(ContentHash& hash, const TimeFunction::Term& term, double time_constant) {
  for (const double x : {term.constant, term.amplitude, term.angular_frequency, term.phase, time_constant}) hash.add(x);
  for (const auto* values : {&term.coefficient, &term.time, &term.value}) {
    hash.add(static_cast<std::int64_t>(values->size()));
    for (const double x : *values) hash.add(x);
  }
}

inline void add_function(ContentHash& hash, const TimeFunction& function) {
  hash.add(static_cast<std::int64_t>(function.terms.size()));
  for (const TimeFunction::Term& term : function.terms) {
    hash.add(term.kind);
    add_term(hash, term, 0.0);
  }
}

inline void add_characteristic(ContentHash& hash, const Characteristic& table) {
  hash.add(static_cast<std::int64_t>(table.x.size()));
  for (const double x : table.x) hash.add(x);
  for (const double y : table.y) hash.add(y);
}

class Mechanism;
// Of everything that a description says.
std::uint64_t content_hash(const Mechanism& mechanism);

}  // namespace rigstep
