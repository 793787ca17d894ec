#include "core/index3/compile/coordinate_rows.h"

#include "core/index3/physics/joint_traits.h"

namespace rigstep::index3 {

std::vector<CoordinateRow> coordinate_rows_of(const Mechanism& m, bool with_drivers) {
  std::vector<CoordinateRow> rows(m.joints().size());
  const auto row_of = [&](int coordinate) -> CoordinateRow* {  // null: it has none
    if (coordinate < 0) return nullptr;
    const int joint = m.coordinates()[coordinate].joint;
    return traits_of(m.joints()[joint].type).own_coordinate ? &rows[joint] : nullptr;
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

}  // namespace rigstep::index3
