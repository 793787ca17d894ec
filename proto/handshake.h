// Who proves what at the beginning of a session, and the keys that come of it: README.md of this folder has the bytes
// and the reasons. Plain functions; they do not allocate. sodium_init() comes first.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "proto/frame.h"

namespace rigstep::wire {

using KeyId = std::array<std::uint8_t, 16>;      // tells keys apart in public
using PublicKey = std::array<std::uint8_t, 32>;  // of X25519

inline constexpr std::size_t kProofBytes = 32;

// What follows from a participant's key.
KeyId key_id_of(const Key& key) noexcept;
Key proof_key_of(const Key& key) noexcept;

// One X25519 pair, for one handshake.
struct KeyPair {
  Key secret{};
  PublicKey public_key{};
};
KeyPair make_key_pair() noexcept;

struct SessionKeys {
  Key rig_to_server{}, server_to_rig{};
  Key accept{};  // proves the Accept

  const Key& from(Sender sender) const noexcept { return sender == Sender::rig ? rig_to_server : server_to_rig; }
};

// hello: the datagram with the cookie, byte for byte. False: `other` is no public key.
bool derive_session_keys(const Key& key, const Key& own_secret, const PublicKey& other,
                         std::span<const std::byte, kMaxDatagram> hello, std::uint64_t session,
                         const PublicKey& server_public, SessionKeys& keys) noexcept;

// seal_frame() for a message outside a session that ends with the field `proof`: fills it in.
std::span<const std::byte> seal_proven_frame(const FrameHeader& header, std::span<const std::byte> payload,
                                             const Key& proof_key, std::span<std::byte, kMaxDatagram> buffer) noexcept;
// The proof of a frame that open_frame() has found right.
bool is_proven(std::span<const std::byte> datagram, const Key& proof_key) noexcept;

}  // namespace rigstep::wire
