// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "common/base/nearest_name.h"
#include "common/base/strings.h"
#include "daemon/language/read/declarations.h"
#include "daemon/language/read/signature.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

constexpr std::string_view kUnderstood =
    "a parameter is a BE::In<T>, a BE::Out<T>, a BE::Tensor (const for an input), 'int64_t stream' or a cudaStream_t, "
    "a bool, an integer of 8 to 64 bits, a float or a double, a std::string_view, a BE::Span<const T> of numbers or "
    "tensors, or a const BE::Tensor*";

constexpr std::string_view kNoElement = "kernix cannot read its element type";

constexpr std::string_view kUnderstoodOfKernels =
    "a parameter of a __global__ function is a pointer to the elements of an array (const for an input), a BE::In<T>, "
    "a BE::Out<T>, a BE::Tensor, a bool, an integer of 8 to 64 bits, a float or a double, a vector such as a "
    "float3, or a struct of the source. For a struct of a header, write out the tokens: attr.<name>:uint8[], its bytes";

// The parts of a parameter: "const" type operators name.
struct Declarator {
  std::vector<std::string_view> words;  // keywords of a built-in type
  std::string type;                     // otherwise the qualified name, without template arguments
  Tokens arguments;                     // the template arguments, without their brackets
  bool is_template = false;             // there are template arguments, or empty brackets
  bool is_const = false;
  int pointers = 0;
  int references = 0;
  int arrays = 0;  // how many pairs of brackets follow the name
  std::string_view name;
  bool understood = true;
};

