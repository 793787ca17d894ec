#include "core/offline/divide_and_conquer.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/offline/dense.h"

namespace rigstep::offline {

namespace {

constexpr int kMostRowsOfLoops = 1000;  // that a compound closes at once
constexpr double kMostBytes = 1e9;      // of all compounds
constexpr double kRedundant = 1e-9;     // eigenvalue of a loop's compliance, relative to that of bodies without slender
                                        // axes, that counts as zero
constexpr double kPivotRounding = 1e-14;  // ... relative to the largest compliance of a row: a hundred times what it is
constexpr double kMostRounding = 1e-3;    // that it may be of the former
constexpr int kRefinements = 2;           // each takes rods with a moment of 1e-9 a million times nearer

using Eigen::MatrixXd;
using Eigen::VectorXd;

// root with root' root = K^+ of a symmetric, positive semidefinite matrix; eigenvalues below `zero` are so.
MatrixXd root_of_inverse(const MatrixXd& K, double zero) {
  const auto [values, vectors] = spectrum(K);
  const Eigen::Index rank = (values.array() > zero).count();
  return values.tail(rank).cwiseSqrt().cwiseInverse().asDiagonal() * vectors.rightCols(rank).transpose();
}

// T with T T' = M^-1 of a body, body frame.
Mat6 inverse_root(const Body& body) {
  const auto [moments, axes] = spectrum(body.inertia_b);
  Mat6 root = Mat6::Zero();
  root.topLeftCorner<3, 3>() = Mat3::Identity() / std::sqrt(body.mass);
  root.bottomRightCorner<3, 3>() = axes * moments.cwiseSqrt().cwiseInverse().asDiagonal();
  return root;
}

}  // namespace

DivideAndConquer::DivideAndConquer(const Mechanism& mechanism, const JointTree& tree, int threads)
    : mechanism_(&mechanism),
      tree_(&tree),
      threads_(threads),
      leaves_(mechanism.bodies().size()),
      connected_(mechanism.bodies().size()) {
  const int links = static_cast<int>(tree.links().size());
  for (std::size_t i = 0; i < leaves_.size(); ++i) leaves_[i].root_b = inverse_root(mechanism.bodies()[i]);
  for (int k = 0; k < links; ++k)
    for (const int body : {tree.links()[k].first, tree.links()[k].second})
      if (body != kGround) {
        leaves_[body].links.push_back(k);
        leaves_[body].sign.push_back(body == tree.links()[k].second ? 1.0 : -1.0);
      }
  // one compound for each tree on the ground, then all of them, then the ground
  std::vector<int> root_of(leaves_.size());
  std::vector<std::vector<int>> trees;
  std::vector<int> carriers;
  for (int k = 0; k < tree.tree_links(); ++k) {
    const Link& link = tree.links()[k];
    const int inner = link.outward() ? link.first : link.second;
    if (inner == kGround) {
      root_of[link.outer] = static_cast<int>(trees.size());
      trees.emplace_back();
      carriers.push_back(k);
    } else {
      root_of[link.outer] = root_of[inner];
    }
    trees[root_of[link.outer]].push_back(link.outer);
  }
  std::vector<int> bodies = trees.front();
  int whole = divide(trees.front(), carriers.front());
  for (std::size_t i = 1; i < trees.size(); ++i) {
    Compound both;
    both.parts = {whole, divide(trees[i], carriers[i])};
    bodies.insert(bodies.end(), trees[i].begin(), trees[i].end());
    whole = add_compound(std::move(both), bodies);
  }
  Compound grounded;
  grounded.parts = {whole};
  bodies.push_back(kGround);
  add_compound(std::move(grounded), bodies);
}

// A connected piece of the tree, cut in two by the link that leaves the most equal halves.
int DivideAndConquer::divide(std::vector<int> bodies, int carrier) {
  Compound compound;
  compound.carrier = carrier;
  if (bodies.size() == 1) {
    compound.body = bodies.front();
    return add_compound(std::move(compound), bodies);
  }
  std::vector<int> size(leaves_.size(), 0);
  for (const int body : bodies) size[body] = 1;
  const int n = static_cast<int>(bodies.size());
  int best = -1;
  for (int k = tree_->tree_links() - 1; k >= 0; --k) {
    const Link& link = tree_->links()[k];
    const int inner = link.outward() ? link.first : link.second;
    if (inner == kGround || size[link.outer] == 0 || size[inner] == 0) continue;
    size[inner] += size[link.outer];
    if (best < 0 || std::abs(2 * size[link.outer] - n) < std::abs(2 * size[tree_->links()[best].outer] - n)) best = k;
  }
  std::vector<bool> outer(leaves_.size(), false);
  outer[tree_->links()[best].outer] = true;
  for (int k = best + 1; k < tree_->tree_links(); ++k) {
    const Link& link = tree_->links()[k];
    const int inner = link.outward() ? link.first : link.second;
    if (inner != kGround && outer[inner]) outer[link.outer] = true;
  }
  const auto middle = std::stable_partition(bodies.begin(), bodies.end(), [&](int body) { return !outer[body]; });
  compound.parts = {divide({bodies.begin(), middle}, -1), divide({middle, bodies.end()}, best)};
  return add_compound(std::move(compound), bodies);
}

// Finds the links that it closes and those that it leaves open.
int DivideAndConquer::add_compound(Compound compound, const std::vector<int>& bodies) {
  const auto inside = [&](int body) { return std::find(bodies.begin(), bodies.end(), body) != bodies.end(); };
  const auto take = [&](int k) {
    const Link& link = tree_->links()[k];
    const bool closed = inside(link.first) && inside(link.second);
    std::vector<int>& list = closed ? compound.closed : compound.open;
    if (std::find(list.begin(), list.end(), k) != list.end()) return;
    list.push_back(k);
    // a link of the tree, too: one of several joints on the ground
    if (closed && !connected_.join(link.first, link.second)) compound.loop = true;
    if (!closed && !link.cut && !inside(link.outer)) compound.hanging.push_back(k);
  };
  if (compound.body >= 0)
    for (const int k : leaves_[compound.body].links) take(k);
  int height = 0;
  for (const int part : compound.parts) {
    for (const int k : compounds_[part].open) take(k);
    for (std::size_t level = 0; level < levels_.size(); ++level)
      if (std::find(levels_[level].begin(), levels_[level].end(), part) != levels_[level].end())
        height = std::max(height, static_cast<int>(level) + 1);
  }
  make_rows(compound);
  compounds_.push_back(std::move(compound));
  if (static_cast<int>(levels_.size()) <= height) levels_.emplace_back();
  levels_[height].push_back(static_cast<int>(compounds_.size()) - 1);
  return static_cast<int>(compounds_.size()) - 1;
}

// Before its matrices are allocated.
void DivideAndConquer::require_moderate_size(const Compound& c) {
  const double closed = c.closed_rows, open = c.open_rows, rows = closed + open;
  bytes_ += 8.0 * (rows * rows + closed * closed + open * closed + open * open);
  if (bytes_ <= kMostBytes && (!c.loop || c.closed_rows <= kMostRowsOfLoops)) return;
  throw SolverError("divide and conquer: cannot simulate " + mechanism_->name() + ": its joints leave " +
                    std::to_string(c.open_rows) + " constraint rows open where they close " +
                    std::to_string(c.closed_rows) + ", all in dense matrices; at most " +
                    std::to_string(kMostRowsOfLoops) + " are closed, in 1 GB altogether: take another solver, or " +
                    "leave out joints that others make redundant");
}

void DivideAndConquer::make_rows(Compound& c) {
  const auto rows_of = [this](int k) { return tree_->links()[k].constraints; };
  int row = 0;
  for (const std::vector<int>* list : {&c.closed, &c.open})
    for (const int k : *list) {
      for (const int part : c.parts) {
        int from = 0;
        for (const int open : compounds_[part].open) {
          if (open == k) c.shares.push_back({part, from, row, rows_of(k)});
          from += rows_of(open);
        }
      }
      row += rows_of(k);
      (list == &c.closed ? c.closed_rows : c.open_rows) += rows_of(k);
    }
  require_moderate_size(c);
  c.compliance = std::numeric_limits<double>::infinity();
  for (const int k : c.closed) c.compliance = std::min(c.compliance, compliance_of(tree_->links()[k]));
  c.F.resize(row, row);
  c.f.resize(row);
  c.X.resize(c.open_rows, c.open_rows);
  c.x.resize(c.open_rows);
}

// Every barrier of the run-time is a system call, also where one thread waits for itself alone: as many as an
// evaluation has levels, and together longer than its arithmetic.
template <class Work>
void DivideAndConquer::on_the_team(const Work& work) {
  if (threads_ <= 1) return work();
#pragma omp parallel num_threads(threads_)
  work();
}

template <class Visit>
void DivideAndConquer::share(std::size_t count, const Visit& visit) const {
  if (threads_ <= 1) {
    for (std::size_t i = 0; i < count; ++i) visit(i);
    return;
  }
#pragma omp for schedule(static)
  for (std::size_t i = 0; i < count; ++i) visit(i);
}

template <class Visit>
void DivideAndConquer::upwards(const Visit& visit) {
  for (const std::vector<int>& level : levels_)
    share(level.size(), [&](std::size_t i) { visit(compounds_[level[i]]); });
}

template <class Visit>
void DivideAndConquer::downwards(const Visit& visit) {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    share(level->size(), [&](std::size_t i) { visit(compounds_[(*level)[i]]); });
}

void DivideAndConquer::assemble_body(int body, const Pose& pose, std::span<const Subspaces> subspaces) {
  Leaf& leaf = leaves_[body];
  leaf.root.topLeftCorner<3, 3>() = leaf.root_b.topLeftCorner<3, 3>();
  leaf.root.bottomRightCorner<3, 3>() = pose.A * leaf.root_b.bottomRightCorner<3, 3>();
  int columns = 0;
  for (const int k : leaf.links) columns += tree_->links()[k].constraints;
  leaf.G.resize(6, columns);
  int column = 0;
  for (std::size_t i = 0; i < leaf.links.size(); ++i) {
    const Subspaces& at = subspaces[leaf.links[i]];
    for (int j = 0; j < at.D.cols(); ++j)
      leaf.G.col(column++) = leaf.sign[i] * shifted(at.D.col(j), at.point_0, pose.r_0);
  }
  leaf.root_G.noalias() = leaf.root.transpose() * leaf.G;
}

// For a unit force or moment at the link, if its bodies had their largest moment of inertia about every axis.
double DivideAndConquer::compliance_of(const Link& link) const {
  double compliance = 0.0;
  const auto add = [&](int i, const JointFrame& at) {
    if (i == kGround) return;
    const Body& body = mechanism_->bodies()[i];
    const double moment = spectrum(body.inertia_b).values[2];
    compliance += 1.0 / body.mass + (1.0 + at.point_b.squaredNorm()) / moment;
  };
  add(link.first, link.in_first);
  add(link.second, link.in_second);
  return compliance;
}

// Else rounding would look like a constraint, or a constraint like rounding.
void DivideAndConquer::require_telling_eigenvalues() const {
  for (const Compound& c : compounds_)
    if (c.loop && kPivotRounding * c.largest > kMostRounding * c.compliance)
      throw SolverError("divide and conquer: cannot simulate " + mechanism_->name() +
                        ": moments of inertia differ so much that rounding hides which constraints of a loop are "
                        "redundant: take another solver, or make the least moment larger");
}

void DivideAndConquer::assemble_compound(Compound& c) {
  if (c.body >= 0) {
    const Leaf& leaf = leaves_[c.body];
    c.X.noalias() = leaf.root_G.transpose() * leaf.root_G;
    c.largest = c.X.size() > 0 ? c.X.diagonal().maxCoeff() : 0.0;
    return;
  }
  c.largest = 0.0;
  for (const int part : c.parts) c.largest = std::max(c.largest, compounds_[part].largest);
  c.F.setZero();
  for (const Share& a : c.shares)
    for (const Share& b : c.shares)
      if (a.part == b.part)
        c.F.block(a.to, b.to, a.rows, b.rows) += compounds_[a.part].X.block(a.from, b.from, a.rows, b.rows);
  const auto K = c.F.topLeftCorner(c.closed_rows, c.closed_rows);
  c.root = c.loop ? root_of_inverse(K, std::max(kRedundant * c.compliance, kPivotRounding * c.largest))
                  : MatrixXd(Eigen::LLT<MatrixXd>(K).matrixL());  // (27), (43), (45)
  c.W = c.times_root(c.F.topRightCorner(c.closed_rows, c.open_rows));
  c.X = c.F.bottomRightCorner(c.open_rows, c.open_rows);
  c.X.noalias() -= c.W.transpose() * c.W;  // (34), (35)
}

// The inverse of the root would round what is small beside the compliance of a slender rod.
MatrixXd DivideAndConquer::Compound::times_root(const MatrixXd& rows) const {
  return loop ? MatrixXd(root * rows) : MatrixXd(root.triangularView<Eigen::Lower>().solve(rows));
}

VectorXd DivideAndConquer::Compound::times_transposed_root(const VectorXd& of) const {
  return loop ? VectorXd(root.transpose() * of) : VectorXd(root.transpose().triangularView<Eigen::Upper>().solve(of));
}

void DivideAndConquer::assemble(std::span<const Pose> poses, std::span<const Subspaces> subspaces) {
  on_the_team([&] {
    share(leaves_.size(), [&](std::size_t i) { assemble_body(static_cast<int>(i), poses[i], subspaces); });
    upwards([this](Compound& c) { assemble_compound(c); });
  });
  require_telling_eigenvalues();
}

// From the parts' biases to that of the compound.
void DivideAndConquer::collect(Compound& c, std::span<const Vec6> loads, std::span<const LinkVector> bias) {
  if (c.body >= 0) {
    const Leaf& leaf = leaves_[c.body];
    c.x.noalias() = leaf.root_G.transpose() * (leaf.root.transpose() * loads[c.body]);
    return;
  }
  c.f.setZero();
  for (const Share& share : c.shares)
    c.f.segment(share.to, share.rows) += compounds_[share.part].x.segment(share.from, share.rows);
  int row = 0;
  for (const int k : c.closed) {
    c.f.segment(row, bias[k].size()) += bias[k];
    row += static_cast<int>(bias[k].size());
  }
  c.g = c.times_root(c.f.head(c.closed_rows));
  c.x = c.f.tail(c.open_rows);
  c.x.noalias() -= c.W.transpose() * c.g;  // (36)
}

// From the multipliers of the open links to those of the closed ones, and to the responses of bodies.
void DivideAndConquer::distribute(Compound& c, std::span<const Vec6> loads, std::span<LinkVector> s,
                                  std::span<Vec6> responses) {
  if (c.body >= 0) {
    const Leaf& leaf = leaves_[c.body];
    Vec6 load = loads[c.body];
    int column = 0;
    for (const int k : leaf.links) {
      load.noalias() += leaf.G.middleCols(column, s[k].size()) * s[k];
      column += static_cast<int>(s[k].size());
    }
    responses[c.body] = leaf.respond(load);  // (15), (16)
    return;
  }
  int row = 0;
  for (const int k : c.open) {
    c.g.noalias() += c.W.middleCols(row, s[k].size()) * s[k];
    row += static_cast<int>(s[k].size());
  }
  const VectorXd closed = c.times_transposed_root(c.g);  // (28)
  row = 0;
  for (const int k : c.closed) {
    s[k] = -closed.segment(row, tree_->links()[k].constraints);  // (29), (45)
    row += tree_->links()[k].constraints;
  }
}

void DivideAndConquer::solve(std::span<const Vec6> loads, std::span<const LinkVector> bias, std::span<LinkVector> s,
                             std::span<Vec6> responses) {
  pass(loads, bias, s, responses);
  const std::vector<Vec6> none(loads.size(), Vec6::Zero());
  std::vector<Vec6> more_responses(loads.size());
  std::vector<LinkVector> more(s.size());
  for (int k = 0; k < kRefinements; ++k) {
    std::vector<LinkVector> left(bias.begin(), bias.end());
    add_responses(responses, left);
    pass(none, left, more, more_responses);
    for (std::size_t i = 0; i < more_responses.size(); ++i) responses[i] += more_responses[i];
    for (std::size_t i = 0; i < more.size(); ++i) s[i] += more[i];
  }
}

// D'(u_second - u_first) of every link.
void DivideAndConquer::add_responses(std::span<const Vec6> responses, std::span<LinkVector> bias) const {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    int column = 0;
    for (const int k : leaves_[i].links) {
      bias[k].noalias() += leaves_[i].G.middleCols(column, bias[k].size()).transpose() * responses[i];
      column += static_cast<int>(bias[k].size());
    }
  }
}

void DivideAndConquer::pass(std::span<const Vec6> loads, std::span<const LinkVector> bias, std::span<LinkVector> s,
                            std::span<Vec6> responses) {
  on_the_team([&] {
    upwards([&](Compound& c) { collect(c, loads, bias); });
    downwards([&](Compound& c) { distribute(c, loads, s, responses); });
  });
}

void DivideAndConquer::accumulate(std::span<const Vec6> wrenches, std::span<Vec6> sums) {
  const auto add = [&](Compound& c) {
    c.total = c.body >= 0 ? wrenches[c.body] : Vec6::Zero();
    for (const int part : c.parts) c.total += compounds_[part].total;  // (58)
  };
  const auto pass_on = [&](Compound& c) {
    for (const int part : c.parts) {
      const int carrier = compounds_[part].carrier;
      if (carrier < 0) continue;
      sums[carrier] = compounds_[part].total;
      for (const int k : compounds_[part].hanging) sums[carrier] += sums[k];  // (76)
    }
  };
  on_the_team([&] {
    upwards(add);
    downwards(pass_on);
  });
}

}  // namespace rigstep::offline
