#include "core/offline/stabilised_index2.h"

#include <ida/ida.h>
#include <sunlinsol/sunlinsol_klu.h>
#include <sunmatrix/sunmatrix_sparse.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/offline/absolute_system.h"
#include "core/offline/dense.h"
#include "core/offline/sundials_handles.h"

namespace rigstep::offline {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kBody = 13;             // unknowns of a body: r p v omega
constexpr int kRow = 2;               // of a row: lambda mu
constexpr int kMinimumDegree = 0;     // KLU's ordering for patterns that are nearly symmetric
constexpr long kMostSteps = 1000000;  // between two instants
constexpr long kSlopesAge = 50;       // steps for which dF/dy serves unless the iteration says otherwise

// Unknowns in nodes: a body or a constraint row. Which nodes' residuals depend on which nodes, and groups of nodes
// that no residual sees together: those are perturbed at the same time when the Jacobian is differenced.
class Pattern {
 public:
  Pattern() = default;
  Pattern(const Mechanism& mechanism, std::span<const ConstraintRow> rows);

  int first(int node) const { return node <= bodies_ ? kBody * node : kBody * bodies_ + kRow * (node - bodies_); }
  int width(int node) const { return node < bodies_ ? kBody : kRow; }
  int size() const { return first(static_cast<int>(seen_by_.size())); }
  const std::set<int>& seen_by(int node) const { return seen_by_[static_cast<std::size_t>(node)]; }
  const std::vector<std::vector<int>>& groups() const { return groups_; }
  long nonzeros() const;

 private:
  void connect(std::initializer_list<int> bodies);
  void group();

  int bodies_ = 0;
  std::vector<std::set<int>> seen_by_;  // (nodes) nodes whose residuals depend on it
  std::vector<std::vector<int>> groups_;
};

void Pattern::connect(std::initializer_list<int> bodies) {
  for (const int a : bodies)
    for (const int b : bodies)
      if (a != kGround && b != kGround) seen_by_[static_cast<std::size_t>(a)].insert(b);
}

Pattern::Pattern(const Mechanism& mechanism, std::span<const ConstraintRow> rows)
    : bodies_(static_cast<int>(mechanism.bodies().size())), seen_by_(mechanism.bodies().size() + rows.size()) {
  for (int i = 0; i < bodies_; ++i) connect({i});
  for (const Joint& joint : mechanism.joints()) connect({joint.first, joint.second});
  for_each_kind([&]<class Element>() {
    for (const Element& element : mechanism.all<Element>()) {
      if constexpr (requires { element.second; }) connect({element.first, element.second});
    }
  });
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const int node = bodies_ + static_cast<int>(k);
    for (int i = 0; i < rows[k].parts; ++i) {
      for (int j = 0; j < rows[k].parts; ++j) connect({rows[k].part[i].body, rows[k].part[j].body});
      seen_by_[static_cast<std::size_t>(rows[k].part[i].body)].insert(node);
      seen_by_[static_cast<std::size_t>(node)].insert(rows[k].part[i].body);
    }
  }
  group();
}

void Pattern::group() {
  std::vector<std::set<int>> taken;  // (groups) residuals that see one of its nodes
  for (int node = 0; node < static_cast<int>(seen_by_.size()); ++node) {
    const auto fits = [&](const std::set<int>& residuals) {
      return std::none_of(seen_by(node).begin(), seen_by(node).end(), [&](int r) { return residuals.contains(r); });
    };
    const auto found = std::find_if(taken.begin(), taken.end(), fits);
    const std::size_t at = static_cast<std::size_t>(found - taken.begin());
    if (found == taken.end()) {
      taken.emplace_back();
      groups_.emplace_back();
    }
    taken[at].insert(seen_by(node).begin(), seen_by(node).end());
    groups_[at].push_back(node);
  }
}

long Pattern::nonzeros() const {
  long count = 0;
  for (int node = 0; node < static_cast<int>(seen_by_.size()); ++node)
    for (const int residual : seen_by(node)) count += long{width(node)} * width(residual);
  return count;
}

