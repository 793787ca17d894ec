// A recorded run as text: a table, or a JSON object a line. Offline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/recordings/recorded_run.h"

namespace rigstep::server {

enum class ExportFormat { csv, json_lines };

struct Exported {
  std::uint64_t rows = 0;
  std::string damage;  // as of RecordedRun::read
};

// Writes the columns to a file, "-" is standard output. Times are exact decimals, other numbers the shortest that give
// the same bits. A table begins with the column t [s]; what is no number is nan there, null in JSON. Throws FileError.
Exported export_run(const RecordedRun& run, const RunSelection& selection, const std::vector<RunColumn>& columns,
                    ExportFormat format, const std::string& path, const RecordedRun::Progress& progress);

}  // namespace rigstep::server
