// Bullet's btMultiBody in double precision: Featherstone's articulated bodies with symplectic Euler; loops are closed
// by point-to-point constraints of its iterative solver.
#include <BulletDynamics/Featherstone/btMultiBody.h>
#include <BulletDynamics/Featherstone/btMultiBodyConstraintSolver.h>
#include <BulletDynamics/Featherstone/btMultiBodyDynamicsWorld.h>
#include <BulletDynamics/Featherstone/btMultiBodyLinkCollider.h>
#include <BulletDynamics/Featherstone/btMultiBodyPoint2Point.h>
#include <btBulletDynamicsCommon.h>

#include <algorithm>
#include <memory>

#include "tests/bench/peer.h"

namespace rigstep::bench {

namespace {

btVector3 vector(const Vec3& v) { return {v[0], v[1], v[2]}; }

struct Simulation {
  btDefaultCollisionConfiguration configuration;
  btCollisionDispatcher dispatcher{&configuration};
  btDbvtBroadphase broadphase;
  btMultiBodyConstraintSolver solver;
  btMultiBodyDynamicsWorld world{&dispatcher, &broadphase, &solver, &configuration};
  std::unique_ptr<btMultiBody> multibody;
  std::vector<std::unique_ptr<btMultiBodyPoint2Point>> loops;
  btSphereShape shape{0.01};
  std::vector<std::unique_ptr<btMultiBodyLinkCollider>> colliders;
  std::vector<int> link_of_body;
  std::vector<double> saved;

  Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() {
    for (const auto& loop : loops) world.removeMultiBodyConstraint(loop.get());
    for (const auto& collider : colliders) world.removeCollisionObject(collider.get());
    world.removeMultiBody(multibody.get());
  }

  void save() {
    saved.clear();
    for (int k = 0; k < multibody->getNumLinks(); ++k) {
      const btMultibodyLink& link = multibody->getLink(k);
      saved.insert(saved.end(), multibody->getJointPosMultiDof(k),
                   multibody->getJointPosMultiDof(k) + link.m_posVarCount);
      saved.insert(saved.end(), multibody->getJointVelMultiDof(k), multibody->getJointVelMultiDof(k) + link.m_dofCount);
    }
  }
  void restore() {
    double* from = saved.data();
    for (int k = 0; k < multibody->getNumLinks(); ++k) {
      multibody->setJointPosMultiDof(k, static_cast<const double*>(from));
      from += multibody->getLink(k).m_posVarCount;
      multibody->setJointVelMultiDof(k, static_cast<const double*>(from));
      from += multibody->getLink(k).m_dofCount;
    }
    btAlignedObjectArray<btQuaternion> rotations;
    btAlignedObjectArray<btVector3> origins;
    multibody->forwardKinematics(rotations, origins);
  }
};

server::TimedSolver make(const Mechanism& m, double dt, double /*time_constant*/) {
  const JointTree tree = joint_tree(m);
  require_only_gravity_and_pins(m, tree);
  const auto s = std::make_shared<Simulation>();
  s->world.setGravity(vector(m.gravity_0()));
  s->multibody =
      std::make_unique<btMultiBody>(static_cast<int>(tree.tree.size()), 0.0, btVector3(0, 0, 0), true, false);
  s->link_of_body.resize(m.bodies().size());
  for (std::size_t k = 0; k < tree.tree.size(); ++k) {
    const TreeJoint& j = tree.tree[k];
    const Body& body = m.bodies()[static_cast<std::size_t>(j.body)];
    if (!body.inertia_b.isDiagonal(1e-12)) throw Unsupported("bodies off their principal axes are left out");
    const int link = static_cast<int>(k),
              parent = j.parent == kGround ? -1 : s->link_of_body[static_cast<std::size_t>(j.parent)];
    s->link_of_body[static_cast<std::size_t>(j.body)] = link;
    const Eigen::Quaterniond q(Mat3(start_rotation(m, j.body).transpose() * start_rotation(m, j.parent)));
    const btQuaternion parent_to_this(q.x(), q.y(), q.z(), q.w());
    const btVector3 inertia = vector(body.inertia_b.diagonal()), pivot = vector(j.point_in_parent),
                    centre = -vector(j.point_in_body);
    if (j.type == JointType::spherical)
      s->multibody->setupSpherical(link, body.mass, inertia, parent, parent_to_this, pivot, centre, true);
    else
      s->multibody->setupRevolute(link, body.mass, inertia, parent, parent_to_this, vector(j.axes_in_body.col(2)),
                                  pivot, centre, true);
  }
  btMultiBody& b = *s->multibody;
  b.finalizeMultiDof();
  b.setCanSleep(false);
  b.setLinearDamping(0.0);
  b.setAngularDamping(0.0);
  b.setUseGyroTerm(true);
  b.setMaxCoordinateVelocity(1e9);
  s->world.addMultiBody(&b);
  for (const TreeJoint& j : tree.loops) {
    if (j.parent != kGround) throw Unsupported("loops that do not close on the ground are left out");
    // its solver finds constraints by the colliders of their bodies; these collide with nothing
    const int link = s->link_of_body[static_cast<std::size_t>(j.body)];
    s->colliders.push_back(std::make_unique<btMultiBodyLinkCollider>(&b, link));
    s->colliders.back()->setCollisionShape(&s->shape);
    s->colliders.back()->setActivationState(DISABLE_DEACTIVATION);
    b.getLink(link).m_collider = s->colliders.back().get();
    s->world.addCollisionObject(s->colliders.back().get(), 0, 0);
    s->loops.push_back(std::make_unique<btMultiBodyPoint2Point>(&b, s->link_of_body[static_cast<std::size_t>(j.body)],
                                                                nullptr, vector(j.point_in_body),
                                                                vector(j.point_in_parent)));
    s->loops.back()->setMaxAppliedImpulse(1e9);
    s->loops.back()->finalizeMultiDof();
    s->world.addMultiBodyConstraint(s->loops.back().get());
  }
  s->save();
  s->restore();
  server::TimedSolver solver;
  solver.name = "bullet";
  solver.step = [s, dt] { s->world.stepSimulation(dt, 0); };
  solver.save = [s] { s->save(); };
  solver.restore = [s] { s->restore(); };
  const auto point_0 = [s](int body, const Vec3& point_b) {
    const btVector3 at =
        s->multibody->localPosToWorld(s->link_of_body[static_cast<std::size_t>(body)], vector(point_b));
    return Vec3(at[0], at[1], at[2]);
  };
  solver.position_0 = [point_0](int body) { return point_0(body, Vec3::Zero()); };
  solver.gap = [tree, point_0] { return largest_gap(tree, point_0); };
  return solver;
}

std::string version() { return std::to_string(btGetVersion() / 100) + "." + std::to_string(btGetVersion() % 100); }

}  // namespace

std::vector<Peer> bullet_peers() { return {{"bullet", version, make}}; }

}  // namespace rigstep::bench
