// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/annotations.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_replace.h"
#include "daemon/codegen/words.h"

namespace kernix::codegen {
namespace {

// What follows "@BE"; false for any other comment.
bool ConsumeMarker(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of("/! \t"), text.size()));
  return ConsumePrefix(text, "@BE") && (text.empty() || HasText(" \t\r\n", text.substr(0, 1)));
}

// A comment goes on where its line ends with a backslash.
std::string WithoutContinuations(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()), {{"\\\n", " "}, {"\\\r\n", " "}});
}

}  // namespace

std::vector<Annotation> FindAnnotations(const std::vector<Comment>& comments) {
  std::vector<Annotation> annotations;
  for (const Comment& comment : comments) {
    std::string_view text = comment.text;
    if (!ConsumeMarker(text)) continue;
    const std::string joined = WithoutContinuations(text);
    const std::vector<std::string_view> words = Words(joined);
    Annotation annotation = {"", {}, comment.source, comment.line};
    if (!words.empty()) {
      annotation.name = words[0];
      annotation.tokens.assign(words.begin() + 1, words.end());
    }
    annotations.push_back(std::move(annotation));
  }
  return annotations;
}

}  // namespace kernix::codegen
