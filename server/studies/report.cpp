#include "server/studies/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "server/output/csv.h"

namespace rigstep::server {

namespace {

constexpr const char* kStyle =
    ":root { color-scheme: light dark; }\n"
    "body { font: 16px/1.5 sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; background: Canvas; "
    "color: "
    "CanvasText; }\n"
    "table { border-collapse: collapse; font-size: 0.85rem; }\n"
    "th, td { border: 1px solid GrayText; padding: 0.2rem 0.5rem; text-align: left; vertical-align: top; }\n"
    ".wide { overflow-x: auto; margin: 1rem 0; }\n"
    ".figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1rem; }\n"
    "figure { margin: 0; }\n"
    "figure svg { width: 100%; height: auto; }\n"
    "h2 { border-top: 2px solid GrayText; padding-top: 1rem; }\n";

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

// What a page is written in: headings, paragraphs, tables and figures, each on lines of their own.
class Page {
 public:
  explicit Page(const StudyResult& study) : study_(study) {
    std::istringstream lines(read_text(study.folder / (study.name + ".md")));
    for (std::string line; std::getline(lines, line);) add(line);
    become(Block::none);
  }
  std::string html, contents;

 private:
  enum class Block { none, paragraph, table, figures };

  void add(const std::string& line) {
    if (line.starts_with("# ") || line.starts_with("## ")) {
      heading(line);
    } else if (line.starts_with("|")) {
      become(Block::table);
      row(line);
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
    constexpr const char* kBegin[] = {"", "<p>\n", "<div class=\"wide\"><table>\n", "<div class=\"figures\">\n"};
    constexpr const char* kEnd[] = {"", "</p>\n", "</table></div>\n", "</div>\n"};
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

}  // namespace

std::string html_report(std::span<const StudyResult> studies) {
  std::string contents, pages;
  std::string summary = "<table>\n<tr><th>study</th><th>claims</th><th>agree</th><th>do not agree</th></tr>\n";
  for (const StudyResult& study : studies) {
    const Page page(study);
    contents += page.contents + "</ul></li>\n";
    pages += "<section>\n" + page.html + "</section>\n";
    const auto agree =
        std::count_if(study.findings.begin(), study.findings.end(), [](const Finding& f) { return f.agrees; });
    const auto all = static_cast<std::ptrdiff_t>(study.findings.size());
    summary += fmt::format("<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td><td>{3}</td></tr>\n",
                           study.name, all, agree, all - agree);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>Rigstep: the papers' experiments done "
      "again</title>\n<style>\n{}</style>\n"
      "</head>\n<body>\n<h1>The papers' experiments done "
      "again</h1>\n{}</table>\n<nav>\n<h2>Contents</h2>\n<ul>\n{}</ul>\n"
      "</nav>\n{}</body>\n</html>\n",
      kStyle, summary, contents, pages);
}

}  // namespace rigstep::server
