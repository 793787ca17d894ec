// rigstep schema: what may stand in a file.
#include <memory>
#include <string>

#include "server/commands/commands.h"
#include "server/commands/schema_texts.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_schema(CLI::App& app) {
  CLI::App* command = app.add_subcommand("schema", "Print what may stand in a mechanism or rig file, with units");
  auto kind = std::make_shared<std::string>("mechanism");
  command->add_option("FILE_KIND", *kind, "mechanism or rig")
      ->capture_default_str()
      ->check(CLI::IsMember({"mechanism", "rig"}));
  command->footer(std::string("Examples:\n"
                              "  rigstep schema\n"
                              "  rigstep schema mechanism | grep -A 20 'message Spring'\n"
                              "  rigstep schema rig\n\n") +
                  kExitCodeHelp);
  return [kind] {
    print_text("{}", *kind == "rig" ? kRigSchema : kMechanismSchema);
    return kExitOk;
  };
}

}  // namespace rigstep::server
