#include "core/index3/sweeps.h"

#include <algorithm>
#include <cmath>

#include "core/index3/kernels.h"

namespace rigstep::index3 {

namespace {

const Vec6& jacobian(const Plan& plan, const Workspace& w, int row, int body) {
  return plan.connection[plan.connection_of_row[row]].first == body ? w.J_first[row] : w.J_second[row];
}

// (26) projected: the leaf's compliance J M^-1 J' between all its joints
void fill_leaf(const Plan& plan, const Front& f, Workspace& w) {
  const int* row = plan.elimination.row.data() + f.first_row;
  double* W = w.fronts.data() + f.matrix;
  const int n = f.size();
  for (int k = 0; k < n; ++k) {
    const Vec6 y = w.M_inverse[f.body] * jacobian(plan, w, row[k], f.body);
    for (int i = k; i < n; ++i) W[i + k * n] = jacobian(plan, w, row[i], f.body).dot(y);
  }
}

void fill_merge(const Plan& plan, const Front& f, Workspace& w) {
  double* W = w.fronts.data() + f.matrix;
  std::fill_n(W, f.size() * f.size(), 0.0);
  const auto add_compound = [&](int child, int place) {
    const Front& c = plan.elimination.fronts[child];
    kernels::scatter_add(w.fronts.data() + c.matrix, c.size(), c.eliminated, plan.elimination.place.data() + place, W,
                         f.size());
  };
  add_compound(f.left, f.left_place);
  add_compound(f.right, f.right_place);
}

}  // namespace

void factorise_compounds(const Plan& plan, const std::vector<double>& compliance, Workspace& w) noexcept {
  for (const Front& f : plan.elimination.fronts) {
    if (f.body >= 0)
      fill_leaf(plan, f, w);
    else
      fill_merge(plan, f, w);
    double* W = w.fronts.data() + f.matrix;
    const int* row = plan.elimination.row.data() + f.first_row;
    for (int k = 0; k < f.eliminated; ++k) W[k + k * f.size()] += compliance[row[k]];
    const int failed = kernels::eliminate(W, f.size(), f.eliminated);
    if (failed >= 0 && w.failed_row < 0) w.failed_row = row[failed];
  }
}

void assemble(const Plan& plan, Workspace& w) noexcept {
  const Elimination& e = plan.elimination;
  for (const Front& f : e.fronts) {
    const int* row = e.row.data() + f.first_row;
    double* b = w.vectors.data() + f.vector;
    if (f.body >= 0) {
      for (int k = 0; k < f.size(); ++k) b[k] = jacobian(plan, w, row[k], f.body).dot(w.bias[f.body]);
    } else {
      const Front &left = e.fronts[f.left], &right = e.fronts[f.right];
      std::fill_n(b, f.size(), 0.0);
      for (int k = 0; k < left.pending; ++k)
        b[e.place[f.left_place + k]] += w.vectors[left.vector + left.eliminated + k];
      for (int k = 0; k < right.pending; ++k)
        b[e.place[f.right_place + k]] += w.vectors[right.vector + right.eliminated + k];
    }
    for (int k = 0; k < f.eliminated; ++k) b[k] += w.rhs_term[row[k]];
    kernels::solve_up(w.fronts.data() + f.matrix, f.size(), f.eliminated, b);
  }
}

void disassemble(const Plan& plan, Workspace& w) noexcept {
  const Elimination& e = plan.elimination;
  for (auto f = e.fronts.rbegin(); f != e.fronts.rend(); ++f) {
    const int* row = e.row.data() + f->first_row;
    double* b = w.vectors.data() + f->vector;
    for (int k = f->eliminated; k < f->size(); ++k) b[k] = w.Lambda[row[k]];
    kernels::solve_down(w.fronts.data() + f->matrix, f->size(), f->eliminated, b);
    for (int k = 0; k < f->eliminated; ++k) w.Lambda[row[k]] = b[k];
  }
}

void close_joints(const Plan& plan, Workspace& w) noexcept {
  const Elimination& e = plan.elimination;
  for (const Front& f : e.fronts) {
    if (f.body < 0) continue;
    const int* row = e.row.data() + f.first_row;
    Vec6 load = Vec6::Zero();
    for (int k = 0; k < f.size(); ++k) load += jacobian(plan, w, row[k], f.body) * w.Lambda[row[k]];
    w.bias[f.body] -= w.M_inverse[f.body] * load;
  }
}

}  // namespace rigstep::index3
