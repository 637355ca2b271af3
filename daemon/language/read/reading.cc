// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/reading.h"

#include <deque>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/spec/words.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

std::string FindOpenBrace(absl::Span<const SourceText> sources) {
  std::vector<std::string> open;
  for (const SourceText& source : sources) {
    std::deque<std::string> storage;
    Lexer lexer(source.text, storage);
    for (Token token; lexer.Next(token);) {
      if (token.in_directive) continue;
      if (token.Is("{")) open.push_back(StrCat(source.label, ":", token.line));
      if (token.Is("}") && !open.empty()) open.pop_back();
    }
  }
  return open.empty() ? "" : open.front();
}

absl::Status NoAnnotation(absl::Span<const SourceText> sources) {
  return MakeError(
      v1::ErrorDetail::INVALID_REQUEST,
      StrCat(LabelsOf(sources),
             ": no '// @BE <function>' annotation says what to export. Add one above the function, or pass "
             "'functions'"));
}

std::string LabelsOf(absl::Span<const SourceText> sources) {
  return absl::StrJoin(sources, ", ", [](std::string* out, const SourceText& s) { out->append(s.label); });
}

bool MayMean(const FunctionName& name, const Signature& signature) {
  const bool in_scope = name.scope.empty() || name.scope == signature.scope;
  return in_scope && name.is_template != signature.template_parameters.empty();
}

absl::StatusOr<Preprocessed> ReadSources(absl::Span<const SourceText> sources,
                                         const std::vector<std::string>& definitions, ReadingBudget& budget) {
  std::vector<LexedSource> lexed;
  for (const std::string& definition : definitions) {
    lexed.push_back(Lex(definition, 0, budget.tokens));
    lexed.back().comments.clear();
  }
  int index = 0;
  for (const SourceText& source : sources) {
    lexed.push_back(Lex(source.text, index++, budget.tokens));
    if (!lexed.back().is_complete) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                       StrCat(source.label, ": the sources of this load have more than ", ReadingBudget().tokens,
                              " words, numbers and signs. Put tables and generated code into headers that they "
                              "include"));
    }
    budget.tokens -= lexed.back().tokens.size() + lexed.back().comments.size();
  }
  return Preprocess(lexed, budget.macros);
}

}  // namespace kernix::language
