#include "core/offline/tree_methods.h"

#include <algorithm>
#include <type_traits>

namespace rigstep::offline {

namespace {

template <class T>
long tally() {
  if constexpr (std::is_same_v<T, Counted>) return Counted::operations;
  return 0;
}

template <class T>
T dot(const Six<T>& a, const Six<T>& b) {
  T sum = a[0] * b[0];
  for (int k = 1; k < 6; ++k) sum += a[k] * b[k];
  return sum;
}

template <class T>
Six<T> times(const Symmetric6<T>& M, const Six<T>& v) {
  Six<T> product;
  for (int k = 0; k < 6; ++k) product[k] = dot<T>(M.col(k), v);
  return product;
}

template <class T>
void mirror(Symmetric6<T>& M) {
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < i; ++j) M(j, i) = M(i, j);
}

// [m E, -h~; h~, J]
template <class T>
Symmetric6<T> rigid_matrix(const TreeBody<T>& b) {
  Symmetric6<T> M;
  M.setConstant(T(0.0));
  for (int k = 0; k < 3; ++k) M(k, k) = b.mass;
  const Three<T>& h = b.moment;
  M(3, 1) = M(1, 3) = -h.z(), M(3, 2) = M(2, 3) = h.y(), M(4, 0) = M(0, 4) = h.z();
  M(4, 2) = M(2, 4) = -h.x(), M(5, 0) = M(0, 5) = -h.y(), M(5, 1) = M(1, 5) = h.x();
  M.template bottomRightCorner<3, 3>() = b.inertia;
  return M;
}

// G'X G of a symmetric X: half of the second product
template <class T>
Axes<T> turned_symmetric(const Axes<T>& G, const Axes<T>& X) {
  const Axes<T> XG = X * G;
  Axes<T> turned;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j <= i; ++j) turned(i, j) = turned(j, i) = G.col(i).dot(XG.col(j));
  return turned;
}

template <class T>
Axes<T> cross_columns(const Three<T>& a, const Axes<T>& X) {
  Axes<T> product;
  for (int j = 0; j < 3; ++j) product.col(j) = a.cross(Three<T>(X.col(j)));
  return product;
}

// target + C'M C of a symmetric M, whose blocks need not be those of a rigid body
template <class T>
void add_inwards(const TreeBody<T>& b, const Symmetric6<T>& M, Symmetric6<T>& target) {
  const Axes<T> N11 = turned_symmetric<T>(b.G, M.template topLeftCorner<3, 3>());
  const Axes<T> N22 = turned_symmetric<T>(b.G, M.template bottomRightCorner<3, 3>());
  const Axes<T> XG = M.template bottomLeftCorner<3, 3>() * b.G;
  const Axes<T> N21 = b.G.transpose() * XG;
  const Axes<T> shifted = N21 + cross_columns<T>(b.rho, N11);  // rho~ N11 + N21
  const Axes<T> left = cross_columns<T>(b.rho, N21.transpose()), right = cross_columns<T>(b.rho, shifted.transpose());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      if (j <= i) {
        target(i, j) += N11(i, j);
        target(3 + i, 3 + j) += N22(i, j) + left(i, j) + right(j, i);
      }
      target(3 + i, j) += shifted(i, j);
    }
  mirror(target);
}

// L of L'L = X in place of the lower triangle of X: algorithm 3 on one block.
template <class T>
void cholesky(Eigen::Matrix<T, 6, 6>& X, int n) {
  for (int k = n - 1; k >= 0; --k) {
    X(k, k) = sqrt(X(k, k));
    for (int j = 0; j < k; ++j) X(k, j) = X(k, j) / X(k, k);
    for (int i = 0; i < k; ++i)
      for (int j = 0; j <= i; ++j) X(i, j) -= X(k, i) * X(k, j);
  }
}

// x of L'x = b in place; Value: numbers or rows
template <class T, class Value>
void solve_transposed(const Eigen::Matrix<T, 6, 6>& L, int n, Value* b) {
  for (int k = n - 1; k >= 0; --k) {
    b[k] = b[k] / L(k, k);
    for (int j = 0; j < k; ++j) b[j] -= L(k, j) * b[k];
  }
}

