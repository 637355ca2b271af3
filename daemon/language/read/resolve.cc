// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/resolve.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/read/signature.h"
#include "daemon/language/read/token_match.h"
#include "daemon/language/spec/arg_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

// For messages: "a.cu, b.cu".
std::string LabelsOf(absl::Span<const SourceText> sources) {
  return absl::StrJoin(sources, ", ", [](std::string* out, const SourceText& s) { out->append(s.label); });
}

// Whether `name` may be that of the function: it has the same scope, if it has one, and template arguments if the
// function is a template.
bool MayMean(const FunctionName& name, const Signature& signature) {
  const bool in_scope = name.scope.empty() || name.scope == signature.scope;
  return in_scope && name.is_template != signature.template_parameters.empty();
}

struct Place {
  int source = 0;
  int line = 0;
};

// A function to export.
struct Wanted {
  std::string name;
  std::vector<std::string> tokens;
  std::optional<Annotation> annotation;
};

// Sources that are compiled together.
struct Unit {
  absl::Span<const SourceText> sources;
  Preprocessed read;
  SignatureMap found;                                             // of the wanted functions, by the unqualified name
  absl::flat_hash_map<std::string_view, int> mentioned;           // the same, with the line
  absl::flat_hash_map<std::string_view, const Token*> on_device;  // the same, if declared as __device__
};

class Resolver {
 public:
  // Reads `sources` as one unit or, if `separate`, each as a unit of its own. They must outlive this object.
  Resolver(absl::Span<const SourceText> sources, bool separate) : sources_(sources) {
    if (!separate) units_.push_back({.sources = sources});
    for (size_t i = 0; separate && i < sources.size(); ++i) units_.push_back({.sources = sources.subspan(i, 1)});
  }

  // The functions of each unit.
  absl::StatusOr<std::vector<std::vector<FunctionSpec>>> Run(const v1::Functions& functions,
                                                             const std::vector<std::string>& definitions) {
    for (Unit& unit : units_) KERNIX_RETURN_IF_ERROR(Read(definitions, unit));
    KERNIX_ASSIGN_OR_RETURN(const std::vector<Wanted> wanted,
                            functions.from_annotations() ? WantedByAnnotations() : WantedByList(functions));
    KERNIX_RETURN_IF_ERROR(CheckNames(wanted));
    std::vector<std::vector<FunctionSpec>> specs(units_.size());
    for (const Wanted& function : wanted) {
      KERNIX_ASSIGN_OR_RETURN(const size_t index, UnitOf(function));
      unit_ = &units_[index];
      KERNIX_RETURN_IF_ERROR(Located(function, TakeMeant(names_.at(function.name))));
      KERNIX_ASSIGN_OR_RETURN(FunctionSpec spec, Resolve(function));
      KERNIX_RETURN_IF_ERROR(Located(function, Spend(spec)));
      specs[index].push_back(std::move(spec));
    }
    return specs;
  }

 private:
  std::string Where(int source, int line) const {
    return StrCat(sources_[static_cast<size_t>(source)].label, ":", line);
  }

  // Reads a unit, with `definitions` (preprocessor lines) before it.
  absl::Status Read(const std::vector<std::string>& definitions, Unit& unit) {
    std::vector<LexedSource> lexed;
    for (const std::string& definition : definitions) {
      lexed.push_back(Lex(definition, 0, budget_.tokens));
      lexed.back().comments.clear();
    }
    auto index = static_cast<int>(unit.sources.data() - sources_.data());
    for (const SourceText& source : unit.sources) {
      lexed.push_back(Lex(source.text, index++, budget_.tokens));
      if (!lexed.back().is_complete) {
        return Invalid(StrCat(source.label, ": the sources of this load have more than ", ReadingBudget().tokens,
                              " words, numbers and signs. Put tables and generated code into headers that they "
                              "include"));
      }
      budget_.tokens -= lexed.back().tokens.size() + lexed.back().comments.size();
    }
    unit.read = Preprocess(lexed, budget_.macros);
    if (units_.size() > 1 || unit.read.has_text) return absl::OkStatus();
    return Invalid(StrCat(LabelsOf(sources_), ": the source is empty"));
  }

