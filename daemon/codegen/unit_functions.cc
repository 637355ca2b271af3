// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/unit_functions.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "daemon/base/error.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/codegen/annotations.h"
#include "daemon/codegen/function_name.h"
#include "daemon/codegen/lexer.h"
#include "daemon/codegen/preprocessor.h"

namespace kernix::codegen {
namespace {

using Tokens = std::vector<Token>;

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

// Behind the bracket that closes the one at `open`.
size_t AfterClosing(const Tokens& tokens, size_t open) {
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].Is("(")) ++depth;
    if (tokens[i].Is(")") && --depth == 0) return i + 1;
  }
  return tokens.size();
}

// Whether a body follows what may come between a parameter list and a body: noexcept, -> void, a macro.
bool BodyFollows(const Tokens& tokens, size_t i) {
  while (i < tokens.size() && (tokens[i].IsIdentifier() || tokens[i].Is("->"))) ++i;
  return i < tokens.size() && tokens[i].Is("{");
}

// The line on which `tokens` define `name`; 0: they don't.
int DefinitionLine(const Tokens& tokens, std::string_view name) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].Is(name) || !tokens[i + 1].Is("(")) continue;
    if (BodyFollows(tokens, AfterClosing(tokens, i + 1))) return tokens[i].line;
  }
  return 0;
}

int MentionLine(const Tokens& tokens, std::string_view name) {
  const auto found = std::find_if(tokens.begin(), tokens.end(), [&](const Token& token) { return token.Is(name); });
  return found == tokens.end() ? 0 : found->line;
}

struct Place {
  size_t source = 0;
  int line = 0;
};

// For a name that cannot be read the name itself: that is the resolver's business.
std::string ExportedName(const std::string& name) {
  const absl::StatusOr<FunctionName> parsed = ParseFunctionName(name);
  return parsed.ok() ? parsed->Exported() : name;
}

class UnitResolver {
 public:
  explicit UnitResolver(const std::vector<SourceText>& sources) : sources_(sources) {
    for (const SourceText& source : sources) read_.push_back(Preprocess({Lex(source.text, 0)}));
  }

  absl::StatusOr<std::vector<std::vector<FunctionSpec>>> Run(const v1::Functions& functions) {
    std::vector<v1::Functions> by_source(sources_.size());
    KERNIX_RETURN_IF_ERROR(functions.from_annotations() ? ByAnnotations(by_source) : ByList(functions, by_source));
    std::vector<std::vector<FunctionSpec>> result;
    for (size_t i = 0; i < sources_.size(); ++i) {
      result.emplace_back();
      if (!by_source[i].from_annotations() && by_source[i].function().empty()) continue;
      KERNIX_ASSIGN_OR_RETURN(result.back(), ResolveFunctions({sources_[i]}, by_source[i]));
    }
    return result;
  }

 private:
  std::string Where(const Place& place) const { return StrCat(sources_[place.source].label, ":", place.line); }

  std::string Labels() const {
    return absl::StrJoin(sources_, ", ", [](std::string* out, const SourceText& s) { out->append(s.label); });
  }

  absl::Status ByAnnotations(std::vector<v1::Functions>& by_source) const {
    std::map<std::string, Place> annotated;
    for (size_t i = 0; i < sources_.size(); ++i) {
      for (const Annotation& annotation : FindAnnotations(read_[i].comments)) {
        by_source[i].set_from_annotations(true);
        const Place place{i, annotation.line};
        const auto [known, is_new] = annotated.emplace(ExportedName(annotation.name), place);
        if (is_new || annotation.name.empty() || known->second.source == i) continue;  // else the resolver's business
        return Invalid(StrCat(Where(place), ": function '", annotation.name, "' is exported twice, also at ",
                              Where(known->second)));
      }
    }
    if (!annotated.empty()) return absl::OkStatus();
    return Invalid(StrCat(Labels(),
                          ": no '// @BE <function>' annotation says what to export. Add one above the function, or "
                          "pass 'functions'"));
  }

  absl::Status ByList(const v1::Functions& functions, std::vector<v1::Functions>& by_source) const {
    std::map<std::string, std::string> listed;
    for (const v1::Function& function : functions.function()) {
      KERNIX_ASSIGN_OR_RETURN(const FunctionName name, ParseFunctionName(function.name()));
      const auto [known, is_new] = listed.emplace(name.Exported(), function.name());
      if (!is_new) {
        return Invalid(StrCat("function '", function.name(), "' is exported twice: it has the same name, '",
                              name.Exported(), "', as '", known->second, "'"));
      }
      KERNIX_ASSIGN_OR_RETURN(const size_t source, SourceOf(name.base));
      *by_source[source].add_function() = function;
    }
    return absl::OkStatus();
  }

  // The source that defines `name`. Where a macro of a header makes it, the only one that mentions it.
  absl::StatusOr<size_t> SourceOf(const std::string& name) const {
    std::vector<Place> places = Find(name, DefinitionLine);
    if (places.empty()) places = Find(name, MentionLine);
    if (places.size() == 1) return places[0].source;
    if (places.empty()) {
      return Invalid(StrCat("function '", name, "' is in none of the sources ", Labels(),
                            ", so no unit can export it: define it in one of them"));
    }
    return Invalid(StrCat("function '", name, "' is in several sources (", Where(places[0]), ", ", Where(places[1]),
                          "): only one unit can export it. Rename the others"));
  }

  std::vector<Place> Find(std::string_view name, int (*line_of)(const Tokens&, std::string_view)) const {
    std::vector<Place> places;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (const int line = line_of(read_[i].tokens, name); line > 0) places.push_back({i, line});
    }
    return places;
  }

  const std::vector<SourceText>& sources_;
  std::vector<Preprocessed> read_;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<FunctionSpec>>> ResolveUnitFunctions(const std::vector<SourceText>& sources,
                                                                            const v1::Functions& functions) {
  return UnitResolver(sources).Run(functions);
}

}  // namespace kernix::codegen