// x of L x = b in place
template <class T>
void solve_lower(const Eigen::Matrix<T, 6, 6>& L, int n, T* b) {
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < k; ++j) b[k] -= L(k, j) * b[j];
    b[k] = b[k] / L(k, k);
  }
}

// (A'M A)^-1 from its factor, both halves
template <class T>
Eigen::Matrix<T, 6, 6> inverse(const Eigen::Matrix<T, 6, 6>& L, int n) {
  Eigen::Matrix<T, 6, 6> D;
  for (int c = 0; c < n; ++c) {
    std::array<T, 6> unit{};
    unit[c] = T(1.0);
    solve_transposed<T>(L, c + 1, unit.data());  // nothing stands below
    for (int k = 0; k < n; ++k) {
      if (k > c) unit[k] = T(0.0);
      for (int j = 0; j < k; ++j) unit[k] -= L(k, j) * unit[j];
      unit[k] = unit[k] / L(k, k);
    }
    for (int k = 0; k < n; ++k) D(k, c) = unit[k];
  }
  return D;
}

// One row of algorithm 3: row[0 ... last] of the lower triangle becomes that of L, rows above get their Schur
// complement. row_of(b): the row of that column, whose columns are the first ones of this row.
template <class T, class RowOf>
void eliminate_row(T* row, int last, RowOf row_of) {
  const T pivot = sqrt(row[last]);
  row[last] = pivot;
  for (int k = 0; k < last; ++k) row[k] = row[k] / pivot;
  for (int b = 0; b < last; ++b) {
    T* target = row_of(b);
    const T factor = row[b];
    for (int c = 0; c <= b; ++c) target[c] -= factor * row[c];
  }
}

// h_i, and Q_j of the rows above: right holds Q, afterwards h
template <class T>
void substitute_inwards(const T* row, const int* columns, int last, T* right) {
  const T h = right[columns[last]] / row[last];
  right[columns[last]] = h;
  for (int k = 0; k < last; ++k) right[columns[k]] -= row[k] * h;
}

template <class T>
void substitute_outwards(const T* row, const int* columns, int last, T* right) {
  T value = right[columns[last]];
  for (int k = 0; k < last; ++k) value -= row[k] * right[columns[k]];
  right[columns[last]] = value / row[last];
}

template <class T>
Six<T> hinge_motion(const TreeBody<T>& b, const T* u) {
  Six<T> motion = b.A[0] * u[0];
  for (int c = 1; c < b.freedoms; ++c) motion += b.A[static_cast<std::size_t>(c)] * u[c];
  return motion;
}

// v_i of (10) from that of the inner body
template <class T>
Six<T> body_motion(const TreeSystem<T>& s, std::size_t i) {
  const TreeBody<T>& b = s.body[i];
  Six<T> v = s.bias[i];
  if (b.freedoms > 0) v += hinge_motion<T>(b, s.u.data() + b.rate);
  if (b.inner >= 0) v += outwards<T>(b, s.v[static_cast<std::size_t>(b.inner)]);
  return v;
}

}  // namespace

TreeSystem<Counted> counted(const TreeSystem<double>& s) {
  TreeSystem<Counted> to;
  const auto six = [](const Six<double>& v) { return Six<Counted>(v.cast<Counted>()); };
  const auto all = [&](const std::vector<Six<double>>& from) {
    std::vector<Six<Counted>> list;
    list.reserve(from.size());
    for (const Six<double>& v : from) list.push_back(six(v));
    return list;
  };
  for (const TreeBody<double>& b : s.body) {
    TreeBody<Counted>& c = to.body.emplace_back();
    c.inner = b.inner, c.freedoms = b.freedoms, c.rate = b.rate;
    c.G = b.G.cast<Counted>(), c.rho = b.rho.cast<Counted>(), c.mass = b.mass;
    c.moment = b.moment.cast<Counted>(), c.inertia = b.inertia.cast<Counted>();
    c.M_inverse = b.M_inverse.cast<Counted>();
    for (std::size_t k = 0; k < 6; ++k) c.A[k] = six(b.A[k]), c.Z[k] = six(b.Z[k]), c.A_plus[k] = six(b.A_plus[k]);
  }
  to.load = all(s.load), to.bias = all(s.bias), to.v = all(s.v), to.mu = all(s.mu);
  to.p.assign(s.p.begin(), s.p.end());
  to.u.assign(s.u.begin(), s.u.end());
  return to;
}

