#include <cmath>
#include <cstdlib>
#include <set>

#include "core/mechanism/builder.h"
#include "core/mechanism/channels.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/nearest_names.h"
#include "core/mechanism/numbers.h"

// Parameters: what they name, and whether their whole range makes sense.
namespace rigstep {

namespace {

using checks::number;
using checks::quoted;

constexpr int kMostOfOneOwner = 12;   // parameters: their ranges have 2^12 corners
constexpr double kSameValue = 1e-12;  // relative: of targets that must agree

// An index in brackets taken out of a name: "harmonic[2].phase" is "harmonic[].phase" and 2; -1: there is none.
std::string without_index(const std::string& name, int& index) {
  index = -1;
  const std::size_t open = name.find('['), close = name.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open + 2 || close > open + 6) return name;
  for (std::size_t k = open + 1; k < close; ++k)
    if (name[k] < '0' || name[k] > '9') return name;
  index = std::atoi(name.c_str() + open + 1);
  return name.substr(0, open + 1) + name.substr(close);
}

std::string without_brackets(std::string name) {
  const std::size_t open = name.find("[]");
  return open == std::string::npos ? name : name.erase(open, 2);
}

// Whether `name` means this number of the owner; index: of a repeated field.
template <class Owner>
bool is_meant(const Number<Owner>& candidate, const Owner& owner, const std::string& name, int& index) {
  const int count = candidate.count == nullptr ? 1 : candidate.count(owner);
  const bool is_repeated = std::string(candidate.name).find("[]") != std::string::npos;
  const std::string general = without_index(name, index);
  if (index >= 0) return is_repeated && general == candidate.name && index < count;
  index = 0;
  return count == 1 && name == without_brackets(candidate.name);
}

template <class Owner>
const std::string& name_of(const Owner& owner) {
  static const std::string kGravity = "gravity";
  if constexpr (std::is_same_v<Owner, Vec3>)
    return kGravity;
  else
    return owner.name;
}

template <class Owner>
bool acts_along_angle(const Owner& owner, const Mechanism& m) {
  if constexpr (std::is_same_v<Owner, Driver>)
    return !is_length(m.coordinates()[static_cast<std::size_t>(owner.coordinate)].freedom);
  else if constexpr (requires { Owner::kIsScalar; })
    return Owner::kIsScalar && channels(owner, m).front().unit == "rad";
  else
    return false;
}

}  // namespace

// A number that a target may mean.
struct MechanismBuilder::Candidate {
  Target target;
  std::string owner;  // as messages call it
  std::string unit;
  Changes changes = Changes::fixed;
  double number = 0.0;
};

// names: all that could have been meant.
std::vector<MechanismBuilder::Candidate> MechanismBuilder::candidates(const ParameterTarget& wanted,
                                                                      std::vector<std::string>& names) {
  std::vector<Candidate> found;
  NumberOwners::for_each([&]<class Owner>() {
    const std::span<Owner> all = mechanism_.owners<Owner>();
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::string prefix = name_of(all[k]) + ".";
      const bool is_owner = wanted.of.compare(0, prefix.size(), prefix) == 0;
      const auto table = numbers(all[k]);
      for (std::size_t n = 0; n < table.size(); ++n) {
        if (table[n].count == nullptr || table[n].count(all[k]) > 0) names.push_back(prefix + table[n].name);
        int index = 0;
        if (!is_owner || !is_meant(table[n], all[k], wanted.of.substr(prefix.size()), index)) continue;
        Candidate& candidate = found.emplace_back();
        candidate.target.of = wanted.of;
        candidate.target.factor = wanted.factor;
        candidate.target.owner_kind = owner_kind_of<Owner>;
        candidate.target.owner = static_cast<int>(k);
        candidate.target.number = static_cast<int>(n);
        candidate.target.index = index;
        candidate.owner = described(all[k]);
        candidate.unit = acts_along_angle(all[k], mechanism_) ? table[n].unit.along_angle : table[n].unit.along_length;
        if (std::string(table[n].name) == "polynomial.coefficient[]" && index > 0)
          candidate.unit += "/s^" + std::to_string(index);
        candidate.changes = table[n].changes;
        candidate.number = *table[n].at(all[k], index);
      }
    }
  });
  return found;
}

// The one number that is meant.
MechanismBuilder::Candidate MechanismBuilder::find_candidate(const ParameterTarget& wanted) {
  std::vector<std::string> names;
  std::vector<Candidate> found = candidates(wanted, names);
  if (found.empty())
    throw MechanismError(
        "of", "nothing is named " + quoted(wanted.of),
        "name a number of the description; the nearest are " + quoted_list(nearest_names(names, wanted.of)));
  if (found.size() > 1)
    throw MechanismError("of", quoted(wanted.of) + " is a number of " + found[0].owner + " and of " + found[1].owner,
                         "rename one of them");
  return std::move(found.front());
}

std::string MechanismBuilder::unit_of(const ParameterTarget& target) { return find_candidate(target).unit; }

Target MechanismBuilder::find_target(const ParameterTarget& wanted, Parameter& parameter) {
  const Candidate the = find_candidate(wanted);
  const double value = the.number / wanted.factor;
  if (!std::isfinite(value)) throw MechanismError("of", quoted(wanted.of) + " has no value", "give it one");
  if (excludes_zero(the.changes) && parameter.minimum <= 0.0 && parameter.maximum >= 0.0)
    throw MechanismError("minimum",
                         "and maximum have 0 between them, where " + quoted(wanted.of) + " means something else",
                         "give a range without 0");
  parameter.tunable = parameter.tunable && is_tunable(the.changes);
  if (parameter.targets.empty()) {
    parameter.unit = the.unit;
    parameter.value = value;
  }
  if (std::abs(value - parameter.value) > kSameValue * std::max(std::abs(value), std::abs(parameter.value)))
    throw MechanismError("of",
                         quoted(parameter.targets.front().of) + " makes it " + number(parameter.value) + ", but " +
                             quoted(wanted.of) + " makes it " + number(value),
                         "give both the same value, or a factor");
  return the.target;
}

