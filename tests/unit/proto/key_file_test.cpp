#include "proto/key_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

namespace rigstep::wire {
namespace {

// A folder of its own.
struct Folder {
  Folder() {
    char name[] = "/tmp/rigstep_keys_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() {
    for (const char* file : {"/rig.keys", "/bench.key", "/screen.key", "/desk.key"}) ::unlink((path + file).c_str());
    ::rmdir(path.c_str());
  }
  std::string operator()(const char* name) const { return path + "/" + name; }
  std::string path;
};

void write(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string digits(char of) { return std::string(64, of); }

std::string error_of(const std::string& path) {
  try {
    read_key_ring(path);
  } catch (const KeyError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("participants are added one by one, each with a key of his own in two files") {
  const Folder folder;
  add_participant(folder("rig.keys"), folder("bench.key"), "bench", KeyRole::controller);
  add_participant(folder("rig.keys"), folder("screen.key"), "screen", KeyRole::observer);
  add_participant(folder("rig.keys"), folder("desk.key"), "desk", KeyRole::operator_);
  const auto ring = read_key_ring(folder("rig.keys"));
  REQUIRE(ring->all().size() == 3);
  for (const auto& [file, name, role] :
       {std::tuple("bench.key", "bench", KeyRole::controller), std::tuple("screen.key", "screen", KeyRole::observer),
        std::tuple("desk.key", "desk", KeyRole::operator_)}) {
    struct stat status {};
    REQUIRE(::stat(folder(file).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    const auto own = read_participant_key(folder(file), KeyRole::controller);
    const ParticipantKey* const known = ring->find(own->id);
    REQUIRE(known != nullptr);
    CHECK(known->key == own->key);
    CHECK(known->name() == name);
    CHECK(known->role == role);
    // who runs beside the server may name its file
    CHECK(read_participant_key(folder("rig.keys"), role)->key == own->key);
  }
  CHECK(ring->find(std::array<std::uint8_t, 16>{}) == nullptr);

  remove_participant(folder("rig.keys"), "screen");
  const auto left = read_key_ring(folder("rig.keys"));
  REQUIRE(left->all().size() == 2);
  CHECK(left->all()[0].key == ring->all()[0].key);
  CHECK(left->all()[1].name() == "desk");
  CHECK_THROWS_WITH_AS(remove_participant(folder("rig.keys"), "screen"), doctest::Contains("no participant \"screen\""),
                       KeyError);
}

TEST_CASE("no key is replaced, and what cannot be done changes no file") {
  const Folder folder;
  add_participant(folder("rig.keys"), folder("bench.key"), "bench", KeyRole::controller);
  const std::string before = read(folder("rig.keys")), own = read(folder("bench.key"));
  CHECK_THROWS_WITH_AS(add_participant(folder("rig.keys"), folder("screen.key"), "bench", KeyRole::observer),
                       doctest::Contains("two participants \"bench\""), KeyError);
  CHECK_THROWS_WITH_AS(add_participant(folder("rig.keys"), folder("bench.key"), "screen", KeyRole::observer),
                       doctest::Contains("File exists"), KeyError);
  CHECK_THROWS_AS(add_participant(folder("rig.keys"), folder("screen.key"), "no name", KeyRole::observer), KeyError);
  CHECK_THROWS_AS(add_participant(folder("rig.keys"), folder("screen.key"), "", KeyRole::observer), KeyError);
  CHECK(read(folder("rig.keys")) == before);
  CHECK(read(folder("bench.key")) == own);
  CHECK(::access(folder("screen.key").c_str(), F_OK) != 0);
}

TEST_CASE("a key file that protects nothing is refused with what to do") {
  const Folder folder;
  const std::string path = folder("rig.keys");
  const auto error = [&](const std::string& text, mode_t mode = 0600) {
    write(path, text, mode);
    return error_of(path);
  };
  const std::string good = "bench controller " + digits('a') + "\n";
  CHECK(error(good) == "no error");
  CHECK(error("# only words\n\n" + good + "screen observer " + digits('b')) == "no error");
  CHECK(error("bench controller " + digits('0') + "\n").find("rig.keys:1: a key of all zeros protects nothing") !=
        std::string::npos);
  CHECK(error(good + "screen observer " + digits('a')).find("rig.keys:2: \"screen\" has the key of \"bench\"") !=
        std::string::npos);
  CHECK(error(good + "bench observer " + digits('b')).find("two participants") != std::string::npos);
  for (const mode_t mode : {0640, 0604, 0660})
    CHECK(error(good, mode).find("others than its owner may use it: chmod 600 " + path) != std::string::npos);
  CHECK(error("bench boss " + digits('a')).find("is no role: give controller, observer or operator") !=
        std::string::npos);
  CHECK(error("bench controller " + digits('g')).find("64 hexadecimal digits") != std::string::npos);
  CHECK(error("bench controller " + digits('a') + "b").find("64 hexadecimal digits") != std::string::npos);
  CHECK(error("").find("has no key: add a participant with `rigstep keygen") != std::string::npos);
  CHECK(error(std::string(20000, '#')).find("is longer than") != std::string::npos);
  std::string many;
  for (int k = 0; k < 65; ++k)
    many += "p" + std::to_string(k) + " observer " + std::to_string(1000 + k) + digits('a').substr(4) + "\n";
  CHECK(error(many).find("more than 64 keys") != std::string::npos);
}

TEST_CASE("the shared key of an older release is recognised, and how to migrate is told") {
  const Folder folder;
  write(folder("rig.keys"), digits('a') + "\n");
  CHECK(error_of(folder("rig.keys"))
            .find("is one shared key, as protocol version 2 had it: each participant has a "
                  "key of its own now; make them with `rigstep keygen rig.keys --participant") != std::string::npos);
}

}  // namespace rigstep::wire
