// The keys of a link: one per participant, with a name and a role, in text files that only their owner may read. The
// server's file holds all of them, each participant's own file one. They are made on one machine, copied by hand (scp),
// and never go over the link. Format: README.md of this folder. Load time, and off the loop thread where a server reads
// its file again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/mechanism/mechanism.h"
#include "proto/frame.h"
#include "proto/handshake.h"
#include "proto/secret.h"

namespace rigstep::wire {

inline constexpr std::size_t kMostKeys = 64;         // of a server
inline constexpr std::size_t kMaxKeyNameBytes = 32;  // letters, digits, '_', '-' and '.'

// A key file that is missing, unreadable, open to others or without keys; what() says which and what to do.
struct KeyError : Error {
  using Error::Error;
};

enum class KeyRole : std::uint8_t { controller, observer, operator_ };
const char* to_string(KeyRole role) noexcept;
// Throws KeyError.
KeyRole parse_key_role(const std::string& text);

// A participant's key and what follows from it.
struct ParticipantKey {
  std::array<char, kMaxKeyNameBytes + 1> name_text{};
  KeyRole role = KeyRole::controller;
  KeyId id{};
  Key key{};
  Key proof_key{};

  std::string_view name() const noexcept { return name_text.data(); }
};

// Those that a server knows.
class KeyRing {
 public:
  const ParticipantKey* find(std::span<const std::uint8_t> id) const noexcept;
  std::span<const ParticipantKey> all() const noexcept { return std::span(keys_).first(count_); }
  // Throws KeyError: no name, an all-zero key, or one whose name or key is there already.
  void add(std::string_view name, KeyRole role, const Key& key);

 private:
  std::array<ParticipantKey, kMostKeys> keys_{};
  std::size_t count_ = 0;
};

// A server's file. Throws KeyError.
Secret<KeyRing> read_key_ring(const std::string& path);
// A participant's file: its key. Of a server's file, for who runs beside the server: the first key of this role, or
// else the first of all. Throws KeyError.
Secret<ParticipantKey> read_participant_key(const std::string& path, KeyRole role);

// A new file with one random key of a controller, named after the file: for the server and for that rig. Throws
// KeyError; a file that exists is never replaced.
void write_key_file(const std::string& path);

// Adds a participant with a new random key to the server's file, which it makes where there is none, and writes the
// participant's own file. The server's file changes in one instant. Throws KeyError; no key is ever replaced.
void add_participant(const std::string& server_path, const std::string& participant_path, const std::string& name,
                     KeyRole role);
// Takes a participant out of the server's file. Throws KeyError.
void remove_participant(const std::string& server_path, const std::string& name);

// A new random key that is in no file, and its line in one.
Secret<ParticipantKey> make_participant_key(const std::string& name, KeyRole role);
Secret<std::array<char, 256>> key_line(const ParticipantKey& key);

}  // namespace rigstep::wire
