#include "core/index3/compile/coordinates_in_lanes.h"

#include <algorithm>

namespace rigstep::index3 {

namespace {

// With the axes that kernels/joint_angle.h takes for an angle: of the first body its x and y, or, where the axis is
// fixed in the second, those whose product is z.
JointInLanes joint_of_angle(Joint joint, Freedom freedom) {
  Mat3 &first = joint.in_first.axes_b, &second = joint.in_second.axes_b;
  const Vec3 first_x = first.col(0), first_y = first.col(1), second_x = second.col(0), second_y = second.col(1);
  const bool is_of_second_z =
      freedom == Freedom::first_angle && traits_of(joint.type).angles == JointTraits::Angles::about_two_axes;
  if (is_of_second_z) second.col(2) = second_y, second.col(1) = second_x;
  if (angle_form(freedom, joint.type) != AngleForm::in_second) return {joint, first_x};
  first.col(1) = first_x;
  if (freedom == Freedom::second_angle) second.col(2) = second_x, second.col(1) = -second_y;
  return {joint, first_y};
}

// The followed coordinates of couplings, by batch: of one format, and no more than lanes hold.
std::vector<std::vector<int>> batches_of(const Plan& plan) {
  const Mechanism& m = plan.mechanism;
  std::vector<std::vector<int>> batches;
  std::vector<bool> is_placed(m.coordinates().size(), false);
  const auto lines_of = [&m](int k) { return format_of_coordinate(m, m.coordinates()[k]).lines; };
  for (const Coupling& coupling : m.couplings())
    for (const int k : {coupling.first, coupling.second}) {
      if (is_placed[k]) continue;
      is_placed[k] = true;
      const auto has_room = [&](const std::vector<int>& batch) {
        return lines_of(batch.front()) == lines_of(k) && static_cast<int>(batch.size()) < plan.lanes;
      };
      const auto found = std::find_if(batches.begin(), batches.end(), has_room);
      (found == batches.end() ? batches.emplace_back() : *found).push_back(k);
    }
  return batches;
}

// The narrowest batch that holds so many, or the widest.
int width_for(int count, int lanes) {
  int width = 1;
  while (width < count && width < lanes) width *= 2;
  return width;
}

void fill(const Plan& plan, const std::vector<int>& coordinates, CoordinateBatch& batch, double* constants) {
  const Mechanism& m = plan.mechanism;
  for (int lane = 0; lane < batch.width; ++lane) {
    const bool is_used = lane < static_cast<int>(coordinates.size());
    const JointCoordinate& coordinate = m.coordinates()[is_used ? coordinates[lane] : coordinates.front()];
    const Joint& joint = m.joints()[coordinate.joint];
    batch.first[lane] = record_of(plan.elimination, joint.first);
    batch.second[lane] = record_of(plan.elimination, joint.second);
    write_constants(joint_of_coordinate(m, coordinate), batch.width, constants + lane);
  }
}

}  // namespace

RowFormat format_of_coordinate(const Mechanism& m, const JointCoordinate& coordinate) {
  if (is_length(coordinate.freedom)) return {1, RowFormat::kAnyRows, 1};
  const AngleForm form = angle_form(coordinate.freedom, m.joints()[coordinate.joint].type);
  return {1, RowFormat::kAnyRows, RowFormat::kAngleInFirst + static_cast<int>(form)};
}

JointInLanes joint_of_coordinate(const Mechanism& m, const JointCoordinate& coordinate) {
  const Joint& joint = m.joints()[coordinate.joint];
  if (!is_length(coordinate.freedom)) return joint_of_angle(joint, coordinate.freedom);
  return {joint, -joint.in_first.axes_b.col(axis_of(coordinate.freedom))};  // along that axis backwards
}

void write_constants(const JointInLanes& joint, int width, double* to) {
  write_joint(joint.joint, joint.first_axis_b, width, to);
  to[(kConstraintConstants - 1) * width] = pitch_of(joint.joint);
}

void place_coupled_coordinates(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  const std::vector<std::vector<int>> coordinates = batches_of(plan);
  plan.found_coordinate.assign(m.coordinates().size(), {-1, 0});
  plan.coordinate_batches.assign(coordinates.size(), {});
  plan.lanes_of_coordinates = 0;
  for (std::size_t b = 0; b < coordinates.size(); ++b) {
    CoordinateBatch& batch = plan.coordinate_batches[b];
    const int count = static_cast<int>(coordinates[b].size());
    batch.format = format_of_coordinate(m, m.coordinates()[coordinates[b].front()]);
    batch.width = width_for(count, plan.lanes);
    batch.position = (plan.lanes_of_coordinates + batch.width - 1) / batch.width * batch.width;  // aligned
    plan.lanes_of_coordinates = batch.position + batch.width;
    for (int lane = 0; lane < count; ++lane)
      plan.found_coordinate[coordinates[b][lane]] = {kCoordinateNumbers * batch.position + lane, batch.width};
  }
  plan.coordinate_constants =
      AlignedDoubles(static_cast<std::size_t>(kConstraintConstants * plan.lanes_of_coordinates), 0.0);
  for (std::size_t b = 0; b < coordinates.size(); ++b)
    fill(plan, coordinates[b], plan.coordinate_batches[b],
         plan.coordinate_constants.data() + kConstraintConstants * plan.coordinate_batches[b].position);
}

}  // namespace rigstep::index3