// Rows that are independent at a pose.
std::vector<std::size_t> independent(std::span<const ConstraintRow> rows, std::size_t bodies) {
  if (rows.empty()) return {};
  const PivotedQr decomposed = pivoted_qr(jacobian(rows, bodies).transpose(), 1e-9);
  std::vector<std::size_t> chosen(decomposed.order.begin(), decomposed.order.begin() + decomposed.rank);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

EulerParameters rate_of(const EulerParameters& p, const Vec3& omega_0) {
  const Vec3 e = p.tail<3>();
  EulerParameters rate;
  rate << -0.5 * omega_0.dot(e), 0.5 * (p[0] * omega_0 + omega_0.cross(e));
  return rate;
}

double largest_load(std::span<const Vec6> loads) {
  double largest = 1.0;  // [N] or [N m]
  for (const Vec6& load : loads) largest = std::max(largest, load.lpNorm<Eigen::Infinity>());
  return largest;
}

struct MatrixDeleter {
  void operator()(SUNMatrix m) const { SUNMatDestroy(m); }
};
struct LinearDeleter {
  void operator()(SUNLinearSolver s) const { SUNLinSolFree(s); }
};
using Matrix = std::unique_ptr<std::remove_pointer_t<SUNMatrix>, MatrixDeleter>;
using Linear = std::unique_ptr<std::remove_pointer_t<SUNLinearSolver>, LinearDeleter>;

class Index2Run {
 public:
  Index2Run(const Scenario& scenario, const Options& options)
      : system_(scenario, "ida"), options_(options), context_(sundials::make_context()) {}

  Trajectory simulate();

 private:
  void begin(double t, std::vector<BodyMotion> bodies);
  void require(int status);
  bool advance(double stop, std::size_t& next);
  void residual(double t, std::span<const double> y, std::span<const double> yd, std::span<double> F);
  bool slopes_serve(double cj);
  void difference(double t, std::span<const double> y, std::span<const double> yd, std::span<const double> F);
  void set_matrix(double cj, SUNMatrix matrix) const;
  std::vector<BodyMotion> motion(std::span<const double> y) const;
  void deliver(double t, std::span<const double> y) {
    const std::vector<BodyMotion> bodies = motion(y);
    trajectory_.instants.push_back(system_.instant(t, bodies, system_.accelerations(t, bodies)));
  }

  template <class Work>
  int guarded(const Work& work) {  // between SUNDIALS and what may throw
    try {
      work();
      return 0;
    } catch (...) {
      thrown_ = std::current_exception();
      return sundials::kUnrecoverable;
    }
  }
  static int residual_of(double t, N_Vector y, N_Vector yd, N_Vector F, void* run);
  static int jacobian_of(double t, double cj, N_Vector y, N_Vector yd, N_Vector F, SUNMatrix J, void* run, N_Vector,
                         N_Vector, N_Vector);
  static void complain(int, const char*, const char* function, char* message, void* run) {
    static_cast<Index2Run*>(run)->complaint_ = std::string(function) + ": " + message;
  }

  AbsoluteSystem system_;
  const Options& options_;
  Trajectory trajectory_;
  std::vector<std::size_t> chosen_;  // rows
  Pattern pattern_;
  std::vector<std::vector<std::pair<int, double>>> slopes_;  // dF/dy by columns: (row, value); empty: not known
  long slopes_step_ = 0, failures_ = 0;  // when they were differenced, and the iteration's until then
  double last_cj_ = 0.0;
  std::vector<double> y_, yd_, tolerance_, id_;  // id: 1 for unknowns with a derivative
  double time_ = 0.0;
  std::exception_ptr thrown_;
  std::string complaint_;

  sundials::Context context_;  // the rest holds on to it
  sundials::Vector y_view_, yd_view_, tolerance_view_, id_view_;
  Matrix matrix_;
  Linear linear_;
  sundials::Memory memory_{nullptr, [](void* m) { IDAFree(&m); }};
};

int Index2Run::residual_of(double t, N_Vector y, N_Vector yd, N_Vector F, void* run) {
  Index2Run& self = *static_cast<Index2Run*>(run);
  const std::size_t n = self.y_.size();
  const std::span<double> values(N_VGetArrayPointer(F), n);
  const int status = self.guarded([&] {
    self.residual(t, {N_VGetArrayPointer(y), n}, {N_VGetArrayPointer(yd), n}, values);
  });
  if (status != 0) return status;
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }) ? 0
                                                                                              : sundials::kTryShorter;
}

