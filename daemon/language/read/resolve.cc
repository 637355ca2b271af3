// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/resolve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/read/reading.h"
#include "daemon/language/read/signature.h"
#include "daemon/language/spec/arg_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

// A function to export.
struct Wanted {
  std::string name;
  std::vector<std::string> tokens;
  std::optional<Annotation> annotation;
};

class Resolver {
 public:
  Resolver(absl::Span<const SourceText> sources, Preprocessed read, ReadingBudget& budget)
      : sources_(sources), preprocessed_(std::move(read)), budget_(budget) {}

  absl::StatusOr<std::vector<FunctionSpec>> Run(const v1::Functions& functions) {
    KERNIX_ASSIGN_OR_RETURN(const std::vector<Wanted> wanted,
                            functions.from_annotations() ? WantedByAnnotations() : WantedByList(functions));
    KERNIX_RETURN_IF_ERROR(CheckNames(wanted));
    std::vector<FunctionSpec> specs;
    for (const Wanted& function : wanted) {
      KERNIX_RETURN_IF_ERROR(Located(function, TakeMeant(names_.at(function.name))));
      KERNIX_ASSIGN_OR_RETURN(FunctionSpec spec, Resolve(function));
      KERNIX_RETURN_IF_ERROR(Located(function, Spend(spec)));
      specs.push_back(std::move(spec));
    }
    return specs;
  }

 private:
  std::string Where(int source, int line) const {
    return StrCat(sources_[static_cast<size_t>(source)].label, ":", line);
  }

  absl::StatusOr<std::vector<Wanted>> WantedByAnnotations() const {
    std::vector<Wanted> wanted;
    for (Annotation& annotation : FindAnnotations(preprocessed_.comments)) {
      if (annotation.name.empty()) {
        return Invalid(StrCat(Where(annotation.source, annotation.line),
                              ": an annotation without a function: write '// @BE <function> [tokens]'"));
      }
      wanted.push_back({annotation.name, annotation.tokens, annotation});
    }
    if (wanted.empty()) return NoAnnotation(sources_);
    return wanted;
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
    std::map<std::string, const FunctionName*> exported;
    for (const Wanted& function : wanted) {
      absl::StatusOr<FunctionName> name = ParseFunctionName(function.name);
      if (!name.ok()) return Located(function, name.status());
      bases.insert(name->base);
      const auto [other, is_new] = exported.emplace(name->Exported(), nullptr);
      if (!is_new) return Located(function, Invalid(SameExport(*other->second, *name)));
      other->second = &names_.emplace(function.name, *std::move(name)).first->second;
    }
    found_ = FindSignatures(preprocessed_.tokens, bases);
    for (const Token& token : preprocessed_.tokens) {
      if (token.IsIdentifier() && bases.contains(token.text)) mentioned_.insert(token.text);
    }
    return absl::OkStatus();
  }

  // Sets `meant_` to those of `found_` that have the name's scope, if it has one, and are templates, if it has template
  // arguments.
  absl::Status TakeMeant(const FunctionName& name) {
    meant_.clear();
    const auto found = found_.find(name.base);
    if (found == found_.end()) return absl::OkStatus();
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
    if (const Token* declared = FindDeviceFunction(names_.at(function.name).base)) {
      return Located(function,
                     Invalid(StrCat("function '", function.name, "' (", Where(declared->source, declared->line),
                                    ") is a __device__ function: export a __global__ or a host function")));
    }
    if (mentioned_.contains(names_.at(function.name).base)) return absl::OkStatus();
    const bool by_macro = function.annotation.has_value() && PrecedesUnknownMacro(*function.annotation);
    if (!function.tokens.empty() && (preprocessed_.includes_user_headers || by_macro)) return absl::OkStatus();
    if (!function.annotation.has_value()) {
      if (function.tokens.empty()) return absl::OkStatus();  // inference says what is missing
      return Invalid(StrCat("function '", function.name, "': nothing in ", LabelsOf(sources_), " defines it.",
                            OtherFunctions(function.name)));
    }
    return Located(function, Invalid(StrCat("an annotation without a function: nothing here defines '", function.name,
                                            "'.", OtherFunctions(function.name))));
  }

