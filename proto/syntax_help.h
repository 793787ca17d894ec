// What is wrong with a text that does not follow its schema, in the words of who wrote it. Load time only.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>

namespace rigstep::config {

struct SyntaxProblem {
  std::string field;    // as written, or "syntax"
  std::string written;  // what is wrong; empty: not known
  std::string problem;
  std::string remedy;
};

// complaint: of protobuf's text parser; line: the text of the line that it names; root: the message that the file is
// meant to be.
SyntaxProblem explain_syntax(const std::string& complaint, std::string_view line,
                             const google::protobuf::Descriptor& root);

}  // namespace rigstep::config
