#include "core/index3/compile/coordinate_rows.h"

#include "core/index3/physics/inputs.h"
#include "core/index3/physics/joint_traits.h"

namespace rigstep::index3 {

std::vector<CoordinateRow> coordinate_rows_of(const Mechanism& m, bool with_drivers) {
  std::vector<CoordinateRow> rows(m.joints().size());
  const auto row_of = [&](int coordinate) -> CoordinateRow* {  // null: it has none
    const int joint = joint_of_own_coordinate(m, coordinate);
    return joint < 0 ? nullptr : &rows[joint];
  };
  for (int k = 0; k < static_cast<int>(m.drivers().size()) && with_drivers; ++k)
    if (CoordinateRow* const row = row_of(m.drivers()[k].coordinate); row != nullptr && row->driver < 0)
      row->driver = k;
  for_each_kind([&]<class Kind>() {
    for (int k = 0; k < static_cast<int>(m.all<Kind>().size()); ++k)
      if (CoordinateRow* const row = row_of(coordinate_of_tangent(m.all<Kind>()[k])); row != nullptr && row->driver < 0)
        row->elements.push_back({kind_of<Kind>, k});
  });
  return rows;
}

bool is_row_of_joint(const Plan& plan, int driver) {
  const int joint = plan.mechanism.coordinates()[plan.mechanism.drivers()[driver].coordinate].joint;
  return plan.coordinate_rows[joint].driver == driver;
}

int joint_of_own_coordinate(const Mechanism& m, int coordinate) {
  if (coordinate < 0) return -1;
  const int joint = m.coordinates()[coordinate].joint;
  return traits_of(m.joints()[joint].type).own_coordinate ? joint : -1;
}

int measured_joint(const Plan& plan, int coordinate) {
  const int joint = joint_of_own_coordinate(plan.mechanism, coordinate);
  return joint >= 0 && plan.is_measured[joint] ? joint : -1;
}

int joint_of_effort(const Mechanism& m, const Input& input) {
  if (input.kind != Input::Kind::joint_effort || turns_about_ground(m, input)) return -1;
  return traits_of(m.joints()[input.joint].type).own_coordinate ? input.joint : -1;
}

}  // namespace rigstep::index3
