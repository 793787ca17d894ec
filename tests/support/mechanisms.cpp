#include "tests/support/mechanisms.h"

#include <cmath>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/mechanism/portable_math.h"

namespace rigstep::test {

void add_forces(MechanismBuilder& builder, const Description& d) {
  for (const auto& s : d.springs) builder.add_spring(s.spring, s.first, s.second);
  for (const auto& s : d.joint_springs) builder.add_joint_spring(s.spring, s.joint, s.freedom);
  for (const auto& i : d.body_inputs) builder.add_body_input(i.input, i.body);
  for (const auto& i : d.joint_inputs) {
    Input input;
    input.name = i.name;
    builder.add_joint_input(input, i.joint, i.freedom);
  }
  for (const auto& c : d.couplings) {
    Coupling coupling;
    coupling.name = c.name;
    coupling.ratio = c.ratio;
    builder.add_coupling(coupling, c.first.joint, c.first.freedom, c.second.joint, c.second.freedom);
  }
  for (const auto& each : d.drivers) builder.add_driver(each.driver, each.at.joint, each.at.freedom);
}

Mechanism build(const Description& d, const std::function<void(MechanismBuilder&)>& add_more) {
  MechanismBuilder builder(d.name);
  builder.set_gravity(d.gravity);
  for (const Body& body : d.bodies) builder.add_body(body);
  for (const auto& joint : d.joints) builder.add_joint(joint);
  add_forces(builder, d);
  if (add_more) add_more(builder);
  return builder.build();
}

int rows(JointType type) { return static_cast<int>(index3::rows_of(type).size()); }

int rows(const Description& d) {
  int n = 0;
  for (const auto& joint : d.joints) n += rows(joint.type);
  return n;
}

std::string body_name(int index) { return index == kGround ? "ground" : "body" + std::to_string(index); }

Body make_body(const std::string& name, const Vec3& position, double mass, const Mat3& inertia) {
  Body b;
  b.name = name;
  b.mass = mass;
  b.inertia_b = inertia;
  b.position_0 = position;
  return b;
}

Body make_rod(const std::string& name, const Vec3& from, const Vec3& to) {
  return make_body(name, 0.5 * (from + to), 1.0, Vec3(0.1, 0.1, 0.1).asDiagonal());
}

Description::JointAtStart make_joint(const std::string& name, JointType type, const std::string& first,
                                     const std::string& second, const Vec3& point, const Vec3& axis,
                                     const Vec3& other) {
  Description::JointAtStart joint;
  joint.name = name;
  joint.type = type;
  joint.first = first;
  joint.second = second;
  joint.point = point;
  joint.axis = axis;
  joint.second_axis = other;
  return joint;
}

Description double_pendulum() {
  Description d;
  d.name = "double_pendulum";
  d.gravity = {0.0, -9.81, 0.0};
  d.bodies = {make_body("A", {0.5, 0.0, 0.0}), make_body("B", {1.0, 0.0, 0.5})};
  d.joints = {make_joint("joint1", JointType::spherical, "ground", "A", Vec3::Zero()),
              make_joint("joint2", JointType::spherical, "A", "B", {1.0, 0.0, 0.0})};
  return d;
}

Description four_bar(double phi) {
  const auto turned = [](double angle) {
    return EulerParameters{std::cos(0.5 * angle), 0.0, 0.0, std::sin(0.5 * angle)};
  };
  const Vec3 up{0.0, 1.0, 0.0}, link{std::cos(phi), std::sin(phi), 0.0};
  Description d;
  d.name = "four_bar";
  d.gravity = {0.0, -9.81, 0.0};
  d.bodies = {make_body("A", 0.5 * link), make_body("B", link + 0.5 * up), make_body("C", up + 0.5 * link)};
  d.bodies[0].orientation = turned(phi);
  d.bodies[1].orientation = turned(0.5 * kPi);
  d.bodies[2].orientation = turned(phi - kPi);
  d.joints = {make_joint("joint1", JointType::revolute, "ground", "A", Vec3::Zero()),
              make_joint("joint2", JointType::revolute, "A", "B", link),
              make_joint("joint3", JointType::revolute, "B", "C", link + up),
              make_joint("joint4", JointType::revolute, "ground", "C", up)};
  d.joints[0].coordinate_at_start = phi;
  return d;
}

Description chain(int n, JointType type) {
  Description d;
  d.name = "chain";
  d.gravity = {0.0, -9.81, 0.0};
  for (int i = 0; i < n; ++i) {
    const Vec3 point{static_cast<double>(i), 0.0, 0.0};
    d.bodies.push_back(make_rod(body_name(i), point, point + Vec3::UnitX()));
    d.joints.push_back(make_joint("joint" + std::to_string(i), type, body_name(i - 1), body_name(i), point));
  }
  return d;
}

Description tree(int n, int branching, JointType type) {
  Description d;
  d.name = "tree";
  d.gravity = {0.0, -9.81, 0.0};
  for (int i = 0; i < n; ++i) {
    const int parent = i == 0 ? kGround : (i - 1) / branching;
    const Vec3 from = parent == kGround ? Vec3(Vec3::Zero()) : d.bodies[parent].position_0;
    const double side = static_cast<double>((i - 1) % branching) - 0.5 * (branching - 1);
    const Vec3 at = from + Vec3{1.0, side, 0.0};
    d.bodies.push_back(make_body(body_name(i), at, 1.0, Vec3(0.1, 0.2, 0.2).asDiagonal()));
    d.joints.push_back(
        make_joint("joint" + std::to_string(i), type, body_name(parent), body_name(i), 0.5 * (from + at)));
  }
  return d;
}

Description in_space(Description d, std::size_t bodies) {
  for (std::size_t i = 0; i < bodies; ++i) {
    Input across;
    across.name = "across_" + d.bodies[i].name;
    across.direction = Vec3(1.0, 1.0, 1.0).normalized();
    d.body_inputs.push_back({across, d.bodies[i].name});
  }
  return d;
}

Description ladder(int n) {
  Description d;
  d.name = "ladder";
  d.gravity = {0.0, -9.81, 0.0};
  const auto rod = [&d](const std::string& name, const Vec3& from, const Vec3& to) {
    d.bodies.push_back(make_rod(name, from, to));
  };
  const auto pin = [&d](const std::string& first, const std::string& second, const Vec3& at) {
    d.joints.push_back(make_joint(first + "_" + second, JointType::revolute, first, second, at));
  };
  const auto at = [](int i, int side) { return Vec3{static_cast<double>(i), static_cast<double>(side), 0.0}; };
  const auto name = [](const char* part, int i) { return part + std::to_string(i); };
  rod("rung0", at(0, 0), at(0, 1));
  pin("ground", "rung0", at(0, 0));
  for (int i = 1; i <= n; ++i) {
    rod(name("low", i), at(i - 1, 0), at(i, 0));
    rod(name("high", i), at(i - 1, 1), at(i, 1));
    rod(name("rung", i), at(i, 0), at(i, 1));
    pin(name("rung", i - 1), name("low", i), at(i - 1, 0));
    pin(name("rung", i - 1), name("high", i), at(i - 1, 1));
    pin(name("low", i), name("rung", i), at(i, 0));
    pin(name("high", i), name("rung", i), at(i, 1));
  }
  return d;
}

Description n_four_bar(int n, double phi, double rate) {
  const Vec3 upright{std::cos(phi), std::sin(phi), 0.0};
  const Vec3 top_velocity = rate * Vec3{-upright.y(), upright.x(), 0.0};
  const auto name = [](const char* part, int i) { return part + std::to_string(i); };
  const auto rod = [](const std::string& called, const Vec3& middle) {
    return make_body(called, middle, 1.0, Vec3(1e-3, 1.0 / 12.0, 1.0 / 12.0).asDiagonal());
  };
  Description d;
  d.name = "n_four_bar";
  d.gravity = {0.0, -9.81, 0.0};
  for (int i = 0; i <= n; ++i) {
    const Vec3 foot = i * Vec3::UnitX(), top = foot + upright;
    Body vertical = rod(name("V", i), 0.5 * (foot + top));
    vertical.orientation = {std::cos(0.5 * phi), 0.0, 0.0, std::sin(0.5 * phi)};
    vertical.velocity_0 = 0.5 * top_velocity;
    vertical.angular_velocity_0 = {0.0, 0.0, rate};
    d.bodies.push_back(vertical);
    d.joints.push_back(make_joint(name("A", i), JointType::revolute, "ground", name("V", i), foot));
    if (i == 0) continue;
    Body horizontal = rod(name("H", i), top - 0.5 * Vec3::UnitX());
    horizontal.velocity_0 = top_velocity;
    d.bodies.push_back(horizontal);
    d.joints.push_back(
        make_joint(name("L", i), JointType::revolute, name("V", i - 1), name("H", i), top - Vec3::UnitX()));
    d.joints.push_back(make_joint(name("R", i), JointType::revolute, name("H", i), name("V", i), top));
  }
  return d;
}

Description net(int n, JointType type) {
  Description d;
  d.name = "net";
  d.gravity = {0.0, -9.81, 0.0};
  const auto name = [](int i, int k) { return "plate" + std::to_string(i) + "_" + std::to_string(k); };
  const auto join = [&](const std::string& first, const std::string& second, const Vec3& at) {
    d.joints.push_back(make_joint(first + "_" + second, type, first, second, at));
  };
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k) {
      const Vec3 at{static_cast<double>(i), -static_cast<double>(k), 0.0};
      d.bodies.push_back(make_body(name(i, k), at, 1.0, Vec3(0.1, 0.1, 0.2).asDiagonal()));
      if (i == 0 && k == 0) join("ground", name(i, k), {-0.5, 0.0, 0.0});
      if (i > 0) join(name(i - 1, k), name(i, k), at - 0.5 * Vec3::UnitX());
      if (k > 0) join(name(i, k - 1), name(i, k), at + 0.5 * Vec3::UnitY());
    }
  return d;
}

