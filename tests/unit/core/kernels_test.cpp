// The algebra of one front against dense algebra, for every instruction set, one lane and several.
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <limits>
#include <numeric>
#include <vector>

#include "core/index3/compile/aligned.h"
#include "core/index3/compile/schedule.h"
#include "core/index3/kernels/sweeps.h"
#include "tests/support/mechanisms.h"
#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kRounding = 1e-12;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

MatrixXd positive_definite(test::Random& random, Index n) {
  MatrixXd R(n, n);
  for (Index k = 0; k < n; ++k) R.col(k) = random.values(n);
  return R * R.transpose() + MatrixXd::Identity(n, n);
}

int packed(int row) { return row * (row + 1) / 2; }

// Rows of the pending constraints: in the left child alone, in both, in the right child alone.
struct Shape {
  int pivots, left, both, right;
  bool left_child = true, right_child = true;
  unsigned char form = kAnyFront;
  Operands children = Operands::in_order;
  int padding[2] = {0, 0};  // rows that the left child has before all others, the right one behind them
  int rows() const { return left + both + right; }
  bool has_child(int side) const { return side == 0 ? left_child : right_child; }
};

// One front between two compounds with random compliance, in all lanes of its width.
class OneFront {
 public:
  OneFront(const Shape& shape, int width, unsigned seed) : shape_(shape), width_(width) {
    test::Random random(seed);
    const int N = shape.pivots;
    // rows of the front: pivots, left, both, right; where each child has them, -1: they are left behind
    for (int side = 0; side < 2; ++side) {
      if (!shape.has_child(side)) continue;
      std::vector<int>& rows = child_rows_[side];
      const auto add = [&rows](int first, int count) {
        for (int k = 0; k < count; ++k) rows.push_back(first + k);
      };
      if (side == 0) rows.assign(static_cast<std::size_t>(shape.padding[0]), -1);
      if (side == 0) add(N, shape.left);
      add(0, N);
      add(N + shape.left, shape.both);
      if (side == 1) add(N + shape.left + shape.both, shape.right);
      if (side == 1) rows.insert(rows.end(), static_cast<std::size_t>(shape.padding[1]), -1);
    }
    for (int lane = 0; lane < width; ++lane) {
      const Index n = N + shape.rows();
      MatrixXd S = MatrixXd::Zero(n, n);
      VectorXd b = VectorXd::Zero(n);
      for (int side = 0; side < 2; ++side) {
        const std::vector<int>& rows = child_rows_[side];
        const Index size = static_cast<Index>(rows.size());
        child_matrix_[side].push_back(positive_definite(random, size));
        child_vector_[side].push_back(random.values(size));
        for (Index i = 0; i < size; ++i) {
          if (rows[i] < 0) continue;
          b[rows[i]] += child_vector_[side][lane][i];
          for (Index k = 0; k < size; ++k)
            if (rows[k] >= 0) S(rows[i], rows[k]) += child_matrix_[side][lane](i, k);
        }
      }
      const VectorXd compliance = random.values(N).cwiseAbs(), rhs = random.values(N);
      S.diagonal().head(N) += compliance;
      b.head(N) += rhs;
      S_.push_back(S);
      b_.push_back(b);
      compliance_.push_back(compliance);
      rhs_.push_back(rhs);
    }
    lay_out();
  }

  const MatrixXd& S(int lane) const { return S_[lane]; }
  const VectorXd& b(int lane) const { return b_[lane]; }
  StepArrays& arrays() { return arrays_; }
  double& compliance(int row, int lane) { return rows_[0][static_cast<std::size_t>(row * width_ + lane)]; }

