// What the runs of the study of [003] say of the paper's claims. Offline.
#pragma once

#include "server/studies/tree_runs.h"

namespace rigstep::server {

// Writes growth.csv. Throws FileError.
StudyPart tree_findings(const StudyRequest& study, const std::vector<TreeSample>& samples,
                        const std::vector<Selection>& selection, const Pipelayer& pipelayer);

}  // namespace rigstep::server
