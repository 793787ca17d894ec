// The numerical examples of the comparison of natural complements, section 4 of
//
//   [002] M. Pekal, J. Fraczek: Comparison of natural complement formulations for multibody dynamics. Journal of
//         Theoretical and Applied Mechanics 54 (2016) 4,
//
// done again: time against tolerance of figures 2-5, drift of the constraints, rank decisions, and what agrees.
// Offline.
#pragma once

#include "server/studies/study.h"

namespace rigstep::server {

// Writes times.csv, drift.csv, drift_over_time.csv, ranks.csv, figures and complement.md, which sets the paper's
// conclusions beside ours. A method that gives up is a result and is told as such. Throws FileError, and what the
// loader and the reference solver throw.
StudyPart study_complement(const StudyRequest& study);

}  // namespace rigstep::server
