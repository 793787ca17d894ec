// A still picture of a mechanism as SVG text, without a browser: for reports, READMEs and the documentation of FMUs.
// Offline.
#pragma once

#include <string>
#include <vector>

#include "server/view/scene.h"

namespace rigstep::server {

enum class PictureView {
  automatic,  // face-on where everything moves in one plane, else oblique
  oblique,    // from front, right and above, parallel projection
  front,      // along +y
  side,       // along -x
  top,        // along -z
};

struct PictureOptions {
  PictureView view = PictureView::automatic;
  double width = 720.0, height = 480.0;        // at most [px]
  std::string caption = {};                    // below the picture; empty: the mechanism's name
  std::vector<std::vector<Vec3>> traces = {};  // paths of points, world frame [m]
  bool has_names = true;                       // of the bodies, where there are few
};

// poses: of every body. All names are escaped.
std::string draw(const Mechanism& mechanism, const Scene& scene, const Poses& poses, const PictureOptions& options);
// The mechanism at its start pose.
std::string draw(const config::LoadedMechanism& loaded, const PictureOptions& options = {});

}  // namespace rigstep::server
