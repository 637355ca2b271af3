// SPDX-License-Identifier: Apache-2.0
#include "common/base/manual_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/base/version.h"

namespace kernix {
namespace {

// How man(7) calls the paragraphs that --help begins with these words.
struct ClosingSection {
  std::string_view in_help;
  std::string_view title;
};
constexpr ClosingSection kClosingSections[] = {{"Exit codes:", "EXIT STATUS"}, {"Examples:", "EXAMPLES"}};

// One line of text. roff would take the first character of some for a request, and would print typographic signs.
std::string Escape(std::string_view line) {
  std::string escaped = absl::StrReplaceAll(
      ToAbsl(line),
      {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}, {"\"", "\\(dq"}, {"~", "\\(ti"}, {"^", "\\(ha"}});
  return escaped.starts_with('.') ? "\\&" + escaped : escaped;
}

std::vector<std::string> Paragraphs(std::string_view text) {
  return absl::StrSplit(ToAbsl(text), "\n\n", absl::SkipEmpty());
}

const ClosingSection* FindClosingSection(std::string_view paragraph) {
  for (const ClosingSection& section : kClosingSections) {
    if (paragraph.starts_with(section.in_help)) return &section;
  }
  return nullptr;
}

}  // namespace

ManualPage::ManualPage(std::string_view name, int section, std::string_view summary)
    : text_(StrCat(".TH ", absl::AsciiStrToUpper(ToAbsl(name)), " ", section, " \"\" \"kernix ", Version(),
                   "\"\n.nh\n.ad l\n")) {
  if (summary.ends_with('.')) summary.remove_suffix(1);
  Section("NAME");
  StrAppend(&text_, Escape(name), " \\- ", Escape(summary), "\n");
}

void ManualPage::Section(std::string_view title) { StrAppend(&text_, ".SH \"", Escape(title), "\"\n"); }

void ManualPage::Subsection(std::string_view title) { StrAppend(&text_, ".SS \"", Escape(title), "\"\n"); }

void ManualPage::Item(std::string_view term, std::string_view meaning) {
  StrAppend(&text_, ".TP\n.B \"", Escape(term), "\"\n", Escape(meaning), "\n");
}

void ManualPage::Text(std::string_view text) {
  for (const std::string& paragraph : Paragraphs(text)) Paragraph(paragraph);
}

void ManualPage::Description(std::string_view help) {
  for (const std::string& paragraph : Paragraphs(help)) {
    if (FindClosingSection(paragraph) == nullptr) Paragraph(paragraph);
  }
}

void ManualPage::ClosingSections(std::string_view help) {
  for (const std::string& paragraph : Paragraphs(help)) {
    const ClosingSection* section = FindClosingSection(paragraph);
    if (section == nullptr) continue;
    Section(section->title);
    Paragraph(std::string_view(paragraph).substr(std::min(section->in_help.size() + 1, paragraph.size())));
  }
}

void ManualPage::Paragraph(std::string_view paragraph) {
  StrAppend(&text_, ".PP\n");
  bool indented = false;
  const std::vector<std::string> lines = absl::StrSplit(ToAbsl(paragraph), '\n');
  for (const std::string& line : lines) {
    if (indented != line.starts_with(' ')) StrAppend(&text_, indented ? ".fi\n" : ".nf\n");
    indented = line.starts_with(' ');
    StrAppend(&text_, Escape(line), "\n");
  }
  if (indented) StrAppend(&text_, ".fi\n");
}

}  // namespace kernix
