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
#include "daemon/codegen/signature.h"

namespace kernix::codegen {
namespace {

using Tokens = std::vector<Token>;

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

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
      KERNIX_ASSIGN_OR_RETURN(const size_t source, SourceOf(name));
      *by_source[source].add_function() = function;
    }
    return absl::OkStatus();
  }

  // The source that defines `name`. Where a macro of a header makes it, the only one that mentions it.
  absl::StatusOr<size_t> SourceOf(const FunctionName& name) const {
    std::vector<Place> places = Definitions(name);
    if (places.empty()) places = Mentions(name.base);
    if (places.size() == 1) return places[0].source;
    if (places.empty()) {
      return Invalid(StrCat("function '", name.callee, "' is in none of the sources ", Labels(),
                            ", so no unit can export it: define it in one of them"));
    }
    return Invalid(StrCat("function '", name.callee, "' is in several sources (", Where(places[0]), ", ",
                          Where(places[1]), "): only one unit can export it. Rename the others"));
  }

  // The sources that define it. Where some of the definitions take tensors, these count alone.
  std::vector<Place> Definitions(const FunctionName& name) const {
    std::vector<Place> all;
    std::vector<Place> with_tensors;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const SignatureMap found = FindSignatures(read_[i].tokens, {name.base});
      const auto signatures = found.find(name.base);
      if (signatures == found.end()) continue;
      for (const Signature& signature : signatures->second) {
        if (!Defines(signature, name)) continue;
        AddPlace(all, {i, signature.line});
        if (name.is_template || signature.TakesTensors()) AddPlace(with_tensors, {i, signature.line});
      }
    }
    return with_tensors.empty() ? all : with_tensors;
  }

  static bool Defines(const Signature& signature, const FunctionName& name) {
    const bool in_scope = name.scope.empty() || name.scope == signature.scope;
    return signature.is_definition && in_scope && name.is_template != signature.template_parameters.empty();
  }

  // A source counts once.
  static void AddPlace(std::vector<Place>& places, const Place& place) {
    if (places.empty() || places.back().source != place.source) places.push_back(place);
  }

  std::vector<Place> Mentions(std::string_view name) const {
    std::vector<Place> places;
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (const int line = MentionLine(read_[i].tokens, name); line > 0) places.push_back({i, line});
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
