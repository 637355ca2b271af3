// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/spec/arg_spec.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/cxx/lexer.h"
#include "daemon/language/read/signature.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/words.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {
namespace {

constexpr std::string_view kExample = "; an expression is a number of bytes, such as 4*arg0.numel()";

constexpr size_t kMaxExpression = 4096;
constexpr size_t kMaxNesting = 64;

// Comments, digraphs and trigraphs, which a check of single characters does not find.
constexpr std::string_view kHiddenMeanings[] = {"//", "/*", "<%", "%>", "<:", ":>", "%:", "?\?"};

bool IsAllowed(const Token& token) {
  static constexpr std::string_view kPunctuators = "+-*/%()[]<>?:.,&|!=^~";
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kNumber) {
    return std::all_of(token.text.begin(), token.text.end(), [](unsigned char c) { return c < 0x80; });
  }
  if (token.kind != TokenKind::kPunctuator) return false;
  return token.Is("::") || token.Is("->") || (token.text.size() == 1 && HasText(kPunctuators, token.text));
}

// Whether all brackets match and are nested no deeper than people write.
bool IsBalanced(const std::vector<Token>& tokens) {
  std::string open;
  for (const Token& token : tokens) {
    if (token.Is("(") || token.Is("[")) open += token.text;
    if (open.size() > kMaxNesting) return false;
    if (!token.Is(")") && !token.Is("]")) continue;
    if (open.empty() || (open.back() == '(') != token.Is(")")) return false;
    open.pop_back();
  }
  return open.empty();
}

// Writes an expression with its operands marked.
class Marker {
 public:
  Marker(const std::vector<Token>& tokens, std::string_view of) : tokens_(tokens), of_(of) {}

  std::string Run() {
    while (More()) {
      ReadExpression();
      if (More()) Take();  // skips a surplus bracket
    }
    return std::move(out_);
  }

 private:
  bool More() const { return at_ < tokens_.size(); }
  bool At(std::string_view text) const { return More() && tokens_[at_].Is(text); }
  bool AtName() const { return More() && tokens_[at_].IsIdentifier(); }
  bool AtSign() const { return At("+") || At("-") || At("!") || At("~"); }
  bool AtPrefix() const { return AtSign() || At("&") || At("*"); }
  void Take() { out_ += tokens_[at_++].text; }

  // Reads up to a closing bracket.
  void ReadExpression() {
    while (More() && !At(")") && !At("]")) {
      MarkOperand();
      ReadOperand();
      if (More() && !At(")") && !At("]")) TakeOperator();
    }
  }

  void MarkOperand() {
    std::string signs;
    while (AtSign()) signs += tokens_[at_++].text;
    out_ += signs.empty() ? StrCat(of_, "->*") : StrCat(of_, ".After(\"", signs, "\")->*");
  }

  void ReadOperand() {
    while (AtPrefix()) Take();
    const bool brackets = At("(") && !AtCast();
    while (AtCast()) {
      TakeGroup();
      while (AtPrefix()) Take();
    }
    if (brackets) {
      Take();
      ReadExpression();
      if (At(")")) Take();
    } else if (More() && tokens_[at_].kind == TokenKind::kNumber) {
      Take();
    } else {
      TakeName();
    }
    while (ReadPostfix()) {
    }
  }

  // Reads a call, an index or a member; false if none follows.
  bool ReadPostfix() {
    if (At("(") || At("[")) {
      TakeGroup();
    } else if (At(".") || At("->")) {
      Take();
      TakeName();
    } else {
      return false;
    }
    return true;
  }

  // "a::b<c>::d"
  void TakeName() {
    while (AtName() || At("::")) {
      Take();
      const size_t end = AtName() ? at_ : EndOfTemplateArguments();
      while (at_ < end) Take();
    }
  }

  void TakeOperator() {
    static constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    const size_t begin = out_.size();
    Take();
    if (!More()) return;
    const std::string both = out_.substr(begin) + std::string(tokens_[at_].text);
    if (std::find(std::begin(kPairs), std::end(kPairs), both) != std::end(kPairs)) Take();
  }

