// What the standards demand of modelDescription.xml and of the files of a unit: each broken rule with its clause.
// Offline.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/fmu/fmu.h"

namespace rigstep::server {

// Parts of the standards, for the clause: FMI 2.0.4 and FMI 3.0; by title where the number differs between editions.
enum class Rule {
  archive,              // 2.3; 2.5
  root,                 // 2.2.1; 2.4.1
  unit,                 // 2.2.2; 2.4.3
  type,                 // 2.2.3; 2.4.4
  log_category,         // 2.2.4; 2.4.5
  experiment,           // 2.2.5; 2.4.6
  model_exchange,       // 3.3.1; Model Exchange Schema
  co_simulation,        // 4.3.1; Co-Simulation Schema
  scheduled_execution,  // of FMI 3.0: Scheduled Execution Schema
  variable,             // 2.2.7; 2.4.7
  structure,            // 2.2.8; 2.4.8
  naming,               // 2.2.9; 2.4.7.5.1
  functions,            // 2.1.1; Header Files and Naming of Functions
  terminals,            // of FMI 3.0: 2.4.9
};

inline constexpr std::size_t kMostViolations = 100;

class Rules {
 public:
  explicit Rules(FmiVersion version) : version_(version) {}
  // text: what is wrong, and where; kMostViolations of them are kept.
  void broken(Rule rule, const std::string& text);
  bool is_full() const { return violations_.size() >= kMostViolations; }
  std::vector<std::string> take() { return std::move(violations_); }

 private:
  FmiVersion version_;
  std::vector<std::string> violations_;
};

// What stands in a description: its form (schema.h), and what its parts say of each other.
void check_description(pugi::xml_node root, const Fmu& fmu, Rules& rules);
// root: <fmiTerminalsAndIcons>, FMI 3.0.
void check_terminals(pugi::xml_node root, const Fmu& fmu, const Extracted& extracted, Rules& rules);
void check_files(pugi::xml_node root, const Extracted& extracted, const Fmu& fmu, Rules& rules);

// What variables may name.
struct Definitions {
  std::map<std::string, std::set<std::string>> units;  // and the display units of each
  struct Type {
    std::string of;       // Real, Float64 ...
    pugi::xml_node node;  // that holds its attributes
  };
  std::map<std::string, Type> types;
};

// Variables by the number with which others name them: the index from 1 on in FMI 2.0, the value reference in FMI 3.0.
class Numbers {
 public:
  explicit Numbers(const Fmu& fmu);
  // Null: there is none.
  const FmuVariable* find(const std::string& number) const;

 private:
  std::map<std::uint64_t, const FmuVariable*> variables_;
};

// What `node` says that is shown of a unit. unit: its own, or that of its type.
void check_display_unit(pugi::xml_node node, const std::string& unit, const std::string& where, Rule rule,
                        const Definitions& definitions, Rules& rules);
// When a clock ticks: FMI 3.0, 2.4.4. node: a clock or its type; where: for messages; text: its attributes.
void check_interval(const std::string& where, const std::function<std::string(const char*)>& text, Rule rule,
                    Rules& rules);
// <ModelVariables>
void check_variables(pugi::xml_node root, const Fmu& fmu, const Definitions& definitions, const Numbers& numbers,
                     Rules& rules);
// <ModelStructure>
void check_structure(pugi::xml_node structure, const Fmu& fmu, const Numbers& numbers, Rules& rules);

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> all);
// What holds the attributes of a type: in FMI 2.0 an element in <ScalarVariable> and <SimpleType>, in FMI 3.0 `node`.
pugi::xml_node typed_node(pugi::xml_node node, FmiVersion version);
bool has_file(const Extracted& extracted, const std::string& name);
std::string text_of(pugi::xml_node node, const char* attribute);  // empty where it is left out
std::optional<double> number_in(pugi::xml_node node, const char* attribute);
std::vector<std::string> words_of(const std::string& text);  // between spaces, tabs and ends of lines
std::string in_quotes(const std::string& text);              // printable

}  // namespace rigstep::server
