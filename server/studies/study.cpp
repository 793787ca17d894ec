#include "server/studies/study.h"

#include <fmt/format.h>

#include <iterator>

namespace rigstep::server {

namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  constexpr std::string_view kNames[] = {"yes", "no", "open"};
  return kNames[static_cast<int>(outcome)];
}

void StudyPart::add(StudyPart part) {
  append(summary, part.summary);
  append(findings, part.findings);
  append(figures, part.figures);
  text += part.text;
}

std::string page_of(const StudyRequest& request, const std::string& introduction, const std::string& quick,
                    const StudyPart& study) {
  std::string text = introduction;
  if (request.quick)
    text += quick + "\n\n";
  else if (request.brief_times)
    text += "**Times were measured briefly: they say little.**\n\n";
  text += "## What was found\n\n";
  for (const std::string& sentence : study.summary) text += "- " + sentence + "\n";
  text +=
      "\n## The paper's claims\n\n| the paper | counts as agreement | ours | agrees | why not "
      "|\n|---|---|---|---|---|\n";
  for (const Finding& f : study.findings) {
    const bool agrees = f.outcome == Outcome::agrees;
    text += fmt::format("| {} ({}) | {} | {} | {} | {} |\n", f.claim, f.source, f.criterion, f.ours,
                        agrees ? "yes" : fmt::format("**{}**", to_string(f.outcome)), agrees ? "" : f.reason);
  }
  text += "\n" + study.text + "## Figures\n\n";
  for (const FigureOnPage& figure : study.figures) text += fmt::format("![{}]({})\n", figure.caption, figure.file);
  return text;
}

}  // namespace rigstep::server