  // Takes brackets with their content.
  void TakeGroup() {
    int depth = 0;
    do {
      depth += At("(") || At("[") ? 1 : At(")") || At("]") ? -1 : 0;
      Take();
    } while (More() && depth > 0);
  }

  // The index after the '>' of template arguments that begin here; the current index if there are none. `a<b` is a
  // comparison unless a call or a member follows its '>', or a built-in type follows its '<'.
  size_t EndOfTemplateArguments() const {
    if (!At("<")) return at_;
    int depth = 0;
    for (size_t i = at_; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.Is("?") || token.Is("|") || token.Is("&") || token.Is(")")) return at_;
      depth += token.Is("<") ? 1 : token.Is(">") ? -1 : 0;
      if (depth > 0) continue;
      const bool followed = i + 1 < tokens_.size() && (tokens_[i + 1].Is("(") || tokens_[i + 1].Is("::"));
      return followed || IsType(tokens_[at_ + 1]) ? i + 1 : at_;
    }
    return at_;
  }

  // Whether "(T)" before an operand begins here.
  bool AtCast() const {
    if (!At("(")) return false;
    size_t end = at_ + 1;
    const auto in_type = [](const Token& token) {
      return token.IsIdentifier() || token.Is("::") || token.Is("<") || token.Is(">") || token.Is(",");
    };
    while (end < tokens_.size() && in_type(tokens_[end])) ++end;
    if (end == at_ + 1 || end + 1 >= tokens_.size() || !tokens_[end].Is(")")) return false;
    const Token& next = tokens_[end + 1];
    if (next.IsIdentifier() || next.kind == TokenKind::kNumber || next.Is("(") || next.Is("::")) return true;
    const bool prefix = next.Is("+") || next.Is("-") || next.Is("~") || next.Is("!") || next.Is("*") || next.Is("&");
    return prefix && IsType(tokens_[end - 1]);
  }

  // Guesses from the spelling.
  static bool IsType(const Token& token) {
    static constexpr std::string_view kTypes[] = {"bool",  "char",   "short",  "int",     "long",
                                                  "float", "double", "signed", "unsigned"};
    return std::find(std::begin(kTypes), std::end(kTypes), token.text) != std::end(kTypes) ||
           token.text.ends_with("_t");
  }

  const std::vector<Token>& tokens_;
  const std::string_view of_;
  std::string out_;
  size_t at_ = 0;
};

}  // namespace

std::string ProblemOfScratchExpression(std::string_view expression) {
  if (expression.empty()) return StrCat("there is no expression", kExample);
  if (!Words(expression).empty() && Words(expression)[0].size() != expression.size()) {
    return StrCat("it has white space", kExample);
  }
  if (expression.size() > kMaxExpression) {
    return StrCat("it has ", expression.size(), " bytes; at most ", kMaxExpression, " are allowed");
  }
  for (const std::string_view hidden : kHiddenMeanings) {
    if (HasText(expression, hidden)) return StrCat("it has '", hidden, "'", kExample);
  }
  const LexedSource lexed = Lex(expression, 0);
  for (const Token& token : lexed.tokens) {
    if (!IsAllowed(token)) return StrCat("it has '", token.text, "'", kExample);
  }
  return IsBalanced(lexed.tokens) ? "" : StrCat("its brackets do not match, or are nested too deeply", kExample);
}

std::string WithOperandsMarked(std::string_view expression, std::string_view of) {
  const LexedSource lexed = Lex(expression, 0);
  return Marker(lexed.tokens, of).Run();
}

std::vector<std::string_view> FreeNames(std::string_view expression) {
  const LexedSource lexed = Lex(expression, 0);
  std::vector<std::string_view> names;
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    const bool member =
        i > 0 && (lexed.tokens[i - 1].Is(".") || lexed.tokens[i - 1].Is("->") || lexed.tokens[i - 1].Is("::"));
    if (lexed.tokens[i].IsIdentifier() && !IsKeyword(lexed.tokens[i].text) && !member)
      names.push_back(lexed.tokens[i].text);
  }
  return names;
}

namespace {

absl::Status Invalid(std::string_view function, std::string_view problem) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("function '", function, "': ", problem));
}

