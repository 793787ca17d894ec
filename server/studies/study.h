// What the studies of the papers have in common: what they are asked, what they find, and how that is written down.
// Offline.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rigstep::server {

inline constexpr double kSmallest = 1e-17;  // what a logarithmic axis shows as zero

struct StudyRequest {
  bool quick = false;                                                  // shows that it works, in seconds
  bool brief_times = false;                                            // times are measured briefly, and say little
  std::filesystem::path folder;                                        // of the results; exists
  std::function<std::string(const std::string& name)> mechanism_file;  // path of a mechanism that comes with Rigstep
  std::function<void(double done)> progress;                           // 0 to 1; may throw to stop
};

enum class Outcome {
  agrees,
  differs,
  open,  // the paper or the machine gives too little to judge
};
std::string_view to_string(Outcome outcome);  // "yes", "no", "open"

// Of ratios and other numbers that a finding tells from the least to the largest.
struct Range {
  double low = 1e300, high = 0.0;
  int below = 0, count = 0;  // of one
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
    below += value < 1.0 ? 1 : 0;
    ++count;
  }
};

// A claim of a paper against our numbers.
struct Finding {
  std::string claim;      // as the paper makes it
  std::string source;     // section, page, figure, table or equation of the paper
  std::string criterion;  // what counts as agreement; chosen before the result
  std::string ours;
  Outcome outcome = Outcome::open;
  std::string reason;  // shown where it does not agree: what was tried, what it depends on, or what is missing
};

inline Outcome agrees_if(bool holds) { return holds ? Outcome::agrees : Outcome::differs; }

struct FigureOnPage {
  std::string file, caption;  // what it is, and what to see
};

// A part of a study, or all of it.
struct StudyPart {
  std::vector<std::string> summary;  // what was found, in sentences; no number of them depends on the machine
  std::vector<Finding> findings;
  std::vector<FigureOnPage> figures;
  std::string text;  // sections of the page
  void add(StudyPart part);
};

// The page: title and introduction, what was found, the paper's claims, the text and the figures. quick: what the page
// of a quick run says first.
std::string page_of(const StudyRequest& request, const std::string& introduction, const std::string& quick,
                    const StudyPart& study);

}  // namespace rigstep::server