void MechanismBuilder::require_own_target(const Parameter& parameter, const Target& target) const {
  const auto is_same = [&](const Target& other) {
    return other.owner_kind == target.owner_kind && other.owner == target.owner && other.index == target.index &&
           other.number == target.number;
  };
  const auto require = [&](const Parameter& other) {
    for (const Target& each : other.targets)
      if (is_same(each))
        throw MechanismError("of", quoted(target.of) + " is moved by parameter " + quoted(other.name) + " already",
                             "name each number once");
  };
  for (const Parameter& other : mechanism_.parameters_) require(other);
  require(parameter);
}

void MechanismBuilder::add_parameter(const std::string& name, const std::vector<ParameterTarget>& targets,
                                     double minimum, double maximum) {
  check_name(name, "parameter");
  checks::require_new_name(mechanism_.parameters_, name, "parameter");
  checks::require_finite(minimum, "minimum");
  checks::require_finite(maximum, "maximum");
  if (!(minimum <= maximum))
    throw MechanismError("maximum", "is " + number(maximum) + ", below minimum, " + number(minimum),
                         "give the larger one as maximum");
  if (targets.empty()) throw MechanismError("of", "is missing", "name the numbers that it moves: of: \"NAME.NUMBER\"");
  if (mechanism_.parameters_.size() == static_cast<std::size_t>(kMaxParameters))
    throw MechanismError("parameter", "there are more than " + std::to_string(kMaxParameters),
                         "let one parameter move several numbers");
  Parameter parameter{name, "", 0.0, minimum, maximum, true, {}};
  for (const ParameterTarget& wanted : targets) {
    if (wanted.factor == 0.0 || !std::isfinite(wanted.factor))
      throw MechanismError("factor", "is " + number(wanted.factor), "give a finite number that is not zero");
    Target target = find_target(wanted, parameter);
    require_own_target(parameter, target);
    parameter.targets.push_back(std::move(target));
  }
  if (!parameter.allows(parameter.value))
    throw MechanismError("minimum",
                         "and maximum leave out " + number(parameter.value) + " " + parameter.unit + ", which " +
                             quoted(targets.front().of) + " is",
                         "give a range that holds the declared value");
  const int index = static_cast<int>(mechanism_.parameters_.size());
  const double value = parameter.value;
  mechanism_.parameters_.push_back(std::move(parameter));
  mechanism_.set_parameter(index, value);
}

namespace {

// A parameter and those of its targets that are numbers of one owner.
struct Mover {
  const Parameter* parameter;
  std::vector<const Target*> targets;
};

std::vector<Mover> movers_of(const std::vector<Parameter>& parameters, int owner_kind, int owner) {
  std::vector<Mover> movers;
  for (const Parameter& parameter : parameters) {
    Mover mover{&parameter, {}};
    for (const Target& target : parameter.targets)
      if (target.owner_kind == owner_kind && target.owner == owner) mover.targets.push_back(&target);
    if (!mover.targets.empty()) movers.push_back(std::move(mover));
  }
  return movers;
}

// corner: a bit for each mover, set: at its maximum.
template <class Owner>
void require_possible(Owner owner, const std::vector<Mover>& movers, unsigned corner) {
  std::string at;
  for (std::size_t k = 0; k < movers.size(); ++k) {
    const Parameter& parameter = *movers[k].parameter;
    const double value = (corner >> k & 1u) != 0 ? parameter.maximum : parameter.minimum;
    at += (at.empty() ? "" : ", ") + quoted(parameter.name) + " at " + number(value);
    for (const Target* target : movers[k].targets)
      *numbers(owner)[static_cast<std::size_t>(target->number)].at(owner, target->index) = target->factor * value;
  }
  try {
    check_numbers(owner);
  } catch (const MechanismError& e) {
    throw MechanismError(
        "parameter", "the range is too wide: with " + at + ", " + e.field + " of " + described(owner) + " " + e.problem,
        "narrow it; " + e.remedy);
  }
}

}  // namespace

// What is allowed of an owner's numbers is convex, so that a range holds if its corners do.
void MechanismBuilder::require_possible_ranges() {
  std::set<std::pair<int, int>> moved;
  for (const Parameter& parameter : mechanism_.parameters_)
    for (const Target& target : parameter.targets) moved.insert({target.owner_kind, target.owner});
  for (const auto& [kind, index] : moved)
    visit_owner(kind, [&, kind = kind, index = index]<class Owner>() {
      const Owner& owner = mechanism_.owners<Owner>()[static_cast<std::size_t>(index)];
      const std::vector<Mover> movers = movers_of(mechanism_.parameters_, kind, index);
      if (movers.size() > kMostOfOneOwner)
        throw MechanismError("parameter",
                             std::to_string(movers.size()) + " of them move numbers of " + described(owner),
                             "at most " + std::to_string(kMostOfOneOwner) + " may; remove some");
      for (unsigned corner = 0; corner < 1u << movers.size(); ++corner) require_possible(owner, movers, corner);
    });
}

}  // namespace rigstep