std::string Quoted(std::string_view text) {
  return StrCat("'", IsValidUtf8(text) ? absl::Utf8SafeCHexEscape(ToAbsl(text)) : absl::CHexEscape(ToAbsl(text)), "'");
}

constexpr std::string_view kTokenList =
    "arg, ret, stream, attr.<name>:<type>, attr.<name>, attr.<name>?, arg?, args..., rets..., arg.token, ret.token, "
    "device_ordinal, scratch:<bytes>, arg:<type>, arg:<type>[<dimensions>], arg.tensormap:<type>[<box>], and ret "
    "likewise";

constexpr std::string_view kAttributeTypeList =
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, float16 and bfloat16 (as bits), "
    "string, and arrays such as float32[]";

absl::Status UnknownType(std::string_view function, std::string_view token, std::string_view type) {
  std::string problem =
      StrCat("the token ", Quoted(token), " has the type ", Quoted(type), ", which XLA cannot pass as an attribute");
  if (HasText(type, "complex")) StrAppend(&problem, "; pass the real and imaginary parts as two attributes");
  return Invalid(function, StrCat(problem, ". Attribute types: ", kAttributeTypeList));
}

absl::Status UnknownArray(std::string_view function, std::string_view token, AttributeType element) {
  const std::string_view remedy = element == AttributeType::kBool ? "; pass uint8[]" : "; pass one string";
  return Invalid(function, StrCat("the token ", Quoted(token), ": XLA cannot pass arrays of ",
                                  AttributeTypeName(element), remedy));
}

// Parses "float32" or "float32[]".
absl::Status ParseType(std::string_view function, std::string_view token, std::string_view type, Parameter& parameter) {
  std::string_view element = type;
  parameter.is_array = ConsumeSuffix(element, "[]");
  if (!ParseAttributeType(element, parameter.attribute_type)) return UnknownType(function, token, type);
  if (parameter.is_array && !CanBeArray(parameter.attribute_type)) {
    return UnknownArray(function, token, parameter.attribute_type);
  }
  parameter.is_opaque = IsHalf(parameter.attribute_type) && !parameter.is_array;
  return absl::OkStatus();
}

// `text` is the part after "attr.".
absl::StatusOr<ParsedToken> ParseAttribute(std::string_view function, std::string_view token, std::string_view text) {
  ParsedToken parsed;
  parsed.parameter.kind = ParameterKind::kAttribute;
  parsed.parameter.has_default = ConsumeSuffix(text, "?");
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  parsed.parameter.attribute_name = std::string(name);
  if (!IsPlainIdentifier(name) && !IsKeyword(name)) {
    return Invalid(function, StrCat("the token ", Quoted(token), " names the attribute ", Quoted(name),
                                    ", which is not a C++ identifier"));
  }
  parsed.typed = colon != std::string_view::npos;
  if (!parsed.typed) return parsed;
  KERNIX_RETURN_IF_ERROR(ParseType(function, token, text.substr(colon + 1), parsed.parameter));
  return parsed;
}

absl::StatusOr<ParsedToken> ParseScratch(std::string_view function, std::string_view token, std::string_view text) {
  const std::string problem = ProblemOfScratchExpression(text);
  if (!problem.empty()) return Invalid(function, StrCat("the token ", Quoted(token), ": ", problem));
  ParsedToken parsed;
  parsed.parameter.kind = ParameterKind::kScratch;
  parsed.parameter.expression = std::string(text);
  return parsed;
}

// `text` is the part after "arg:" or "ret:": "float32" or "float32[2]".
absl::StatusOr<ParsedToken> ParseTyped(std::string_view function, std::string_view token, ParameterKind kind,
                                       std::string_view text) {
  ParsedToken parsed;
  parsed.parameter.kind = kind;
  const size_t bracket = text.find('[');
  const std::string_view element = text.substr(0, bracket);
  if (FindElementType(element) == nullptr) {
    return Invalid(function, StrCat("the token ", Quoted(token), " has the element type ", Quoted(element),
                                    ". Element types: ", ElementTypeList()));
  }
  parsed.parameter.element = std::string(element);
  if (bracket == std::string_view::npos) return parsed;
  const std::string_view rank = text.substr(bracket);
  if (rank.size() != 3 || rank[1] < '0' || rank[1] > '0' + kMaxRank || rank[2] != ']') {
    return Invalid(function, StrCat("the token ", Quoted(token), ": the number of dimensions is ", Quoted(rank),
                                    "; it must be [0] to [", kMaxRank, "]"));
  }
  parsed.parameter.rank = rank[1] - '0';
  return parsed;
}

