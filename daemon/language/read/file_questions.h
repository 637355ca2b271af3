// SPDX-License-Identifier: Apache-2.0
//
// What a text asks the compiler about files: `__has_include`. No tool tells what it was asked, and the answer changes
// what is built.
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
  // Why the text `label` may not ask for a name that begins with '/', or that leads above the folder where it begins;
  // empty when it may.
  std::function<std::string(std::string_view label, const Include& name)> outside;
  // Whether `texts` are all that may define a macro. If not, a name that depends on an unknown macro passes: ask again
  // with all of them.
  bool all_texts = true;
};

// INVALID_REQUEST, with label and line, for the first question in `texts` (one translation unit) that the rules refuse,
// or whose name cannot be read from them. Macros that ask (`#define HAS(x) __has_include(x)`) are followed to their
// uses. Conditions are not evaluated: of a macro with several definitions each counts, and so does a branch that is not
// compiled. Lines that are continued inside a word, and trigraphs, are seen through. What `##` makes of pieces is seen
// in macros that hold one of the words, in others not.
absl::Status CheckFileQuestions(const std::vector<TextView>& texts, const QuestionRules& rules);

}  // namespace kernix::language
