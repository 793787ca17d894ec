// Everything whose numbers a parameter may name, and the tables of what is no force element. Load time.
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/number.h"

namespace rigstep {

template <class... Kinds>
KindList<Vec3, Body, Joint, Coupling, AppliedLoad, Driver, Kinds...> with_elements(KindList<Kinds...>);
// Vec3: gravity. Places stand in Target::owner_kind.
using NumberOwners = decltype(with_elements(ElementKinds()));

template <class Owner>
inline constexpr int owner_kind_of = NumberOwners::place<Owner>();

// f.template operator()<Owner>() for the type at this place.
template <class F>
constexpr void visit_owner(int owner_kind, F&& f) {
  NumberOwners::for_each([&]<class Owner>() {
    if (owner_kind == owner_kind_of<Owner>) f.template operator()<Owner>();
  });
}

template <class Owner>
constexpr const char* kind_name() {
  if constexpr (std::is_same_v<Owner, Body>)
    return "body";
  else if constexpr (std::is_same_v<Owner, Joint>)
    return "joint";
  else if constexpr (std::is_same_v<Owner, Coupling>)
    return "coupling";
  else if constexpr (std::is_same_v<Owner, AppliedLoad>)
    return "load";
  else if constexpr (std::is_same_v<Owner, Driver>)
    return "driver";
  else
    return Owner::kName;
}

// Tables, in the order that Target::number counts.
std::span<const Number<Vec3>> numbers(const Vec3& gravity_0);
std::span<const Number<Body>> numbers(const Body& body);
std::span<const Number<Joint>> numbers(const Joint& joint);
std::span<const Number<Coupling>> numbers(const Coupling& coupling);
std::span<const Number<AppliedLoad>> numbers(const AppliedLoad& load);
std::span<const Number<Driver>> numbers(const Driver& driver);

// What their numbers must be; throws MechanismError with the field. The numbers that are allowed are a convex set.
void check_numbers(const Vec3& gravity_0);
void check_numbers(const Body& body);
void check_numbers(const Joint& joint);
void check_numbers(const Coupling& coupling);
void check_numbers(const AppliedLoad& load);
void check_numbers(const Driver& driver);

// As messages call an owner: body "arm".
template <class Owner>
std::string described(const Owner& owner) {
  if constexpr (std::is_same_v<Owner, Vec3>)
    return "gravity";
  else
    return std::string(kind_name<Owner>()) + " \"" + owner.name + "\"";
}

}  // namespace rigstep
