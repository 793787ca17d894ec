// How many instructions some work takes, counted one by one: a child process does it under PTRACE_SINGLESTEP. What a
// shared machine does meanwhile makes it slow, not wrong. Offline, x86-64 and aarch64 Linux.
#pragma once

#include <functional>
#include <optional>

namespace rigstep::server {

// Of the second call of `work` in a child of this process: the first one allocates. Nothing where the system refuses to
// trace. A call of a hundred thousand instructions takes a second or so.
std::optional<long> count_instructions(const std::function<void()>& work);

}  // namespace rigstep::server