int Index2Run::jacobian_of(double t, double cj, N_Vector y, N_Vector yd, N_Vector F, SUNMatrix J, void* run, N_Vector,
                           N_Vector, N_Vector) {
  Index2Run& self = *static_cast<Index2Run*>(run);
  const std::size_t n = self.y_.size();
  return self.guarded([&] {
    if (!self.slopes_serve(cj))
      self.difference(t, {N_VGetArrayPointer(y), n}, {N_VGetArrayPointer(yd), n}, {N_VGetArrayPointer(F), n});
    self.set_matrix(cj, J);
  });
}

std::vector<BodyMotion> Index2Run::motion(std::span<const double> y) const {
  std::vector<BodyMotion> bodies(system_.mechanism().bodies().size());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const double* at = y.data() + kBody * i;
    bodies[i] = {Vec3(at), EulerParameters(at + 3), Vec3(at + 7), Vec3(at + 10)};
  }
  return bodies;
}

void Index2Run::residual(double t, std::span<const double> y, std::span<const double> yd, std::span<double> F) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<BodyMotion> bodies = motion(y);
  const AbsoluteEquations now = system_.at(t, bodies);
  const std::vector<Vec6> velocity = velocities(bodies);
  std::vector<Vec6> load = now.load, flow = velocity;  // flow: velocities with the constraints' correction
  const std::size_t first_row = kBody * bodies.size();
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    const ConstraintRow& row = now.rows[chosen_[k]];
    const double lambda = y[first_row + kRow * k], mu = y[first_row + kRow * k + 1];
    for (int i = 0; i < row.parts; ++i) {
      load[row.part[i].body] -= lambda * row.part[i].J;
      flow[row.part[i].body] += mu * row.part[i].J;
    }
    F[first_row + kRow * k] = row.Phi;
    F[first_row + kRow * k + 1] = row.times(velocity) + row.Phi_t;
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = system_.mechanism().bodies()[i];
    const double* rate = yd.data() + kBody * i;
    Eigen::Map<Eigen::Matrix<double, kBody, 1>> out(F.data() + kBody * i);
    out.head<3>() = Vec3(rate) - flow[i].head<3>();
    out.segment<4>(3) = EulerParameters(rate + 3) - rate_of(bodies[i].p, flow[i].tail<3>());
    out.segment<3>(7) = Vec3(rate + 7) - load[i].head<3>() / body.mass;
    out.tail<3>() = Vec3(rate + 10) - inertia_0(body, bodies[i]).inverse() * load[i].tail<3>();
  }
  ++trajectory_.right_hand_sides;
  trajectory_.right_hand_side_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// IDA asks for a matrix whenever its step has changed, which moves only cj, or when the iteration converges badly: at
// the same cj, or after it has failed.
bool Index2Run::slopes_serve(double cj) {
  long step = 0, failures = 0;
  IDAGetNumSteps(memory_.get(), &step);
  IDAGetNumNonlinSolvConvFails(memory_.get(), &failures);
  const bool serve = !slopes_.empty() && cj != last_cj_ && failures == failures_ && step - slopes_step_ < kSlopesAge;
  last_cj_ = cj;
  failures_ = failures;
  if (!serve) slopes_step_ = step;
  return serve;
}

