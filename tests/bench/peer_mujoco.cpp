// MuJoCo: joint coordinates and a dense-along-branches factor; loops are closed by its soft `connect` constraints, as
// stiff as it allows where times are measured, and as suits it best where errors are. A revolute that closes a planar
// loop needs one point only. Springs between points are tendons, drivers are position servos.
#include <fmt/format.h>
#include <mujoco/mujoco.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "server/output/temporary_folder.h"
#include "tests/bench/peer.h"

namespace rigstep::bench {

namespace {

std::string numbers(const Eigen::Ref<const Eigen::VectorXd>& v) {
  std::string out;
  for (const double x : v) out += fmt::format("{}{:.17g}", out.empty() ? "" : " ", x);
  return out;
}

// The model as a folder of files: the reader nests no deeper than a hundred elements in a file, chains do.
class ModelFiles {
 public:
  ModelFiles(const Mechanism& m, double dt, double time_constant, const char* integrator)
      : m_(m), tree_(joint_tree(m)) {
    children_.resize(m.bodies().size());
    std::string xml = fmt::format(
        "<mujoco><compiler angle=\"radian\"/><option timestep=\"{:.17g}\" gravity=\"{}\" integrator=\"{}\">"
        "<flag contact=\"disable\"/></option><worldbody>\n",
        dt, numbers(m.gravity_0()), integrator);
    xml += sites(kGround);
    for (std::size_t k = 0; k < tree_.tree.size(); ++k)
      if (tree_.tree[k].parent != kGround) children_[static_cast<std::size_t>(tree_.tree[k].parent)].push_back(k);
    for (std::size_t k = 0; k < tree_.tree.size(); ++k)
      if (tree_.tree[k].parent == kGround) xml += body(k, 1);
    xml += "</worldbody><equality>\n";
    for (const TreeJoint& j : tree_.loops)
      xml +=
          fmt::format("<connect body1=\"b{}\"{} anchor=\"{}\" solref=\"{:.17g} 1\" solimp=\"0.9999 0.9999 0.001\"/>\n",
                      j.body, j.parent == kGround ? std::string() : fmt::format(" body2=\"b{}\"", j.parent),
                      numbers(j.point_in_body), time_constant * dt);
    std::ofstream(path()) << xml + "</equality>\n" + tendons() + servos(time_constant * dt) + "</mujoco>\n";
  }
  std::string path() const { return folder_.path() / "model.xml"; }
  const JointTree& tree() const { return tree_; }
  bool has_servos() const { return has_servos_; }

 private:
  // The start pose of a body in its parent's frame, with its joint; children nested inside or in a further file.
  std::string body(std::size_t index, int depth) {
    constexpr int kDeepest = 40;
    const TreeJoint& j = tree_.tree[index];
    const Body& b = m_.bodies()[static_cast<std::size_t>(j.body)];
    const Mat3 parent = start_rotation(m_, j.parent);
    const Vec3 at = parent.transpose() * (b.position_0 - start_position(m_, j.parent));
    const Eigen::Quaterniond turned(Mat3(parent.transpose() * start_rotation(m_, j.body)));
    const Mat3& J = b.inertia_b;
    Eigen::VectorXd inertia(6);
    inertia << J(0, 0), J(1, 1), J(2, 2), J(0, 1), J(0, 2), J(1, 2);
    std::string xml = fmt::format(
        "<body name=\"b{}\" pos=\"{}\" quat=\"{:.17g} {:.17g} {:.17g} {:.17g}\"><inertial pos=\"0 0 0\" "
        "mass=\"{:.17g}\" fullinertia=\"{}\"/>{}{}\n",
        j.body, numbers(at), turned.w(), turned.x(), turned.y(), turned.z(), b.mass, numbers(inertia), joints(j),
        sites(j.body));
    std::string inside;
    const bool further_file = depth >= kDeepest;
    for (const std::size_t child : children_[static_cast<std::size_t>(j.body)])
      inside += body(child, further_file ? 1 : depth + 1);
    if (further_file && !inside.empty()) {
      const std::string name = fmt::format("below_b{}.xml", j.body);
      std::ofstream(folder_.path() / name) << "<mujocoinclude>" + inside + "</mujocoinclude>\n";
      inside = "<include file=\"" + name + "\"/>\n";
    }
    return xml + inside + "</body>\n";
  }

  static std::string joints(const TreeJoint& j) {
    const auto joint = [&j](const char* type, int axis) {
      return fmt::format("<joint name=\"j{}_{}\" type=\"{}\" pos=\"{}\" axis=\"{}\"/>", j.body, axis, type,
                         numbers(j.point_in_body), numbers(j.axes_in_body.col(axis)));
    };
    if (j.type == JointType::floating) return "<freejoint/>";
    if (j.type == JointType::universal) return joint("hinge", 0) + joint("hinge", 1);
    if (j.type == JointType::prismatic) return joint("slide", 2);
    return joint(j.type == JointType::spherical ? "ball" : "hinge", 2);
  }

  template <class F>
  void for_each_spring(const F& f) const {
    for (std::size_t k = 0; k < m_.springs().size(); ++k)
      if (m_.springs()[k].kind == Spring::Kind::between_points) f(m_.springs()[k], k);
  }

