// What the standards demand of modelDescription.xml and of the files of a unit: each broken rule with its clause.
// Offline.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <vector>

#include "server/fmu/fmu.h"

namespace rigstep::server {

// Parts of the standards, for the clause: FMI 2.0.4 and FMI 3.0; by title where the number differs between editions.
enum class Rule {
  archive,        // 2.3; 2.5
  root,           // 2.2.1; 2.4.1
  unit,           // 2.2.2; 2.4.3
  co_simulation,  // 4.3.1; Co-Simulation Schema
  variable,       // 2.2.7; 2.4.7
  structure,      // 2.2.8; 2.4.8
  naming,         // 2.2.9; 2.4.7.5.1
  functions,      // 2.1.1; Header Files and Naming of Functions
  terminals,      // of FMI 3.0: 2.4.9
};

class Rules {
 public:
  explicit Rules(FmiVersion version) : version_(version) {}
  // text: what is wrong, and where; kMostViolations of them are kept.
  void broken(Rule rule, const std::string& text);
  std::vector<std::string> take() { return std::move(violations_); }

 private:
  FmiVersion version_;
  std::vector<std::string> violations_;
};

inline constexpr std::size_t kMostViolations = 100;

void check_description(pugi::xml_node root, const Fmu& fmu, Rules& rules);
// root: <fmiTerminalsAndIcons>, FMI 3.0.
void check_terminals(pugi::xml_node root, const Fmu& fmu, const Extracted& extracted, Rules& rules);
void check_files(const Extracted& extracted, const Fmu& fmu, Rules& rules);

}  // namespace rigstep::server
