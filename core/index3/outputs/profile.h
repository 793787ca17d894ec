// Symmetric matrices of 6 x 6 blocks, one row of blocks for each body, within a profile that is fixed at load time: for
// reactions. compile/tree/narrow_order.h has the order of the bodies that keeps it narrow.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "core/mechanism/types.h"

namespace rigstep::index3 {

// Six places of a body in a row or vector, from `at` on.
inline auto six(double* row, int at) { return Eigen::Map<Vec6>(row + at); }

// The upper half, which ends at a place of its own in each row: what lies right of it is zero, and stays so in the
// factor. The loop calls everything but the constructor.
class Profile {
 public:
  // end: (bodies) behind the last body that each one's row holds, as profile_of gives it; ascending.
  explicit Profile(const std::vector<int>& end);

  int size() const { return static_cast<int>(end_.size()); }  // 6 times the bodies
  // Row i, whose places exist from first_of(i) on up to its end: whole bodies, so that what is left of the diagonal
  // among a body's own six exists too, and is never read.
  double* row(int i) { return value_.data() + offset_[i]; }
  const double* row(int i) const { return value_.data() + offset_[i]; }
  static int first_of(int i) { return i - i % 6; }

  void clear() noexcept;
  void add_to_diagonal(double share_of_mean) noexcept;
  // Replaces it by its factors L', right of the diagonal, and D.
  void factorise() noexcept;
  // x := the solution for the right-hand side x; after factorise().
  void solve(Eigen::VectorXd& x) const noexcept;

  std::size_t bytes() const noexcept { return (value_.size() + inverse_d_.size()) * sizeof(double); }

 private:
  std::vector<int> end_;             // (size)
  std::vector<std::size_t> offset_;  // (size) of place 0 in each row, which need not exist
  std::vector<double> value_, inverse_d_;
};

}  // namespace rigstep::index3
