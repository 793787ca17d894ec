#include "core/offline/featherstone_dca.h"

#include <memory>

#include "core/offline/relative_system.h"

namespace rigstep::offline {

namespace {

using Eigen::Map;
using Eigen::VectorXd;

class FeatherstoneDca {
 public:
  FeatherstoneDca(const Scenario& scenario, const Options& options)
      : system_(scenario, "featherstone_dca", options.threads), motion_(system_.bodies()) {}

  std::vector<double> start() {
    const JointTree& tree = system_.tree();
    std::vector<double> y = system_.start_coordinates();
    y.resize(y.size() + tree.rates());
    system_.place(y);
    system_.move(system_.start_motions());
    for (int k = 0; k < tree.tree_links(); ++k)
      rates_of(k, y.data() + tree.coordinates()) = system_.subspaces()[k].H.transpose() * system_.relative_motion(k);
    return y;
  }

  Trajectory run(const Options& options) {
    return system_.integrate({[this](double t, auto at, auto rate) { evaluate(t, at, rate); }, {}, {}}, start(),
                             options);
  }

  void evaluate(double t, std::span<const double> y, std::span<double> yd) {
    const JointTree& tree = system_.tree();
    const std::span<const double> q = y.first(tree.coordinates()), qd = y.subspan(tree.coordinates());
    system_.place(q);
    find_motions(qd);
    system_.load(t);
    system_.accelerate();
    tree.differentiate(q, qd, yd.first(tree.coordinates()));
    for (int k = 0; k < tree.tree_links(); ++k) {
      const Link& link = tree.links()[k];
      const Map<const VectorXd> own(qd.data() + link.rate, link.rates);
      rates_of(k, yd.data() + tree.coordinates()) =
          system_.subspaces()[k].H.transpose() *
          (system_.relative_acceleration(k) - system_.subspace_rates()[k].H * own);
    }
  }

 private:
  Map<VectorXd> rates_of(int k, double* rates) const {
    const Link& link = system_.tree().links()[k];
    return {rates + link.rate, link.rates};
  }

  // From the ground outwards.
  void find_motions(std::span<const double> qd) {
    for (int k = 0; k < system_.tree().tree_links(); ++k) {
      const Link& link = system_.tree().links()[k];
      const Subspaces& at = system_.subspaces()[k];
      const Vec6 relative = at.H * Map<const VectorXd>(qd.data() + link.rate, link.rates);
      const int inner = link.outward() ? link.first : link.second;
      Vec6 V = (link.outward() ? 1.0 : -1.0) * relative;
      if (inner != kGround) V += motion_at(motion_[inner], system_.poses()[inner].r_0, at.point_0);
      motion_[link.outer] = motion_at(V, at.point_0, system_.poses()[link.outer].r_0);
    }
    system_.move(motion_);
  }

  RelativeSystem system_;
  std::vector<Vec6> motion_;  // (bodies)
};

}  // namespace

std::string featherstone_dca_unsupported_reason(const Mechanism& mechanism) {
  return joint_tree_unsupported_reason(mechanism);
}

Trajectory featherstone_dca(const Scenario& scenario, const Options& options) {
  return FeatherstoneDca(scenario, options).run(options);
}

std::function<void()> featherstone_dca_evaluation(const Scenario& scenario, int threads) {
  Options options;
  options.threads = threads;
  const auto form = std::make_shared<FeatherstoneDca>(scenario, options);
  const std::vector<double> y = form->start();
  return [form, y, t = scenario.instants.front(), rate = std::vector<double>(y.size())]() mutable {
    form->evaluate(t, y, rate);
  };
}

}  // namespace rigstep::offline
