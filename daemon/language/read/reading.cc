// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/reading.h"

#include <utility>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/spec/words.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {

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
