// Triangles from files: STL (text and binary), Wavefront OBJ, glTF 2.0 (.gltf with its buffers inside or beside it,
// .glb). Positions only: textures, colours and animations are left out. The files may come from anybody. Load time.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

struct TriangleMesh {
  std::vector<Eigen::Vector3f> vertices;                // [unit of the file]
  std::vector<std::array<std::uint32_t, 3>> triangles;  // indices of vertices, seen from outside against the clock
};

// A file that is no mesh that can be drawn: which, why, what to do.
struct MeshError : Error {
  using Error::Error;
};

inline constexpr std::uint64_t kLargestMeshFile = 64ULL << 20;  // [bytes]
inline constexpr std::size_t kMostTriangles = 500'000;          // of one file

// By the ending of its name. Throws MeshError.
TriangleMesh read_mesh(const std::string& path);

}  // namespace rigstep::server
