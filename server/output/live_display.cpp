#include "server/output/live_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "proto/printable.h"

namespace rigstep::server {

namespace {

constexpr auto kPause = std::chrono::milliseconds(200);

}  // namespace

LiveDisplay::LiveDisplay() : on_terminal_(::isatty(STDERR_FILENO) == 1) {}

bool LiveDisplay::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || now < next_) return false;
  next_ = now + kPause;
  return true;
}

void LiveDisplay::show(const std::string& lines) {
  if (!on_terminal_) return;
  clear();
  std::fputs(lines.c_str(), stderr);
  std::fflush(stderr);
  lines_ = 1 + static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
}

void LiveDisplay::clear() {
  if (lines_ == 0) return;
  std::fputs("\r", stderr);
  if (lines_ > 1) std::fprintf(stderr, "\033[%dA", lines_ - 1);
  std::fputs("\033[J", stderr);  // to the end of the screen
  std::fflush(stderr);
  lines_ = 0;
}

const char* state_of_run(std::uint32_t flags) noexcept {
  if ((flags & kFaulted) != 0) return "FAULTED";
  if ((flags & kReady) != 0) return "ready, time stands";
  return (flags & kHolding) != 0 ? "holding, time stands" : "running";
}

std::string channel_table(const std::vector<Channel>& channels, const Outputs& outputs) {
  std::string lines;
  for (std::size_t k = 0; k < channels.size() && k < static_cast<std::size_t>(outputs.count); ++k)
    lines += fmt::format("\n  {:<32} {:>14.6g} {}", wire::printable(channels[k].name), outputs.value[k],
                         wire::printable(channels[k].unit));
  return lines;
}

}  // namespace rigstep::server
