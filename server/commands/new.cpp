// rigstep new: a mechanism, a rig file and a controller to begin with.
#include <filesystem>
#include <memory>
#include <string>

#include "proto/config_text.h"
#include "proto/printable.h"
#include "server/commands/commands.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTemplateFiles[] = {"mechanism.textproto", "rig.textproto", "rig.py"};

struct NewOptions {
  std::string folder, from = "pendulum";
  bool json = false;
};

// The name of the mechanism: that of its folder, in letters that a mechanism's name may have.
std::string mechanism_name(const fs::path& folder) {
  std::string name = fs::absolute(folder).lexically_normal().filename().string();
  if (name.empty()) name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalnum(byte) && c != '_' && c != '-') c = '_';
  }
  return name;
}

std::string renamed(std::string text, const std::string& from, const std::string& to) {
  const std::string line = "name: \"" + from + "\"";
  const std::size_t at = text.find(line);
  return at == std::string::npos ? text : text.replace(at, line.size(), "name: \"" + to + "\"");
}

void require_new(const fs::path& folder) {
  for (const char* file : kTemplateFiles)
    if (fs::symlink_status(folder / file).type() != fs::file_type::not_found)
      throw config::ConfigError((folder / file).string() +
                                " is there already, and no file is replaced: name another folder");
}

void write_files(const fs::path& folder, const std::string& from) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw FileError(folder.string() + ": cannot be made (" + error.message() +
                    "): name a folder that you may write to");
  const std::string name = mechanism_name(folder);
  for (const char* file : kTemplateFiles) {
    const std::string shipped = shipped_file("templates/" + from + "/" + file);
    write_text(folder / file, renamed(config::read_text_file(shipped, config::kLargestConfigFile), from, name));
  }
}

// The folder of the Python package: of the installed program, or of the build.
std::string python_path() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* folder : {"../share/rigstep/python", "../python"})
    if (fs::exists(program / folder / "rigstep", error)) return (program / folder).lexically_normal().string();
  return {};
}

int write_new(const NewOptions& options) {
  const fs::path folder = options.folder;
  require_new(folder);
  write_files(folder, options.from);
  const std::string package = python_path();
  if (options.json) {
    nlohmann::json files = nlohmann::json::array();
    for (const char* file : kTemplateFiles) files.push_back((folder / file).string());
    print_json({{"schema", 1}, {"template", options.from}, {"files", files}, {"python_path", package}});
    return kExitOk;
  }
  const std::string at = wire::printable_line(folder.string());
  print_text("{}: a mechanism, a rig file and a controller like the {}. Look at it, run it, control it:\n\n", at,
             options.from);
  print_text("  rigstep check {}/mechanism.textproto\n", at);
  print_text("  rigstep serve {}/rig.textproto            # time stands until a rig has control\n", at);
  print_text("  {}python3 {}/rig.py\n", package.empty() ? "" : "PYTHONPATH=" + package + " ", at);
  return kExitOk;
}

}  // namespace

Command add_new(CLI::App& app) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* command =
      app.add_subcommand("new", "Write a mechanism, a rig file and a controller in Python to begin with");
  command->add_option("FOLDER", options->folder, "Where to; its name becomes the mechanism's")->required();
  command->add_option("--from", options->from, "What to begin with")
      ->capture_default_str()
      ->check(CLI::IsMember({"pendulum", "four_bar", "slider_crank", "vehicle_corner", "cart_pole", "leg"}));
  command->add_flag("--json", options->json, "Print the names of the files as JSON");
  command->footer(
      std::string("Examples:\n  rigstep new my_rig\n  rigstep new balance --from cart_pole\n\n"
                  "Writes mechanism.textproto, rig.textproto and rig.py; none is replaced. All are commented: change\n"
                  "what you need. `rigstep schema` prints everything that may stand in the files.\n\n") +
      kExitCodeHelp);
  return [options] { return write_new(*options); };
}

}  // namespace rigstep::server
