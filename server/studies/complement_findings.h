// What the runs of the study of [002] say of the paper's claims. Offline.
#pragma once

#include "server/studies/complement_runs.h"

namespace rigstep::server {

StudyPart complement_findings(const Results& results);

}  // namespace rigstep::server
