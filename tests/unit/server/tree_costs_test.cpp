// What the tree methods of [003] cost: operations that are counted, the closed forms, and the paper's table.
#include <doctest/doctest.h>

#include <cmath>

#include "core/offline/tree_hamiltonian.h"
#include "server/studies/tree.h"

namespace rigstep::server {

TEST_CASE("counted operations are those of the closed form, which grows as [003] says") {
  using namespace offline;
  constexpr TreeMatrix kTable[] = {TreeMatrix::extended_ltdl, TreeMatrix::tangent, TreeMatrix::orthogonal};
  TreeShape mixed = chains_shape(3, 3, 2);
  for (std::size_t i = 0; i < mixed.freedoms.size(); ++i) mixed.freedoms[i] = 1 + static_cast<int>(i) % 5;
  for (const TreeShape& shape : {chain_shape(9, 1), carousel_shape(7, 3), binary_tree_shape(11, 2), mixed}) {
    const Mechanism m = tree_mechanism(shape);
    TreeEquations equations(m, start_motion(m), 0.0, {});
    TreeSystem<double> system = equations.system();
    for (std::size_t k = 0; k < system.p.size(); ++k) system.p[k] = std::sin(static_cast<double>(k));
    std::vector<Six<Counted>> columns(system.p.size(), Six<Counted>::Ones());
    std::vector<Six<Counted>> wrenches(system.body.size(), Six<Counted>::Ones());
    std::vector<Counted> p_rate(system.p.size());
    const long before = Counted::operations;
    momentum_rates<Counted>(counted(system), columns, wrenches, p_rate.data());
    CHECK(static_cast<double>(Counted::operations - before) == momentum_rate_operations(shape));
    for (const TreeMatrix matrix : kTable) {
      CAPTURE(static_cast<int>(matrix));
      TreeSystem<Counted> counting = counted(system);
      TreeSolver<Counted> counter(matrix);
      counter.solve(counting);
      CHECK(static_cast<double>(counter.operations().all()) == doctest::Approx(closed_form_operations(matrix, shape)));
      TreeSolver<double>(matrix).solve(system);
      for (std::size_t k = 0; k < system.u.size(); ++k) CHECK(counting.u[k].value == doctest::Approx(system.u[k]));
    }
  }
  const auto exponent = [](TreeMatrix matrix, TreeShape (*shape)(int, int), int n) {
    return std::log2(closed_form_operations(matrix, shape(2048, n)) / closed_form_operations(matrix, shape(1024, n)));
  };
  for (int n = 1; n <= 3; ++n) {
    CAPTURE(n);
    for (const auto shape : {chain_shape, carousel_shape, binary_tree_shape})
      CHECK(exponent(TreeMatrix::extended_ltdl, shape, n) == doctest::Approx(1.0).epsilon(0.01));
    CHECK(exponent(TreeMatrix::tangent, chain_shape, n) == doctest::Approx(3.0).epsilon(0.04));
    CHECK(exponent(TreeMatrix::tangent, carousel_shape, n) == doctest::Approx(1.0).epsilon(0.01));
    CHECK(exponent(TreeMatrix::orthogonal, chain_shape, n) == doctest::Approx(1.0).epsilon(0.01));
    CHECK(exponent(TreeMatrix::orthogonal, carousel_shape, n) == doctest::Approx(3.0).epsilon(0.04));
  }
}

TEST_CASE("table 1 has the leading terms that [003] draws from it") {
  using namespace offline;
  for (int n = 1; n <= 5; ++n) {
    const double N = 1e4, m = 6.0 - n;
    const TreeShape chain = chain_shape(10000, n), carousel = carousel_shape(10000, n);
    CHECK(table_1(TreeMatrix::extended_ltdl, chain) ==
          doctest::Approx((864.0 + 1105.0 * n / 6.0 + 39.0 * n * n / 2.0 + n * n * n / 3.0) * N).epsilon(1e-3));
    CHECK(table_1(TreeMatrix::tangent, chain) == doctest::Approx(n * n * n * N * N * N / 3.0).epsilon(0.01));
    CHECK(table_1(TreeMatrix::tangent, carousel) ==
          doctest::Approx((427.0 + 613.0 * n / 6.0 + 51.0 * n * n / 2.0 + 7.0 * n * n * n / 3.0) * N).epsilon(1e-3));
    CHECK(table_1(TreeMatrix::orthogonal, carousel) == doctest::Approx(m * m * m * N * N * N / 3.0).epsilon(0.01));
  }
}

}  // namespace rigstep::server
