// SPDX-License-Identifier: Apache-2.0
//
// Checks the questions about files that a text asks the compiler: `__has_include`. No tool reports its questions, and
// the answer changes the result.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/spec/source_text.h"

namespace kernix::language {

struct QuestionRules {
  // Returns why the text `label` may not ask for a name that begins with '/' or leads above its starting folder; empty
  // if it may.
  std::function<std::string(std::string_view label, const Include& name)> outside;
  // Whether `texts` includes every text that may define a macro. If not, a name that depends on an unknown macro is
  // accepted; call again with all texts.
  bool all_texts = true;
};

// INVALID_REQUEST, with label and line, for the first question in `texts` (one translation unit) that the rules refuse
// or whose name cannot be read from the texts. Follows macros that ask (`#define HAS(x) __has_include(x)`) to their
// uses. Does not evaluate conditions: each of several definitions of a macro counts, and so does a branch that is not
// compiled. Recognises words across spliced lines and with trigraphs. Sees the results of `##` only in macros that
// contain one of the words.
absl::Status CheckFileQuestions(const std::vector<TextView>& texts, const QuestionRules& rules);

}  // namespace kernix::language