  MatrixXd schur(int lane) const {
    MatrixXd result(shape_.rows(), shape_.rows());
    for (int i = 0; i < shape_.rows(); ++i)
      for (int k = 0; k <= i; ++k) result(i, k) = result(k, i) = at(front_.matrix, packed(i) + k, lane);
    return result;
  }
  VectorXd vector(int lane) const {
    VectorXd result(shape_.rows());
    for (int i = 0; i < shape_.rows(); ++i) result[i] = at(front_.vector, i, lane);
    return result;
  }
  void set_vector(int lane, const VectorXd& value) {
    for (int i = 0; i < shape_.rows(); ++i) at(front_.vector, i, lane) = value[i];
  }
  VectorXd Lambda(int lane) const {
    VectorXd result(shape_.pivots);
    for (int i = 0; i < shape_.pivots; ++i) result[i] = rows_[2][static_cast<std::size_t>(i * width_ + lane)];
    return result;
  }
  // what a child got back, against the solution of the whole; of what it left behind next to nothing, but not zero
  double error_of_child(int side, int lane, const VectorXd& x) const {
    double most = 0.0;
    const Place& place = places_[side].vector[lane];
    for (std::size_t k = 0; k < child_rows_[side].size(); ++k) {
      const double found = arena_[static_cast<std::size_t>(place.base) + k * static_cast<std::size_t>(place.stride)];
      const int row = child_rows_[side][k];
      most = std::max(most, row < 0 ? std::abs(1e30 * found - child_vector_[side][lane][static_cast<Index>(k)])
                                    : std::abs(found - x[row]));
    }
    return most;
  }
  bool has_child(int side) const { return shape_.has_child(side); }

 private:
  double& at(int first, int element, int lane) const {
    return arena_[static_cast<std::size_t>(first + element * width_ + lane)];
  }

  int take(int doubles) {
    const int at = used_;
    used_ += (doubles + 7) / 8 * 8;
    return at;
  }

  void lay_out() {
    const int N = shape_.pivots, rows = shape_.rows();
    front_.width = width_;
    front_.rows = rows;
    front_.pivots = N;
    front_.form = shape_.form;
    front_.constraint = 0;
    front_.row_stride = width_;
    front_.children = shape_.children;
    for (int side = 0; side < 2; ++side)
      if (has_child(side)) place_child(side);
    const bool in_place = shape_.form == kChainLink && shape_.children == Operands::in_order;
    front_.matrix = in_place ? front_.child[0].matrix : take(packed(rows) * width_);
    front_.vector = in_place ? front_.child[0].vector : take(rows * width_);
    front_.factor = take((packed(N) + rows * N + N) * width_);
    arena_ = AlignedDoubles(static_cast<std::size_t>(used_), kNaN);
    for (int side = 0; side < 2; ++side)
      if (has_child(side)) fill_child(side);
    for (AlignedDoubles& each : rows_) each = AlignedDoubles(static_cast<std::size_t>(8 * width_), kNaN);
    for (int lane = 0; lane < width_; ++lane)
      for (int k = 0; k < N; ++k) {
        rows_[0][static_cast<std::size_t>(k * width_ + lane)] = compliance_[lane][k];
        rows_[1][static_cast<std::size_t>(k * width_ + lane)] = rhs_[lane][k];
      }
    const int of_children = packed(front_.child[0].rows) + packed(front_.child[1].rows);  // where they lie scattered
    scratch_ = AlignedDoubles(static_cast<std::size_t>((rows * N + of_children) * width_ + 8), kNaN);
    int row = 0;
    const auto add = [&](int count, int in_left, int in_right) {
      if (count > 0) pending_.push_back({row, count, {in_left, in_right}});
      row += count;
    };
    add(shape_.left, shape_.padding[0], -1);
    add(shape_.both, shape_.left_child ? shape_.padding[0] + shape_.left + N : -1, shape_.right_child ? N : -1);
    add(shape_.right, -1, N + shape_.both);
    front_.pendings = static_cast<int>(pending_.size());
    arrays_ = StepArrays{};
    arrays_.front = &front_;
    arrays_.run = &run_;
    arrays_.runs = 1;
    run_.shape = shape_of(front_);
    arrays_.scattered_child = places_;
    arrays_.pending = pending_.data();
    arrays_.compliance[0] = arrays_.compliance[1] = rows_[0].data();
    arrays_.Phi = rows_[1].data();
    arrays_.sigma = rows_[2].data();
    arrays_.arena = arena_.data();
    arrays_.scratch = scratch_.data();
  }

