// What HDCA and DCA cost, section 3.3 of [000]: evaluations, instructions of one, times. Offline.
#pragma once

#include <vector>

#include "server/studies/hamiltonian_runs.h"

namespace rigstep::server {

// Tables 1 and 2, figures 10 and 11. Writes efficiency.csv and figures.
StudyPart hamiltonian_costs(const StudyRequest& study, const std::vector<PaperCase>& cases);

}  // namespace rigstep::server