  absl::StatusOr<std::vector<Wanted>> WantedByAnnotations() const {
    std::vector<Wanted> wanted;
    for (const Unit& unit : units_) {
      for (Annotation& annotation : FindAnnotations(unit.read.comments)) {
        if (annotation.name.empty()) {
          return Invalid(StrCat(Where(annotation.source, annotation.line),
                                ": an annotation without a function: write '// @BE <function> [tokens]'"));
        }
        wanted.push_back({annotation.name, annotation.tokens, annotation});
      }
    }
    if (!wanted.empty()) return wanted;
    return Invalid(StrCat(LabelsOf(sources_),
                          ": no '// @BE <function>' annotation says what to export. Add one above the function, or "
                          "pass 'functions'"));
  }

  static absl::StatusOr<std::vector<Wanted>> WantedByList(const v1::Functions& functions) {
    std::vector<Wanted> wanted;
    for (const v1::Function& function : functions.function()) {
      wanted.push_back({function.name(), {function.tokens().begin(), function.tokens().end()}, std::nullopt});
    }
    if (wanted.empty()) return Invalid("'functions' is empty: there is nothing to export");
    return wanted;
  }

  // Checks that each name is valid and exported once. Also finds the signatures, in one pass for all names.
  absl::Status CheckNames(const std::vector<Wanted>& wanted) {
    NameSet bases;
    std::map<std::string, const Wanted*> exported;
    for (const Wanted& function : wanted) {
      absl::StatusOr<FunctionName> name = ParseFunctionName(function.name);
      if (!name.ok()) return Located(function, name.status());
      bases.insert(name->base);
      const auto [other, is_new] = exported.emplace(name->Exported(), &function);
      if (!is_new) return ExportedTwice(*other->second, function, *name);
      names_.emplace(function.name, *std::move(name));
    }
    for (Unit& unit : units_) {
      unit.found = FindSignatures(unit.read.tokens, bases);
      NoteMentions(bases, unit);
    }
    return absl::OkStatus();
  }

