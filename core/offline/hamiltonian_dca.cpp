#include "core/offline/hamiltonian_dca.h"

#include <memory>

#include "core/offline/relative_system.h"

namespace rigstep::offline {

namespace {

using Eigen::Map;
using Eigen::VectorXd;

// S-dot of [000] (53) times a momentum or wrench: the moment that a moving point of reference makes.
Vec6 moment_of_motion(const Vec3& velocity, const Vec6& momentum) {
  Vec6 rate = Vec6::Zero();
  rate.tail<3>() = velocity.cross(momentum.head<3>());
  return rate;
}

class HamiltonianDca {
 public:
  HamiltonianDca(const Scenario& scenario, const Options& options)
      : system_(scenario, "hamiltonian_dca", options.threads),
        momentum_(system_.bodies()),
        motion_(system_.bodies()),
        wrench_(system_.bodies()),
        sigma_(links().size()),
        bias_(links().size()),
        sum_(links().size()) {
    for (std::size_t k = 0; k < bias_.size(); ++k) bias_[k] = LinkVector::Zero(links()[k].constraints);
    for (double t = scenario.instants.front() + kRebasePeriod; t < scenario.instants.back(); t += kRebasePeriod)
      rebases_.push_back(t);
  }

  std::vector<double> start() {
    const JointTree& tree = system_.tree();
    std::vector<double> y = system_.start_coordinates();
    y.resize(y.size() + tree.rates());
    system_.place(y);
    system_.move(system_.start_motions());
    take_momenta(y);
    return y;
  }

  Trajectory run(const Options& options) {
    return system_.integrate({[this](double t, auto at, auto rate) { evaluate(t, at, rate); },
                              [this](double, std::span<double> at) { take_momenta(at); }, rebases_},
                             start(), options);
  }

  void evaluate(double t, std::span<const double> y, std::span<double> yd) {
    const JointTree& tree = system_.tree();
    const std::span<const double> q = y.first(tree.coordinates()), p = y.subspan(tree.coordinates());
    system_.place(q);
    find_velocities(p);
    std::vector<double> rates(tree.rates());
    for (int k = 0; k < tree.tree_links(); ++k)
      Map<VectorXd>(rates.data() + links()[k].rate, links()[k].rates) =
          system_.subspaces()[k].H.transpose() * system_.relative_motion(k);  // (23), (40)
    tree.differentiate(q, rates, yd.first(tree.coordinates()));
    system_.load(t);
    find_momentum_rates(p, yd.subspan(tree.coordinates()));
  }

 private:
  std::span<const Link> links() const { return system_.tree().links(); }
  static Vec3 origin() { return Vec3::Zero(); }

  // p = H'P of all that hangs on each joint, as if no cut joint had absorbed momentum: 2.1
  void take_momenta(std::span<double> y) {
    for (std::size_t i = 0; i < momentum_.size(); ++i)
      wrench_[i] = shifted(system_.mass(static_cast<int>(i)) * system_.motions()[i], system_.poses()[i].r_0, origin());
    system_.compounds().accumulate(wrench_, sum_);
    double* p = y.data() + system_.tree().coordinates();
    for (int k = 0; k < system_.tree().tree_links(); ++k) {
      const Link& link = links()[k];
      const Subspaces& at = system_.subspaces()[k];
      const Vec6 total = (link.outward() ? 1.0 : -1.0) * shifted(sum_[k], origin(), at.point_0);
      Map<VectorXd>(p + link.rate, link.rates) = at.H.transpose() * total;
    }
  }

  // Velocities and impulses from H p: 2.2
  void find_velocities(std::span<const double> p) {
    std::fill(momentum_.begin(), momentum_.end(), Vec6::Zero());
    for (int k = 0; k < system_.tree().tree_links(); ++k) {
      const Link& link = links()[k];
      const Subspaces& at = system_.subspaces()[k];
      const Vec6 Hp = at.H * Map<const VectorXd>(p.data() + link.rate, link.rates);
      if (link.second != kGround) momentum_[link.second] += shifted(Hp, at.point_0, system_.poses()[link.second].r_0);
      if (link.first != kGround) momentum_[link.first] -= shifted(Hp, at.point_0, system_.poses()[link.first].r_0);
    }
    system_.compounds().solve(momentum_, bias_, sigma_, motion_);
    system_.move(motion_);
  }

  // Loads on each body, with what the impulses of cut joints add to them, about the origin.
  void collect_loads() {
    for (std::size_t i = 0; i < wrench_.size(); ++i)
      wrench_[i] = shifted(system_.wrenches()[i], system_.poses()[i].r_0, origin());
    for (std::size_t c = system_.tree().tree_links(); c < links().size(); ++c) {
      const Subspaces& at = system_.subspaces()[c];
      const SubspaceRates& rate = system_.subspace_rates()[c];
      const Vec6 P = at.D * sigma_[c];  // (62)
      const Vec6 change =
          shifted(rate.D * sigma_[c], at.point_0, origin()) + moment_of_motion(rate.point_0, P);  // S Dd sigma + Sd P
      if (links()[c].second != kGround) wrench_[links()[c].second] -= change;
      if (links()[c].first != kGround) wrench_[links()[c].first] += change;
    }
  }

  void find_momentum_rates(std::span<const double> p, std::span<double> pd) {
    collect_loads();
    system_.compounds().accumulate(wrench_, sum_);  // (74)-(76)
    for (int k = 0; k < system_.tree().tree_links(); ++k) {
      const Link& link = links()[k];
      const Subspaces& at = system_.subspaces()[k];
      const SubspaceRates& rate = system_.subspace_rates()[k];
      const Vec6 P = at.D * sigma_[k] + at.H * Map<const VectorXd>(p.data() + link.rate, link.rates);  // (10)
      const Vec6 Q = (link.outward() ? 1.0 : -1.0) * shifted(sum_[k], origin(), at.point_0);
      Map<VectorXd>(pd.data() + link.rate, link.rates) =
          at.H.transpose() * (Q - moment_of_motion(rate.point_0, P)) + rate.H.transpose() * P;  // (77)
    }
  }

  RelativeSystem system_;
  std::vector<double> rebases_;
  std::vector<Vec6> momentum_, motion_, wrench_;  // (bodies)
  std::vector<LinkVector> sigma_, bias_;          // (links)
  std::vector<Vec6> sum_;                         // (links)
};

}  // namespace

std::string hamiltonian_dca_unsupported_reason(const Mechanism& mechanism) {
  return joint_tree_unsupported_reason(mechanism);
}

Trajectory hamiltonian_dca(const Scenario& scenario, const Options& options) {
  return HamiltonianDca(scenario, options).run(options);
}

std::function<void()> hamiltonian_dca_evaluation(const Scenario& scenario, int threads) {
  Options options;
  options.threads = threads;
  const auto form = std::make_shared<HamiltonianDca>(scenario, options);
  const std::vector<double> y = form->start();
  return [form, y, t = scenario.instants.front(), rate = std::vector<double>(y.size())]() mutable {
    form->evaluate(t, y, rate);
  };
}

}  // namespace rigstep::offline
