#include "server/studies/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "server/output/csv.h"

namespace rigstep::server {

namespace {

// Figures have a white ground; where the page is dark they are inverted, hues kept. Printed, every study begins a page.
constexpr const char* kStyle =
    ":root { color-scheme: light dark; }\n"
    "body { font: 16px/1.5 sans-serif; max-width: 84rem; margin: 2rem auto; padding: 0 1rem; background: Canvas; "
    "color: "
    "CanvasText; }\n"
    "p, ul { max-width: 60rem; }\n"
    "table { border-collapse: collapse; font-size: 0.85rem; }\n"
    "th, td { border: 1px solid GrayText; padding: 0.2rem 0.5rem; text-align: left; vertical-align: top; }\n"
    ".wide { overflow-x: auto; margin: 1rem 0; }\n"
    ".origin { color: GrayText; }\n"
    ".figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(27rem, 100%), 1fr)); gap: 1rem; }\n"
    "figure { margin: 0; }\n"
    "figure svg { width: 100%; height: auto; }\n"
    "h2 { border-top: 2px solid GrayText; padding-top: 1rem; }\n"
    "@media (prefers-color-scheme: dark) { figure svg { filter: invert(0.88) hue-rotate(180deg); } }\n"
    "@media print {\n"
    "  body { font-size: 10px; max-width: none; margin: 0; }\n"
    "  nav { display: none; }\n"
    "  section { break-before: page; }\n"
    "  figure, tr { break-inside: avoid; }\n"
    "  .wide { overflow: visible; }\n"
    "  .figures { grid-template-columns: 1fr 1fr; }\n"
    "}\n";

constexpr const char* kQuick =
    "<p><strong>A quick run: short simulations, few sizes and tolerances. It shows that the studies work; its numbers "
    "are not to be cited.</strong></p>\n";

constexpr const char* kBriefTimes = "<p><strong>Times were measured briefly. They are not to be cited.</strong></p>\n";

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw FileError(path.string() + ": cannot be read: run the study again");
  return text.str();
}

std::string escaped(char c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    default:
      return {c};
  }
}

// **strong**, `code` and \* within a line of text.
std::string inline_html(std::string_view text) {
  std::string html;
  bool strong = false, code = false;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '`') {
      code = !code;
      html += code ? "<code>" : "</code>";
    } else if (!code && text.substr(k, 2) == "**") {
      strong = !strong;
      html += strong ? "<strong>" : "</strong>";
      ++k;
    } else if (!code && text[k] == '\\' && k + 1 < text.size()) {
      html += escaped(text[++k]);
    } else {
      html += escaped(text[k]);
    }
  }
  return html + (code ? "</code>" : "") + (strong ? "</strong>" : "");
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// What a page is written in: headings, paragraphs, lists, tables and figures, each on lines of their own.
class Page {
 public:
  explicit Page(const StudyResult& study) : study_(study) {
    std::istringstream lines(read_text(study.folder / (study.name + ".md")));
    for (std::string line; std::getline(lines, line);) add(line);
    become(Block::none);
  }
  std::string html, contents;

 private:
  enum class Block { none, paragraph, list, table, figures };

  void add(const std::string& line) {
    if (line.starts_with("# ") || line.starts_with("## ")) {
      heading(line);
    } else if (line.starts_with("|")) {
      become(Block::table);
      row(line);
    } else if (line.starts_with("- ")) {
      become(Block::list);
      html += "<li>" + inline_html(std::string_view(line).substr(2)) + "</li>\n";
    } else if (line.starts_with("![")) {
      become(Block::figures);
      figure(line);
    } else if (line.empty()) {
      become(Block::none);
    } else {
      become(Block::paragraph);
      html += inline_html(line) + "\n";
    }
  }