bool IsTypeWord(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords = {"bool",  "char",   "short",    "int",    "long",
                                                              "float", "double", "unsigned", "signed", "__int128"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

// Reads a Declarator from left to right.
class DeclaratorReader {
 public:
  explicit DeclaratorReader(Tokens tokens) : tokens_(tokens) {}

  Declarator Read() {
    while (ReadSpecifier()) {
    }
    while (ReadOperator()) {
    }
    const bool of_rows = ReadPointerToRows();  // "(*x)[4]", which is "x[][4]"
    if (More() && tokens_[at_].IsIdentifier() && !IsKeyword(tokens_[at_].text)) result_.name = tokens_[at_++].text;
    if (of_rows && More() && tokens_[at_].Is(")")) ++at_;
    if (More() && tokens_[at_].Is("[")) {
      result_.arrays = of_rows + static_cast<int>(std::count_if(tokens_.begin() + at_, tokens_.end(),
                                                                [](const Token& token) { return token.Is("["); }));
      at_ = tokens_.size();
    }
    result_.understood = !More() && (!result_.words.empty() || !result_.type.empty());
    return result_;
  }

 private:
  bool More() const { return at_ < tokens_.size(); }

  bool ReadSpecifier() {
    if (!More()) return false;
    const Token& token = tokens_[at_];
    if (token.Is("const")) {
      result_.is_const = true;
    } else if (token.IsIdentifier() && IsTypeWord(token.text) && result_.type.empty()) {
      result_.words.push_back(token.text);
    } else if (token.Is("volatile") || token.Is("register") || token.Is("typename") || token.Is("struct") ||
               token.Is("class") || token.Is("__grid_constant__")) {
    } else if (result_.words.empty() && result_.type.empty() && (token.IsIdentifier() || token.Is("::"))) {
      ReadQualifiedName();
      return true;
    } else {
      return false;
    }
    ++at_;
    return true;
  }

  void ReadQualifiedName() {
    bool expect_name = !tokens_[at_].Is("::");
    while (More() && (expect_name ? tokens_[at_].IsIdentifier() : tokens_[at_].Is("::"))) {
      result_.type += tokens_[at_++].text;
      expect_name = !expect_name;
      if (!expect_name) ReadTemplateArguments();
    }
  }

  void ReadTemplateArguments() {
    if (!More() || !tokens_[at_].Is("<")) return;
    const size_t begin = at_ + 1;
    int depth = 0;
    do {
      if (tokens_[at_].Is("<")) ++depth;
      if (tokens_[at_].Is(">")) --depth;
      ++at_;
    } while (More() && depth > 0);
    result_.is_template = true;
    result_.arguments = tokens_.subspan(begin, at_ - begin - (depth == 0 ? 1 : 0));
  }

  bool ReadPointerToRows() {
    if (tokens_.size() - at_ < 3 || !tokens_[at_].Is("(") || !tokens_[at_ + 1].Is("*")) return false;
    const auto close = std::find_if(tokens_.begin() + at_, tokens_.end(), [](const Token& t) { return t.Is(")"); });
    if (tokens_.end() - close < 2 || (close - 1)->Is("]") || !(close + 1)->Is("[")) return false;
    at_ += 2;
    while (ReadOperator()) {
    }
    return true;
  }

  bool ReadOperator() {
    if (!More()) return false;
    const Token& token = tokens_[at_];
    if (token.Is("*")) {
      ++result_.pointers;
    } else if (token.Is("&")) {
      ++result_.references;
    } else if (!token.Is("const") && !token.Is("__restrict__") && !token.Is("__restrict") && !token.Is("volatile")) {
      return false;
    }
    ++at_;
    return true;
  }

  Tokens tokens_;
  size_t at_ = 0;
  Declarator result_;
};

// The attribute type for keywords such as "unsigned long int".
std::optional<AttributeType> BuiltinType(const std::vector<std::string_view>& words) {
  const auto count = [&words](std::string_view word) { return std::count(words.begin(), words.end(), word); };
  const bool is_unsigned = count("unsigned") > 0;
  if (count("__int128") > 0) return std::nullopt;
  if (count("bool") > 0) return AttributeType::kBool;
  if (count("float") > 0) return AttributeType::kFloat32;
  if (count("double") > 0) return count("long") > 0 ? std::nullopt : std::make_optional(AttributeType::kFloat64);
  if (count("char") > 0) return is_unsigned ? AttributeType::kUInt8 : AttributeType::kInt8;
  if (count("short") > 0) return is_unsigned ? AttributeType::kUInt16 : AttributeType::kInt16;
  if (count("long") > 0) return is_unsigned ? AttributeType::kUInt64 : AttributeType::kInt64;
  return is_unsigned ? AttributeType::kUInt32 : AttributeType::kInt32;
}

// The attribute type for a name such as "std::int32_t". Of other names, kernix knows those of glibc, and what everybody
// means by `uchar`.
std::optional<AttributeType> NamedType(std::string_view name) {
  static const auto& types = *new absl::flat_hash_map<std::string_view, AttributeType>{
      {"int8_t", AttributeType::kInt8},         {"uint8_t", AttributeType::kUInt8},
      {"int16_t", AttributeType::kInt16},       {"uint16_t", AttributeType::kUInt16},
      {"int32_t", AttributeType::kInt32},       {"uint32_t", AttributeType::kUInt32},
      {"int64_t", AttributeType::kInt64},       {"uint64_t", AttributeType::kUInt64},
      {"size_t", AttributeType::kUInt64},       {"ptrdiff_t", AttributeType::kInt64},
      {"ssize_t", AttributeType::kInt64},       {"intptr_t", AttributeType::kInt64},
      {"uintptr_t", AttributeType::kUInt64},    {"u_int8_t", AttributeType::kUInt8},
      {"u_int16_t", AttributeType::kUInt16},    {"u_int32_t", AttributeType::kUInt32},
      {"u_int64_t", AttributeType::kUInt64},    {"off_t", AttributeType::kInt64},
      {"time_t", AttributeType::kInt64},        {"clock_t", AttributeType::kInt64},
      {"int_fast8_t", AttributeType::kInt8},    {"uint_fast8_t", AttributeType::kUInt8},
      {"int_fast16_t", AttributeType::kInt64},  {"uint_fast16_t", AttributeType::kUInt64},
      {"int_fast32_t", AttributeType::kInt64},  {"uint_fast32_t", AttributeType::kUInt64},
      {"int_fast64_t", AttributeType::kInt64},  {"uint_fast64_t", AttributeType::kUInt64},
      {"int_least8_t", AttributeType::kInt8},   {"uint_least8_t", AttributeType::kUInt8},
      {"int_least16_t", AttributeType::kInt16}, {"uint_least16_t", AttributeType::kUInt16},
      {"int_least32_t", AttributeType::kInt32}, {"uint_least32_t", AttributeType::kUInt32},
      {"int_least64_t", AttributeType::kInt64}, {"uint_least64_t", AttributeType::kUInt64},
      {"intmax_t", AttributeType::kInt64},      {"uintmax_t", AttributeType::kUInt64},
      {"char16_t", AttributeType::kUInt16},     {"char32_t", AttributeType::kUInt32},
      {"wchar_t", AttributeType::kInt32},       {"char8_t", AttributeType::kUInt8},
      {"uchar", AttributeType::kUInt8},         {"u_char", AttributeType::kUInt8},
      {"ushort", AttributeType::kUInt16},       {"u_short", AttributeType::kUInt16},
      {"uint", AttributeType::kUInt32},         {"u_int", AttributeType::kUInt32},
      {"ulong", AttributeType::kUInt64},        {"u_long", AttributeType::kUInt64},
  };
  ConsumePrefix(name, "std::");
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::make_optional(found->second);
}

// Advice about a type whose values XLA cannot pass; empty for other types.
std::string_view Remedy(std::string_view type) {
  if (HasText(type, "complex"))
    return "XLA cannot pass complex attributes: take the real and imaginary parts as two attributes";
  if (HasText(type, "half") || HasText(type, "loat16") || HasText(type, "bf16")) {
    return "write out the tokens, with attr.<name>:float16 or attr.<name>:bfloat16 for this one";
  }
  if (type == "std::string" || type == "string") return "take a std::string_view";
  return "";
}

std::optional<AttributeType> ScalarType(const Declarator& declarator) {
  std::string_view type = declarator.type;
  ConsumePrefix(type, "::");
  return declarator.words.empty() ? NamedType(type) : BuiltinType(declarator.words);
}

bool IsStreamName(std::string_view type) { return type == "cudaStream_t" || type == "CUstream"; }

bool IsTensorName(std::string_view type) {
  ConsumePrefix(type, "::");
  return type == "BE::Tensor" || type == "Tensor";
}

// The element type behind a C++ name that names it by one of its aliases.
std::string_view ElementOfAlias(std::string_view type) {
  static const auto& aliases = *new absl::flat_hash_map<std::string_view, std::string_view>{
      {"__half", "float16"},
      {"half", "float16"},
      {"__nv_bfloat16", "bfloat16"},
      {"nv_bfloat16", "bfloat16"},
      {"_Float16", "float16"},
      {"__bf16", "bfloat16"},
      {"std::byte", "uint8"},
      {"cuComplex", "complex64"},
      {"cuFloatComplex", "complex64"},
      {"cuDoubleComplex", "complex128"},
      {"__nv_fp8_e4m3", "float8_e4m3fn"},
      {"__nv_fp8_e5m2", "float8_e5m2"},
      {"__nv_fp8_e8m0", "float8_e8m0fnu"},
  };
  const auto found = aliases.find(type);
  return found == aliases.end() ? "" : found->second;
}

// A vector type of CUDA, such as float4 or __half2.
struct Vector {
  std::string_view element;  // empty: the type is none
  int lanes = 1;
};

Vector FindVector(std::string_view type) {
  static const auto& types = *new absl::flat_hash_map<std::string_view, std::string_view>{
      {"char", "int8"},      {"uchar", "uint8"},      {"short", "int16"},          {"ushort", "uint16"},
      {"int", "int32"},      {"uint", "uint32"},      {"long", "int64"},           {"ulong", "uint64"},
      {"longlong", "int64"}, {"ulonglong", "uint64"}, {"float", "float32"},        {"double", "float64"},
      {"half", "float16"},   {"__half", "float16"},   {"nv_bfloat16", "bfloat16"}, {"__nv_bfloat16", "bfloat16"},
  };
  // __nv_fp8x4_e4m3 holds four __nv_fp8_e4m3.
  for (const int lanes : {2, 4}) {
    const std::string packed = StrCat("__nv_fp8x", lanes, "_");
    if (type.starts_with(packed)) return {ElementOfAlias(StrCat("__nv_fp8_", type.substr(packed.size()))), lanes};
  }
  for (const std::string_view alignment : {"_16a", "_32a"}) ConsumeSuffix(type, alignment);  // double4_16a
  if (type.size() < 2 || type.back() < '1' || type.back() > '4') return {};
  const int lanes = type.back() - '0';
  const auto found = types.find(type.substr(0, type.size() - 1));
  return found == types.end() ? Vector() : Vector{found->second, lanes};
}

// Also after `using namespace std`.
bool IsComplexName(std::string_view type) {
  return type == "complex" || type == "std::complex" || type == "cuda::std::complex" || type == "thrust::complex";
}

// The name of the type of complex numbers whose parts are the template argument of `type`; empty if there is none.
std::string_view ComplexOf(const Declarator& type) {
  const std::optional<AttributeType> part = ScalarType(DeclaratorReader(type.arguments).Read());
  return part == AttributeType::kFloat32 ? "complex64" : part == AttributeType::kFloat64 ? "complex128" : "";
}

// The name of the element type (see FindElementType()) of arrays of `type`; empty if there is none.
std::string ElementOf(const Declarator& type) {
  std::string_view name = type.type;
  ConsumePrefix(name, "::");
  if (IsComplexName(name)) return std::string(ComplexOf(type));
  if (type.is_template) return "";
  if (const std::optional<AttributeType> scalar = ScalarType(type)) return std::string(AttributeTypeName(*scalar));
  if (const std::string_view alias = ElementOfAlias(name); !alias.empty()) return std::string(alias);
  if (!ConsumePrefix(name, "BE::")) ConsumePrefix(name, "std::");
  if (!ConsumeSuffix(name, "_t") || FindElementType(name) == nullptr) return "";
  return std::string(name);  // BE's own types, and C++23's: "BE::bfloat16_t", "std::bfloat16_t"
}

bool IsQualifier(const Token& token) {
  return token.Is("const") || token.Is("volatile") || token.Is("register") || token.Is("typename") ||
         token.Is("struct") || token.Is("class");
}

// Replaces the type of a parameter, or of an array's elements, by the type behind its alias, and the namespace in front
// of it by the one behind its alias, repeatedly. False if the source declares a type that cannot be replaced.
bool ResolveAliases(const Aliases& aliases, std::vector<Token>& tokens) {
  constexpr int kMaxSteps = 8;
  for (int step = 0; step < kMaxSteps; ++step) {
    const auto type = std::find_if_not(tokens.begin(), tokens.end(), IsQualifier);
    if (type == tokens.end() || !type->IsIdentifier()) return true;
    if (type + 1 != tokens.end() && (type + 1)->Is("<")) return true;
    const bool is_scope = type + 1 != tokens.end() && (type + 1)->Is("::");
    const bool is_standard = type->text.ends_with("_t") && NamedType(type->text).has_value();
    if (IsStreamName(type->text) || is_standard) return true;  // whoever declares them
    const AliasedType* aliased = aliases.Find(type->text);
    if (aliased == nullptr) return true;
    if (!aliased->has_value()) return is_scope;
    const std::vector<Token>& meaning = **aliased;
    // `const P` makes the pointer const, not its target; it has no effect on a reference.
    const bool compound = Contains(meaning, "*") || Contains(meaning, "&");
    if (compound && Contains(tokens, "const")) return false;
    const auto place = tokens.erase(type);
    tokens.insert(place, meaning.begin(), meaning.end());
  }
  return false;
}

// The type's name as it is written.
std::string TypeName(const Declarator& declarator) {
  std::string name = declarator.type;
  for (const std::string_view word : declarator.words) StrAppend(&name, name.empty() ? "" : " ", word);
  return name;
}

// ". Did you mean float?", of a type that may be NumPy's name or have a typing error; or nothing.
std::string MeantType(const Declarator& declarator) {
  if (FindVector(declarator.type).lanes > 1) return "";
  static const auto& names = *new std::vector<std::string>{
      "bool",   "char",    "short",   "int",         "long",          "float",         "double",        "unsigned",
      "int8_t", "int16_t", "int32_t", "int64_t",     "uint8_t",       "uint16_t",      "uint32_t",      "uint64_t",
      "size_t", "half",    "__half",  "nv_bfloat16", "__nv_bfloat16", "BE::float16_t", "BE::bfloat16_t"};
  const std::string& type = declarator.type;
  const std::string_view prefix = HasText(type, "int") ? "" : "BE::";
  const std::string meant = type == "float32"                  ? "float"
                            : type == "float64"                ? "double"
                            : FindElementType(type) != nullptr ? StrCat(prefix, type, "_t")
                                                               : NearestName(type, names);
  return meant.empty() ? "" : StrCat(". Did you mean ", meant, "?");
}

// Advice about an array of an unknown element type. `is_input`: whether it is an argument. `is_pointer`: as a T*.
std::string NoElement(const Declarator& type, std::string_view name, bool is_input, bool is_pointer) {
  const std::string_view token = is_input ? "arg" : "ret";
  const std::string part = type.type.ends_with("complex")
                               ? std::string(ComplexOf(type))                         // mine::complex<float>
                               : ElementOf(DeclaratorReader(type.arguments).Read());  // vec<float, 4>
  const std::string example = StrCat(token, ":", part.empty() ? "<element type>" : part);
  if (name == "long double" || HasText(name, "__int128")) return StrCat("JAX has no arrays of ", name);
  if (name == "void") return "take a BE::Tensor, which takes every element type";
  const std::string meant = MeantType(type);
  return StrCat(kNoElement, meant.empty() ? "." : meant, " Write out the tokens, with ", example, " for this one",
                !part.empty() ? ""
                : is_pointer
                    ? StrCat(": ", token, ":float32 if it consists of floats, ", token, ":int32 of ints")
                    : StrCat(", such as ", token, ":float16 if it is a half. For a struct of several numbers, take a ",
                             "BE::Tensor, whose data_ptr<", name, ">() is the pointer"));
}

bool IsTypedName(std::string_view type) {
  return type == "BE::In" || type == "In" || type == "BE::Out" || type == "Out";
}

// Reads the number of dimensions of BE::In<T, rank>. False if it is no plain number.
bool ReadRank(Tokens tokens, int& rank) {
  return tokens.size() == 1 && absl::SimpleAtoi(ToAbsl(tokens[0].text), &rank) && rank >= 0 && rank <= kMaxRank;
}

// The type that `tokens`, the element type of an array, stand for; nothing if it cannot be read.
std::vector<Token> ResolvedElement(const Aliases& aliases, Tokens tokens) {
  std::vector<Token> resolved(tokens.begin(), tokens.end());
  if (!ResolveAliases(aliases, resolved)) resolved.clear();
  return resolved;
}

// Classifies a parameter of type BE::In or BE::Out with `arguments`.
void ClassifyTyped(const Aliases& aliases, std::string_view type, Tokens arguments, SignatureParameter& parameter) {
  int depth = 0;
  const auto comma = std::find_if(arguments.begin(), arguments.end(), [&](const Token& token) {
    depth += token.Is("<") - token.Is(">");
    return depth == 0 && token.Is(",");
  });
  const auto place = static_cast<size_t>(comma - arguments.begin());
  const std::vector<Token> resolved = ResolvedElement(aliases, arguments.first(place));
  const Declarator element = DeclaratorReader(resolved).Read();
  const bool plain = element.understood && element.name.empty() && element.pointers == 0 && element.references == 0 &&
                     element.arrays == 0;
  parameter.element = plain ? ElementOf(element) : "";
  if (element.is_const) {
    parameter.problem = "leave out the const: a BE::In is read-only, a BE::Out is written";
  } else if (parameter.element.empty()) {
    const std::string written = Spelled(arguments.first(place));
    parameter.problem = NoElement(element, written, type.ends_with("In"), false);
    if (resolved.empty() && !aliases.HasClass(written)) {
      parameter.problem += ". If an #if chooses the type, decide it by a -D or -U flag for its macro";
    }
    parameter.is_unread_view = true;
  } else if (comma != arguments.end() && !ReadRank(arguments.subspan(place + 1), parameter.rank)) {
    parameter.problem = StrCat("the number of dimensions must be written as 0 to ", kMaxRank);
  } else {
    parameter.kind = type.ends_with("In") ? ParameterClass::kInput : ParameterClass::kOutput;
    return;
  }
  parameter.element.clear();
}

// Classifies a parameter of type BE::Span with `arguments`.
void ClassifySpan(const Aliases& aliases, Tokens arguments, SignatureParameter& parameter) {
  const std::vector<Token> resolved = ResolvedElement(aliases, arguments);
  const Declarator element = DeclaratorReader(resolved).Read();
  const std::optional<AttributeType> scalar = ScalarType(element);
  const bool plain = element.understood && element.name.empty() && element.pointers == 0 && element.references == 0;
  if (plain && IsTensorName(element.type)) {
    parameter.kind = element.is_const ? ParameterClass::kInputs : ParameterClass::kOutputs;
  } else if (plain && IsTypedName(element.type)) {
    parameter.problem =
        "for any number of arrays, take a BE::Span<const BE::Tensor>, or a BE::Span<BE::Tensor> for "
        "results";
  } else if (!plain || !scalar.has_value() || !CanBeArray(*scalar)) {
    parameter.problem = "XLA passes arrays of integers of 8 to 64 bits, of float and of double";
  } else if (!element.is_const) {
    parameter.problem = "attributes are constant: take a BE::Span<const T>";
  } else {
    parameter.kind = ParameterClass::kArray;
    parameter.scalar = *scalar;
  }
}

// Why a host function cannot take a pointer, with what to take instead.
std::string PointerProblem(const Declarator& declarator) {
  if (IsTensorName(declarator.type)) {
    return "take the BE::Tensor by value or by reference; for an input that a call may leave out, take a const "
           "BE::Tensor*";
  }
  if (IsTypedName(declarator.type)) {
    return StrCat("take the ", declarator.type,
                  " by value; for an input that a call may leave out, take a const BE::Tensor*");
  }
  const bool is_char = declarator.words.size() == 1 && declarator.words[0] == "char";
  if (is_char && declarator.is_const) return "XLA's strings are not null-terminated: take a std::string_view";
  const std::string problem = "a pointer cannot come from JAX";
  const bool has_element = !ElementOf(declarator).empty();
  const bool is_raw = declarator.type == "void" || !FindVector(declarator.type).element.empty();
  if (declarator.pointers + declarator.arrays != 1 || !(has_element || is_raw)) return problem;
  const std::string name = declarator.name.empty() ? "x" : std::string(declarator.name);
  const std::string type = TypeName(declarator);
  const std::string_view is_const = declarator.is_const ? "const " : "";
  if (is_raw) {
    return StrCat(problem, ": take a BE::Tensor: '", is_const, "BE::Tensor& ", name, "'. Its ", name, ".data_ptr<",
                  is_const, type, ">() is the pointer");
  }
  const std::string_view taken = declarator.is_const ? "BE::In<" : "BE::Out<";
  return StrCat(problem, ": take a ", taken, type, ">: '", taken, type, "> ", name, "'. Its ", name,
                ".data() is the pointer, and ", name, ".size() the number of elements");
}

// Sets kind and scalar, or the problem.
void ClassifyNamed(const Aliases& aliases, const Declarator& declarator, SignatureParameter& parameter) {
  std::string_view type = declarator.type;
  ConsumePrefix(type, "::");
  const bool is_tensor = IsTensorName(type) && !declarator.is_template;
  const bool is_stream = IsStreamName(type);
  const bool by_value = declarator.references == 0 || (declarator.references == 1 && declarator.is_const);
  const std::optional<AttributeType> scalar = ScalarType(declarator);
  if (is_tensor && declarator.is_const && declarator.pointers == 1 && declarator.references == 0 &&
      declarator.arrays == 0) {
    parameter.kind = ParameterClass::kOptionalInput;
  } else if (declarator.pointers > 0 || declarator.arrays > 0) {
    parameter.problem = PointerProblem(declarator);
  } else if (is_tensor && declarator.references <= 1) {
    parameter.kind = declarator.is_const ? ParameterClass::kInput : ParameterClass::kOutput;
  } else if (!by_value) {
    parameter.problem = "take it by value";
  } else if (is_stream || (type == "int64_t" && declarator.name == "stream") ||
             (type == "std::int64_t" && declarator.name == "stream")) {
    parameter.kind = ParameterClass::kStream;
  } else if (scalar.has_value()) {
    const bool ordinal =
        declarator.name == "device_ordinal" && (*scalar == AttributeType::kInt32 || *scalar == AttributeType::kInt64);
    parameter.kind = ordinal ? ParameterClass::kDeviceOrdinal : ParameterClass::kScalar;
    parameter.scalar = *scalar;
  } else if (IsTypedName(type)) {
    ClassifyTyped(aliases, type, declarator.arguments, parameter);
  } else if (type == "std::string_view" || type == "string_view") {
    parameter.kind = ParameterClass::kString;
    parameter.scalar = AttributeType::kString;
  } else if (type == "BE::Span" || type == "Span") {
    ClassifySpan(aliases, declarator.arguments, parameter);
  } else if (type == "BE::Scratch" || type == "Scratch") {
    parameter.kind = ParameterClass::kScratch;
    parameter.problem =
        "a BE::Scratch needs a size: write out the tokens, with scratch:<bytes> for it, such as "
        "scratch:4*arg0.numel()";
  } else if (type == "CUtensorMap") {
    parameter.kind = ParameterClass::kTensorMap;
    parameter.problem =
        "a CUtensorMap needs a box: write out the tokens, with arg.tensormap:<element type>[<box>] for it, such as "
        "arg.tensormap:float32[64,32], or ret.tensormap for a result";
  } else {
    parameter.problem = Remedy(type);
    if (parameter.problem.empty()) parameter.problem = StrCat(kUnderstood, MeantType(declarator));
  }
}

// Classifies a kernel's parameter that is a pointer.
void ClassifyPointer(const Declarator& declarator, SignatureParameter& parameter) {
  parameter.is_pointer = true;
  parameter.kind = declarator.is_const ? ParameterClass::kInput : ParameterClass::kOutput;
  parameter.element = ElementOf(declarator);
  if (!parameter.element.empty() || declarator.type == "void") return;
  const Vector vector = declarator.is_template ? Vector() : FindVector(declarator.type);
  parameter.element = std::string(vector.element);
  parameter.lanes = vector.lanes;
  if (parameter.element.empty())
    parameter.problem = NoElement(declarator, TypeName(declarator), declarator.is_const, true);
}

// Why a kernel cannot take a number or an object of that type.
std::string ProblemOfKernel(const Declarator& declarator, const SignatureParameter& parameter) {
  if (parameter.kind == ParameterClass::kStream) {
    return "kernix launches the function on the stream of the call, and passes it no stream: leave the parameter out";
  }
  const std::string_view half = ElementOfAlias(declarator.type);
  if (half == "float16" || half == "bfloat16") return "take a float, and convert it in the function";
  const std::string_view remedy = Remedy(declarator.type);
  return HasText(declarator.type, "complex") ? std::string(remedy)
                                             : StrCat(kUnderstoodOfKernels, MeantType(declarator));
}

// The element type of a vector type of CUDA, such as float3; nullopt for other types.
std::optional<AttributeType> ElementOfVector(std::string_view type) {
  if (type == "dim3") return AttributeType::kUInt32;
  AttributeType element;
  return ParseAttributeType(FindVector(type).element, element) ? std::optional(element) : std::nullopt;
}

// Classifies a kernel's parameter that takes the bytes of an array attribute.
void ClassifyBytes(AttributeType element, SignatureParameter& parameter) {
  parameter.kind = ParameterClass::kArray;
  parameter.scalar = element;
}

// Classifies a parameter of a __global__ function.
void ClassifyOfKernel(const Aliases& aliases, const Declarator& declarator, SignatureParameter& parameter) {
  const int pointers = declarator.pointers + (declarator.arrays > 0 ? 1 : 0);  // rows are elements like any others
  if (pointers == 1 && declarator.references == 0 && !IsTensorName(declarator.type)) {
    ClassifyPointer(declarator, parameter);
    return;
  }
  if (const auto element = ElementOfVector(declarator.type); element && pointers + declarator.references == 0) {
    ClassifyBytes(*element, parameter);
    return;
  }
  ClassifyNamed(aliases, declarator, parameter);
  if (parameter.kind == ParameterClass::kDeviceOrdinal) parameter.kind = ParameterClass::kScalar;
  const bool passed =
      parameter.IsTensor() || parameter.kind == ParameterClass::kScalar || parameter.kind == ParameterClass::kTensorMap;
  if (passed && declarator.references == 0) return;
  parameter.problem = declarator.references > 0 ? "a __global__ function takes its parameters by value"
                      : pointers > 1            ? "a pointer to pointers cannot come from JAX"
                      : parameter.kind == ParameterClass::kOther && IsTypedName(declarator.type)
                          ? parameter.problem
                          : ProblemOfKernel(declarator, parameter);
  parameter.kind = ParameterClass::kOther;
  parameter.element.clear();
}

// `tokens` without [[attributes]], __attribute__((...)) and the default argument.
std::vector<Token> Essential(Tokens tokens, bool& has_default) {
  std::vector<Token> result;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool brackets = tokens[i].Is("[") && i + 1 < tokens.size() && tokens[i + 1].Is("[");
    const bool gnu = tokens[i].Is("__attribute__") || tokens[i].Is("alignas");
    if (tokens[i].Is("=")) {
      has_default = true;
      break;
    }
    if (!brackets && !gnu) {
      result.push_back(tokens[i]);
      continue;
    }
    i = AfterBrackets(tokens, gnu ? i + 1 : i) - 1;
  }
  return result;
}

constexpr size_t kMaxSpelled = 50;  // in tokens: a type in a template instance may be long

}  // namespace

