#include "server/studies/instruction_count.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rigstep::server {

namespace {

[[noreturn]] void work_between_stops(const std::function<void()>& work) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
  try {
    work();
    raise(SIGSTOP);
    work();
    raise(SIGSTOP);
  } catch (...) {
  }
  _exit(0);
}

// The next stop of the child, or nothing where it has ended.
std::optional<int> next_stop(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return std::nullopt;
  return WSTOPSIG(status);
}

}  // namespace

std::optional<long> count_instructions(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) work_between_stops(work);
  std::optional<int> stop = next_stop(child);
  long count = 0;
  if (stop == SIGSTOP) {
    while (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 && (stop = next_stop(child)) && stop == SIGTRAP)
      ++count;
  }
  const bool counted = stop == SIGSTOP && count > 0;
  if (stop) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return counted ? std::optional(count) : std::nullopt;
}

}  // namespace rigstep::server