  void become(Block next) {
    if (next == block_) return;
    constexpr const char* kBegin[] = {"", "<p>\n", "<ul>\n", "<div class=\"wide\"><table>\n",
                                      "<div class=\"figures\">\n"};
    constexpr const char* kEnd[] = {"", "</p>\n", "</ul>\n", "</table></div>\n", "</div>\n"};
    html += std::string(kEnd[static_cast<int>(block_)]) + kBegin[static_cast<int>(next)];
    block_ = next;
    rows_ = 0;
  }

  // The page's own heading names its section of the report.
  void heading(const std::string& line) {
    become(Block::none);
    const bool title = line[1] == ' ';
    const std::string text = inline_html(std::string_view(line).substr(title ? 2 : 3));
    const std::string id = title ? study_.name : fmt::format("{}-{}", study_.name, ++sections_);
    html += fmt::format("<{0} id=\"{1}\">{2}</{0}>\n", title ? "h2" : "h3", id, text);
    contents += fmt::format("<li><a href=\"#{}\">{}</a>{}\n", id, text, title ? "\n<ul>" : "</li>");
  }

  void row(const std::string& line) {
    if (++rows_ == 2) return;  // the rule below the names
    const char* tag = rows_ == 1 ? "th" : "td";
    html += "<tr>";
    std::string_view rest = std::string_view(line).substr(1);
    for (std::size_t end = rest.find('|'); end != rest.npos; end = rest.find('|')) {
      html += fmt::format("<{0}>{1}</{0}>", tag, inline_html(without_blanks(rest.substr(0, end))));
      rest.remove_prefix(end + 1);
    }
    html += "</tr>\n";
  }

  void figure(const std::string& line) {
    const std::size_t middle = line.rfind("](");
    const std::string caption = line.substr(2, middle - 2), file = line.substr(middle + 2, line.size() - middle - 3);
    html += fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", read_text(study_.folder / file),
                        inline_html(caption));
  }

  const StudyResult& study_;
  Block block_ = Block::none;
  int rows_ = 0, sections_ = 0;
};

std::string summary_of(const StudyResult& study) {
  std::string text = fmt::format("<p><a href=\"#{0}\">{0}</a></p>\n<ul>\n", study.name);
  for (const std::string& sentence : study.found.summary) text += "<li>" + inline_html(sentence) + "</li>\n";
  return text + "</ul>\n";
}

std::string counts_of(const StudyResult& study) {
  const auto count = [&study](Outcome outcome) {
    return std::ranges::count(study.found.findings, outcome, &Finding::outcome);
  };
  return fmt::format("<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td><td>{4}</td></tr>\n",
                     study.name, study.found.findings.size(), count(Outcome::agrees), count(Outcome::differs),
                     count(Outcome::open));
}

}  // namespace

std::string html_report(const ReportOrigin& origin, std::span<const StudyResult> studies) {
  std::string contents, pages, found, counts;
  for (const StudyResult& study : studies) {
    const Page page(study);
    contents += page.contents + "</ul></li>\n";
    pages += "<section>\n" + page.html + "</section>\n";
    found += summary_of(study);
    counts += counts_of(study);
  }
  std::string made;
  for (const std::string* sentence : {&origin.date, &origin.machine, &origin.version, &origin.load})
    made += inline_html(*sentence) + ". ";
  const char* first = origin.quick ? kQuick : origin.brief_times ? kBriefTimes : "";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>Rigstep: the papers' experiments done "
      "again</title>\n<style>\n{}</style>\n"
      "</head>\n<body>\n<h1>The papers' experiments done again</h1>\n<p class=\"origin\">{}</p>\n"
      "{}<h2 id=\"found\">What was found</h2>\n{}"
      "<p>A claim that does not agree has its reason beside it. Open are those for which a paper or this machine gives "
      "too "
      "little.</p>\n"
      "<table>\n<tr><th>study</th><th>claims</th><th>yes</th><th>no, with a reason</th><th>open</th></tr>\n{}</table>\n"
      "<nav>\n<h2>Contents</h2>\n<ul>\n{}</ul>\n</nav>\n{}</body>\n</html>\n",
      kStyle, made, first, found, counts, contents, pages);
}

}  // namespace rigstep::server