template <class T>
void TreeSolver<T>::reserve(const TreeSystem<T>& s) {
  const std::size_t n = s.body.size();
  if (children_.size() == n) return;
  children_.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    if (s.body[i].inner >= 0) children_[static_cast<std::size_t>(s.body[i].inner)].push_back(static_cast<int>(i));
  if (matrix_ != TreeMatrix::tangent && matrix_ != TreeMatrix::orthogonal) {
    sweep_.resize(n);
    return;
  }
  momentum_.resize(n);
  if (matrix_ == TreeMatrix::tangent) {
    composite_.resize(n);
    right_.resize(s.p.size());
    std::vector<std::vector<int>> path(n);
    for (std::size_t i = 0; i < n; ++i) {
      const TreeBody<T>& b = s.body[i];
      if (b.inner >= 0) path[i] = path[static_cast<std::size_t>(b.inner)];
      for (int c = 0; c < b.freedoms; ++c) {
        path[i].push_back(b.rate + c);
        path_.push_back(path[i]);
        row_.emplace_back(path[i].size());
      }
    }
    return;
  }
  front_.resize(n);
  multiplier_.resize(n);
  row_of_inner_.resize(n);
  int multipliers = 0;
  for (std::size_t i = 0; i < n; ++i) {
    multiplier_[i] = multipliers;
    multipliers += 6 - s.body[i].freedoms;
  }
  right_.resize(static_cast<std::size_t>(multipliers));
  for (std::size_t i = 0; i < n; ++i) {
    Front& f = front_[i];
    const auto add = [&](std::size_t hinge) {
      for (int c = 0; c < 6 - s.body[hinge].freedoms; ++c) f.multiplier.push_back(multiplier_[hinge] + c);
    };
    add(i);
    for (const int j : children_[i]) {
      row_of_inner_[static_cast<std::size_t>(j)] = static_cast<int>(f.multiplier.size());
      add(static_cast<std::size_t>(j));
    }
    f.column.resize(f.multiplier.size());
    f.value.resize(packed(static_cast<int>(f.multiplier.size())));
  }
}

template <class T>
void TreeSolver<T>::solve(TreeSystem<T>& s) {
  reserve(s);
  long mark = tally<T>();
  const auto passed = [&mark] {
    const long before = mark;
    mark = tally<T>();
    return mark - before;
  };
  operations_ = {};
  switch (matrix_) {
    case TreeMatrix::extended_lu:
    case TreeMatrix::extended_lu_products:
      eliminate_inwards_lu(s);
      operations_.form = passed();
      solve_outwards_lu(s);
      break;
    case TreeMatrix::extended_ltdl:
      eliminate_inwards_ltdl(s);
      operations_.form = passed();
      solve_outwards_ltdl(s);
      break;
    case TreeMatrix::tangent:
      form_tangent(s);
      operations_.form = passed();
      eliminate_tangent();
      operations_.eliminate = passed();
      solve_tangent(s);
      break;
    case TreeMatrix::orthogonal:
      form_orthogonal(s);
      operations_.form = passed();
      eliminate_orthogonal(s);
      operations_.eliminate = passed();
      solve_orthogonal(s);
      break;
  }
  operations_.substitute = passed();
}

// HM = H M* and y = H bias as printed, with H_i = E - M*A D A'
template <class T>
void by_matrix(const TreeBody<T>& b, const Symmetric6<T>& M, const std::array<Six<T>, 6>& MAD, const Six<T>& bias,
               Symmetric6<T>& HM, Six<T>& y) {
  Eigen::Matrix<T, 6, 6> H;
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 6; ++c) {
      H(r, c) = T(r == c ? 1.0 : 0.0);
      for (int k = 0; k < b.freedoms; ++k) H(r, c) -= MAD[k][r] * b.A[k][c];
    }
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c <= r; ++c) HM(r, c) = dot<T>(H.row(r).transpose(), M.col(c));
  mirror(HM);
  y = times<T>(Symmetric6<T>(H.transpose()), bias);
}