Description carousel(int n) {
  Description d;
  d.name = "carousel";
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies.push_back(make_body("hub", Vec3::Zero(), 20.0, Vec3(5.0, 5.0, 10.0).asDiagonal()));
  d.joints.push_back(make_joint("axle", JointType::revolute, "ground", "hub", Vec3::Zero()));
  for (int i = 0; i < n; ++i) {
    const double angle = 2.0 * kPi * i / n;
    const Vec3 out{std::cos(angle), std::sin(angle), 0.0}, rim{-out.y(), out.x(), 0.0};
    Body seat = make_body("seat" + std::to_string(i), 1.0 * out - 0.5 * Vec3::UnitZ(), 1.0, 0.01 * Mat3::Identity());
    seat.orientation = {std::cos(0.5 * angle), 0.0, 0.0, std::sin(0.5 * angle)};
    d.joints.push_back(make_joint("hinge" + std::to_string(i), JointType::revolute, "hub", seat.name, out, rim));
    d.bodies.push_back(seat);
  }
  return d;
}

Description::JointAtStart random_joint(Random& random, const std::string& name, JointType type,
                                       const std::string& first, const std::string& second, const Vec3& near) {
  const Vec3 axis = random.direction();
  const Vec3 other = axis.cross(random.direction()).normalized();
  Description::JointAtStart joint{
      name, type, first, second, near + random.vector(0.3), axis, other, random.uniform(), random.uniform()};
  if (freedoms(type).size() > 2) joint.coordinate_at_start = joint.second_coordinate_at_start = 0.0;
  if (type == JointType::screw) {
    joint.second_coordinate_at_start = 0.0;
    joint.lead = random.below(2) == 0 ? 0.4 : -0.7;
  }
  joint.second_point = joint.point + 0.6 * other;
  if (type >= JointType::planar) joint.normal = other;  // displacements are measured along it
  return joint;
}