  // beside: the last lanes of a wider batch; scattered: each lane of the front finds its child elsewhere
  void place_child(int side) {
    Child& child = front_.child[side];
    ScatteredChild& places = places_[side];
    const int size = static_cast<int>(child_rows_[side].size());
    child.present = true;
    child.rows = size;
    child.pivot = side == 0 ? shape_.padding[0] + shape_.left : 0;
    child.padding_rows = shape_.padding[side];
    child.padding = side == 0 ? 0 : size - child.padding_rows;
    if (shape_.children != Operands::scattered) {
      const int wide = shape_.children == Operands::beside ? 4 * width_ : width_, first = wide - width_;
      const int matrix = take(packed(size) * wide) + first, vector = take(size * wide) + first;
      for (int lane = 0; lane < width_; ++lane) {
        places.matrix[lane] = {matrix + lane, wide};
        places.vector[lane] = {vector + lane, wide};
      }
    } else {
      for (int lane = width_ - 1; lane >= 0; --lane) {
        const int stride = lane % 2 == 0 ? 4 : 1;
        places.matrix[lane] = {take(packed(size) * stride), stride};
        places.vector[lane] = {take(size * stride), stride};
      }
      if (width_ > 1) child.scattered = side;
    }
    child.matrix = places.matrix[0].base;
    child.vector = places.vector[0].base;
    child.stride = places.matrix[0].stride;
  }

  void fill_child(int side) {
    const Child& child = front_.child[side];
    for (int lane = 0; lane < width_; ++lane)
      for (int i = 0; i < child.rows; ++i) {
        arena_[static_cast<std::size_t>(places_[side].vector[lane].base + i * places_[side].vector[lane].stride)] =
            child_vector_[side][lane][i];
        for (int k = 0; k <= i; ++k)
          arena_[static_cast<std::size_t>(places_[side].matrix[lane].base +
                                          (packed(i) + k) * places_[side].matrix[lane].stride)] =
              child_matrix_[side][lane](i, k);
      }
  }

  Shape shape_;
  int width_;
  std::vector<int> child_rows_[2];
  std::vector<MatrixXd> child_matrix_[2], S_;
  std::vector<VectorXd> child_vector_[2], b_, compliance_, rhs_;
  Front front_;
  Run run_{Run::Of::fronts, 0, 1};
  ScatteredChild places_[2];
  std::vector<Pending> pending_;
  AlignedDoubles arena_, scratch_, rows_[3];  // rows: compliance, right-hand side, Lambda
  StepArrays arrays_{};
  int used_ = 0;
};

void check(const Kernels& kernels, const Shape& shape, int width, unsigned seed) {
  CAPTURE(kernels.name);
  CAPTURE(shape.pivots);
  CAPTURE(shape.left);
  CAPTURE(shape.both);
  CAPTURE(shape.right);
  CAPTURE(width);
  CAPTURE(static_cast<int>(shape.form));
  CAPTURE(static_cast<int>(shape.children));
  OneFront f(shape, width, seed);
  const Index N = shape.pivots, p = shape.rows();
  AssemblySweep up;
  up.factorise = up.right_hand_sides = true;
  REQUIRE(kernels.assemble(f.arrays(), up));
  std::vector<VectorXd> x;
  for (int lane = 0; lane < width; ++lane) {
    const MatrixXd& S = f.S(lane);
    const VectorXd& b = f.b(lane);
    x.push_back(S.ldlt().solve(b));
    MatrixXd reduced(N + p, N + p + 1);
    reduced << S, b;
    for (Index k = 0; k < N; ++k)
      for (Index i = k + 1; i < N + p; ++i) reduced.row(i) -= reduced(i, k) / reduced(k, k) * reduced.row(k);
    CHECK((f.schur(lane) - reduced.block(N, N, p, p)).norm() < kRounding * S.norm());
    CHECK((f.vector(lane) - reduced.rightCols(1).bottomRows(p)).norm() < kRounding * S.norm());
    f.set_vector(lane, x[lane].tail(p));
  }
  kernels.disassemble(f.arrays(), {});
  for (int lane = 0; lane < width; ++lane) {
    CHECK((f.Lambda(lane) - x[lane].head(N)).norm() < kRounding * static_cast<double>(N + p));
    for (int side = 0; side < 2; ++side)
      if (f.has_child(side)) CHECK(f.error_of_child(side, lane, x[lane]) < kRounding * static_cast<double>(N + p));
  }
}

