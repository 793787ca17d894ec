// Lines on standard error that are rewritten in place while something runs; nothing where that is no terminal.
// Used by one thread, which clears them before it logs.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"

namespace rigstep::server {

class LiveDisplay {
 public:
  LiveDisplay();
  ~LiveDisplay() { clear(); }
  LiveDisplay(const LiveDisplay&) = delete;
  LiveDisplay& operator=(const LiveDisplay&) = delete;

  bool on_terminal() const { return on_terminal_; }
  // Whether it is time to show something again, five times a second; never without a terminal.
  bool is_due();
  void show(const std::string& lines);  // without an end of line at the end
  void clear();

 private:
  const bool on_terminal_;
  int lines_ = 0;  // that stand there
  std::chrono::steady_clock::time_point next_ = {};
};

// "running", "ready, time stands" and so on.
const char* state_of_run(std::uint32_t flags) noexcept;
// A line for each channel: name, value, unit.
std::string channel_table(const std::vector<Channel>& channels, const Outputs& outputs);

}  // namespace rigstep::server