Spring random_spring(Random& random, const std::string& name, Spring::Kind kind) {
  Spring s;
  s.name = name;
  s.kind = kind;
  s.first_point_b = random.vector(0.3);
  s.second_point_b = random.vector(0.3);
  s.direction_0 = random.direction();
  s.stiffness = random.uniform(10.0, 100.0);
  s.damping = random.uniform(0.1, 1.0);
  s.rest = random.uniform(0.0, 1.0);
  return s;
}

void add_random_springs(Random& random, Description& d) {
  const int n = static_cast<int>(d.bodies.size());
  const std::string last = body_name(n - 1), other = body_name(n > 1 ? random.below(n - 1) : kGround);
  d.springs.push_back({random_spring(random, "rope", Spring::Kind::between_points), other, last});
  d.springs.push_back({random_spring(random, "pad", Spring::Kind::along_direction), "ground", last});
  for (const auto& joint : d.joints)
    for (const Freedom freedom : freedoms(joint.type))
      if (d.joint_springs.size() < 3)
        d.joint_springs.push_back(
            {random_spring(random, "in_" + joint.name + "_" + std::string(to_string(freedom)), Spring::Kind::in_joint),
             joint.name, freedom});
}

namespace {

Body random_body(Random& random, int index, const Vec3& near) {
  const double mass = random.uniform(0.5, 3.0);
  const Mat3 inertia = random.inertia(mass, 0.5);  // one after the other: compilers order arguments as they like
  Body b = make_body(body_name(index), near + random.vector(), mass, inertia);
  b.orientation = random.orientation();
  b.velocity_0 = random.vector();
  b.angular_velocity_0 = random.vector();
  return b;
}

void add_random_inputs(Random& random, Description& d) {
  for (int k = 0; k < 2; ++k) {
    Description::BodyInput in;
    in.input.name = k == 0 ? "push" : "twist";
    in.input.kind = k == 0 ? Input::Kind::body_force : Input::Kind::body_torque;
    in.input.frame = random.below(2) == 0 ? Frame::world : Frame::body;
    in.input.direction = random.direction();
    in.input.point_b = random.vector(0.3);
    in.body = d.bodies[random.below(static_cast<int>(d.bodies.size()))].name;
    d.body_inputs.push_back(in);
  }
  for (const auto& joint : d.joints)
    for (const Freedom freedom : freedoms(joint.type))
      if (d.joint_inputs.size() < 4)
        d.joint_inputs.push_back({"effort" + std::to_string(d.joint_inputs.size()), joint.name, freedom});
}

}  // namespace