// f(kernels, width), for every width of the batches of every instruction set
template <class F>
void for_all_kernels(const F& f) {
  for (const char* set : test::instruction_sets()) {
    const Kernels& kernels = kernels_for_this_processor(set);
    for (int width = 1; width <= kernels.lanes; width *= 2) f(kernels, width);
  }
}

constexpr Operands kOperands[] = {Operands::in_order, Operands::beside, Operands::scattered};

}  // namespace

TEST_CASE("a front leaves the Schur complement of its pending rows; up reduces and down solves like dense algebra") {
  for_all_kernels([](const Kernels& kernels, int width) {
    unsigned seed = 0;
    for (int pivots = 1; pivots <= kMaxRows; ++pivots)
      for (const Shape& pending : {Shape{0, 0, 0, 0}, Shape{0, 3, 0, 0}, Shape{0, 5, 0, 6}, Shape{0, 0, 4, 0},
                                   Shape{0, 1, 2, 3}, Shape{0, 6, 11, 2}, Shape{0, 12, 1, 12}})
        for (const Operands children : kOperands) {
          Shape shape = pending;
          shape.pivots = pivots;
          shape.children = children;
          check(kernels, shape, width, ++seed);
        }
  });
}

TEST_CASE("a front of one compound, and one that only joins two compounds, follow the same laws") {
  for_all_kernels([](const Kernels& kernels, int width) {
    for (const Operands children : kOperands) {
      check(kernels, {.pivots = 3, .left = 4, .both = 5, .right = 0, .right_child = false, .children = children}, width,
            1);
      check(kernels, {.pivots = 6, .left = 0, .both = 0, .right = 0, .right_child = false, .children = children}, width,
            2);
      check(kernels, {.pivots = 0, .left = 3, .both = 4, .right = 5, .children = children}, width, 3);
    }
  });
}

TEST_CASE("the links of a chain, and its ends, follow the same laws") {
  for_all_kernels([](const Kernels& kernels, int width) {
    for (int n = 3; n <= kMaxRows; ++n)
      for (unsigned char form = 1; form <= kChainLink; ++form) {
        const bool left = (form & kLeft) != 0, right = (form & kRight) != 0;
        const bool left_open = (form & kLeftOpen) != 0, right_open = (form & kRightOpen) != 0;
        if ((left_open && !left) || (right_open && !right)) continue;
        for (const Operands children : kOperands)
          check(kernels,
                {.pivots = n,
                 .left = left_open ? n : 0,
                 .both = 0,
                 .right = right_open ? n : 0,
                 .left_child = left,
                 .right_child = right,
                 .form = form,
                 .children = children},
                width, static_cast<unsigned>(16 * n + form));
      }
  });
}

TEST_CASE("what a front leaves behind of its children has no part in the solution") {
  for_all_kernels([](const Kernels& kernels, int width) {
    unsigned seed = 0;
    for (int n = 3; n <= kMaxRows; ++n)
      for (const Operands children : kOperands) {
        Shape end{.pivots = n, .left = 0, .both = 0, .right = 0, .form = kLeft | kRight, .children = children};
        end.padding[0] = end.padding[1] = n;
        check(kernels, end, width, ++seed);
        end.padding[0] = 0;
        end.left = n;
        end.form |= kLeftOpen;
        check(kernels, end, width, ++seed);
        Shape any{.pivots = n, .left = 2, .both = 3, .right = 4, .children = children, .padding = {3, 5}};
        check(kernels, any, width, ++seed);
      }
  });
}

TEST_CASE("a pivot that is not positive is noticed in whatever lane; what is not a number goes through") {
  AssemblySweep eliminate;
  eliminate.factorise = true;
  for_all_kernels([&](const Kernels& kernels, int width) {
    for (int lane = 0; lane < width; ++lane) {
      OneFront f({.pivots = 4, .left = 2, .both = 0, .right = 3}, width, 5);
      f.compliance(2, lane) = -1e3;
      CHECK_FALSE(kernels.assemble(f.arrays(), eliminate));
      f.compliance(2, lane) = kNaN;
      kernels.assemble(f.arrays(), eliminate);
      for (int other = 0; other < width; ++other) CHECK(f.schur(other).hasNaN() == (other == lane));
    }
  });
}

}  // namespace rigstep::index3
