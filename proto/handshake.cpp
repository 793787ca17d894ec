#include "proto/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <cassert>
#include <string_view>

namespace rigstep::wire {
namespace {

static_assert(sizeof(Key) == crypto_scalarmult_SCALARBYTES && sizeof(PublicKey) == crypto_scalarmult_BYTES);

constexpr std::array<std::byte, 3> kProofField = {std::byte{0x82}, std::byte{0x01}, std::byte{kProofBytes}};
constexpr std::size_t kProofFieldBytes = kProofField.size() + kProofBytes;

const std::uint8_t* bytes_of(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

// Keyed BLAKE2b; fails only for sizes that no call here has.
void hash(std::span<const std::uint8_t> key, std::string_view text, std::span<std::uint8_t> result) noexcept {
  crypto_generichash(result.data(), result.size(), reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                     key.data(), key.size());
}

// Of a frame without its tag.
std::array<std::uint8_t, kProofBytes> proof_of(std::span<const std::byte> proven, const Key& proof_key) noexcept {
  std::array<std::uint8_t, kProofBytes> proof{};
  crypto_generichash(proof.data(), proof.size(), bytes_of(proven), proven.size(), proof_key.data(), proof_key.size());
  return proof;
}

bool has_proof(std::span<const std::byte> payload) noexcept {
  return payload.size() >= kProofFieldBytes &&
         std::equal(kProofField.begin(), kProofField.end(), payload.last(kProofFieldBytes).begin());
}

}  // namespace

KeyId key_id_of(const Key& key) noexcept {
  KeyId id{};
  hash(key, "rigstep 3 key id", id);
  return id;
}

Key proof_key_of(const Key& key) noexcept {
  Key proof_key{};
  hash(key, "rigstep 3 proof", proof_key);
  return proof_key;
}

KeyPair make_key_pair() noexcept {
  KeyPair pair;
  randombytes_buf(pair.secret.data(), pair.secret.size());
  crypto_scalarmult_base(pair.public_key.data(), pair.secret.data());
  return pair;
}

bool derive_session_keys(const Key& key, const Key& own_secret, const PublicKey& other,
                         std::span<const std::byte, kMaxDatagram> hello, std::uint64_t session,
                         const PublicKey& server_public, SessionKeys& keys) noexcept {
  Key shared{};
  if (crypto_scalarmult(shared.data(), own_secret.data(), other.data()) != 0) return false;
  std::array<std::uint8_t, 8> number{};
  for (std::size_t k = 0; k < number.size(); ++k) number[k] = static_cast<std::uint8_t>(session >> (8 * k));

  std::array<std::uint8_t, 64> transcript{}, master{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, transcript.size());
  crypto_generichash_update(&state, bytes_of(hello), hello.size());
  crypto_generichash_update(&state, number.data(), number.size());
  crypto_generichash_update(&state, server_public.data(), server_public.size());
  crypto_generichash_final(&state, transcript.data(), transcript.size());

  crypto_generichash_init(&state, key.data(), key.size(), master.size());
  crypto_generichash_update(&state, shared.data(), shared.size());
  crypto_generichash_update(&state, transcript.data(), transcript.size());
  crypto_generichash_final(&state, master.data(), master.size());

  hash(master, "rigstep 3 rig to server", keys.rig_to_server);
  hash(master, "rigstep 3 server to rig", keys.server_to_rig);
  hash(master, "rigstep 3 accept", keys.accept);
  sodium_memzero(shared.data(), shared.size());
  sodium_memzero(master.data(), master.size());
  sodium_memzero(&state, sizeof state);
  return true;
}

std::span<const std::byte> seal_proven_frame(const FrameHeader& header, std::span<const std::byte> payload,
                                             const Key& proof_key, std::span<std::byte, kMaxDatagram> buffer) noexcept {
  assert(has_proof(payload));
  const auto unproven = write_frame(header, payload, buffer);
  const std::size_t at = unproven.size() - kProofBytes;
  const auto proof = proof_of(unproven.first(at), proof_key);
  std::transform(proof.begin(), proof.end(), buffer.begin() + static_cast<std::ptrdiff_t>(at),
                 [](std::uint8_t byte) { return std::byte{byte}; });
  return add_checksum(unproven.size(), buffer);
}

bool is_proven(std::span<const std::byte> datagram, const Key& proof_key) noexcept {
  if (datagram.size() < kFrameHeaderBytes + kTagBytes) return false;
  const auto frame = datagram.first(datagram.size() - kTagBytes);
  if (!has_proof(frame.subspan(kFrameHeaderBytes))) return false;
  const auto proof = proof_of(frame.first(frame.size() - kProofBytes), proof_key);
  return sodium_memcmp(proof.data(), frame.last(kProofBytes).data(), kProofBytes) == 0;
}

}  // namespace rigstep::wire