// dF/dy, one unknown of every node of a group at a time.
void Index2Run::difference(double t, std::span<const double> y, std::span<const double> yd, std::span<const double> F) {
  const std::size_t n = y_.size();
  slopes_.assign(n, {});
  std::vector<double> moved(y.begin(), y.end()), value(n), step(n);
  for (std::size_t j = 0; j < n; ++j)
    step[j] = std::sqrt(std::numeric_limits<double>::epsilon()) * std::max(1.0, std::abs(y[j]));
  for (const std::vector<int>& nodes : pattern_.groups())
    for (int offset = 0; offset < kBody; ++offset) {
      bool any = false;
      const auto each = [&](const auto& work) {
        for (const int node : nodes)
          if (offset < pattern_.width(node)) work(node, static_cast<std::size_t>(pattern_.first(node) + offset));
      };
      each([&](int, std::size_t j) {
        any = true;
        moved[j] = y[j] + step[j];
      });
      if (!any) continue;
      residual(t, moved, yd, value);
      each([&](int node, std::size_t j) {
        moved[j] = y[j];
        for (const int seen : pattern_.seen_by(node))
          for (int r = pattern_.first(seen); r < pattern_.first(seen) + pattern_.width(seen); ++r)
            slopes_[j].emplace_back(r, (value[static_cast<std::size_t>(r)] - F[static_cast<std::size_t>(r)]) / step[j]);
      });
    }
}

// dF/dy + cj dF/dyd: the rates of bodies enter their own rows with the factor one, those of multipliers none.
void Index2Run::set_matrix(double cj, SUNMatrix matrix) const {
  sunindextype* start = SM_INDEXPTRS_S(matrix);
  sunindextype count = 0;
  for (std::size_t j = 0; j < slopes_.size(); ++j) {
    start[j] = count;
    for (const auto& [row, slope] : slopes_[j]) {
      SM_INDEXVALS_S(matrix)[count] = row;
      SM_DATA_S(matrix)[count++] = slope + (static_cast<std::size_t>(row) == j ? cj * id_[j] : 0.0);
    }
  }
  start[slopes_.size()] = count;
}

void Index2Run::require(int status) {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  if (status >= 0) return;
  throw SolverError("ida: the integrator gave up at " + std::to_string(time_) + " s: " + complaint_ +
                    ": the motion may be singular there; give a coarser tolerance or a shorter duration");
}

