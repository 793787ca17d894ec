#include "core/index3/outputs/profile.h"

#include <algorithm>

namespace rigstep::index3 {

Profile::Profile(const std::vector<int>& end) {
  std::size_t stored = 0;
  for (const int bodies : end)
    for (int k = 0; k < 6; ++k) {
      const int first = first_of(size());
      offset_.push_back(stored - static_cast<std::size_t>(first));
      end_.push_back(6 * bodies);
      stored += static_cast<std::size_t>(6 * bodies - first);
    }
  value_.resize(stored);
  inverse_d_.resize(end_.size());
}

void Profile::clear() noexcept { std::fill(value_.begin(), value_.end(), 0.0); }

void Profile::add_to_diagonal(double share_of_mean) noexcept {
  double sum = 0.0;
  for (int i = 0; i < size(); ++i) sum += row(i)[i];
  for (int i = 0; i < size(); ++i) row(i)[i] += share_of_mean * sum / size();
}

void Profile::factorise() noexcept {
  for (int j = 0; j < size(); ++j) {
    double* const pivot = row(j);
    inverse_d_[j] = 1.0 / pivot[j];
    for (int i = j + 1; i < end_[j]; ++i) {
      const double l = pivot[i] * inverse_d_[j];
      double* const below = row(i);
      for (int at = first_of(i); at < end_[j]; at += 6) six(below, at) -= l * six(pivot, at);
    }
    for (int i = j + 1; i < end_[j]; ++i) pivot[i] *= inverse_d_[j];
  }
}

void Profile::solve(Eigen::VectorXd& x) const noexcept {
  for (int j = 0; j < size(); ++j) {
    const double* const L = row(j);
    for (int i = j + 1; i < end_[j]; ++i) x[i] -= L[i] * x[j];
  }
  for (int j = size(); j-- > 0;) {
    const double* const L = row(j);
    x[j] *= inverse_d_[j];
    for (int i = j + 1; i < end_[j]; ++i) x[j] -= L[i] * x[i];
  }
}

}  // namespace rigstep::index3
