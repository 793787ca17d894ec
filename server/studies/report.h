// One HTML file of the pages that the studies have written: figures inlined, nothing loaded from elsewhere, no script.
// Offline.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/studies/study.h"

namespace rigstep::server {

struct StudyResult {
  std::string name;              // of the study; its page is <name>.md
  std::filesystem::path folder;  // of the page and its figures
  StudyPart found;
};

// Where, when and by what the studies were made, a sentence each; without it times are no measurement.
struct ReportOrigin {
  std::string machine, date, version, load;
  bool quick = false;        // said first: its numbers are none to cite
  bool brief_times = false;  // said first: its times are none to cite
};

// Begins with what was found. Throws FileError for a page or a figure that is not there.
std::string html_report(const ReportOrigin& origin, std::span<const StudyResult> studies);

}  // namespace rigstep::server
