#include "server/view/mesh_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/view/gltf_file.h"

namespace rigstep::server {
namespace {

std::string bytes_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw MeshError(path + ": is no file; check `mesh.file`, which counts from the mechanism file's folder");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kLargestMeshFile)
    throw MeshError(
        fmt::format("{}: has {} MiB, the most is {}; simplify the mesh", path, size >> 20, kLargestMeshFile >> 20));
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file) throw MeshError(path + ": cannot be read; check its permissions");
  return bytes;
}

// Words of a text, line by line.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return true;
  }

  // Empty at the end of the line.
  std::string_view next() {
    const std::size_t begin = std::min(line_.find_first_not_of(" \t\r"), line_.size());
    line_.remove_prefix(begin);
    const std::string_view word = line_.substr(0, line_.find_first_of(" \t\r"));
    line_.remove_prefix(word.size());
    return word;
  }

  // nan where the word is no number.
  float next_number() {
    std::string_view word = next();
    if (word.starts_with('+')) word.remove_prefix(1);
    float value = std::numeric_limits<float>::quiet_NaN();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() ? value : std::numeric_limits<float>::quiet_NaN();
  }

  Eigen::Vector3f next_vector() {
    Eigen::Vector3f v;
    for (int k = 0; k < 3; ++k) v[k] = next_number();
    return v;
  }

 private:
  std::string_view rest_, line_;
};

void push_triangle(TriangleMesh& mesh, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  if (mesh.triangles.size() >= kMostTriangles)
    throw MeshError(fmt::format("has more than {} triangles; simplify the mesh", kMostTriangles));
  mesh.triangles.push_back({a, b, c});
}

TriangleMesh read_binary_stl(std::string_view bytes) {
  constexpr std::size_t kHead = 84, kEach = 50;
  TriangleMesh mesh;
  for (std::size_t at = kHead; at + kEach <= bytes.size(); at += kEach) {
    for (std::size_t k = 0; k < 3; ++k) {
      Eigen::Vector3f vertex;
      std::memcpy(vertex.data(), bytes.data() + at + 12 + 12 * k, sizeof(float) * 3);
      mesh.vertices.push_back(vertex);
    }
    const auto last = static_cast<std::uint32_t>(mesh.vertices.size());
    push_triangle(mesh, last - 3, last - 2, last - 1);
  }
  return mesh;
}

TriangleMesh read_text_stl(std::string_view text) {
  TriangleMesh mesh;
  Words words(text);
  while (words.next_line()) {
    if (words.next() != "vertex") continue;
    mesh.vertices.push_back(words.next_vector());
    const auto count = static_cast<std::uint32_t>(mesh.vertices.size());
    if (count % 3 == 0) push_triangle(mesh, count - 3, count - 2, count - 1);
  }
  return mesh;
}

TriangleMesh read_stl(std::string_view bytes) {
  std::uint32_t count = 0;
  if (bytes.size() >= 84) std::memcpy(&count, bytes.data() + 80, sizeof count);
  const bool is_binary = bytes.size() >= 84 && bytes.size() == 84 + std::uint64_t{50} * count;
  return is_binary ? read_binary_stl(bytes) : read_text_stl(bytes);
}

// "7", "7/1", "7//3" or "-1": counts from 1, or backwards from the newest.
std::uint32_t obj_vertex(std::string_view word, std::size_t vertices) {
  long long index = 0;
  std::from_chars(word.data(), word.data() + word.size(), index);
  const long long found = index < 0 ? static_cast<long long>(vertices) + index : index - 1;
  if (index == 0 || found < 0 || found >= static_cast<long long>(vertices))
    throw MeshError("has a face with the vertex \"" + std::string(word.substr(0, 40)) + "\", which there is not");
  return static_cast<std::uint32_t>(found);
}

TriangleMesh read_obj(std::string_view text) {
  TriangleMesh mesh;
  Words words(text);
  while (words.next_line()) {
    const std::string_view kind = words.next();
    if (kind == "v") {
      mesh.vertices.push_back(words.next_vector());
    } else if (kind == "f") {
      std::vector<std::uint32_t> face;
      for (std::string_view word = words.next(); !word.empty(); word = words.next())
        face.push_back(obj_vertex(word, mesh.vertices.size()));
      for (std::size_t k = 2; k < face.size(); ++k) push_triangle(mesh, face[0], face[k - 1], face[k]);
    }
  }
  return mesh;
}

void require_drawable(const TriangleMesh& mesh) {
  if (mesh.triangles.empty()) throw MeshError("has no triangles; export the surface of the part");
  for (const Eigen::Vector3f& vertex : mesh.vertices)
    if (!vertex.allFinite() || vertex.cwiseAbs().maxCoeff() > 1e12f)
      throw MeshError("has a vertex that is no finite number; export it anew");
}

}  // namespace

TriangleMesh read_mesh(const std::string& path) {
  const std::string bytes = bytes_of(path);
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& letter : ending) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  try {
    TriangleMesh mesh = ending == ".stl" ? read_stl(bytes)
                        : ending == ".obj"
                            ? read_obj(bytes)
                            : read_gltf(bytes, [&](const std::string& name) {
                                return bytes_of((std::filesystem::path(path).parent_path() / name).string());
                              });
    require_drawable(mesh);
    return mesh;
  } catch (const MeshError& error) {
    throw MeshError(path + ": " + error.what());
  }
}

}  // namespace rigstep::server