// the same without H
template <class T>
void by_products(const TreeBody<T>& b, const Symmetric6<T>& M, const std::array<Six<T>, 6>& MA,
                 const std::array<Six<T>, 6>& MAD, const Six<T>& bias, Symmetric6<T>& HM, Six<T>& y) {
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c <= r; ++c) {
      HM(r, c) = M(r, c);
      for (int k = 0; k < b.freedoms; ++k) HM(r, c) -= MAD[k][r] * MA[k][c];
    }
  mirror(HM);
  y = bias;
  for (int k = 0; k < b.freedoms; ++k) y -= MAD[k] * dot<T>(b.A[k], bias);
}

template <class T>
void TreeSolver<T>::eliminate_inwards_lu(TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) sweep_[i].M = rigid_matrix(s.body[i]), sweep_[i].phi = -s.load[i];
  for (std::size_t i = s.body.size(); i-- > 0;) {
    const TreeBody<T>& b = s.body[i];
    Sweep& at = sweep_[i];
    const int n = b.freedoms;
    Eigen::Matrix<T, 6, 6> L;
    for (int c = 0; c < n; ++c) {
      at.MA[c] = times<T>(at.M, b.A[c]);
      for (int r = 0; r <= c; ++r) L(c, r) = dot<T>(at.MA[c], b.A[r]);
    }
    cholesky<T>(L, n);
    at.D = inverse<T>(L, n);  // D_i = (A'M*A)^-1
    if (b.inner < 0) continue;
    std::array<Six<T>, 6> MAD;
    for (int c = 0; c < n; ++c) {
      MAD[c] = at.MA[0] * at.D(0, c);
      for (int k = 1; k < n; ++k) MAD[c] += at.MA[k] * at.D(k, c);
    }
    const Six<T> bias = times<T>(at.M, s.bias[i]) + at.phi;  // M*v^r + phi
    Symmetric6<T> HM;
    Six<T> y;  // H (M*v^r + phi)
    matrix_ == TreeMatrix::extended_lu ? by_matrix<T>(b, at.M, MAD, bias, HM, y)
                                       : by_products<T>(b, at.M, at.MA, MAD, bias, HM, y);
    for (int k = 0; k < n; ++k) y += MAD[k] * s.p[static_cast<std::size_t>(b.rate + k)];
    Sweep& inner = sweep_[static_cast<std::size_t>(b.inner)];
    add_inwards<T>(b, HM, inner.M);
    inner.phi += inwards<T>(b, y);
  }
}

template <class T>
void TreeSolver<T>::solve_outwards_lu(TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) {
    const TreeBody<T>& b = s.body[i];
    const Sweep& at = sweep_[i];
    Six<T> v = s.bias[i];
    if (b.inner >= 0) v += outwards<T>(b, s.v[static_cast<std::size_t>(b.inner)]);
    if (b.freedoms > 0) {
      const Six<T> y = times<T>(at.M, v) + at.phi;
      std::array<T, 6> rest;
      for (int c = 0; c < b.freedoms; ++c) rest[c] = s.p[static_cast<std::size_t>(b.rate + c)] - dot<T>(b.A[c], y);
      T* u = s.u.data() + b.rate;
      for (int r = 0; r < b.freedoms; ++r) {
        u[r] = at.D(r, 0) * rest[0];
        for (int c = 1; c < b.freedoms; ++c) u[r] += at.D(r, c) * rest[c];
      }
      v += hinge_motion<T>(b, u);
    }
    s.v[i] = v;
    s.mu[i] = times<T>(at.M, v) + at.phi;
  }
}

