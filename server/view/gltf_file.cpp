#include "server/view/gltf_file.h"

#include <Eigen/Geometry>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rigstep::server {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 64;                 // nodes within nodes
constexpr std::size_t kMostNodes = 100'000;  // walked through

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string from_base64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) throw MeshError("has a buffer that is no base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if ((count += 6) >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8) & 0xff));
  }
  return bytes;
}

class GltfReader {
 public:
  GltfReader(std::string_view bytes, const std::function<std::string(const std::string&)>& read_beside) {
    std::string_view json = bytes;
    std::string_view binary;
    if (bytes.starts_with("glTF")) split(bytes, json, binary);
    file_ = Json::parse(json, nullptr, false);
    if (!file_.is_object()) throw MeshError("is no glTF: its JSON cannot be read");
    for (const Json& buffer : list("buffers")) {
      const std::string uri = buffer.value("uri", std::string());
      const std::size_t data = uri.find(";base64,");
      if (uri.empty())
        buffers_.emplace_back(binary);
      else if (uri.starts_with("data:") && data != uri.npos)
        buffers_.push_back(from_base64(std::string_view(uri).substr(data + 8)));
      else if (uri.find('/') == uri.npos && uri.find(':') == uri.npos)
        buffers_.push_back(read_beside(uri));
      else
        throw MeshError("has a buffer that is not beside it: \"" + uri.substr(0, 80) + "\"");
    }
  }

  TriangleMesh read() {
    Eigen::Affine3f upright = Eigen::Affine3f::Identity();
    upright.linear() << 1, 0, 0, 0, 0, -1, 0, 1, 0;
    const Json& scenes = list("scenes");
    if (scenes.empty()) {
      for (std::size_t k = 0; k < list("meshes").size(); ++k) add_mesh(static_cast<int>(k), upright);
    } else {
      for (const Json& node : part(scenes, file_.value("scene", 0)).value("nodes", Json::array()))
        add_node(node.get<int>(), upright, 0);
    }
    return std::move(mesh_);
  }

 private:
  // .glb: 12 bytes, then chunks of length, kind and content.
  static void split(std::string_view bytes, std::string_view& json, std::string_view& binary) {
    json = {};
    for (std::size_t at = 12; at + 8 <= bytes.size();) {
      const std::size_t length = number_at(bytes, at);
      if (length > bytes.size() - at - 8) throw MeshError("ends within a part");
      (number_at(bytes, at + 4) == 0x4E4F534A ? json : binary) = bytes.substr(at + 8, length);
      at += 8 + length;
    }
  }

  const Json& list(const char* name) const {
    static const Json kNone = Json::array();
    const auto found = file_.find(name);
    return found != file_.end() && found->is_array() ? *found : kNone;
  }

  static const Json& part(const Json& all, int index) {
    if (index < 0 || static_cast<std::size_t>(index) >= all.size())
      throw MeshError("refers to a part that it does not have");
    return all[static_cast<std::size_t>(index)];
  }

  void add_node(int index, const Eigen::Affine3f& parent, int depth) {
    if (depth > kDeepest || ++nodes_ > kMostNodes) throw MeshError("has nodes within themselves");
    const Json& node = part(list("nodes"), index);
    const Eigen::Affine3f here = parent * placement(node);
    if (node.contains("mesh")) add_mesh(node["mesh"].get<int>(), here);
    for (const Json& child : node.value("children", Json::array())) add_node(child.get<int>(), here, depth + 1);
  }

  static Eigen::Affine3f placement(const Json& node) {
    Eigen::Affine3f t = Eigen::Affine3f::Identity();
    if (const auto matrix = node.value("matrix", std::vector<float>()); matrix.size() == 16) {
      t.matrix() = Eigen::Map<const Eigen::Matrix4f>(matrix.data());
      return t;
    }
    if (const auto v = node.value("translation", std::vector<float>()); v.size() == 3)
      t.translate(Eigen::Vector3f(v.data()));
    if (const auto q = node.value("rotation", std::vector<float>()); q.size() == 4)
      t.rotate(Eigen::Quaternionf(q[3], q[0], q[1], q[2]).normalized());
    if (const auto v = node.value("scale", std::vector<float>()); v.size() == 3) t.scale(Eigen::Vector3f(v.data()));
    return t;
  }

