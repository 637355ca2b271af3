// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/annotations.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/cxx/lexer.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

// Removes everything up to and including "@BE"; false for any other comment.
bool ConsumeMarker(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of("/! \t"), text.size()));
  return ConsumePrefix(text, "@BE") && (text.empty() || HasText(" \t\r\n", text.substr(0, 1)));
}

}  // namespace

std::vector<Annotation> FindAnnotations(const std::vector<Comment>& comments) {
  std::vector<Annotation> annotations;
  for (const Comment& comment : comments) {
    std::string_view text = comment.text;
    if (!ConsumeMarker(text)) continue;
    const std::string joined = WithoutSplices(text, " ");
    std::string_view rest = joined;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n\v\f"), rest.size()));
    const size_t length = FunctionNameLength(rest);
    const std::vector<std::string_view> tokens = Words(rest.substr(length));
    Annotation annotation = {std::string(rest.substr(0, length)), {}, comment.source, comment.line};
    annotation.tokens.assign(tokens.begin(), tokens.end());
    annotations.push_back(std::move(annotation));
  }
  return annotations;
}

}  // namespace kernix::language
