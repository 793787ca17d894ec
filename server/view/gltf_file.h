// The triangles of a glTF 2.0 file: https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html. Load time.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/view/mesh_file.h"

namespace rigstep::server {

// bytes: of a .gltf or .glb file. read_beside: gives the bytes of a buffer in a file beside it.
// All meshes of all nodes of the scene, turned from glTF's y up to z up. Throws MeshError.
TriangleMesh read_gltf(std::string_view bytes, const std::function<std::string(const std::string& name)>& read_beside);

}  // namespace rigstep::server