template <class T>
void TreeSolver<T>::eliminate_inwards_ltdl(TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) sweep_[i].M = rigid_matrix(s.body[i]), sweep_[i].phi = -s.load[i];
  for (std::size_t i = s.body.size(); i-- > 0;) {
    const TreeBody<T>& b = s.body[i];
    Sweep& at = sweep_[i];
    const int n = b.freedoms;
    const Six<T> y = times<T>(at.M, s.bias[i]) + at.phi;  // M*v^r + phi
    for (int c = 0; c < n; ++c) {
      at.MA[c] = times<T>(at.M, b.A[c]);
      for (int r = 0; r <= c; ++r) at.D(c, r) = dot<T>(at.MA[c], b.A[r]);
      at.eta[c] = s.p[static_cast<std::size_t>(b.rate + c)] - dot<T>(b.A[c], y);
    }
    cholesky<T>(at.D, n);                         // L'L = A'M*A
    solve_transposed<T>(at.D, n, at.eta.data());  // L'eta = p - A'(M*v^r + phi)
    if (b.inner < 0) continue;
    for (int c = 0; c < n; ++c) at.V[c] = inwards<T>(b, at.MA[c]);
    solve_transposed<T>(at.D, n, at.V.data());  // L'V = A'M*C
    Sweep& inner = sweep_[static_cast<std::size_t>(b.inner)];
    for (int k = 0; k < n; ++k)
      for (int r = 0; r < 6; ++r)
        for (int c = 0; c <= r; ++c) inner.M(r, c) -= at.V[k][r] * at.V[k][c];
    add_inwards<T>(b, at.M, inner.M);  // mirrors
    inner.phi += inwards<T>(b, y);
    for (int k = 0; k < n; ++k) inner.phi += at.V[k] * at.eta[k];
  }
}

template <class T>
void TreeSolver<T>::solve_outwards_ltdl(TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) {
    const TreeBody<T>& b = s.body[i];
    const Sweep& at = sweep_[i];
    T* u = s.u.data() + b.rate;
    for (int c = 0; c < b.freedoms; ++c) {
      u[c] = at.eta[c];
      if (b.inner >= 0) u[c] -= dot<T>(at.V[c], s.v[static_cast<std::size_t>(b.inner)]);
    }
    solve_lower<T>(at.D, b.freedoms, u);  // L u = eta - V v
    s.v[i] = body_motion<T>(s, i);
    s.mu[i] = times<T>(at.M, s.v[i]) + at.phi;
  }
}

template <class T>
void TreeSolver<T>::form_tangent(const TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) composite_[i] = {s.body[i].mass, s.body[i].moment, s.body[i].inertia};
  for (std::size_t i = s.body.size(); i-- > 0;) {
    const TreeBody<T>& b = s.body[i];
    const Rigid& at = composite_[i];
    for (int c = 0; c < b.freedoms; ++c) {  // A_i'M C ... C A_j, outermost factor first
      T* row = row_[static_cast<std::size_t>(b.rate + c)].data();
      Six<T> f = momentum<T>(at, b.A[c]);
      int column = static_cast<int>(path_[static_cast<std::size_t>(b.rate + c)].size()) - 1 - c;
      for (int r = 0; r <= c; ++r) row[column + r] = dot<T>(f, b.A[r]);
      for (const TreeBody<T>* outer = &b; outer->inner >= 0;) {
        f = inwards<T>(*outer, f);
        outer = &s.body[static_cast<std::size_t>(outer->inner)];
        column -= outer->freedoms;
        for (int r = 0; r < outer->freedoms; ++r) row[column + r] = dot<T>(f, outer->A[r]);
      }
    }
    if (b.inner < 0) continue;
    Rigid& inner = composite_[static_cast<std::size_t>(b.inner)];
    const Three<T> h = b.G.transpose() * at.moment, moved = h + at.mass * b.rho;
    const Axes<T> turned = turned_symmetric<T>(b.G, at.inertia);
    const T both = b.rho.dot(h) + b.rho.dot(moved);
    inner.mass += at.mass;
    inner.moment += moved;
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c <= r; ++c) {
        T more = turned(r, c) - moved[r] * b.rho[c] - b.rho[r] * h[c];
        if (r == c) more += both;
        inner.inertia(r, c) += more;
        inner.inertia(c, r) = inner.inertia(r, c);
      }
  }
}

template <class T>
void TreeSolver<T>::eliminate_tangent() {
  for (std::size_t a = row_.size(); a-- > 0;)
    eliminate_row<T>(row_[a].data(), static_cast<int>(path_[a].size()) - 1, [&](int b) {
      return row_[static_cast<std::size_t>(path_[a][static_cast<std::size_t>(b)])].data();
    });
}