// `text` is the part after "arg.tensormap:" or "ret.tensormap:": "float32[64,32]" or "float32[64,32]:swizzle_128B".
absl::StatusOr<ParsedToken> ParseTensorMap(std::string_view function, std::string_view token, ParameterKind kind,
                                           std::string_view text) {
  constexpr size_t kMostDimensions = 5;  // of CUDA, as the most elements of a box in one of them
  constexpr int kMostElements = 256;
  const std::string intro = StrCat("the token ", Quoted(token), ": ");
  const size_t close = text.find(']');
  const size_t open = std::min(text.find('['), close);
  if (close == std::string_view::npos || open == close) {
    return Invalid(function, StrCat(intro,
                                    "a tensor map needs an element type and the sizes of its box, such as "
                                    "arg.tensormap:float32[64,32]"));
  }
  KERNIX_ASSIGN_OR_RETURN(ParsedToken parsed, ParseTyped(function, token, kind, text.substr(0, open)));
  Parameter& parameter = parsed.parameter;
  parameter.expression = std::string(text.substr(open + 1, close - open - 1));
  const std::vector<std::string> sizes = absl::StrSplit(ToAbsl(parameter.expression), ',');
  for (const std::string& size : sizes) {
    int number = 0;
    if (IsPlainIdentifier(size) || (absl::SimpleAtoi(ToAbsl(size), &number) && number >= 1 && number <= kMostElements))
      continue;
    return Invalid(function, StrCat(intro, "a size of the box is ", Quoted(size),
                                    "; it must be a whole number of 1 to 256, or the name of a constant"));
  }
  if (sizes.size() > kMostDimensions) {
    return Invalid(function, StrCat(intro, "the box has ", sizes.size(), " sizes; TMA has at most ", kMostDimensions,
                                    " dimensions"));
  }
  parameter.rank = static_cast<int>(sizes.size());
  const std::string_view rest = text.substr(close + 1);
  for (const int swizzle : {0, 32, 64, 128}) {
    if (rest != (swizzle == 0 ? "" : StrCat(":swizzle_", swizzle, "B"))) continue;
    parameter.swizzle = swizzle;
    return parsed;
  }
  return Invalid(function,
                 StrCat(intro, Quoted(rest), " follows the box; only :swizzle_32B, :swizzle_64B or :swizzle_128B may"));
}

// A launch passes pointers, numbers, and the bytes of structs and vectors.
absl::Status CheckLaunched(const FunctionSpec& spec) {
  const std::vector<std::string> tokens = spec.Tokens();
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const Parameter& parameter = spec.parameters[i];
    const bool attribute = parameter.kind == ParameterKind::kAttribute && !parameter.has_default &&
                           parameter.attribute_type != AttributeType::kString;
    if (!attribute && parameter.kind != ParameterKind::kArgument && parameter.kind != ParameterKind::kResult) {
      return Invalid(spec.name, StrCat("the token ", Quoted(tokens[i]),
                                       " is not for a __global__ function, which takes arg, ret, and attributes that "
                                       "are numbers or arrays of them (for a struct or a vector) and that each call "
                                       "gives; it runs on the stream of the call"));
    }
    if (!attribute || std::find(kLaunchAttributes.begin(), kLaunchAttributes.end(), parameter.attribute_name) ==
                          kLaunchAttributes.end()) {
      continue;
    }
    return Invalid(spec.name, StrCat("the attribute ", Quoted(parameter.attribute_name),
                                     " has the name of a launch attribute of __global__ functions: rename the "
                                     "parameter, or write out the tokens with another name"));
  }
  return absl::OkStatus();
}

// JAX passes attributes as keywords to a function that has one parameter of its own.
constexpr std::string_view kNameInJax = "ctx";