  static void NoteMentions(const NameSet& bases, Unit& unit) {
    const std::vector<Token>& tokens = unit.read.tokens;
    bool on_device = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].Is(";") || tokens[i].Is("{") || tokens[i].Is("}")) on_device = false;
      if (tokens[i].Is("__device__")) on_device = true;
      if (!tokens[i].IsIdentifier() || !bases.contains(tokens[i].text)) continue;
      unit.mentioned.emplace(tokens[i].text, tokens[i].line);
      if (on_device && i + 1 < tokens.size() && tokens[i + 1].Is("(")) {
        unit.on_device.emplace(tokens[i].text, &tokens[i]);
      }
    }
  }

  absl::Status ExportedTwice(const Wanted& first, const Wanted& second, const FunctionName& name) const {
    const std::optional<Annotation>& place = first.annotation;
    const std::string also = place ? StrCat(", also at ", Where(place->source, place->line)) : "";
    return Located(second, Invalid(StrCat(SameExport(names_.at(first.name), name), also)));
  }

  // The index of the unit that exports a function: where its annotation is, or else its definition. If a header's macro
  // makes the definition, the only unit that mentions the name.
  absl::StatusOr<size_t> UnitOf(const Wanted& function) const {
    if (units_.size() == 1) return 0;
    if (function.annotation.has_value()) return function.annotation->source;
    const FunctionName& name = names_.at(function.name);
    std::vector<Place> places = Definitions(name);
    if (places.empty()) places = Mentions(name);
    if (places.size() == 1) return places[0].source;
    if (places.empty()) {
      return Invalid(StrCat("function '", name.callee, "' is in none of the sources ", LabelsOf(sources_),
                            ", so no unit can export it: define it in one of them"));
    }
    return Invalid(StrCat("function '", name.callee, "' is in several sources (",
                          Where(places[0].source, places[0].line), ", ", Where(places[1].source, places[1].line),
                          "): only one unit can export it. Rename the others"));
  }

  // Where units define it, each unit once. Host functions hide __global__ ones, and those with arrays hide others.
  std::vector<Place> Definitions(const FunctionName& name) const {
    const auto rank_of = [&](const Signature& signature) {
      return std::pair(signature.is_global, !name.is_template && !signature.TakesTensors());
    };
    std::pair best(true, true);
    std::vector<Place> places;
    for (const Unit& unit : units_) {
      const auto found = unit.found.find(name.base);
      if (found == unit.found.end()) continue;
      for (const Signature& signature : found->second) {
        const std::pair rank = rank_of(signature);
        if (!signature.is_definition || !MayMean(name, signature) || rank > best) continue;
        if (std::exchange(best, rank) != rank) places.clear();
        if (places.empty() || places.back().source != signature.source) {
          places.push_back({signature.source, signature.line});
        }
      }
    }
    return places;
  }

  std::vector<Place> Mentions(const FunctionName& name) const {
    std::vector<Place> places;
    for (size_t i = 0; i < units_.size(); ++i) {
      const auto found = units_[i].mentioned.find(name.base);
      if (found != units_[i].mentioned.end()) places.push_back({static_cast<int>(i), found->second});
    }
    return places;
  }

  // Sets `meant_` to the signatures of the unit that have the name's scope, if it has one, and are templates, if it has
  // template arguments.
  absl::Status TakeMeant(const FunctionName& name) {
    meant_.clear();
    const auto found = unit_->found.find(name.base);
    if (found == unit_->found.end()) return absl::OkStatus();
    for (const Signature& signature : found->second) {
      if (!MayMean(name, signature)) continue;
      AddSignature(meant_, name.is_template ? Instantiate(signature, name.template_arguments, budget_.instance_tokens)
                                            : signature);
    }
    PreferHostFunctions(meant_);
    if (budget_.instance_tokens > 0) return absl::OkStatus();
    return Invalid(StrCat("function '", name.callee,
                          "': the parameters of all template instances of this load have "
                          "more than ",
                          ReadingBudget().instance_tokens, " words and signs. Load fewer of them at once"));
  }

  absl::Status Spend(const FunctionSpec& spec) {
    budget_.parameters += ReadingBudget::kParametersOfFunction;
    if (spec.parameters.size() > budget_.parameters) {
      return Invalid(StrCat("function '", spec.name, "': the functions of this load have more than ",
                            ReadingBudget().parameters, " parameters in all, and ",
                            ReadingBudget::kParametersOfFunction, " for each function. Load fewer of them at once"));
    }
    budget_.parameters -= spec.parameters.size();
    size_t names = 0;
    for (const Parameter& parameter : spec.parameters) {
      names += parameter.attribute_name.size() + parameter.declared_name.size() + parameter.expression.size();
    }
    budget_.names += ReadingBudget::kNamesOfFunction;
    if (names > budget_.names) {
      return Invalid(StrCat("function '", spec.name,
                            "': the names of parameters and the expressions of this load have ", "more than ",
                            ReadingBudget().names, " bytes in all, and ", ReadingBudget::kNamesOfFunction,
                            " for each function. Choose shorter names, or load fewer functions at once"));
    }
    budget_.names -= names;
    return absl::OkStatus();
  }

  // Puts the annotation's place before the message.
  absl::Status Located(const Wanted& function, const absl::Status& status) const {
    if (!function.annotation.has_value()) return status;
    return Annotate(status, Where(function.annotation->source, function.annotation->line));
  }

  absl::StatusOr<FunctionSpec> Resolve(const Wanted& function) const {
    KERNIX_RETURN_IF_ERROR(CheckIsThere(function));
    KERNIX_RETURN_IF_ERROR(Located(function, CheckScope(function.name)));
    absl::StatusOr<FunctionSpec> spec = function.tokens.empty() ? Infer(function) : FromTokens(function);
    if (!spec.ok()) return function.tokens.empty() ? spec.status() : Located(function, spec.status());
    spec->name = names_.at(function.name).Exported();
    spec->callee = Callee(function.name);
    spec->is_inferred = function.tokens.empty();
    const std::vector<const Signature*> candidates = Candidates();
    if (candidates.size() == 1) spec->declared_at = Where(candidates[0]->source, candidates[0]->line);
    return spec;
  }

  absl::Status CheckScope(const std::string& name) const {
    const std::vector<const Signature*> candidates = Candidates();
    for (const Signature* signature : candidates) {
      if (signature->scope == candidates[0]->scope) continue;
      return Invalid(StrCat("function '", name, "' is in several namespaces (",
                            Where(candidates[0]->source, candidates[0]->line), ", ",
                            Where(signature->source, signature->line), "): name the namespace, as in '",
                            candidates[0]->scope, name, "'"));
    }
    return absl::OkStatus();
  }

  // The C++ name to call, if it differs from the exported one: an unqualified name gets the scope of its signatures.
  std::string Callee(const std::string& written) const {
    const FunctionName& name = names_.at(written);
    const std::vector<const Signature*> candidates = Candidates();
    const bool in_scope = name.scope.empty() && !candidates.empty() && candidates[0]->TakesTensors();
    const std::string callee = StrCat(in_scope ? candidates[0]->scope : "", name.callee);
    return callee == name.Exported() ? "" : callee;
  }

  // A name must be that of an existing function. This can be checked only if no header may define it.
  absl::Status CheckIsThere(const Wanted& function) const {
    if (!Candidates().empty()) return absl::OkStatus();
    const bool by_macro = function.annotation.has_value() && PrecedesUnknownMacro(*function.annotation);
    if (!function.tokens.empty() && (unit_->read.includes_user_headers || by_macro)) return absl::OkStatus();
    const std::string& base = names_.at(function.name).base;
    const auto on_device = unit_->on_device.find(base);
    if (on_device != unit_->on_device.end() && !IsTemplate(names_.at(function.name))) {
      const Token& declared = *on_device->second;
      return Located(function, Invalid(StrCat("function '", function.name, "' (", Where(declared.source, declared.line),
                                              ") is a __device__ function: export a __global__ or a host function")));
    }
    if (unit_->mentioned.contains(base)) return absl::OkStatus();
    if (!function.annotation.has_value()) {
      if (function.tokens.empty()) return absl::OkStatus();  // inference says what is missing
      return Invalid(StrCat("function '", function.name, "': nothing in ", LabelsOf(unit_->sources), " defines it.",
                            OtherFunctions(function.name)));
    }
    return Located(function, Invalid(StrCat("an annotation without a function: nothing here defines '", function.name,
                                            "'.", OtherFunctions(function.name))));
  }

  // Which functions the sources have instead of `name`, as sentences with a space before them.
  std::string OtherFunctions(const std::string& name) const {
    constexpr size_t kMost = 10;
    const std::vector<Token>& tokens = unit_->read.tokens;
    NameSet called;
    for (size_t i = 2; i < tokens.size(); ++i) {
      const bool declares = tokens[i - 2].Is("void") && tokens[i - 1].IsIdentifier() && tokens[i].Is("(");
      if (declares) called.insert(std::string(tokens[i - 1].text));
    }
    std::vector<std::string> functions;
    for (const auto& [function, signatures] : FindSignatures(tokens, called)) {
      const auto takes_tensors = [](const Signature& signature) { return signature.TakesTensors(); };
      if (std::any_of(signatures.begin(), signatures.end(), takes_tensors)) functions.push_back(function);
    }
    if (functions.empty()) return "";
    const std::string guess = DidYouMean(name, functions);
    const size_t count = functions.size();
    functions.resize(std::min(count, kMost));
    return StrCat(" The functions with arrays here: ", absl::StrJoin(functions, ", "), count > kMost ? ", ..." : "",
                  ".", guess);
  }

  // Whether `NAME(` follows, which may be a macro from a <header> that defines the function.
  bool PrecedesUnknownMacro(const Annotation& annotation) const {
    const std::vector<Token>& tokens = unit_->read.tokens;
    const auto next = std::partition_point(tokens.begin(), tokens.end(), [&](const Token& token) {
      return std::pair(token.source, token.line) <= std::pair(annotation.source, annotation.line);
    });
    if (tokens.end() - next < 2 || next->source != annotation.source) return false;
    return next->IsIdentifier() && !IsKeyword(next->text) && (next + 1)->Is("(");
  }

  // The signatures that a call with tensors could refer to.
  std::vector<const Signature*> Candidates() const {
    std::vector<const Signature*> candidates;
    const auto rank = [](const Signature& s) { return std::pair(!s.TakesTensors(), !s.scope.empty()); };
    auto best = std::pair(true, true);
    for (const Signature& signature : meant_) best = std::min(best, rank(signature));
    for (const Signature& signature : meant_) {
      if (rank(signature) == best) candidates.push_back(&signature);
    }
    return candidates;
  }

  // Whether the name has no template arguments, but the sources have only a template of that name.
  bool IsTemplate(const FunctionName& name) const {
    const auto found = unit_->found.find(name.base);
    return !name.is_template && found != unit_->found.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&](const Signature& signature) {
             return !signature.template_parameters.empty() && (name.scope.empty() || name.scope == signature.scope);
           });
  }

  // Advice about handlers that the source defines by XLA's own macros; empty if there are none.
  std::string_view AboutHandlersOfXla() const {
    const auto defines = [](const Token& token) { return token.text.starts_with("XLA_FFI_DEFINE_HANDLER"); };
    return std::none_of(unit_->read.tokens.begin(), unit_->read.tokens.end(), defines)
               ? ""
               : " kernix writes the handlers itself: export a function with BE::In and BE::Out parameters. Or compile "
                 "a handler of XLA's own, XLA_FFI_DEFINE_HANDLER..., yourself, and pass it to "
                 "jax.ffi.register_ffi_target().";
  }

  // The only signature of `name`. `purpose`, for errors, is what the caller infers from it.
  absl::StatusOr<const Signature*> SignatureOf(const std::string& name, std::string_view purpose) const {
    const std::vector<const Signature*> candidates = Candidates();
    if (candidates.empty() && IsTemplate(names_.at(name))) {
      return Invalid(
          StrCat("function '", name, "' is a template: name the instance to export, such as '", name, "<float>'"));
    }
    if (candidates.empty()) {
      return Invalid(StrCat("function '", name, "': no signature 'void ", name, "(...)' in ", LabelsOf(unit_->sources),
                            ", so ", purpose,
                            " cannot be inferred. Name the tokens, such as arg, ret, stream, attr.<name>:<type>.",
                            OtherFunctions(name), AboutHandlersOfXla()));
    }
    if (candidates.size() > 1 && DifferInConst(*candidates[0], *candidates[1])) {
      return Invalid(StrCat(
          "function '", name, "' is declared twice (", Where(candidates[0]->source, candidates[0]->line), ", ",
          Where(candidates[1]->source, candidates[1]->line), "), but a BE::Tensor is const in only one of them, so ",
          purpose, " cannot be inferred. Make both the same: const for an input"));
    }
    if (candidates.size() > 1) {
      return Invalid(StrCat("function '", name, "' is overloaded (", Where(candidates[0]->source, candidates[0]->line),
                            ", ", Where(candidates[1]->source, candidates[1]->line),
                            "; both branches of an #if count), so ", purpose,
                            " cannot be inferred. Give the exported one a name of its own"));
    }
    return candidates[0];
  }

  absl::StatusOr<FunctionSpec> Infer(const Wanted& function) const {
    absl::StatusOr<const Signature*> found = SignatureOf(function.name, "arg_spec");
    if (!found.ok()) return Located(function, found.status());
    const Signature& signature = **found;
    const std::string where = Where(signature.source, signature.line);
    if (!signature.returns_void) {
      return Invalid(StrCat(where, ": function '", function.name,
                            "' must return void (write 'void' also for a function that returns nothing by 'auto'): "
                            "results go into BE::Out parameters"));
    }
    if (signature.has_conditional) {
      return Invalid(StrCat(where, ": function '", function.name,
                            "' has an #if among its parameters, or a macro that an #if decides, so arg_spec ",
                            "cannot be inferred. Name the tokens: arg, ret, stream, attr.<name>:<type>"));
    }
    if (signature.parameters.size() > kMaxParameters) {
      return Invalid(StrCat(where, ": function '", function.name, "' has more than ", kMaxParameters, " parameters"));
    }
    FunctionSpec spec{function.name, {}};
    spec.is_global = signature.is_global;
    const size_t count = CountWithoutLeftOut(signature);
    for (size_t i = 0; i < count; ++i) {
      const SignatureParameter& parameter = signature.parameters[i];
      const std::string_view problem = ProblemOfInference(parameter);
      if (!problem.empty()) return Unreadable(function.name, i, parameter, problem);
      spec.parameters.push_back(TokenOf(parameter));
    }
    NoteDefaults(signature, spec);
    const absl::Status checked = CheckSpec(spec);
    if (!checked.ok()) return Annotate(checked, where);
    return spec;
  }

  absl::Status Unreadable(const std::string& function, size_t index, const SignatureParameter& parameter,
                          std::string_view problem) const {
    const std::string name = parameter.name.empty() ? "" : StrCat(" '", parameter.name, "'");
    const std::string message =
        StrCat(Where(parameter.source, parameter.line), ": parameter ", index + 1, name, " of function '", function,
               "' is '", parameter.text, "', which inference cannot read: ", problem,
               parameter.has_default ? "; or move it to the end, where it keeps its default" : "");
    return Invalid(message);
  }

  absl::StatusOr<FunctionSpec> FromTokens(const Wanted& function) const {
    FunctionSpec spec{function.name, {}};
    KERNIX_ASSIGN_OR_RETURN(spec.is_global, IsGlobal(function.name));
    if (function.annotation.has_value()) {
      spec.label = sources_[static_cast<size_t>(function.annotation->source)].label;
      spec.line = function.annotation->line;
    }
    for (const std::string& token : function.tokens) {
      KERNIX_ASSIGN_OR_RETURN(ParsedToken parsed, ParseToken(function.name, token));
      if (!parsed.typed) {
        const bool has_default = parsed.parameter.has_default;
        KERNIX_ASSIGN_OR_RETURN(parsed.parameter,
                                AttributeFromSignature(function.name, parsed.parameter.attribute_name));
        parsed.parameter.has_default = has_default;
      }
      spec.parameters.push_back(std::move(parsed.parameter));
    }
    KERNIX_RETURN_IF_ERROR(CheckSpec(spec));
    KERNIX_RETURN_IF_ERROR(CheckAgainstSignature(spec));
    NoteDeclared(spec);
    return spec;
  }

  // Whether it is a __global__ function. A handler launches one by its name alone, so that must mean one of them.
  absl::StatusOr<bool> IsGlobal(const std::string& name) const {
    const std::vector<const Signature*> candidates = Candidates();
    if (candidates.empty() || !candidates[0]->is_global) return false;
    const bool alternatives =
        std::any_of(candidates.begin(), candidates.end(), [](const auto* s) { return s->in_conditional; });
    if (candidates.size() == 1 || alternatives) return true;
    return Invalid(StrCat("function '", name, "' is overloaded (", Where(candidates[0]->source, candidates[0]->line),
                          ", ", Where(candidates[1]->source, candidates[1]->line),
                          "): give the exported __global__ function a name of its own"));
  }

  absl::StatusOr<Parameter> AttributeFromSignature(const std::string& function, const std::string& attribute) const {
    KERNIX_ASSIGN_OR_RETURN(const Signature* signature,
                            SignatureOf(function, StrCat("the type of 'attr.", attribute, "'")));
    for (size_t i = 0; i < signature->parameters.size(); ++i) {
      const SignatureParameter& parameter = signature->parameters[i];
      if (parameter.name != attribute) continue;
      if (parameter.IsAttribute() || parameter.kind == ParameterClass::kDeviceOrdinal) return AttributeOf(parameter);
      if (parameter.kind == ParameterClass::kStream && HasText(parameter.text, "int64_t")) {
        return Parameter{ParameterKind::kAttribute, attribute, AttributeType::kInt64};
      }
      return Unreadable(function, i, parameter,
                        parameter.problem.empty() ? "it is not an attribute" : parameter.problem);
    }
    return Invalid(StrCat("function '", function, "' (", Where(signature->source, signature->line),
                          ") has no parameter '", attribute, "', so 'attr.", attribute, "' has no type. Write 'attr.",
                          attribute, ":<type>' if the parameter has another name"));
  }

  // Refuses token lists that cannot compile. Accepts doubtful ones and leaves them to the compiler.
  absl::Status CheckAgainstSignature(const FunctionSpec& spec) const {
    const std::vector<const Signature*> candidates = Candidates();
    if (candidates.size() != 1 || candidates[0]->is_uncertain) return absl::OkStatus();
    const Signature& signature = *candidates[0];
    const std::string intro = StrCat("function '", spec.name, "' (", Where(signature.source, signature.line), ") ");
    const std::vector<std::string> tokens = spec.Tokens();
    const auto visible = static_cast<size_t>(std::count_if(spec.parameters.begin(), spec.parameters.end(),
                                                           [](const Parameter& p) { return p.IsVisible(); }));
    const size_t count = signature.parameters.size();
    const size_t defaults = static_cast<size_t>(std::count_if(signature.parameters.begin(), signature.parameters.end(),
                                                              [](const auto& p) { return p.has_default; }));
    if (visible > count || visible < count - defaults) {
      return Invalid(StrCat(intro, "has ", count, count == 1 ? " parameter" : " parameters", ", but its arg_spec has ",
                            visible, " (", absl::StrJoin(tokens, " "), ")"));
    }
    size_t place = 0;
    for (size_t i = 0; i < spec.parameters.size(); ++i) {
      if (!spec.parameters[i].IsVisible()) continue;
      const SignatureParameter& parameter = signature.parameters[place++];
      if (spec.parameters[i].has_default && !parameter.has_default) {
        return Invalid(StrCat(intro, "has no default argument for '", parameter.text, "', but its arg_spec says '",
                              tokens[i], "' there, which a call may leave out"));
      }
      if (parameter.is_unread_view && parameter.is_deduced) {
        return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place,
                              ", which C++ deduces from no array: name the instance, such as f<float>"));
      }
      const std::string problem = spec.is_global ? "" : ProblemOfToken(spec.parameters[i], parameter);
      if (!problem.empty()) {
        return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place, ", but its arg_spec says '",
                              tokens[i], "' there: ", problem));
      }
      const bool is_value = spec.parameters[i].kind == ParameterKind::kAttribute &&
                            parameter.kind == ParameterClass::kOther && !parameter.points && parameter.by_value;
      if (spec.is_global && !parameter.problem.empty() && !spec.parameters[i].IsTyped() && !is_value) {
        return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place, ": ", parameter.problem));
      }
      if (Fits(spec.parameters[i], parameter)) continue;
      return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place, ", but its arg_spec says '",
                            tokens[i], "' there"));
    }
    return absl::OkStatus();
  }

  // Completes the parameters by the signature if that is unambiguous.
  void NoteDeclared(FunctionSpec& spec) const {
    const std::vector<const Signature*> candidates = Candidates();
    if (candidates.size() != 1 || candidates[0]->is_uncertain) return;
    size_t place = 0;
    for (Parameter& parameter : spec.parameters) {
      if (!parameter.IsVisible()) continue;
      Complete(candidates[0]->parameters[place++], parameter);
    }
  }

  const absl::Span<const SourceText> sources_;
  std::vector<Unit> units_;
  ReadingBudget budget_;
  std::map<std::string, FunctionName> names_;  // by the name that the caller wrote

  // Of the function that is being resolved:
  const Unit* unit_ = nullptr;
  std::vector<Signature> meant_;
};

}  // namespace

absl::StatusOr<std::vector<FunctionSpec>> ResolveFunctions(const std::vector<SourceText>& sources,
                                                           const v1::Functions& functions,
                                                           const std::vector<std::string>& definitions) {
  if (sources.empty()) return Invalid("there is no source");
  KERNIX_ASSIGN_OR_RETURN(auto specs, Resolver(sources, /*separate=*/false).Run(functions, definitions));
  return std::move(specs[0]);
}

absl::StatusOr<std::vector<std::vector<FunctionSpec>>> ResolveUnitFunctions(
    const std::vector<SourceText>& sources, const v1::Functions& functions,
    const std::vector<std::string>& definitions) {
  return Resolver(sources, /*separate=*/true).Run(functions, definitions);
}

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

}  // namespace kernix::language
