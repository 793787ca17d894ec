#include "proto/handshake.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "proto/codec.h"
#include "proto/cookies.h"

namespace rigstep::wire {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using Bytes = std::vector<std::uint8_t>;

// "RS03 00*22 82": hexadecimal digits, and runs of zeros.
Bytes bytes_of_hexadecimal(const std::string& text) {
  std::istringstream parts(text);
  Bytes bytes;
  for (std::string part; parts >> part;) {
    if (part.starts_with("00*")) {
      bytes.insert(bytes.end(), std::stoul(part.substr(3)), 0);
      continue;
    }
    for (std::size_t k = 0; k < part.size(); k += 2)
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(part.substr(k, 2), nullptr, 16)));
  }
  return bytes;
}

// Those of the page that a cryptographer reads.
std::map<std::string, Bytes> vectors() {
  std::ifstream file(RIGSTEP_SOURCE_DIR "/proto/README.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string block = page.substr(page.find("## Test vectors"));
  std::map<std::string, Bytes> found;
  const std::regex line("\n(\\w+) = ([0-9a-f* ]+)");
  for (std::sregex_iterator at(block.begin(), block.end(), line), end; at != end; ++at)
    found[(*at)[1]] = bytes_of_hexadecimal((*at)[2]);
  REQUIRE(found.size() == 18);
  return found;
}

template <class Array>
Array array_of(const Bytes& bytes) {
  Array array{};
  REQUIRE(bytes.size() == array.size());
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}

template <class Array>
Bytes copy_of(const Array& bytes) {
  Bytes copy;
  for (const auto byte : bytes) copy.push_back(static_cast<std::uint8_t>(byte));
  return copy;
}

std::vector<std::byte> datagram_of(const Bytes& bytes) {
  std::vector<std::byte> datagram;
  for (const std::uint8_t byte : bytes) datagram.push_back(std::byte{byte});
  return datagram;
}

struct Exchange {
  std::map<std::string, Bytes> v = vectors();
  Key key = array_of<Key>(v["key"]);
  PublicKey rig_public = array_of<PublicKey>(v["rig_public"]), server_public = array_of<PublicKey>(v["server_public"]);
  std::vector<std::byte> hello = datagram_of(v["hello"]);
  std::uint64_t session = 0x1122334455667788;

  SessionKeys keys() const {
    SessionKeys derived;
    REQUIRE(derive_session_keys(key, array_of<Key>(v.at("rig_secret")), server_public,
                                std::span<const std::byte, kMaxDatagram>(hello), session, server_public, derived));
    return derived;
  }
};

}  // namespace

TEST_CASE("keys and datagrams of the handshake are those of the protocol's page") {
  Exchange e;
  CHECK(copy_of(key_id_of(e.key)) == e.v["key_id"]);
  CHECK(copy_of(proof_key_of(e.key)) == e.v["proof_key"]);

  std::array<std::byte, kMaxDatagram> buffer;
  RigCodec rig;
  const KeyId id = key_id_of(e.key);
  std::string cookie;
  for (int k = 0xA0; k < 0xB0; ++k) cookie += static_cast<char>(k);
  const auto payload = rig.encode_hello({.product_version = "1.0",
                                         .rig_name = "bench 7",
                                         .nonce = 0x0123456789ABCDEF,
                                         .cookie = cookie,
                                         .key_id = &id,
                                         .public_key = &e.rig_public});
  CHECK(copy_of(seal_proven_frame({.sender = Sender::rig, .sent_ns = 1000}, payload, proof_key_of(e.key), buffer)) ==
        e.v["hello"]);

  const SessionKeys keys = e.keys();
  CHECK(copy_of(keys.rig_to_server) == e.v["rig_to_server"]);
  CHECK(copy_of(keys.server_to_rig) == e.v["server_to_rig"]);
  CHECK(copy_of(keys.accept) == e.v["accept_key"]);
  CHECK(is_proven(datagram_of(e.v["accept"]), keys.accept));
  CHECK(is_proven(datagram_of(e.v["refusal"]), proof_key_of(e.key)));

  const auto join = rig.encode_join();
  CHECK(copy_of(seal_frame({.sender = Sender::rig, .session = e.session, .number = 1, .sent_ns = 2000}, join,
                           &keys.rig_to_server, buffer)) == e.v["join"]);
  auto goodbye = datagram_of(e.v["goodbye"]);
  Frame frame;
  REQUIRE(open_frame(goodbye, Sender::rig, &keys.server_to_rig, frame) == DecodeStatus::ok);
  Snapshot ignored;
  REQUIRE(rig.decode(frame.payload, 0, ignored) == DecodeStatus::ok);
  CHECK(rig.message()->goodbye().text() == "done");
}