absl::Status CheckSingles(const FunctionSpec& spec) {
  static constexpr std::pair<ParameterKind, std::string_view> kSingles[] = {
      {ParameterKind::kStream, "'stream': a call has one stream"},
      {ParameterKind::kDeviceOrdinal, "'device_ordinal': a call runs on one device"},
      {ParameterKind::kArguments, "'args...': one parameter takes all remaining arguments"},
      {ParameterKind::kResults, "'rets...': one parameter takes all remaining results"},
  };
  for (const auto& [kind, problem] : kSingles) {
    if (spec.CountOf(kind) > 1) return Invalid(spec.name, StrCat("duplicate ", problem));
  }
  return absl::OkStatus();
}

// The number of arguments in a call must determine which ones it passes.
absl::Status CheckOptionals(const FunctionSpec& spec) {
  const std::vector<ParameterKind> arguments = spec.Arguments();
  const auto first = std::find(arguments.begin(), arguments.end(), ParameterKind::kOptionalArgument);
  if (first == arguments.end()) return absl::OkStatus();
  if (spec.CountOf(ParameterKind::kArguments) > 0) {
    return Invalid(spec.name, "'arg?' and 'args...' cannot be combined: an argument could be either");
  }
  if (std::any_of(first, arguments.end(),
                  [](ParameterKind kind) { return kind != ParameterKind::kOptionalArgument; })) {
    return Invalid(spec.name, "an argument follows 'arg?': only the last arguments of a call can be missing");
  }
  return absl::OkStatus();
}

// C++ can leave out arguments only at the end.
absl::Status CheckDefaults(const FunctionSpec& spec) {
  const auto has_default = [](const Parameter& parameter) { return parameter.has_default; };
  const auto first = std::find_if(spec.parameters.begin(), spec.parameters.end(), has_default);
  const auto passed = [](const Parameter& parameter) { return parameter.IsVisible() && !parameter.has_default; };
  if (std::any_of(first, spec.parameters.end(), passed)) {
    return Invalid(spec.name, StrCat("a parameter follows 'attr.", first->attribute_name,
                                     "?', which a call may leave out: only the last parameters can be left out"));
  }
  if (spec.DefaultCount() <= kMaxDefaults) return absl::OkStatus();
  return Invalid(spec.name, StrCat("calls may leave out ", spec.DefaultCount(), " attributes; at most ", kMaxDefaults,
                                   " are allowed"));
}

// The names that a scratch expression may use.
class ScratchNames {
 public:
  explicit ScratchNames(const FunctionSpec& spec)
      : arguments_(spec.CountOf(ParameterKind::kArgument) + spec.CountOf(ParameterKind::kOptionalArgument)),
        results_(spec.CountOf(ParameterKind::kResult)) {
    if (spec.CountOf(ParameterKind::kArguments) > 0) others_.insert("args");
    if (spec.CountOf(ParameterKind::kResults) > 0) others_.insert("rets");
    if (spec.CountOf(ParameterKind::kDeviceOrdinal) > 0) others_.insert("device_ordinal");
    for (const Parameter& parameter : spec.parameters) {
      if (parameter.kind == ParameterKind::kAttribute) attributes_.insert(parameter.attribute_name);
      if (parameter.has_default) with_default_.insert(parameter.attribute_name);
    }
  }

  // Empty if the name has one meaning, or belongs to the source.
  std::string_view Problem(std::string_view name) const {
    const int argument = Number(name, "arg");
    const int result = Number(name, "ret");
    const bool is_value =
        (argument >= 0 && argument < arguments_) || (result >= 0 && result < results_) || others_.contains(name);
    const bool looks_like_one = argument >= 0 || result >= 0 || name == "args" || name == "rets";
    if (with_default_.contains(name)) return ", an attribute that a call may leave out";
    if (attributes_.contains(name)) {
      return is_value ? ", which is both a tensor (or the device's ordinal) and an attribute: give the attribute "
                        "another name in its token, which may differ from the C++ parameter's name"
                      : "";
    }
    return is_value || !looks_like_one ? ""
                                       : ", which does not exist: arguments are arg0, arg1, ..., results ret0, ret1, "
                                         "... (those of 'args...' and "
                                         "'rets...', where the function has these tokens, are args[i] and rets[i])";
  }