// Unknowns, rates and multipliers that satisfy the equations, and an integrator that starts with them.
void Index2Run::begin(double t, std::vector<BodyMotion> bodies) {
  const std::vector<Vec6> a = system_.accelerations(t, bodies);
  const AbsoluteEquations now = system_.at(t, bodies);
  const std::vector<std::size_t> before = std::exchange(chosen_, independent(now.rows, bodies.size()));
  std::vector<ConstraintRow> rows;
  for (const std::size_t k : chosen_) rows.push_back(now.rows[k]);
  if (chosen_ != before || y_.empty()) {
    pattern_ = Pattern(system_.mechanism(), rows);
    slopes_.clear();
  }
  slopes_step_ = failures_ = 0;
  last_cj_ = 0.0;

  const std::size_t n = static_cast<std::size_t>(pattern_.size());
  y_.assign(n, 0.0);
  yd_.assign(n, 0.0);
  // multipliers are as good as the motion lets them be: they bound the iteration loosely, and no step
  tolerance_.assign(n, std::sqrt(options_.absolute_tolerance) * largest_load(now.load));
  id_.assign(n, 0.0);
  VectorXd missing(6 * static_cast<Index>(bodies.size()));  // load - M a, which the multipliers balance
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = system_.mechanism().bodies()[i];
    bodies[i].p.normalize();
    Eigen::Map<Eigen::Matrix<double, kBody, 1>> y(y_.data() + kBody * i), yd(yd_.data() + kBody * i);
    y << bodies[i].r_0, bodies[i].p, bodies[i].v_0, bodies[i].omega_0;
    yd << bodies[i].v_0, rate_of(bodies[i].p, bodies[i].omega_0), a[i];
    for (std::size_t k = kBody * i; k < kBody * (i + 1); ++k) {
      tolerance_[k] = options_.absolute_tolerance;
      id_[k] = 1.0;
    }
    missing.segment<3>(6 * static_cast<Index>(i)) = now.load[i].head<3>() - body.mass * a[i].head<3>();
    missing.segment<3>(6 * static_cast<Index>(i) + 3) =
        now.load[i].tail<3>() - inertia_0(body, bodies[i]) * a[i].tail<3>();
  }
  if (!rows.empty()) {
    const VectorXd lambda = least_squares(jacobian(rows, bodies.size()).transpose(), missing).x;
    for (std::size_t k = 0; k < rows.size(); ++k) y_[kBody * bodies.size() + kRow * k] = lambda[static_cast<Index>(k)];
  }

  const sunindextype size = static_cast<sunindextype>(n);
  memory_.reset();
  y_view_ = sundials::view(y_, context_);
  yd_view_ = sundials::view(yd_, context_);
  tolerance_view_ = sundials::view(tolerance_, context_);
  id_view_ = sundials::view(id_, context_);
  matrix_.reset(SUNSparseMatrix(size, size, pattern_.nonzeros(), CSC_MAT, context_.get()));
  linear_.reset(SUNLinSol_KLU(y_view_.get(), matrix_.get(), context_.get()));
  SUNLinSol_KLUSetOrdering(linear_.get(), kMinimumDegree);
  memory_.reset(IDACreate(context_.get()));
  if (!memory_ || !matrix_ || !linear_) throw std::bad_alloc();
  IDASetErrHandlerFn(memory_.get(), complain, this);
  require(IDAInit(memory_.get(), residual_of, t, y_view_.get(), yd_view_.get()));
  require(IDASVtolerances(memory_.get(), options_.relative_tolerance, tolerance_view_.get()));
  require(IDASetUserData(memory_.get(), this));
  require(IDASetId(memory_.get(), id_view_.get()));
  require(IDASetSuppressAlg(memory_.get(), SUNTRUE));
  require(IDASetLinearSolver(memory_.get(), linear_.get(), matrix_.get()));
  require(IDASetJacFn(memory_.get(), jacobian_of));
  // of the first order: its error is near the tolerance for accelerations near one
  require(IDASetInitStep(memory_.get(), std::sqrt(options_.absolute_tolerance)));
  time_ = t;
}

// Steps up to `stop`, delivering what lies on the way. Returns false where the run is to end.
bool Index2Run::advance(double stop, std::size_t& next) {
  const std::vector<double>& instants = system_.scenario().instants;
  require(IDASetStopTime(memory_.get(), stop));
  std::vector<double> value(y_.size());
  const sundials::Vector view = sundials::view(value, context_);
  for (long step = 0; time_ < stop; ++step) {
    require(IDASolve(memory_.get(), stop, &time_, y_view_.get(), yd_view_.get(), IDA_ONE_STEP));
    for (; next < instants.size() && instants[next] <= time_; ++next) {
      require(IDAGetDky(memory_.get(), instants[next], 0, view.get()));
      deliver(instants[next], value);
    }
    if (step > kMostSteps) throw SolverError("ida: too many steps before " + std::to_string(stop) + " s");
    if (options_.progress && !options_.progress(time_)) return false;
  }
  return true;
}

Trajectory Index2Run::simulate() {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<double>& instants = system_.scenario().instants;
  std::vector<double> stops;
  for (const double t : system_.breaks())
    if (t > instants.front() && t < instants.back()) stops.push_back(t);
  if (instants.size() > 1) stops.push_back(instants.back());
  begin(instants.front(), system_.start());
  deliver(instants.front(), y_);
  std::size_t next = 1;
  for (const double stop : stops) {
    if (!advance(stop, next) || stop == instants.back()) break;
    system_.hold(stop);
    begin(stop, motion(y_));
  }
  trajectory_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return std::move(trajectory_);
}

}  // namespace

Trajectory stabilised_index2(const Scenario& scenario, const Options& options) {
  if (!(options.relative_tolerance > 0.0) || !(options.absolute_tolerance > 0.0))
    throw std::invalid_argument("tolerance: must be positive: give for example 1e-9");
  return Index2Run(scenario, options).simulate();
}

}  // namespace rigstep::offline
