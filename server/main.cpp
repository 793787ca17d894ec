// The rigstep binary: one command per job.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "proto/key_file.h"
#include "proto/printable.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/fmu/archive.h"
#include "server/link/udp_endpoint.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"

namespace rigstep::server {

std::atomic<bool> interrupted{false};

namespace {

std::atomic<int> received_signal{0};

void on_signal(int signal) {
  received_signal.store(signal);
  interrupted.store(true);
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // else nohup wants it so
}

int interrupted_exit_code() { return received_signal.load() == SIGINT ? kExitInterrupted : kExitOk; }

Progress::Progress(std::string what, double total)
    : what_(std::move(what)), total_(total), begin_(std::chrono::steady_clock::now()) {}

void Progress::at(double done) {
  if (!display_.on_terminal()) return;
  const int percent = total_ > 0.0 ? static_cast<int>(100.0 * done / total_) : static_cast<int>(done / 1e4);
  if (percent <= percent_) return;
  percent_ = percent;
  display_.show(total_ > 0.0 ? fmt::format("{} {} %{}", what_, percent, time_left(done / total_))
                             : fmt::format("{} {:.0f}", what_, done));
}

// As long again as it took so far, once that tells something.
std::string Progress::time_left(double part) const {
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (spent < 2.0 || part < 0.02) return {};
  return fmt::format(", {:.0f} s left", spent * (1.0 / part - 1.0));
}

std::string shipped_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  const fs::path folders[] = {"config", binary.parent_path() / "../share/rigstep/config", RIGSTEP_SOURCE_CONFIG};
  for (const fs::path& folder : folders)
    if (fs::exists(folder / name, error)) return (folder / name).lexically_normal().string();
  throw config::ConfigError(name +
                            ": file: is neither in ./config nor beside the program: run in the folder that has it");
}

namespace {

// Every error that a command lets out, in words and as an exit code.
int run_reporting_errors(const Command& command) {
  const auto report = [](const std::exception& error, int code) {
    print_error("rigstep: {}", error.what());
    return code;
  };
  try {
    return command();
  } catch (const MechanismFileError& error) {
    return report(error, kExitMechanism);
  } catch (const MechanismError& error) {
    return report(error, kExitMechanism);
  } catch (const config::ConfigError& error) {
    return report(error, kExitUsage);
  } catch (const FmuError& error) {
    return report(error, kExitUsage);
  } catch (const wire::KeyError& error) {
    return report(error, kExitEnvironment);
  } catch (const wire::RecordingWriteError& error) {
    return report(error, kExitEnvironment);
  } catch (const wire::RecordingError& error) {
    return report(error, kExitRecording);
  } catch (const rt::RealtimeError& error) {
    return report(error, kExitEnvironment);
  } catch (const FileError& error) {
    return report(error, kExitEnvironment);
  } catch (const NetworkError& error) {
    return report(error, kExitNetwork);
  } catch (const std::system_error& error) {
    return report(error, kExitEnvironment);
  } catch (const std::exception& error) {
    return report(error, kExitEnvironment);
  }
}

int run(int argc, char** argv) {
  CLI::App app("Rigstep: real-time multibody dynamics for hardware-in-the-loop rigs", "rigstep");
  app.set_version_flag("--version", build_fingerprint());
  app.require_subcommand(1);
  app.footer(std::string("Try: rigstep demo\n\n") + kExitCodeHelp);
  const std::pair<const char*, Command> commands[] = {
      {"new", add_new(app)},           {"check", add_check(app)},
      {"simulate", add_simulate(app)}, {"serve", add_serve(app)},
      {"rig", add_rig(app)},           {"replay", add_replay(app)},
      {"verify", add_verify(app)},     {"bench", add_bench(app)},
      {"demo", add_demo(app)},         {"study", add_study(app)},
      {"status", add_status(app)},     {"run", add_run(app)},
      {"get", add_get(app)},           {"set", add_set(app)},
      {"hold", add_hold(app)},         {"step", add_step(app)},
      {"snapshot", add_snapshot(app)}, {"reset", add_reset(app)},
      {"blackbox", add_blackbox(app)}, {"keygen", add_keygen(app)},
      {"impair", add_impair(app)},     {"doctor", add_doctor(app)},
      {"tune", add_tune(app)},         {"commission", add_commission(app)},
      {"schema", add_schema(app)},     {"info", add_info(app)},
      {"export", add_export(app)},     {"plot", add_plot(app)},
      {"cut", add_cut(app)},           {"diff", add_diff(app)},
      {"fmusim", add_fmusim(app)},     {"export-fmu", add_export_fmu(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      print_error("rigstep: \"{}\" is no command: see rigstep --help", argv[1]);
      return kExitUsage;
    }
    std::ostringstream out, complaint;
    const int code = app.exit(error, out, complaint);
    write_output(out.str());
    std::fputs(wire::printable_lines(complaint.str()).c_str(), stderr);  // two lines
    return code == 0 ? kExitOk : kExitUsage;
  }
  for (const auto& [name, command] : commands)
    if (app.got_subcommand(name)) return run_reporting_errors(command);
  return kExitUsage;
}

// A result that did not reach standard output was not told: ok and no become an error of the environment.
int require_output(int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if ((flushed && std::ferror(stdout) == 0) || code == kExitEnvironment) return code;
  const std::string reason = errno != 0 ? fmt::format(" ({})", std::generic_category().message(errno)) : "";
  print_error("rigstep: standard output: cannot be written{}: make room where it goes, or send it elsewhere", reason);
  return code == kExitOk || code == kExitVerdict ? kExitEnvironment : code;
}

// Else the next files that are opened, sockets among them, would get what is printed.
void open_standard_files() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int opened = ::open("/dev/null", O_RDWR);  // the lowest that is free: this one
}

}  // namespace

}  // namespace rigstep::server

int main(int argc, char** argv) {
  rigstep::server::open_standard_files();
  const bool is_live = argc > 1 && (std::string(argv[1]) == "serve" || std::string(argv[1]) == "commission");
  if (is_live && rigstep::rt::clear_openmp_environment())
    ::execv("/proc/self/exe", argv);  // where that fails it runs on, and says what threads it has
  std::signal(SIGXFSZ, SIG_IGN);      // a file at its size limit is an error of that file, not the end of the process
  if (is_live) std::signal(SIGPIPE, SIG_IGN);  // nobody reads the log any more: no reason to stop
  rigstep::server::log_to_standard_error();
  return rigstep::server::require_output(rigstep::server::run(argc, argv));
}