SignatureParameter ReadParameter(Tokens tokens, const Aliases& aliases, bool of_kernel) {
  SignatureParameter parameter;
  parameter.text = Spelled(tokens.first(std::min(tokens.size(), kMaxSpelled)));
  if (!tokens.empty()) {
    parameter.source = tokens[0].source;
    parameter.line = tokens[0].line;
  }
  std::vector<Token> essential = Essential(tokens, parameter.has_default);
  const bool known = ResolveAliases(aliases, essential);
  const Declarator declarator = DeclaratorReader(essential).Read();
  parameter.name = std::string(declarator.name);
  parameter.by_value = declarator.references == 0;
  parameter.is_template = declarator.is_template;
  parameter.is_deduced = Contains(tokens, "auto");
  parameter.points = declarator.pointers + declarator.arrays > 0;
  parameter.is_mutable = declarator.references == 1 && !declarator.is_const;
  const bool is_class = declarator.understood && !declarator.is_template && aliases.HasClass(declarator.type);
  if (is_class && of_kernel && declarator.pointers + declarator.references + declarator.arrays == 0) {
    ClassifyBytes(AttributeType::kUInt8, parameter);
  } else if (!known && of_kernel) {
    parameter.problem = declarator.pointers > 0 ? NoElement(declarator, TypeName(declarator), declarator.is_const, true)
                                                : std::string(kUnderstoodOfKernels);
  } else if (!known) {
    parameter.problem =
        "the source declares that type, but not as a single alias of a readable type. Name the tokens: arg, ret, "
        "stream, attr.<name>:<type> (of an enum its number, such as int32; of a struct its bytes, uint8[])";
  } else if (!declarator.understood) {
    parameter.problem = of_kernel ? kUnderstoodOfKernels : kUnderstood;
  } else if (of_kernel) {
    ClassifyOfKernel(aliases, declarator, parameter);
  } else {
    ClassifyNamed(aliases, declarator, parameter);
  }
  if (of_kernel) parameter.has_default = false;  // a launch passes every parameter
  return parameter;
}

}  // namespace kernix::language
