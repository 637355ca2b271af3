// SPDX-License-Identifier: Apache-2.0
//
// Function signatures, read from tokens without a C++ front end. A parameter that cannot be read is reported, never
// guessed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"
#include "daemon/language/spec/function_spec.h"

namespace kernix::language {

// The tokens behind a name; nullopt for a class or enum, and for a name with several meanings.
using AliasedType = std::optional<std::vector<Token>>;

// Type names that a source declares: `using Real = float;`, `typedef const BE::Tensor In;`, `struct Tensor { ... };`
class Aliases {
 public:
  // Reads `declaration`, which must end before its ';' or '{'. Ignores declarations that declare no type.
  void Read(absl::Span<const Token> declaration);

  // Null if the source declares no type of that name.
  const AliasedType* Find(std::string_view name) const;

  // Whether the source declares a class, struct or union of that name.
  bool HasClass(std::string_view name) const { return classes_.contains(name); }

 private:
  void Add(std::string_view name, AliasedType type);

  std::map<std::string_view, AliasedType> types_;
  std::set<std::string_view> classes_;
};

enum class ParameterClass {
  kInput,          // const BE::Tensor, by value or reference; BE::In; a kernel's const T*
  kOutput,         // BE::Tensor, by value or reference; BE::Out; a kernel's T*
  kStream,         // int64_t stream, or cudaStream_t with any name
  kScalar,         // a scalar type of attributes
  kString,         // std::string_view
  kArray,          // BE::Span<const T> of an element type of attributes
  kOptionalInput,  // const BE::Tensor*
  kInputs,         // BE::Span<const BE::Tensor>
  kOutputs,        // BE::Span<BE::Tensor>
  kDeviceOrdinal,  // a signed integer with that name
  kScratch,        // BE::Scratch
  kTensorMap,      // CUtensorMap
  kOther,          // a type that handlers cannot pass
};

struct SignatureParameter {
  ParameterClass kind = ParameterClass::kOther;
  AttributeType scalar = AttributeType::kInt32;  // kScalar, kDeviceOrdinal; kArray: the element type
  std::string element;                           // BE::In, BE::Out, T*: the element type, "float32"
  int rank = kAnyRank;                           // BE::In, BE::Out: the number of dimensions
  int lanes = 1;                                 // T*: how many elements a T has: 4 for a float4
  std::string name;                              // empty if it has none
  std::string text;                              // as written
  std::string problem;       // why a handler cannot know what to pass: of kOther, kScratch, kTensorMap, or a pointer
  bool has_default = false;  // whichever branches are compiled
  bool default_is_certain = false;  // a declaration outside of conditionals has a default
  bool by_value = false;
  bool is_pointer = false;      // kInput, kOutput: a kernel's T*
  bool is_template = false;     // kOther: an instance of a template
  bool points = false;          // kOther: a pointer, or an array, which C++ makes a pointer
  bool is_mutable = false;      // kOther: a reference that is not const
  bool is_deduced = false;      // from what is passed: `auto`, or a template's parameter without an argument
  bool is_unread_view = false;  // kOther: a BE::In or BE::Out of an element type that kernix cannot read
  int source = 0;
  int line = 0;

  bool IsTensor() const { return kind == ParameterClass::kInput || kind == ParameterClass::kOutput; }
  bool HoldsTensors() const {
    return IsTensor() || kind == ParameterClass::kOptionalInput || kind == ParameterClass::kInputs ||
           kind == ParameterClass::kOutputs || kind == ParameterClass::kTensorMap;
  }
  // Whether its type is `scalar`.
  bool IsNumber() const { return kind == ParameterClass::kScalar || kind == ParameterClass::kDeviceOrdinal; }
  bool IsAttribute() const {
    return kind == ParameterClass::kScalar || kind == ParameterClass::kString || kind == ParameterClass::kArray;
  }
};

struct TemplateParameter {
  std::string name;
  std::vector<Token> value;  // the default
};

struct Signature {
  std::vector<SignatureParameter> parameters;
  // For a template: Instantiate() makes `parameters` from `list`.
  std::vector<TemplateParameter> template_parameters;
  std::vector<Token> list;
  std::shared_ptr<const Aliases> aliases;  // for Instantiate(); may be null
  bool is_global = false;                  // a __global__ function
  bool returns_void = true;
  bool has_conditional = false;  // conditionals decide what the parameters are
  bool is_uncertain = false;     // has_conditional, or there is an ellipsis
  bool is_definition = false;    // a body follows
  bool in_conditional = false;   // in a branch that may not be compiled
  std::string scope;             // "a::b::": the enclosing named namespaces
  int source = 0;
  int line = 0;

  bool TakesTensors() const;
};

using NameSet = std::set<std::string, std::less<>>;
using SignatureMap = std::map<std::string, std::vector<Signature>>;

// A signature with more parameters than this keeps one more than this number.
inline constexpr size_t kMaxParameters = 1000;

// Reads one parameter of a list; `tokens` must have no comma at its outer level. `of_kernel`: the function is
// __global__.
SignatureParameter ReadParameter(absl::Span<const Token> tokens, const Aliases& aliases, bool of_kernel = false);

// Finds every host function and every __global__ function of `names` that `tokens` (see Preprocess()) declare in a
// namespace, and every template. The result is by name and has each distinct parameter list once. __device__ functions
// are left out.
SignatureMap FindSignatures(const std::vector<Token>& tokens, const NameSet& names);

// The signature of a template's instance. Template parameters without an argument stay as written. Subtracts the number
// of tokens that it makes from `budget`, down to 0.
Signature Instantiate(const Signature& pattern, absl::Span<const std::string> arguments, size_t& budget);

// Whether C++ takes both for the same function although a tensor is const in only one of them.
bool DifferInConst(const Signature& a, const Signature& b);

// Removes the __global__ functions if there is a host function: an annotation means that one.
void PreferHostFunctions(std::vector<Signature>& signatures);

// Adds `signature`, or merges it into the known declaration of the same function.
void AddSignature(std::vector<Signature>& known, Signature signature);

}  // namespace kernix::language
