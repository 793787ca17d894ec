// Where the keys of sessions live: a fixed block of locked memory, taken and given back without allocation, wiped when
// it is given back. Owned by the endpoint and used by its thread.
#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <memory>

#include "proto/handshake.h"
#include "proto/secret.h"

namespace rigstep::server {

class SessionKeyPool {
 public:
  static constexpr std::size_t kSize = 64;

  struct GiveBack {
    SessionKeyPool* pool = nullptr;
    void operator()(wire::SessionKeys* keys) const noexcept { pool->give_back(keys); }
  };
  using Pointer = std::unique_ptr<wire::SessionKeys, GiveBack>;

  // Null: all are in use. The pool outlives what it gives.
  Pointer take() noexcept {
    for (std::size_t k = 0; k < kSize; ++k) {
      if (taken_[k]) continue;
      taken_[k] = true;
      return {&(*keys_)[k], GiveBack{this}};
    }
    return {nullptr, GiveBack{this}};
  }
  bool locked() const noexcept { return keys_.locked(); }

 private:
  void give_back(wire::SessionKeys* keys) noexcept {
    sodium_memzero(keys, sizeof *keys);
    taken_[static_cast<std::size_t>(keys - keys_->data())] = false;
  }

  wire::Secret<std::array<wire::SessionKeys, kSize>> keys_;
  std::array<bool, kSize> taken_{};
};

}  // namespace rigstep::server