 private:
  // 5 for "arg5"; -1 for other names.
  static int Number(std::string_view name, std::string_view prefix) {
    int number = 0;
    const bool is_one = ConsumePrefix(name, prefix) && !name.empty() && name[0] >= '0' && name[0] <= '9' &&
                        absl::SimpleAtoi(ToAbsl(name), &number);
    return is_one ? number : -1;
  }

  const int arguments_;
  const int results_;
  absl::flat_hash_set<std::string_view> others_;
  absl::flat_hash_set<std::string_view> attributes_;
  absl::flat_hash_set<std::string_view> with_default_;
};

absl::Status CheckScratch(const FunctionSpec& spec) {
  const ScratchNames names(spec);
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kScratch) continue;
    for (const std::string_view name : FreeNames(parameter.expression)) {
      const std::string_view problem = names.Problem(name);
      if (problem.empty()) continue;
      return Invalid(spec.name, StrCat("the token ", Quoted(StrCat("scratch:", parameter.expression)), " names ",
                                       Quoted(name), problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParsedToken> ParseToken(std::string_view function, std::string_view token) {
  ParsedToken parsed;
  std::string_view rest = token;
  for (const PlainToken& plain : kPlainTokens) {
    if (plain.token != token) continue;
    parsed.parameter.kind = plain.kind;
    return parsed;
  }
  if (ConsumePrefix(rest, "attr.") || ConsumePrefix(rest, "attrs.")) return ParseAttribute(function, token, rest);
  if (ConsumePrefix(rest, "scratch:")) return ParseScratch(function, token, rest);
  if (ConsumePrefix(rest, "arg:")) return ParseTyped(function, token, ParameterKind::kArgument, rest);
  if (ConsumePrefix(rest, "arg.tensormap:")) {
    return ParseTensorMap(function, token, ParameterKind::kArgument, rest);
  }
  if (ConsumePrefix(rest, "ret.tensormap:")) return ParseTensorMap(function, token, ParameterKind::kResult, rest);
  if (ConsumePrefix(rest, "ret:")) return ParseTyped(function, token, ParameterKind::kResult, rest);
  return Invalid(function, StrCat("unknown token ", Quoted(token), ". Tokens: ", kTokenList));
}

absl::Status CheckSpec(const FunctionSpec& spec) {
  if (spec.parameters.size() > kMaxParameters) {
    return Invalid(spec.name, StrCat("it has more than ", kMaxParameters, " parameters"));
  }
  if (spec.is_global) KERNIX_RETURN_IF_ERROR(CheckLaunched(spec));
  KERNIX_RETURN_IF_ERROR(CheckSingles(spec));
  KERNIX_RETURN_IF_ERROR(CheckOptionals(spec));
  KERNIX_RETURN_IF_ERROR(CheckDefaults(spec));
  KERNIX_RETURN_IF_ERROR(CheckScratch(spec));
  if (spec.Results().empty()) {
    return Invalid(spec.name,
                   spec.is_global
                       ? "no 'ret': a function must have an output (a pointer that is not const)"
                       : "no 'ret': a function must have an output (a BE::Out, or a BE::Tensor that is not const)");
  }
  absl::flat_hash_set<std::string_view> names;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kAttribute) continue;
    if (parameter.attribute_name == kNameInJax) {
      return Invalid(spec.name, StrCat("JAX cannot pass an attribute named ", Quoted(kNameInJax),
                                       ", which is a parameter of its own: rename the parameter, or write out the "
                                       "tokens with another name"));
    }
    if (names.insert(parameter.attribute_name).second) continue;
    return Invalid(spec.name, StrCat("duplicate attribute ", Quoted(parameter.attribute_name)));
  }
  return absl::OkStatus();
}

absl::Status CheckFunctionName(std::string_view name) {
  if (IsPlainIdentifier(name)) return absl::OkStatus();
  const std::string_view problem =
      IsKeyword(name) ? "is a C++ keyword" : "is not a C++ identifier (letters, digits and '_', no digit first)";
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("the function name ", Quoted(name), " ", problem));
}

}  // namespace kernix::language
