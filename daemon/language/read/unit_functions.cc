// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/read/reading.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/read/signature.h"
#include "daemon/language/spec/source_text.h"

namespace kernix::language {
namespace {

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

struct Place {
  size_t source = 0;
  int line = 0;
};

class UnitResolver {
 public:
  explicit UnitResolver(const std::vector<SourceText>& sources) : sources_(sources) {}

  absl::StatusOr<std::vector<std::vector<FunctionSpec>>> Run(const v1::Functions& functions,
                                                             const std::vector<std::string>& definitions) {
    ReadingBudget budget;
    for (size_t i = 0; i < sources_.size(); ++i) {
      KERNIX_ASSIGN_OR_RETURN(Preprocessed read, ReadSources(Source(i), definitions, budget));
      read_.push_back(std::move(read));
    }
    std::vector<v1::Functions> by_source(sources_.size());
    KERNIX_RETURN_IF_ERROR(functions.from_annotations() ? ByAnnotations(by_source) : ByList(functions, by_source));
    std::vector<std::vector<FunctionSpec>> result;
    for (size_t i = 0; i < sources_.size(); ++i) {
      result.emplace_back();
      if (!by_source[i].from_annotations() && by_source[i].function().empty()) continue;
      KERNIX_ASSIGN_OR_RETURN(result.back(), ResolveRead(Source(i), std::move(read_[i]), by_source[i], budget));
    }
    return result;
  }

 private:
  absl::Span<const SourceText> Source(size_t i) const { return absl::MakeConstSpan(&sources_[i], 1); }

  std::string Where(const Place& place) const { return StrCat(sources_[place.source].label, ":", place.line); }

  absl::Status ByAnnotations(std::vector<v1::Functions>& by_source) const {
    std::map<std::string, std::pair<FunctionName, Place>> annotated;
    bool any = false;
    for (size_t i = 0; i < sources_.size(); ++i) {
      for (const Annotation& annotation : FindAnnotations(read_[i].comments)) {
        any = true;
        by_source[i].set_from_annotations(true);
        const Place place{i, annotation.line};
        const absl::StatusOr<FunctionName> name = ParseFunctionName(annotation.name);
        if (!name.ok()) continue;  // the resolver reports it, and duplicates within one source
        const auto [known, is_new] = annotated.emplace(name->Exported(), std::pair(*name, place));
        const auto& [other, other_place] = known->second;
        if (is_new || other_place.source == i) continue;
        return Invalid(StrCat(Where(place), ": ", SameExport(other, *name), ", also at ", Where(other_place)));
      }
    }
    return any ? absl::OkStatus() : NoAnnotation(sources_);
  }

  absl::Status ByList(const v1::Functions& functions, std::vector<v1::Functions>& by_source) {
    std::vector<FunctionName> names;
    for (const v1::Function& function : functions.function()) {
      KERNIX_ASSIGN_OR_RETURN(FunctionName name, ParseFunctionName(function.name()));
      names.push_back(std::move(name));
    }
    Find(names);
    std::map<std::string, const FunctionName*> listed;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto [known, is_new] = listed.emplace(names[i].Exported(), &names[i]);
      if (!is_new) return Invalid(SameExport(*known->second, names[i]));
      KERNIX_ASSIGN_OR_RETURN(const size_t source, SourceOf(names[i]));
      *by_source[source].add_function() = functions.function(static_cast<int>(i));
    }
    return absl::OkStatus();
  }

  // Finds where the sources define and mention `names`.
  void Find(const std::vector<FunctionName>& names) {
    NameSet bases;
    for (const FunctionName& name : names) bases.insert(name.base);
    for (size_t i = 0; i < sources_.size(); ++i) {
      for (auto& [base, signatures] : FindSignatures(read_[i].tokens, bases)) {
        for (Signature& signature : signatures) {
          if (signature.is_definition) definitions_[base].push_back({{i, signature.line}, std::move(signature)});
        }
      }
      for (const Token& token : read_[i].tokens) {
        if (token.IsIdentifier() && bases.contains(token.text)) {
          AddPlace(mentions_[std::string(token.text)], {i, token.line});
        }
      }
    }
  }

  // The source that defines `name`. If a header's macro makes the definition, the only source that mentions the name.
  absl::StatusOr<size_t> SourceOf(const FunctionName& name) const {
    std::vector<Place> places = Definitions(name);
    if (const auto found = mentions_.find(name.base); places.empty() && found != mentions_.end()) {
      places = found->second;
    }
    if (places.size() == 1) return places[0].source;
    if (places.empty()) {
      return Invalid(StrCat("function '", name.callee, "' is in none of the sources ", LabelsOf(sources_),
                            ", so no unit can export it: define it in one of them"));
    }
    return Invalid(StrCat("function '", name.callee, "' is in several sources (", Where(places[0]), ", ",
                          Where(places[1]), "): only one unit can export it. Rename the others"));
  }

  // The sources that define it. If some of the definitions are host functions or take tensors, only these count.
  std::vector<Place> Definitions(const FunctionName& name) const {
    std::vector<Place> all;
    std::vector<Place> with_tensors;
    const auto found = definitions_.find(name.base);
    if (found == definitions_.end()) return all;
    const bool host = std::any_of(found->second.begin(), found->second.end(), [&](const Definition& definition) {
      return MayMean(name, definition.signature) && !definition.signature.is_global;
    });
    for (const Definition& definition : found->second) {
      if (!MayMean(name, definition.signature) || (host && definition.signature.is_global)) continue;
      AddPlace(all, definition.place);
      if (name.is_template || definition.signature.TakesTensors()) AddPlace(with_tensors, definition.place);
    }
    return with_tensors.empty() ? all : with_tensors;
  }

  // Counts each source once.
  static void AddPlace(std::vector<Place>& places, const Place& place) {
    if (places.empty() || places.back().source != place.source) places.push_back(place);
  }

  struct Definition {
    Place place;
    Signature signature;
  };

  const std::vector<SourceText>& sources_;
  std::vector<Preprocessed> read_;
  std::map<std::string, std::vector<Definition>> definitions_;  // by unqualified name, like the next
  std::map<std::string, std::vector<Place>> mentions_;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<FunctionSpec>>> ResolveUnitFunctions(
    const std::vector<SourceText>& sources, const v1::Functions& functions,
    const std::vector<std::string>& definitions) {
  return UnitResolver(sources).Run(functions, definitions);
}

}  // namespace kernix::language