Description random_bare_tree(unsigned seed, int n, bool on_ground) {
  Random random(seed);
  Description d;
  d.name = "random_tree";
  const int shift = random.below(static_cast<int>(kAllJointTypes.size()));
  for (int i = 0; i < n; ++i) {
    const int parent = i == 0 ? kGround : random.below(i + (on_ground ? 1 : 0)) - (on_ground ? 1 : 0);
    const Vec3 near = parent == kGround ? Vec3(Vec3::Zero()) : d.bodies[parent].position_0;
    d.bodies.push_back(random_body(random, i, near));
    if (parent == kGround && !on_ground) continue;
    const JointType type = kAllJointTypes[static_cast<std::size_t>(i + shift) % kAllJointTypes.size()];
    d.joints.push_back(random_joint(random, "joint" + std::to_string(i), type, body_name(parent), body_name(i),
                                    0.5 * (near + d.bodies[i].position_0)));
  }
  return d;
}

Description chains_side_by_side(int chains, int links, JointType type, bool outer_first) {
  Description d;
  d.name = "chains_side_by_side";
  d.gravity = {0.0, -9.81, 0.0};
  for (int c = 0; c < chains; ++c)
    for (int i = 0; i < links; ++i) {
      const auto name = [c](int k) { return "rod" + std::to_string(c) + "_" + std::to_string(k); };
      const Vec3 at{static_cast<double>(i), 0.0, static_cast<double>(c)};
      d.bodies.push_back(make_rod(name(i), at, at + Vec3::UnitX()));
      const std::string inner = i > 0 ? name(i - 1) : "ground";
      d.joints.push_back(
          make_joint("joint" + name(i), type, outer_first ? name(i) : inner, outer_first ? inner : name(i), at));
    }
  return d;
}

Description random_chain(int seed, int links) {
  Random random(static_cast<unsigned>(seed));
  Description d;
  d.name = "random_chain";
  d.gravity = 9.81 * random.direction();
  const auto hang = [&](const std::string& joint, const std::string& first, const std::string& second, const Vec3& at) {
    const JointType type = random.below(3) == 0 ? JointType::universal : JointType::revolute;
    const bool is_swapped = random.below(2) == 0;
    d.joints.push_back(
        make_joint(joint, type, is_swapped ? second : first, is_swapped ? first : second, at, Vec3::UnitZ()));
  };
  const auto add = [&](const std::string& name, const Vec3& at) {
    const Mat3 inertia = random.inertia(1.0, 0.5);
    d.bodies.push_back(make_body(name, at, random.uniform(0.5, 2.0), inertia));
  };
  Vec3 at = Vec3::Zero();
  for (int i = 0; i < links; ++i) {
    const double angle = 1.0 - 2.0 * i / links;
    const Vec3 half = 0.5 * Vec3{std::cos(angle), std::sin(angle), 0.0};
    add(body_name(i), at + half);
    if (i > 0) hang("joint" + std::to_string(i), body_name(i - 1), body_name(i), at);
    at += 2.0 * half;
  }
  const int branches = random.below(links);
  for (int k = 0; k < branches; ++k) {
    const int parent = random.below(links);
    const Vec3 beside = d.bodies[parent].position_0 + Vec3{0.0, -1.0, 0.5};
    add(body_name(links + k), beside);
    hang("branch" + std::to_string(k), body_name(parent), body_name(links + k), beside);
  }
  const int ends = random.below(3);
  if (ends > 0) hang("first_end", "ground", body_name(0), Vec3::Zero());
  if (ends > 1) hang("last_end", body_name(links - 1), "ground", at);
  for (std::size_t k = d.joints.size(); k > 1; --k)
    std::swap(d.joints[k - 1], d.joints[static_cast<std::size_t>(random.below(static_cast<int>(k)))]);
  return d;
}

