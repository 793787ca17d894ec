// rigstep view: a mechanism file or recordings, to be looked at: in a browser, or as a picture.
#include <fmt/format.h>
#include <spawn.h>

#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "proto/printable.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"
#include "server/view/live_subject.h"
#include "server/view/mechanism_subject.h"
#include "server/view/page_server.h"
#include "server/view/recording_subject.h"
#include "server/view/still.h"

extern char** environ;

namespace rigstep::server {
namespace {

struct ViewOptions {
  std::vector<std::string> sources;
  StillOptions still;
  std::string picture;
  PageOptions page;
  std::string token_file;
  LiveOptions live;
  bool open = false;
};

// A file of this name counts before an address.
bool is_address(const std::string& source) {
  std::error_code error;
  return !std::filesystem::exists(source, error) && source.find(':') != source.npos && source.find('/') == source.npos;
}

int make_picture(ViewOptions& options) {
  if (!options.picture.ends_with(".svg"))
    throw config::ConfigError("--picture: " + options.picture + ": is no .svg: name the picture FILE.svg");
  require_writable(options.picture);
  if (options.sources.size() > 1)
    throw config::ConfigError("--picture: " + options.sources[1] + ": one picture shows one source: name one");
  if (is_address(options.sources.front()))
    throw config::ConfigError("--picture: " + options.sources.front() +
                              ": a live server has none: name its mechanism file or a recording of it");
  options.still.source = options.sources.front();
  write_text(options.picture, still_picture(options.still));
  print_error("{}: written", wire::printable_line(options.picture));
  return kExitOk;
}

std::unique_ptr<Subject> subject_of(const ViewOptions& options) {
  const std::vector<std::string>& sources = options.sources;
  if (is_address(sources.front())) {
    if (sources.size() > 1)
      throw config::ConfigError(sources[1] + ": beside " + sources.front() +
                                ": a page shows one live server: name one");
    LiveOptions live = options.live;
    const std::string key_file = live.target.key_file;
    live.target = parse_target(sources.front());
    live.target.key_file = key_file;
    live.control = options.page.control;
    live.stop = &interrupted;
    return std::make_unique<LiveSubject>(live);
  }
  if (is_recording(sources.front())) return std::make_unique<RecordingSubject>(sources);
  if (sources.size() > 1)
    throw config::ConfigError(sources[1] +
                              ": only recordings (.mcap) are shown over each other: name one mechanism file");
  return std::make_unique<MechanismSubject>(sources.front());
}

// With whatever the desktop opens links with; where there is none, the link is there to be clicked.
void open_in_browser(const std::string& link) {
  std::string program = "xdg-open", argument = link;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0)
    print_error("rigstep: xdg-open is not there: open the link by hand");
}

int serve_page(ViewOptions& options) {
  if (!has_page())
    throw Error(
        "this rigstep was built without the page: build it where the npm registry can be reached, or give --picture");
  if (!options.token_file.empty()) options.page.token = read_page_token(options.token_file);
  if (options.page.control && options.page.token.empty())
    throw config::ConfigError("--control: needs a token: give --token-file");
  watch_interrupts();
  std::unique_ptr<Subject> subject;
  try {
    subject = subject_of(options);
  } catch (const Error&) {
    if (interrupted) return interrupted_exit_code();
    throw;
  }
  PageServer server(options.page, *subject);
  print_text("{}\n", server.link_with_token());
  std::fflush(stdout);
  if (options.open) open_in_browser(server.link_with_token());
  while (!interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server.stop();
  return interrupted_exit_code();
}

const std::map<std::string, PictureView> kViews = {{"automatic", PictureView::automatic},
                                                   {"oblique", PictureView::oblique},
                                                   {"front", PictureView::front},
                                                   {"side", PictureView::side},
                                                   {"top", PictureView::top}};

void add_page_options(CLI::App* command, ViewOptions& options) {
  command->add_option("--page-address", options.page.address, "Numeric address on which the page is served")
      ->capture_default_str();
  command->add_option("--page-port", options.page.port, "Its TCP port; 0: any free one")->capture_default_str();
  command->add_option("--token-file", options.token_file,
                      "File with a token that browsers must show; needed beyond loopback");
  command->add_option("--mechanism", options.live.mechanism,
                      "Of HOST:PORT: the mechanism file that the server steps; without it the server is asked for it");
  command->add_option("--key", options.live.target.key_file, "Of HOST:PORT: key file, where the server has keys")
      ->check(CLI::ExistingFile);
  command->add_flag(
      "--control", options.page.control,
      "Of HOST:PORT: who has the token may run, hold, reset, and set parameters and inputs from the page");
  command->add_flag("--open", options.open, "Open the page in the browser");
}

void add_picture_options(CLI::App* command, ViewOptions& options) {
  auto* picture = command->add_option("--picture", options.picture, "Draw it into this SVG file, without a browser");
  command->add_option("--time", options.still.time, "With --picture: the instant that is shown [s]")
      ->needs(picture)
      ->check(between(0.0, 1e5))
      ->capture_default_str();
  command->add_option("--dt", options.still.dt, "With --picture of a mechanism file: step up to there [s]")
      ->needs(picture)
      ->check(between(1e-6, 1.0))
      ->capture_default_str();
  command
      ->add_option("--trace", options.still.traces,
                   "With --picture: the path of BODY, or of its point BODY:x,y,z [m], up to --time; repeatable")
      ->needs(picture);
  command->add_option("--direction", options.still.picture.view, "With --picture: from where it is seen")
      ->needs(picture)
      ->transform(CLI::CheckedTransformer(kViews));
}

}  // namespace

Command add_view(CLI::App& app) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command =
      app.add_subcommand("view", "Look at a mechanism file or a recording, in a browser or as a picture");
  command
      ->add_option("SOURCE", options->sources,
                   "Mechanism file, one or two recordings (.mcap), or HOST:PORT of a live server")
      ->required()
      ->expected(1, 2);
  add_page_options(command, *options);
  add_picture_options(command, *options);
  command->footer(
      std::string(
          "Examples:\n  rigstep view config/mechanisms/four_bar.textproto\n"
          "  rigstep view before.mcap after.mcap --open\n"
          "  rigstep view 127.0.0.1:47001\n"
          "  rigstep view config/mechanisms/full_car.textproto --picture full_car.svg\n"
          "  rigstep view config/mechanisms/four_bar.textproto --picture path.svg --time 2 --trace B\n\n"
          "The page needs no network beyond this machine. A mechanism file is read again whenever it changes.\n\n") +
      kExitCodeHelp);
  return [options] {
    rt::set_floating_point_mode();
    return options->picture.empty() ? serve_page(*options) : make_picture(*options);
  };
}

}  // namespace rigstep::server
