// SPDX-License-Identifier: Apache-2.0
//
// Pages for man(1), written from the texts that --help prints.
#pragma once

#include <string>
#include <string_view>

namespace kernix {

// A page in the macros of man(7). The texts are plain: the page escapes them.
class ManualPage {
 public:
  // `summary` is a sentence, shown behind the name without its full stop.
  ManualPage(std::string_view name, int section, std::string_view summary);

  void Section(std::string_view title);
  void Subsection(std::string_view title);
  // A term, such as an option, and its meaning.
  void Item(std::string_view term, std::string_view meaning);
  // Paragraphs with empty lines between them. Indented lines stay as they are.
  void Text(std::string_view text);

  // The parts of a text of --help: the text before its paragraphs "Exit codes:" and "Examples:", and these, as
  // sections.
  void Description(std::string_view help);
  void ClosingSections(std::string_view help);

  const std::string& text() const { return text_; }

 private:
  void Paragraph(std::string_view paragraph);

  std::string text_;
};

}  // namespace kernix
