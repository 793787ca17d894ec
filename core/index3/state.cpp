#include "core/index3/state.h"

#include <algorithm>
#include <cstring>

#include "core/index3/physics/kinematics.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace rigstep::index3 {

State::State(const Mechanism& mechanism, int rows)
    : body(mechanism.bodies().size()),
      r_low(mechanism.bodies().size(), Vec3::Zero()),
      lambda(static_cast<std::size_t>(rows), 0.0),
      kappa(static_cast<std::size_t>(rows), 0.0),
      coordinate(mechanism.coordinates().size(), 0.0),
      drive(mechanism.drivers().size(), Prescribed{0.0, 0.0, 0.0}) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    const Body& b = mechanism.bodies()[i];
    const Vec3 w_b = rotation_matrix(b.orientation).transpose() * b.angular_velocity_0;
    body[i] = {b.position_0, b.orientation, b.velocity_0, w_b, Vec3::Zero(), Vec3::Zero()};
  }
}

std::size_t State::flat_size() const noexcept { return flat_size_without_low() + 3 * r_low.size(); }

std::size_t State::flat_size_without_low() const noexcept {
  return body.size() * kDoublesPerBody + lambda.size() + kappa.size() + coordinate.size() +
         drive.size() * kDoublesPerDriver;
}

void State::flatten(std::span<double> flat) const noexcept {
  double* to = flat.data();
  std::memcpy(to, body.data(), body.size() * sizeof(BodyState));
  to += body.size() * kDoublesPerBody;
  to = std::copy(lambda.begin(), lambda.end(), to);
  to = std::copy(kappa.begin(), kappa.end(), to);
  to = std::copy(coordinate.begin(), coordinate.end(), to);
  if (!drive.empty()) std::memcpy(to, drive.data(), drive.size() * sizeof(Prescribed));
  to += drive.size() * kDoublesPerDriver;
  if (!r_low.empty()) std::memcpy(to, r_low.data(), r_low.size() * sizeof(Vec3));
}

void State::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  const double* from = flat.data();
  std::memcpy(static_cast<void*>(body.data()), from, body.size() * sizeof(BodyState));
  from += body.size() * kDoublesPerBody;
  std::copy_n(from, lambda.size(), lambda.begin());
  from += lambda.size();
  std::copy_n(from, kappa.size(), kappa.begin());
  from += kappa.size();
  std::copy_n(from, coordinate.size(), coordinate.begin());
  from += coordinate.size();
  if (!drive.empty()) std::memcpy(static_cast<void*>(drive.data()), from, drive.size() * sizeof(Prescribed));
  from += drive.size() * kDoublesPerDriver;
  std::fill(r_low.begin(), r_low.end(), Vec3::Zero());
  if (flat.size() == flat_size() && !r_low.empty())
    std::memcpy(static_cast<void*>(r_low.data()), from, r_low.size() * sizeof(Vec3));
  step = step_index;
}

std::uint64_t State::hash() const noexcept {
  std::uint64_t h = XXH3_64bits_withSeed(body.data(), body.size() * sizeof(BodyState), step);
  h = XXH3_64bits_withSeed(lambda.data(), lambda.size() * sizeof(double), h);
  h = XXH3_64bits_withSeed(kappa.data(), kappa.size() * sizeof(double), h);
  h = XXH3_64bits_withSeed(coordinate.data(), coordinate.size() * sizeof(double), h);
  h = XXH3_64bits_withSeed(r_low.data(), r_low.size() * sizeof(Vec3), h);
  if (drive.empty()) return h;
  return XXH3_64bits_withSeed(drive.data(), drive.size() * sizeof(Prescribed), h);
}

}  // namespace rigstep::index3