// (30) (35): right-hand side B'load + p - B'M phi, then motions and momenta
template <class T>
void TreeSolver<T>::solve_tangent(TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) {
    const TreeBody<T>& b = s.body[i];
    s.v[i] = s.bias[i];  // phi = T v^r of (15)
    if (b.inner >= 0) s.v[i] += outwards<T>(b, s.v[static_cast<std::size_t>(b.inner)]);
    momentum_[i] = momentum<T>(b, s.v[i]) - s.load[i];
  }
  for (std::size_t i = s.body.size(); i-- > 0;) {
    const TreeBody<T>& b = s.body[i];
    if (b.inner >= 0) momentum_[static_cast<std::size_t>(b.inner)] += inwards<T>(b, momentum_[i]);
    for (int c = 0; c < b.freedoms; ++c) {
      const std::size_t rate = static_cast<std::size_t>(b.rate + c);
      right_[rate] = s.p[rate] - dot<T>(b.A[c], momentum_[i]);
    }
  }
  for (std::size_t a = row_.size(); a-- > 0;)
    substitute_inwards<T>(row_[a].data(), path_[a].data(), static_cast<int>(path_[a].size()) - 1, right_.data());
  for (std::size_t a = 0; a < row_.size(); ++a)
    substitute_outwards<T>(row_[a].data(), path_[a].data(), static_cast<int>(path_[a].size()) - 1, right_.data());
  s.u = right_;
  for (std::size_t i = 0; i < s.body.size(); ++i) {
    s.v[i] = body_motion<T>(s, i);
    s.mu[i] = momentum<T>(s.body[i], s.v[i]) - s.load[i];
  }
  for (std::size_t i = s.body.size(); i-- > 0;)  // (26)
    if (s.body[i].inner >= 0) s.mu[static_cast<std::size_t>(s.body[i].inner)] += inwards<T>(s.body[i], s.mu[i]);
}

// Each body couples its own hinge with those of its children: the sum of W'M^-1 W over the bodies, W the columns of S'Z
// in its row.
template <class T>
void TreeSolver<T>::form_orthogonal(const TreeSystem<T>& s) {
  for (std::size_t i = 0; i < s.body.size(); ++i) {
    Front& front = front_[i];
    std::size_t row = 0;
    for (int c = 0; c < 6 - s.body[i].freedoms; ++c) front.column[row++] = s.body[i].Z[c];
    for (const int j : children_[i]) {
      const TreeBody<T>& child = s.body[static_cast<std::size_t>(j)];
      for (int c = 0; c < 6 - child.freedoms; ++c) front.column[row++] = -inwards<T>(child, child.Z[c]);
    }
    T* value = front.value.data();
    for (std::size_t r = 0; r < row; ++r) {
      const Six<T> MW = times<T>(s.body[i].M_inverse, front.column[r]);
      for (std::size_t c = 0; c <= r; ++c) *value++ = dot<T>(MW, front.column[c]);
    }
  }
}

template <class T>
void TreeSolver<T>::eliminate_orthogonal(const TreeSystem<T>& s) {
  for (std::size_t i = s.body.size(); i-- > 0;) {
    Front& front = front_[i];
    T* value = front.value.data();
    const int own = 6 - s.body[i].freedoms, rows = static_cast<int>(front.multiplier.size());
    const int kept = s.body[i].inner < 0 ? 0 : own;
    for (int r = rows - 1; r >= kept; --r)
      eliminate_row<T>(value + packed(r), r, [value](int b) { return value + packed(b); });
    if (kept == 0) continue;
    std::vector<T>& inner = front_[static_cast<std::size_t>(s.body[i].inner)].value;
    const int at = row_of_inner_[i];
    for (int r = 0; r < own; ++r)
      for (int c = 0; c <= r; ++c)
        inner[packed(at + r) + static_cast<std::size_t>(at + c)] += value[packed(r) + static_cast<std::size_t>(c)];
  }
}