  // Ends of springs on a body.
  std::string sites(int body) const {
    std::string xml;
    for_each_spring([&](const Spring& s, std::size_t k) {
      if (s.first == body) xml += fmt::format("<site name=\"first{}\" pos=\"{}\"/>", k, numbers(s.first_point_b));
      if (s.second == body) xml += fmt::format("<site name=\"second{}\" pos=\"{}\"/>", k, numbers(s.second_point_b));
    });
    return xml;
  }

  std::string tendons() const {
    std::string xml;
    for_each_spring([&](const Spring& s, std::size_t k) {
      xml += fmt::format(
          "<spatial stiffness=\"{:.17g}\" damping=\"{:.17g}\" springlength=\"{:.17g}\"><site site=\"first{}\"/>"
          "<site site=\"second{}\"/></spatial>\n",
          s.stiffness, s.damping, free_length(s), k, k);
    });
    return xml.empty() ? xml : "<tendon>\n" + xml + "</tendon>\n";
  }

  // Stiff enough for this time constant [s] with the mass of the whole mechanism.
  std::string servos(double time_constant) {
    double mass = 0.0;
    for (const Body& body : m_.bodies()) mass += body.mass;
    std::string xml;
    for (const TreeJoint& j : tree_.tree)
      if (j.is_driven)
        xml += fmt::format("<position joint=\"j{}_2\" kp=\"{:.17g}\"/>\n", j.body,
                           0.4 * mass / (time_constant * time_constant));
    has_servos_ = !xml.empty();
    return xml.empty() ? xml : "<actuator>\n" + xml + "</actuator>\n";
  }

  const Mechanism& m_;
  JointTree tree_;
  bool has_servos_ = false;
  std::vector<std::vector<std::size_t>> children_;
  server::TemporaryFolder folder_;
};

struct Simulation {
  mjModel* model = nullptr;
  mjData *data = nullptr, *saved = nullptr;
  Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() {
    mj_deleteData(saved);
    mj_deleteData(data);
    mj_deleteModel(model);
  }
};

// A state that is not finite or too large, after which MuJoCo has begun again from the start.
void refuse_new_start(const mjData& data) {
  for (const mjtWarning bad : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC})
    if (data.warning[bad].number > 0) throw server::StepFailed("mujoco: the simulation is unstable");
}

server::TimedSolver make(const Mechanism& m, double dt, double time_constant, const char* name,
                         const char* integrator) {
  mju_user_warning = [](const char*) {};  // by default to stdout, where the results go, and to a file of its own
  const ModelFiles files(m, dt, time_constant, integrator);
  char problem[500] = "";
  const auto simulation = std::make_shared<Simulation>();
  simulation->model = mj_loadXML(files.path().c_str(), nullptr, problem, sizeof(problem));
  if (simulation->model == nullptr) {
    std::string text = problem;
    for (char& c : text)
      if (c == '\n') c = ' ';
    throw Unsupported("its reader says: " + text);
  }
  simulation->data = mj_makeData(simulation->model);
  simulation->saved = mj_makeData(simulation->model);
  mj_forward(simulation->model, simulation->data);
  server::TimedSolver solver;
  solver.name = name;
  solver.step = [simulation] {
    mj_step(simulation->model, simulation->data);
    refuse_new_start(*simulation->data);
  };
  solver.save = [simulation] { mj_copyData(simulation->saved, simulation->model, simulation->data); };
  solver.restore = [simulation] { mj_copyData(simulation->data, simulation->model, simulation->saved); };
  solver.differs = files.tree().left_out.empty() ? "" : "without " + files.tree().left_out;
  if (files.has_servos()) solver.differs += std::string(solver.differs.empty() ? "" : "; ") + "drivers are servos";
  const auto point_0 = [simulation](int body, const Vec3& point_b) {
    mj_kinematics(simulation->model, simulation->data);  // a step leaves them at its beginning
    const int id = mj_name2id(simulation->model, mjOBJ_BODY, fmt::format("b{}", body).c_str());
    const mjtNum *at = simulation->data->xpos + 3 * id, *to_world = simulation->data->xmat + 9 * id;
    return Vec3(Eigen::Map<const Vec3>(at) +
                Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(to_world) * point_b);
  };
  solver.position_0 = [point_0](int body) { return point_0(body, Vec3::Zero()); };
  solver.gap = [tree = files.tree(), point_0] { return largest_gap(tree, point_0); };
  return solver;
}

std::string version() { return mj_versionString(); }

}  // namespace

std::vector<Peer> mujoco_peers() {
  const std::vector<double> time_constants{2, 3, 4, 6, 10, 20, 50, 100, 200, 500};  // it takes none below two steps
  return {{"mujoco_euler", version,
           [](const Mechanism& m, double dt, double time_constant) {
             return make(m, dt, time_constant, "mujoco_euler", "Euler");
           },
           time_constants},
          {"mujoco_rk4", version,
           [](const Mechanism& m, double dt, double time_constant) {
             return make(m, dt, time_constant, "mujoco_rk4", "RK4");
           },
           time_constants}};
}

}  // namespace rigstep::bench