void add_random_couplings(unsigned seed, Description& d, int count) {
  Random random(seed + 3000);
  std::vector<Description::JointFreedom> open;
  for (const auto& joint : d.joints)
    for (const Freedom freedom : freedoms(joint.type)) open.push_back({joint.name, freedom});
  for (int k = 0; k < count && open.size() > 1; ++k) {
    const auto draw = [&] { return open[static_cast<std::size_t>(random.below(static_cast<int>(open.size())))]; };
    const Description::JointFreedom first = draw(), second = draw();
    if (first.joint == second.joint) continue;
    d.couplings.push_back({"coupling" + std::to_string(k), first, second, random.uniform(0.5, 2.0)});
  }
}

Description made_consistent(Description d) {
  const Mechanism open = build(d);
  const index3::Plan plan = index3::make_plan(open, {});
  index3::Workspace w(plan);
  index3::State x = index3::closed(plan, index3::start_pose(plan), w);
  index3::close_velocities(plan, x, w);
  for (std::size_t i = 0; i < d.bodies.size(); ++i) {
    Body& body = d.bodies[i];
    body.position_0 = x.body[i].r;
    body.orientation = x.body[i].p;
    body.velocity_0 = x.body[i].v;
    body.angular_velocity_0 = index3::rotation_matrix(x.body[i].p) * x.body[i].w_b;
  }
  return d;
}

Description random_tree(unsigned seed, int n) {
  Description d = random_bare_tree(seed, n);
  Random random(seed + 1000);
  d.gravity = 9.81 * random.direction();
  add_random_springs(random, d);
  add_random_inputs(random, d);
  return made_consistent(std::move(d));
}

namespace {

Description random_loops_once(unsigned seed, int n) {
  Description d = random_bare_tree(seed, n);
  Random random(seed + 2000);
  d.name = "random_loops";
  d.gravity = 9.81 * random.direction();
  for (int k = 0; k < 2 * n; ++k) {
    const JointType type =
        kAllJointTypes[static_cast<std::size_t>(random.below(static_cast<int>(kAllJointTypes.size())))];
    const int first = random.below(n + 1) - 1, second = random.below(n);
    if (first == second || 6 * n - rows(d) - rows(type) < 2) continue;
    d.joints.push_back(random_joint(random, "loop" + std::to_string(k), type, body_name(first), body_name(second),
                                    d.bodies[second].position_0));
  }
  add_random_springs(random, d);
  add_random_inputs(random, d);
  return d;
}

}  // namespace

Description random_loops(unsigned seed, int n) {
  for (;; seed += 100) {
    const Description d = random_loops_once(seed, n);
    if (index3::start_rank(build(d)).start.margin > 0.01) return made_consistent(d);
  }
}

Inputs test_inputs(const Mechanism& m, std::uint64_t step) {
  Inputs u;
  u.count = static_cast<int>(m.input_channels().size());
  for (int k = 0; k < u.count; ++k) u.value[k] = 2.0 * std::sin(0.02 * static_cast<double>(step) + k);
  return u;
}

std::vector<const char*> instruction_sets() {
  std::vector<const char*> sets;
  for (const char* name : {"x86-64", "x86-64-v3", "x86-64-v4", "native"}) {
    try {
      index3::kernels_for_this_processor(name);
      sets.push_back(name);
    } catch (const MechanismError&) {
    }
  }
  return sets;
}

}  // namespace rigstep::test