// (36) (37) with mu = A (A'A)^-1 p + Z lambda
template <class T>
void TreeSolver<T>::solve_orthogonal(TreeSystem<T>& s) {
  const std::size_t n = s.body.size();
  for (std::size_t i = 0; i < n; ++i) {
    const TreeBody<T>& b = s.body[i];
    s.mu[i].setConstant(T(0.0));
    for (int c = 0; c < b.freedoms; ++c) s.mu[i] += b.A_plus[c] * s.p[static_cast<std::size_t>(b.rate + c)];
  }
  const auto accelerate = [&] {  // v = M^-1 (S'mu + load)
    for (std::size_t i = 0; i < n; ++i) momentum_[i] = s.mu[i] + s.load[i];
    for (std::size_t i = 0; i < n; ++i)
      if (s.body[i].inner >= 0) momentum_[static_cast<std::size_t>(s.body[i].inner)] -= inwards<T>(s.body[i], s.mu[i]);
    for (std::size_t i = 0; i < n; ++i) s.v[i] = times<T>(s.body[i].M_inverse, momentum_[i]);
  };
  const auto relative = [&](std::size_t i) {  // S v - v^r
    const TreeBody<T>& b = s.body[i];
    Six<T> gap = s.v[i] - s.bias[i];
    if (b.inner >= 0) gap -= outwards<T>(b, s.v[static_cast<std::size_t>(b.inner)]);
    return gap;
  };
  accelerate();
  for (std::size_t i = 0; i < n; ++i) {
    const Six<T> gap = relative(i);
    for (int c = 0; c < 6 - s.body[i].freedoms; ++c)
      right_[static_cast<std::size_t>(multiplier_[i] + c)] = -dot<T>(s.body[i].Z[c], gap);
  }
  const auto each_row = [&](std::size_t i, bool inwards, auto substitute) {
    const Front& front = front_[i];
    const int rows = static_cast<int>(front.multiplier.size());
    const int first = s.body[i].inner < 0 ? 0 : 6 - s.body[i].freedoms;
    for (int k = first; k < rows; ++k) {
      const int r = inwards ? rows - 1 - (k - first) : k;
      substitute(front.value.data() + packed(r), front.multiplier.data(), r, right_.data());
    }
  };
  for (std::size_t i = n; i-- > 0;) each_row(i, true, substitute_inwards<T>);
  for (std::size_t i = 0; i < n; ++i) each_row(i, false, substitute_outwards<T>);
  for (std::size_t i = 0; i < n; ++i)
    for (int c = 0; c < 6 - s.body[i].freedoms; ++c)
      s.mu[i] += s.body[i].Z[c] * right_[static_cast<std::size_t>(multiplier_[i] + c)];
  accelerate();
  for (std::size_t i = 0; i < n; ++i) {
    const Six<T> gap = relative(i);
    for (int c = 0; c < s.body[i].freedoms; ++c)
      s.u[static_cast<std::size_t>(s.body[i].rate + c)] = dot<T>(s.body[i].A_plus[c], gap);
  }
}

template <class T>
void momentum_rates(const TreeSystem<T>& s, const std::vector<Six<T>>& A_rate, std::vector<Six<T>>& wrench, T* pd) {
  for (std::size_t i = s.body.size(); i-- > 0;) {
    const TreeBody<T>& b = s.body[i];
    if (b.inner >= 0) wrench[static_cast<std::size_t>(b.inner)] += inwards<T>(b, wrench[i]);
    const Three<T> v = s.v[i].template head<3>(), omega = s.v[i].template tail<3>();
    const Three<T> linear = s.mu[i].template head<3>(), angular = s.mu[i].template tail<3>();
    const Six<T> rest = wrench[i] - spatial<T>(omega.cross(linear), v.cross(linear) + omega.cross(angular));
    for (int c = 0; c < b.freedoms; ++c) {
      const std::size_t rate = static_cast<std::size_t>(b.rate + c);
      pd[rate] = dot<T>(A_rate[rate], s.mu[i]) + dot<T>(b.A[c], rest);
    }
  }
}

template class TreeSolver<double>;
template class TreeSolver<Counted>;
template void momentum_rates(const TreeSystem<double>&, const std::vector<Six<double>>&, std::vector<Six<double>>&,
                             double*);
template void momentum_rates(const TreeSystem<Counted>&, const std::vector<Six<Counted>>&, std::vector<Six<Counted>>&,
                             Counted*);

}  // namespace rigstep::offline
