// rigstep view: a mechanism file or a recording, to be looked at.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "proto/printable.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"
#include "server/view/still.h"

namespace rigstep::server {
namespace {

struct ViewOptions {
  StillOptions still;
  std::string picture;
};

int make_picture(const ViewOptions& options) {
  if (!options.picture.ends_with(".svg"))
    throw config::ConfigError("--picture: " + options.picture + ": is no .svg: name the picture FILE.svg");
  require_writable(options.picture);
  write_text(options.picture, still_picture(options.still));
  print_error("{}: written", wire::printable_line(options.picture));
  return kExitOk;
}

const std::map<std::string, PictureView> kViews = {{"automatic", PictureView::automatic},
                                                   {"oblique", PictureView::oblique},
                                                   {"front", PictureView::front},
                                                   {"side", PictureView::side},
                                                   {"top", PictureView::top}};

}  // namespace

Command add_view(CLI::App& app) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command = app.add_subcommand("view", "Look at a mechanism file or a recording");
  command->add_option("SOURCE", options->still.source, "Mechanism file, or recording (.mcap)")->required();
  auto* picture = command->add_option("--picture", options->picture, "Draw it into this SVG file")->required();
  command->add_option("--time", options->still.time, "With --picture: the instant that is shown [s]")
      ->needs(picture)
      ->check(between(0.0, 1e5))
      ->capture_default_str();
  command->add_option("--dt", options->still.dt, "With --picture of a mechanism file: step up to there [s]")
      ->needs(picture)
      ->check(between(1e-6, 1.0))
      ->capture_default_str();
  command
      ->add_option("--trace", options->still.traces,
                   "With --picture: the path of BODY, or of its point BODY:x,y,z [m], up to --time; repeatable")
      ->needs(picture);
  command->add_option("--direction", options->still.picture.view, "With --picture: from where it is seen")
      ->needs(picture)
      ->transform(CLI::CheckedTransformer(kViews));
  command->footer(
      std::string("Examples:\n  rigstep view config/mechanisms/four_bar.textproto --picture four_bar.svg\n"
                  "  rigstep view config/mechanisms/four_bar.textproto --picture path.svg --time 2 --trace coupler\n"
                  "  rigstep view run.mcap --picture fault.svg --time 12.5 --direction side\n\n") +
      kExitCodeHelp);
  return [options] {
    rt::set_floating_point_mode();
    return make_picture(*options);
  };
}

}  // namespace rigstep::server
