#include "server/studies/tree_costs.h"

#include <stdexcept>

namespace rigstep::server {

namespace {

using offline::TreeMatrix;

// (39)
struct Parameters {
  std::vector<double> eta, tau, theta;  // (N)
};

Parameters parameters(const TreeShape& shape) {
  const std::size_t n = shape.inner.size();
  Parameters at{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> depth(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double own = shape.freedoms[i];
    at.eta[i] = own;
    at.tau[i] = 6.0 - own;
    depth[i] = 1.0;
    if (shape.inner[i] >= 0) {
      const std::size_t k = static_cast<std::size_t>(shape.inner[i]);
      at.eta[i] += at.eta[k];
      depth[i] += depth[k];
      at.tau[k] += 6.0 - own;
    }
    at.theta[i] = own * depth[i];
  }
  return at;
}

// a x^3 + b x^2 + c x + d
struct Cubic {
  double a, b, c, d;
  double operator()(double x) const { return ((a * x + b) * x + c) * x + d; }
};

// What a method costs per body, and how much less where the table takes the inner hinge or the first body off.
struct Costs {
  Cubic extended, extended_first;
  Cubic tangent, tangent_inner;
  double tangent_theta, tangent_own;
  Cubic orthogonal, orthogonal_own;
  double orthogonal_first;
};

double total(TreeMatrix matrix, const TreeShape& shape, const Costs& costs) {
  const Parameters at = parameters(shape);
  double sum = 0.0;
  for (std::size_t i = 0; i < shape.inner.size(); ++i) {
    const double n = shape.freedoms[i];
    const bool first = shape.inner[i] < 0;
    switch (matrix) {
      case TreeMatrix::extended_lu:
      case TreeMatrix::extended_lu_products:
        throw std::invalid_argument("table 1 has no algorithm 1: ask for extended_ltdl");
      case TreeMatrix::extended_ltdl:
        sum += costs.extended(n) - (first ? costs.extended_first(n) : 0.0);
        break;
      case TreeMatrix::tangent:
        sum += costs.tangent(at.eta[i]) + costs.tangent_theta * at.theta[i] + costs.tangent_own * n;
        if (!first) sum -= costs.tangent_inner(at.eta[static_cast<std::size_t>(shape.inner[i])]);
        break;
      case TreeMatrix::orthogonal:
        sum += costs.orthogonal(at.tau[i]);
        sum -= first ? costs.orthogonal_first : costs.orthogonal_own(6.0 - n);
        break;
    }
  }
  return sum;
}

}  // namespace

TreeShape chain_shape(int bodies, int freedoms) { return chains_shape(1, bodies - 1, freedoms); }
TreeShape carousel_shape(int bodies, int freedoms) { return chains_shape(bodies - 1, 1, freedoms); }

TreeShape binary_tree_shape(int bodies, int freedoms) {
  TreeShape shape;
  for (int i = 0; i < bodies; ++i) shape.inner.push_back(i == 0 ? -1 : (i - 1) / 2);
  shape.freedoms.assign(shape.inner.size(), freedoms);
  return shape;
}

TreeShape chains_shape(int chains, int length, int freedoms) {
  TreeShape shape;
  shape.inner.push_back(-1);
  for (int c = 0; c < chains; ++c)
    for (int i = 0; i < length; ++i) shape.inner.push_back(i == 0 ? 0 : static_cast<int>(shape.inner.size()) - 1);
  shape.freedoms.assign(shape.inner.size(), freedoms);
  return shape;
}

double table_1(TreeMatrix matrix, const TreeShape& shape) {
  constexpr double kThird = 1.0 / 3.0;
  static constexpr Costs kPaper{{kThird, 39.0 / 2.0, 1105.0 / 6.0, 864.0},
                                {0.0, 0.0, 84.0, 660.0},
                                {kThird, 17.0 / 2.0, 109.0 / 6.0, 222.0},
                                {kThird, 17.0 / 2.0, 109.0 / 6.0, -205.0},
                                42.0,
                                0.0,
                                {kThird, 17.0 / 2.0, 361.0 / 6.0, 420.0},
                                {kThird, 5.0 / 2.0, 1.0 / 6.0, 0.0},
                                48.0};
  return total(matrix, shape, kPaper);
}

double closed_form_operations(TreeMatrix matrix, const TreeShape& shape) {
  constexpr double kThird = 1.0 / 3.0;
  // orthogonal in terms of tau: 12 n + 11 n + 23 (6 - n) = 138
  static constexpr Costs kOurs{{kThird, 14.0, 1222.0 / 6.0, 603.0},
                               {0.0, 6.0, 108.0, 459.0},
                               {kThird, 8.0, 34.0 / 6.0, 96.0},
                               {kThird, 8.0, 34.0 / 6.0, -336.0},
                               42.0,
                               24.0,
                               {kThird, 8.0, 430.0 / 6.0, 486.0},
                               {kThird, 2.0, 1.0 / 6.0 - 42.5, 0.0},
                               192.0};
  return total(matrix, shape, kOurs);
}

double momentum_rate_operations(const TreeShape& shape) {
  double sum = 0.0;
  for (std::size_t i = 0; i < shape.inner.size(); ++i)
    sum += 36.0 + 23.0 * shape.freedoms[i] + (shape.inner[i] < 0 ? 0.0 : 48.0);
  return sum;
}

}  // namespace rigstep::server