TEST_CASE("both ends come to the same keys, and to others for every byte of the transcript") {
  Exchange e;
  const SessionKeys rig = e.keys();
  SessionKeys server;
  REQUIRE(derive_session_keys(e.key, array_of<Key>(e.v["server_secret"]), e.rig_public,
                              std::span<const std::byte, kMaxDatagram>(e.hello), e.session, e.server_public, server));
  CHECK(rig.rig_to_server == server.rig_to_server);
  CHECK(rig.server_to_rig == server.server_to_rig);
  CHECK(rig.accept == server.accept);
  CHECK(rig.rig_to_server != rig.server_to_rig);

  std::set<Key> seen = {rig.rig_to_server};
  for (const std::size_t at : {2u, 20u, 60u, 100u, 600u, 1170u, 1199u}) {
    Exchange other;
    other.hello[at] ^= std::byte{1};
    CHECK(seen.insert(other.keys().rig_to_server).second);
  }
  Exchange other;
  other.session ^= 1;
  CHECK(seen.insert(other.keys().rig_to_server).second);
  other.key[0] = static_cast<std::uint8_t>(other.key[0] ^ 1);
  CHECK(seen.insert(other.keys().rig_to_server).second);
}

TEST_CASE("a public key of low order gives no session") {
  Exchange e;
  SessionKeys keys;
  for (const std::uint8_t first : {std::uint8_t{0}, std::uint8_t{1}}) {
    PublicKey weak{};
    weak[0] = first;
    CHECK_FALSE(derive_session_keys(e.key, array_of<Key>(e.v["server_secret"]), weak,
                                    std::span<const std::byte, kMaxDatagram>(e.hello), e.session, e.server_public,
                                    keys));
  }
}

TEST_CASE("a proof covers every byte before it, and needs its key") {
  Exchange e;
  const Key proof_key = proof_key_of(e.key);
  REQUIRE(is_proven(e.hello, proof_key));
  for (std::size_t at = 0; at < e.hello.size() - kTagBytes; ++at) {
    auto changed = e.hello;
    changed[at] ^= std::byte{1};
    CHECK_FALSE(is_proven(changed, proof_key));
  }
  CHECK_FALSE(is_proven(e.hello, proof_key_of(proof_key)));
  for (const std::size_t size : {0u, 16u, 59u, 60u, 70u, 95u})
    CHECK_FALSE(is_proven(std::span(e.hello).first(size), proof_key));
}

TEST_CASE("a frame of a session says nothing without its key, in the other direction, or with a changed header") {
  Exchange e;
  const SessionKeys keys = e.keys();
  std::array<std::byte, kMaxDatagram> buffer;
  const std::string text = "torque 4 N m";
  const auto sealed = seal_frame({.sender = Sender::rig, .session = 5, .number = 9},
                                 std::as_bytes(std::span(text.data(), text.size())), &keys.rig_to_server, buffer);
  const std::vector<std::byte> good(sealed.begin(), sealed.end());
  const Bytes bytes = copy_of(good);
  CHECK(std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) == bytes.end());
  const auto opened = [&](std::vector<std::byte> datagram, const Key* key) {
    Frame frame;
    return open_frame(datagram, Sender::server, key, frame);
  };
  CHECK(opened(good, &keys.rig_to_server) == DecodeStatus::ok);
  CHECK(opened(good, &keys.server_to_rig) == DecodeStatus::authentication);
  CHECK(opened(good, nullptr) == DecodeStatus::authentication);
  for (std::size_t bit = 32; bit < 8 * good.size(); ++bit) {
    auto changed = good;
    changed[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    CHECK(opened(changed, &keys.rig_to_server) == DecodeStatus::authentication);
  }
}

TEST_CASE(
    "a cookie serves once, for its address and nonce, for two to four seconds, and others are not touched by that") {
  const auto address = [](const char* text) { return std::as_bytes(std::span(text, 4)); };
  Cookies cookies(0);
  const Cookie mine = cookies.issue(address("mine"), 1, 0), other = cookies.issue(address("yours"), 1, 0);
  using Check = Cookies::Check;
  CHECK(cookies.check(mine, address("mine"), 1, 0) == Check::good);
  CHECK(cookies.check(mine, address("mine"), 2, 0) == Check::wrong);
  CHECK(cookies.check(mine, address("yours"), 1, 0) == Check::wrong);
  CHECK(cookies.check(std::span(mine).first(15), address("mine"), 1, 0) == Check::wrong);
  CHECK(cookies.use(mine, 0));
  CHECK(cookies.check(mine, address("mine"), 1, 0) == Check::used);
  CHECK(cookies.check(other, address("yours"), 1, 0) == Check::good);
  CHECK(cookies.check(mine, address("mine"), 1, 2 * kSecond) == Check::used);  // also while it would still hold
  CHECK(cookies.check(other, address("yours"), 1, 2 * kSecond) == Check::good);
  CHECK(cookies.check(mine, address("mine"), 1, 4 * kSecond) == Check::wrong);
  const Cookie late = cookies.issue(address("mine"), 3, 5 * kSecond);
  CHECK(cookies.check(late, address("mine"), 3, 60 * kSecond) == Check::wrong);
}

TEST_CASE("no more cookies serve than a server remembers") {
  Cookies cookies(0);
  const auto address = std::as_bytes(std::span("here", 4));
  for (std::uint64_t k = 0; k < kMostUsedCookies; ++k) REQUIRE(cookies.use(cookies.issue(address, k, 0), 0));
  CHECK_FALSE(cookies.use(cookies.issue(address, 9999, 0), 0));
  CHECK(cookies.use(cookies.issue(address, 9999, 3 * kSecond), 3 * kSecond));
}

}  // namespace rigstep::wire
