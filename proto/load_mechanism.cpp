#include "proto/load_mechanism.h"

#include <utility>

#include "proto/load_parts.h"
#include "proto/text_source.h"

namespace rigstep::config {
namespace {

// The order in which elements are added numbers the joint coordinates that they follow, which is part of a mechanism's
// identity: that of the kinds that were first; all others follow in the order of the list.
using SpringsFirst = KindList<Spring>;
using ThenThese = KindList<Bushing, JointFriction, AppliedEffort, Motor>;

LoadedMechanism build(wire::Mechanism& file, const TextSource& source) {
  MechanismBuilder builder(file.name());
  if (file.has_gravity()) {
    const Vec3 gravity = vector(file.gravity());
    if (!gravity.allFinite()) source.fail(file, "gravity", "is not a finite number", "write finite components");
    builder.set_gravity(gravity);
  }
  source.require_bounds(file);
  const auto each = [&](const char* field, const auto& elements) {
    for (int i = 0; i < elements.size(); ++i) source.element(file, field, i, [&] { add(elements[i], file, builder); });
  };
  const auto each_of_kind = [&]<class Kind>() { each(Kind::kName, ElementsInFile<Kind>::of(file)); };
  each("body", file.body());
  each("joint", file.joint());
  each("load", file.load());
  SpringsFirst::for_each(each_of_kind);
  each("input", file.input());
  each("coupling", file.coupling());
  each("driver", file.driver());
  ThenThese::for_each(each_of_kind);
  for_each_kind([&]<class Kind>() {
    if constexpr (!SpringsFirst::has<Kind> && !ThenThese::has<Kind>) each_of_kind.template operator()<Kind>();
  });
  each("output", file.output());
  each("start", file.start());
  for (int k = 0; k < file.parameter_size(); ++k)
    source.element(file, "parameter", k, [&] {
      const wire::Parameter& in = file.parameter(k);
      if (in.of_size() > 0) require_units(source.units_in("parameter", k), builder.unit_of({in.of(0)}));
      add(in, file, builder);
    });
  try {
    LoadedMechanism loaded{builder.build(), {}, {}, {}, {}, {}, {}};
    if (builder.holds_start()) loaded.as_written = builder.build_as_added();
    return loaded;
  } catch (const MechanismError& error) {
    source.fail(file, error.field, error.problem, error.remedy);
  }
}

}  // namespace

ConfigError LoadedMechanism::at_joint(int j, const MechanismError& error) const {
  std::vector<int> line = joint_line;
  line.insert(line.end(), coupling_line.begin(), coupling_line.end());
  line.insert(line.end(), driver_line.begin(), driver_line.end());
  return error_at(path, line[j], error.field, error.problem, error.remedy);
}

LoadedMechanism parse_mechanism(std::string text, const std::string& path) {
  wire::Mechanism file;
  const TextSource source(text, path, file);
  LoadedMechanism loaded = build(file, source);
  loaded.text = std::move(text);
  loaded.path = path;
  for (int j = 0; j < file.joint_size(); ++j) loaded.joint_line.push_back(source.line_of(file, "joint", j));
  for (int k = 0; k < file.coupling_size(); ++k) loaded.coupling_line.push_back(source.line_of(file, "coupling", k));
  for (int k = 0; k < file.driver_size(); ++k) loaded.driver_line.push_back(source.line_of(file, "driver", k));
  loaded.shapes = load_shapes(file, source);
  loaded.penalty_factor = file.reference_solvers().penalty_factor();
  return loaded;
}

void set_parameters(LoadedMechanism& mechanism, const std::vector<ParameterSetting>& settings) {
  std::vector<ParameterValue> values;
  for (const ParameterSetting& each : settings)
    values.push_back({mechanism.mechanism.parameter(each.name), each.value});
  mechanism.mechanism = with_parameters(mechanism.mechanism, values);
}

LoadedMechanism load_mechanism(const std::string& path) { return parse_mechanism(read_text_file(path), path); }

}  // namespace rigstep::config
