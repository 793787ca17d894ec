// What the commands that read recordings share on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "server/commands/commands.h"
#include "server/recordings/recorded_run.h"
#include "server/recordings/run_figure.h"

namespace rigstep::server {

// --channel, --from, --to, --every
void add_selection(CLI::App* command, RunSelection& selection);

RecordedRun::Progress tell(Progress& progress);

// Tells why a file could not be read to its end, and returns the exit code; damage: as of RecordedRun::read.
int code_of(const std::string& path, const std::string& damage);

// The channels of a selection, of each recording or table (.csv); with one recording also its events.
RunFigure figure_of(const std::vector<std::string>& recordings, const RunSelection& selection);

}  // namespace rigstep::server