  // The first declaration of a __device__ function of that name; null if there is none.
  const Token* FindDeviceFunction(std::string_view name) const {
    const std::vector<Token>& tokens = preprocessed_.tokens;
    bool on_device = false;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i].Is(";") || tokens[i].Is("{") || tokens[i].Is("}")) on_device = false;
      if (tokens[i].Is("__device__")) on_device = true;
      if (on_device && tokens[i].text == name && tokens[i + 1].Is("(")) return &tokens[i];
    }
    return nullptr;
  }

  // Which functions the sources have instead of `name`, as sentences with a space before them.
  std::string OtherFunctions(const std::string& name) const {
    constexpr size_t kMost = 10;
    const std::vector<Token>& tokens = preprocessed_.tokens;
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
    const std::vector<Token>& tokens = preprocessed_.tokens;
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
    const auto found = found_.find(name.base);
    return !name.is_template && found != found_.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&](const Signature& signature) {
             return !signature.template_parameters.empty() && (name.scope.empty() || name.scope == signature.scope);
           });
  }

  // Advice about handlers that the source defines by XLA's own macros; empty if there are none.
  std::string_view AboutHandlersOfXla() const {
    const auto defines = [](const Token& token) { return token.text.starts_with("XLA_FFI_DEFINE_HANDLER"); };
    return std::none_of(preprocessed_.tokens.begin(), preprocessed_.tokens.end(), defines)
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
      return Invalid(StrCat("function '", name, "': no signature 'void ", name, "(...)' in ", LabelsOf(sources_),
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
      return Invalid(
          StrCat(where, ": function '", function.name, "' must return void: results go into BE::Out parameters"));
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
      KERNIX_ASSIGN_OR_RETURN(Parameter parameter, InferParameter(function.name, i, signature.parameters[i]));
      spec.parameters.push_back(std::move(parameter));
    }
    NoteDefaults(signature, spec);
    const absl::Status checked = CheckSpec(spec);
    if (!checked.ok()) return Annotate(checked, where);
    return spec;
  }

  // The number of parameters that a call passes. Unreadable parameters at the end of the list keep their default
  // arguments.
  static size_t CountWithoutLeftOut(const Signature& signature) {
    size_t count = signature.parameters.size();
    const auto left_out = [](const SignatureParameter& parameter) {
      const bool nameless = parameter.IsAttribute() && !IsPlainIdentifier(parameter.name);
      return parameter.has_default && (nameless || parameter.kind == ParameterClass::kOther);
    };
    while (count > 0 && left_out(signature.parameters[count - 1])) --count;
    return count;
  }

  // Calls may leave out trailing attributes that have a default argument.
  static void NoteDefaults(const Signature& signature, FunctionSpec& spec) {
    const size_t count = spec.parameters.size();
    for (size_t i = count; i > 0 && count - i < kMaxDefaults; --i) {
      Parameter& parameter = spec.parameters[i - 1];
      if (parameter.kind != ParameterKind::kAttribute || !signature.parameters[i - 1].has_default) return;
      parameter.has_default = true;
    }
  }

  absl::StatusOr<Parameter> InferParameter(const std::string& function, size_t index,
                                           const SignatureParameter& parameter) const {
    if (!parameter.problem.empty()) return Unreadable(function, index, parameter, parameter.problem);
    switch (parameter.kind) {
      case ParameterClass::kInput:
        return TensorOf(ParameterKind::kArgument, parameter);
      case ParameterClass::kOutput:
        return TensorOf(ParameterKind::kResult, parameter);
      case ParameterClass::kStream:
        return Parameter{ParameterKind::kStream, "", {}};
      case ParameterClass::kScalar:
      case ParameterClass::kString:
      case ParameterClass::kArray:
        if (parameter.name.empty()) return Unreadable(function, index, parameter, "an attribute needs a name");
        if (IsPlainIdentifier(parameter.name)) return AttributeOf(parameter);
        return Unreadable(
            function, index, parameter,
            "an attribute's name may contain only the letters a to z, digits and '_'. Rename it, or write out "
            "the tokens with another name");
      case ParameterClass::kOptionalInput:
        return Parameter{ParameterKind::kOptionalArgument, "", {}};
      case ParameterClass::kInputs:
        return Parameter{ParameterKind::kArguments, "", {}};
      case ParameterClass::kOutputs:
        return Parameter{ParameterKind::kResults, "", {}};
      case ParameterClass::kDeviceOrdinal:
        return Parameter{ParameterKind::kDeviceOrdinal, "", {}};
      case ParameterClass::kScratch:
      case ParameterClass::kTensorMap:
      case ParameterClass::kOther:
        break;
    }
    return Unreadable(function, index, parameter, parameter.problem);
  }

  static Parameter TensorOf(ParameterKind kind, const SignatureParameter& declared) {
    Parameter parameter{kind, "", {}};
    Specify(declared, parameter);
    return parameter;
  }

  // Adds what the signature says of the arrays that a token takes.
  static void Specify(const SignatureParameter& declared, Parameter& parameter) {
    if (!parameter.IsArrays()) return;
    if (IsValidUtf8(declared.name)) parameter.declared_name = declared.name;  // a compiler takes any bytes
    if (parameter.kind != ParameterKind::kArgument && parameter.kind != ParameterKind::kResult) return;
    if (parameter.element.empty()) parameter.element = declared.element;
    parameter.is_pointer = declared.is_pointer;
    if (parameter.rank == kAnyRank) parameter.rank = declared.rank;
  }

  static Parameter AttributeOf(const SignatureParameter& parameter) {
    return {ParameterKind::kAttribute, parameter.name, parameter.scalar, parameter.kind == ParameterClass::kArray};
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
      if (NeedsStringView(spec.parameters[i], parameter)) {
        return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place, ", but its arg_spec says '",
                              tokens[i], "' there: ", parameter.problem));
      }
      if (spec.is_global && !parameter.problem.empty() && !spec.parameters[i].IsTyped()) {
        return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place, ": ", parameter.problem));
      }
      if (Fits(spec.parameters[i], parameter)) continue;
      return Invalid(StrCat(intro, "takes '", parameter.text, "' as parameter ", place, ", but its arg_spec says '",
                            tokens[i], "' there"));
    }
    return absl::OkStatus();
  }

  // Whether a string is passed to a parameter of another common string type.
  static bool NeedsStringView(const Parameter& token, const SignatureParameter& parameter) {
    return token.kind == ParameterKind::kAttribute && token.attribute_type == AttributeType::kString &&
           parameter.kind == ParameterClass::kOther && parameter.problem.ends_with("take a std::string_view");
  }

  // Completes the parameters by the signature if that is unambiguous.
  void NoteDeclared(FunctionSpec& spec) const {
    const std::vector<const Signature*> candidates = Candidates();
    if (candidates.size() != 1 || candidates[0]->is_uncertain) return;
    size_t place = 0;
    for (Parameter& parameter : spec.parameters) {
      if (!parameter.IsVisible()) continue;
      const SignatureParameter& declared = candidates[0]->parameters[place++];
      Specify(declared, parameter);
      NoteNarrowing(declared, parameter);
    }
  }

  // Sets `narrowed_to`. Otherwise C++ converts; it also converts any number to a bool.
  static void NoteNarrowing(const SignatureParameter& declared, Parameter& parameter) {
    if (parameter.kind != ParameterKind::kAttribute || !declared.IsNumber()) return;
    if (declared.scalar == AttributeType::kBool) return;
    if (!FitsAlways(parameter.attribute_type, declared.scalar)) parameter.narrowed_to = declared.scalar;
  }

  // Whether both may be of the same arrays. A BE::Tensor takes any.
  static bool AgreesOnArrays(const Parameter& token, const SignatureParameter& parameter) {
    const bool is_input = parameter.kind == ParameterClass::kInput;
    if (parameter.is_pointer && token.kind == ParameterKind::kResult && is_input) return false;
    if (parameter.element.empty()) return true;
    const bool same_rank = token.rank == kAnyRank || parameter.rank == kAnyRank || token.rank == parameter.rank;
    const bool same_kind = parameter.is_pointer || is_input == (token.kind == ParameterKind::kArgument);
    return same_kind && same_rank && (token.element.empty() || token.element == parameter.element);
  }

  // Whether a parameter of that class may receive the token's value.
  static bool Fits(const Parameter& token, const SignatureParameter& parameter) {
    const ParameterClass kind = parameter.kind;
    const bool number = parameter.IsNumber();
    if (kind == ParameterClass::kOther) return true;
    switch (token.kind) {
      case ParameterKind::kArgument:
      case ParameterKind::kResult:
        if (token.IsTensorMap() || kind == ParameterClass::kTensorMap) {
          return token.IsTensorMap() && kind == ParameterClass::kTensorMap;
        }
        if (parameter.IsTensor()) return AgreesOnArrays(token, parameter);
        return kind == ParameterClass::kStream && !token.IsTyped();
      case ParameterKind::kStream:
        return number || kind == ParameterClass::kStream;
      case ParameterKind::kAttribute:
        if (token.is_array) return kind == ParameterClass::kArray;
        if (token.attribute_type == AttributeType::kString) return kind == ParameterClass::kString;
        return number || kind == ParameterClass::kStream;
      case ParameterKind::kOptionalArgument:
        return kind == ParameterClass::kOptionalInput;
      case ParameterKind::kArguments:
        return kind == ParameterClass::kInputs;
      case ParameterKind::kResults:
        return kind == ParameterClass::kOutputs;
      case ParameterKind::kDeviceOrdinal:
        return number;
      case ParameterKind::kScratch:
        return kind == ParameterClass::kScratch;
      case ParameterKind::kArgumentToken:
      case ParameterKind::kResultToken:
        break;
    }
    return true;
  }

  const absl::Span<const SourceText> sources_;
  const Preprocessed preprocessed_;
  ReadingBudget& budget_;
  std::map<std::string, FunctionName> names_;  // by the name that the caller wrote
  SignatureMap found_;                         // by the unqualified name
  absl::flat_hash_set<std::string_view> mentioned_;
  std::vector<Signature> meant_;  // signatures of the function that is being resolved
};

}  // namespace

absl::StatusOr<std::vector<FunctionSpec>> ResolveRead(absl::Span<const SourceText> sources, Preprocessed read,
                                                      const v1::Functions& functions, ReadingBudget& budget) {
  return Resolver(sources, std::move(read), budget).Run(functions);
}

absl::StatusOr<std::vector<FunctionSpec>> ResolveFunctions(const std::vector<SourceText>& sources,
                                                           const v1::Functions& functions,
                                                           const std::vector<std::string>& definitions) {
  if (sources.empty()) return Invalid("there is no source");
  ReadingBudget budget;
  KERNIX_ASSIGN_OR_RETURN(Preprocessed read, ReadSources(sources, definitions, budget));
  if (!read.has_text) return Invalid(StrCat(LabelsOf(sources), ": the source is empty"));
  return ResolveRead(sources, std::move(read), functions, budget);
}

}  // namespace kernix::language
