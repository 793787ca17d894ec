// The parallel projection of a picture: world -> pixels. Offline.
#pragma once

#include <Eigen/Geometry>
#include <limits>

#include "core/mechanism/types.h"

namespace rigstep::server {

struct Pixel {
  double x = 0.0, y = 0.0;  // to the right and downwards [px]
};

class Projection {
 public:
  // toward: from what is seen to the viewer, unit; up: what is upwards, as far as it is across that.
  Projection(const Vec3& toward, const Vec3& up)
      : toward_(toward), up_((up - toward * up.dot(toward)).normalized()), right_(up_.cross(toward_)) {}

  // Fits what was included into the frame; the picture is no larger than it needs.
  void include(const Vec3& point_0, double margin) {
    const double x = right_.dot(point_0), y = up_.dot(point_0);
    left_ = std::min(left_, x - margin);
    high_ = std::max(high_, y + margin);
    right_end_ = std::max(right_end_, x + margin);
    low_ = std::min(low_, y - margin);
  }
  void fit(double width, double height, double border) {
    scale_ = std::min((width - 2.0 * border) / std::max(right_end_ - left_, 1e-12),
                      (height - 2.0 * border) / std::max(high_ - low_, 1e-12));
    border_ = border;
  }
  double width() const { return scale_ * (right_end_ - left_) + 2.0 * border_; }  // [px]
  double height() const { return scale_ * (high_ - low_) + 2.0 * border_; }       // [px]

  // In a wider picture.
  void centre_in(double width) { shift_ = 0.5 * (width - this->width()); }

  Pixel at(const Vec3& point_0) const {
    return {shift_ + border_ + scale_ * (right_.dot(point_0) - left_), border_ + scale_ * (high_ - up_.dot(point_0))};
  }
  Pixel direction(const Vec3& v) const { return {scale_ * right_.dot(v), -scale_ * up_.dot(v)}; }
  double depth(const Vec3& point_0) const { return toward_.dot(point_0); }  // larger: nearer [m]
  double scale() const { return scale_; }                                   // [px/m]
  const Vec3& toward() const { return toward_; }

 private:
  Vec3 toward_, up_, right_;
  double left_ = std::numeric_limits<double>::max(), right_end_ = std::numeric_limits<double>::lowest();
  double low_ = std::numeric_limits<double>::max(), high_ = std::numeric_limits<double>::lowest();
  double scale_ = 1.0, border_ = 0.0, shift_ = 0.0;
};

}  // namespace rigstep::server
