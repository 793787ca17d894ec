// Pictures of mechanisms, and the files of meshes that they draw.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/view/picture.h"

namespace rigstep::server {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

config::LoadedMechanism pendulum(const std::string& more = "") {
  return config::parse_mechanism(R"(name: "m" gravity { y: -9.81 }
    body { name: "rod" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: 0.5 } )" +
                                     more + R"( }
    joint { name: "pin" type: REVOLUTE first: "ground" second: "rod" at_start { axis { z: 1 } } }
    spring { name: "coil" stiffness: 1 between_points { first: "ground" first_point { x: 0.5 y: 1 } second: "rod" } }
    )",
                                 "m.textproto");
}

std::string file_with(const std::string& name, const std::string& content) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("rigstep_picture_" + name);
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

constexpr const char* kTriangle = "v 0 0 0\nv 1 0 0\nv 0 2 0\nf 1/1 2/2 -1\n";

}  // namespace

TEST_CASE("a linkage in one plane is drawn face-on, with its bar, its joint, its ground and its spring") {
  const config::LoadedMechanism loaded = pendulum();
  const Scene scene = make_scene(loaded);
  CHECK(scene.plane_normal_0 == Vec3(0, 0, 1));
  CHECK(scene.up_0 == Vec3(0, 1, 0));
  const auto has = [&](Scene::Role role) {
    return std::any_of(scene.solids.begin(), scene.solids.end(),
                       [role](const Scene::Solid& s) { return s.role == role; });
  };
  CHECK(has(Scene::Role::link));
  CHECK(has(Scene::Role::joint));
  CHECK(has(Scene::Role::support));
  REQUIRE(scene.lines.size() == 1);
  CHECK(scene.lines[0].kind == Scene::Line::Kind::spring);
  const std::string svg = draw(loaded);
  CHECK(svg.rfind("<svg ", 0) == 0);
  CHECK(count(svg, ">rod</text>") == 1);
}

TEST_CASE("a body's shapes replace the sketch of it") {
  const Scene scene = make_scene(pendulum("shape { box { x: 1 y: 0.1 z: 0.1 } }"));
  CHECK_FALSE(scene.is_sketched.at(0));
  for (const Scene::Solid& solid : scene.solids) CHECK(solid.role != Scene::Role::link);
}

TEST_CASE("captions are shown in a picture, and never run") {
  PictureOptions options;
  options.caption = "<script>alert(1)</script>\x1b[2J";
  const std::string svg = draw(pendulum(), options);
  CHECK(count(svg, "\x1b") == 0);
  CHECK(count(svg, "<script") == 0);
  CHECK(count(svg, "&lt;script&gt;") >= 1);
}

TEST_CASE("a picture follows the poses") {
  const config::LoadedMechanism loaded = pendulum();
  const Scene scene = make_scene(loaded);
  Poses poses = poses_of(loaded.mechanism);
  const std::string before = draw(loaded.mechanism, scene, poses, {});
  poses[0].p = EulerParameters(std::sqrt(0.5), 0, 0, std::sqrt(0.5));
  poses[0].r = Vec3(0, 0.5, 0);
  CHECK(draw(loaded.mechanism, scene, poses, {}) != before);
}

TEST_CASE("meshes are read from STL, OBJ and glTF, all the same triangle") {
  const std::string stl_text =
      "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 2 "
      "0\nendloop\nendfacet\nendsolid\n";
  std::string stl(80, ' ');
  stl += std::string("\1\0\0\0", 4);
  const float numbers[12] = {0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0};
  stl.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  stl += std::string(2, '\0');
  // y of the file is up, so that its -z is the scene's y
  const std::string gltf =
      R"({"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"mesh":0,"translation":[0,0,0]}],
    "meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],"accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3"}],
    "bufferViews":[{"buffer":0,"byteLength":36}],
    "buffers":[{"byteLength":36,"uri":"data:application/octet-stream;base64,AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAAAAAAADA"}]})";
  for (const auto& [name, content] : {std::pair<std::string, std::string>{"a.stl", stl_text},
                                      {"b.stl", stl},
                                      {"c.obj", kTriangle},
                                      {"d.gltf", gltf}}) {
    const std::string& file = name;
    CAPTURE(file);
    const TriangleMesh mesh = read_mesh(file_with(name, content));
    REQUIRE(mesh.triangles.size() == 1);
    CHECK(mesh.vertices[mesh.triangles[0][1]].isApprox(Eigen::Vector3f(1, 0, 0)));
    CHECK(mesh.vertices[mesh.triangles[0][2]].isApprox(Eigen::Vector3f(0, 2, 0)));
  }
}

TEST_CASE("a file that is no mesh is refused, and the picture is made without it") {
  CHECK_THROWS_AS(read_mesh("/nowhere/a.stl"), MeshError);
  CHECK_THROWS_AS(read_mesh(file_with("e.obj", "v 0 0 0\nf 1 2 3\n")), MeshError);
  CHECK_THROWS_AS(read_mesh(file_with("f.obj", "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")), MeshError);
  CHECK_THROWS_AS(read_mesh(file_with("g.stl", "")), MeshError);
  CHECK_THROWS_AS(read_mesh(file_with("h.gltf", "{\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"children\":[0]}]}")),
                  MeshError);
  CHECK_THROWS_AS(read_mesh(file_with("i.glb", std::string("glTF\2\0\0\0\0\0\0\0\xff\xff\xff\x7f"
                                                           "JSON",
                                                           20))),
                  MeshError);
  CHECK_THROWS_AS(read_mesh(file_with("j.gltf", R"({"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],
    "accessors":[{"bufferView":0,"componentType":5126,"count":99}],"bufferViews":[{"buffer":0,"byteOffset":18446744073709551615}],
    "buffers":[{"uri":"data:;base64,AAAA"}]})")),
                  MeshError);
  const Scene scene = make_scene(pendulum("shape { mesh { file: \"nowhere.stl\" } }"));
  CHECK(scene.problems.size() == 1);
  CHECK(scene.is_sketched.at(0));
}

}  // namespace rigstep::server