  void add_mesh(int index, const Eigen::Affine3f& placed) {
    for (const Json& piece : part(list("meshes"), index).value("primitives", Json::array())) {
      if (piece.value("mode", 4) != 4) continue;  // no triangles
      const auto first = static_cast<std::uint32_t>(mesh_.vertices.size());
      const Accessor positions = accessor(piece.at("attributes").at("POSITION").get<int>(), 3, 5126);
      if (mesh_.vertices.size() + positions.count > 3 * kMostTriangles)
        throw MeshError("has too many vertices; simplify the mesh");
      for (std::size_t k = 0; k < positions.count; ++k) {
        Eigen::Vector3f vertex;
        std::memcpy(vertex.data(), positions.at(k), 3 * sizeof(float));
        mesh_.vertices.push_back(placed * vertex);
      }
      const std::vector<std::uint32_t> corners = corners_of(piece, positions.count);
      if (mesh_.triangles.size() + corners.size() / 3 > kMostTriangles)
        throw MeshError("has too many triangles; simplify the mesh");
      for (std::size_t k = 0; k + 2 < corners.size(); k += 3)
        mesh_.triangles.push_back({first + corners[k], first + corners[k + 1], first + corners[k + 2]});
    }
  }

  std::vector<std::uint32_t> corners_of(const Json& piece, std::size_t vertices) const {
    std::vector<std::uint32_t> corners;
    if (!piece.contains("indices")) {
      for (std::size_t k = 0; k < vertices; ++k) corners.push_back(static_cast<std::uint32_t>(k));
      return corners;
    }
    const Accessor indices = accessor(piece["indices"].get<int>(), 1, 0);
    for (std::size_t k = 0; k < indices.count; ++k) {
      std::uint32_t corner = 0;
      std::memcpy(&corner, indices.at(k), indices.bytes);  // little-endian
      if (corner >= vertices) throw MeshError("has a triangle with a vertex that there is not");
      corners.push_back(corner);
    }
    return corners;
  }

  struct Accessor {
    const char* begin = nullptr;
    std::size_t count = 0, stride = 0, bytes = 0;  // of one component
    const char* at(std::size_t k) const { return begin + k * stride; }
  };

  // component: the kind that is wanted, 0: any unsigned one.
  Accessor accessor(int index, std::size_t components, int component) const {
    const Json& accessor = part(list("accessors"), index);
    const int kind = accessor.value("componentType", 0);
    const std::size_t bytes = kind == 5126 || kind == 5125 ? 4 : kind == 5123 ? 2 : kind == 5121 ? 1 : 0;
    if (bytes == 0 || (component != 0 && kind != component) || accessor.contains("sparse"))
      throw MeshError("has numbers of a kind that is not read; export it without compression");
    const Json& view = part(list("bufferViews"), accessor.value("bufferView", -1));
    const int buffer = view.value("buffer", -1);
    if (buffer < 0 || static_cast<std::size_t>(buffer) >= buffers_.size())
      throw MeshError("refers to a buffer that it does not have");
    const std::string& all = buffers_[static_cast<std::size_t>(buffer)];
    Accessor found;
    found.bytes = bytes;
    found.count = accessor.value("count", std::size_t{0});
    found.stride = view.value("byteStride", components * bytes);
    const std::size_t offset = view.value("byteOffset", std::size_t{0}) + accessor.value("byteOffset", std::size_t{0});
    const bool fits =
        found.stride >= components * bytes && found.stride < 4096 && found.count < all.size() && offset <= all.size() &&
        found.count * found.stride <= all.size() - offset + found.stride &&
        (found.count == 0 || (found.count - 1) * found.stride + components * bytes <= all.size() - offset);
    if (!fits) throw MeshError("has numbers beyond the end of a buffer");
    found.begin = all.data() + offset;
    return found;
  }

  Json file_;
  std::vector<std::string> buffers_;
  TriangleMesh mesh_;
  std::size_t nodes_ = 0;
};

}  // namespace

TriangleMesh read_gltf(std::string_view bytes, const std::function<std::string(const std::string& name)>& read_beside) {
  try {
    return GltfReader(bytes, read_beside).read();
  } catch (const Json::exception& error) {
    throw MeshError(std::string("is no glTF that can be read: ") + error.what());
  }
}

}  // namespace rigstep::server
