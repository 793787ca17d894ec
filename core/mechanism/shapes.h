// Homogeneous solids: volume and inertia in closed form. Load time.
#pragma once

#include "core/mechanism/types.h"

namespace rigstep {

// Times the mass, `inertia_per_mass` is a Body's inertia_b: about the mass centre, in the axes of the solid.
struct Solid {
  double volume = 0.0;                   // [m^3]
  Mat3 inertia_per_mass = Mat3::Zero();  // [m^2]
};

// Sizes above zero [m]; axis: a unit vector.
Solid solid_box(const Vec3& edges);
Solid solid_sphere(double radius);
Solid solid_cylinder(double radius, double length, const Vec3& axis);
Solid solid_tube(double inner_radius, double outer_radius, double length, const Vec3& axis);  // inner below outer

}  // namespace rigstep
