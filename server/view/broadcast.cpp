#include "server/view/broadcast.h"

#include <utility>

namespace rigstep::server {
namespace {

void append_number(std::string& text, std::uint32_t value) {
  for (int k = 0; k < 4; ++k) text.push_back(static_cast<char>(value >> (8 * k) & 0xff));
}

std::int64_t steady_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

}  // namespace

bool Broadcast::is_watched() const noexcept { return steady_ns() - asked_ns_ < 2'000'000'000; }

void Broadcast::publish(Kind kind, std::string message) {
  auto shared = std::make_shared<const std::string>(std::move(message));
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[static_cast<std::size_t>(kind)];
    ++slot.number;
    slot.message = std::move(shared);
  }
  changed_.notify_all();
}

std::string Broadcast::take_newer(Seen& seen, std::chrono::milliseconds patience) {
  asked_ns_ = steady_ns();
  std::array<std::shared_ptr<const std::string>, kKinds> newer;
  {
    std::unique_lock lock(mutex_);
    const auto has_newer = [&] {
      for (std::size_t k = 0; k < kKinds; ++k)
        if (slots_[k].number > seen[k]) return true;
      return closed_;
    };
    if (!changed_.wait_for(lock, patience, has_newer)) return {};
    for (std::size_t k = 0; k < kKinds; ++k)
      if (slots_[k].number > std::exchange(seen[k], slots_[k].number)) newer[k] = slots_[k].message;
  }
  std::string text;
  for (std::size_t k = 0; k < kKinds; ++k) {
    if (newer[k] == nullptr) continue;
    append_number(text, static_cast<std::uint32_t>(k));
    append_number(text, static_cast<std::uint32_t>(newer[k]->size()));
    text += *newer[k];
  }
  return text;
}

void Broadcast::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace rigstep::server
