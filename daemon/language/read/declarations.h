// SPDX-License-Identifier: Apache-2.0
//
// Reads the declarations of a preprocessed text at namespace scope, and its macros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// The tokens of a declaration: its brackets, and what kind of declaration it is.
using Tokens = absl::Span<const Token>;

inline bool IsOpen(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
inline bool IsClose(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

bool IsOneOf(const Token& token, std::initializer_list<std::string_view> words);
bool Contains(Tokens tokens, std::string_view word);

// The index after the bracket that closes the one at `at`; the end if none does.
size_t AfterBrackets(Tokens tokens, size_t at);

// The index after the '>' that closes the '<' at `at`; the end if none does.
size_t AfterAngles(Tokens tokens, size_t at);

// A declaration without attributes, linkage, and heads of templates.
std::vector<Token> EssenceOf(Tokens tokens);

// Whether the token is '=' by itself, and not a part of "==", ">=" and the like.
bool IsAssignment(Tokens tokens, size_t at);

// Whether a token is outside all brackets; "=": as an assignment.
bool HasAtTop(Tokens tokens, std::string_view word);

// Whether the tokens before a '{' make it the body of a function.
bool BeginsFunction(Tokens before_brace);

struct Declaration {
  enum class Kind : uint8_t {
    kNames,           // declares `names`
    kOperator,        // an operator or a literal; `names` are the identifiers outside of its body
    kAllocation,      // operator new or delete
    kUsingNamespace,  // a using-directive
    kNothing,         // an assertion, or assembler
  };
  Kind kind = Kind::kNames;
  std::string scope;                    // "std::__cxx11"; empty for the global one
  std::vector<std::string_view> names;  // too many rather than too few
  std::vector<std::string_view> body;   // the identifiers in the body of a function
  uint64_t digest = 0;                  // of the scope and all tokens
  uint32_t origin = 0;
  bool is_for_devices = false;  // has CUDA's attribute `device`
};

struct MacroDefinition {
  uint64_t digest = 0;
  uint32_t origin = 0;
};

struct Declarations {
  std::vector<Declaration> list;
  absl::flat_hash_map<std::string_view, MacroDefinition> macros;  // those that are defined at the end
  std::vector<std::string_view> words;                            // all identifiers, each once
  std::deque<std::string> storage;
};

// The origin of a file that defines `macro`, or 0 if the macro says nothing about that. Everything in that file after
// the definition, and in the files that it includes, has this origin.
using OriginOf = std::function<uint32_t(std::string_view macro)>;

// Reads the output of `g++ -E -dD`, which must outlive the result. Never fails: text that it cannot read yields names
// that nobody declares, and the compiler reports it.
//
// Members of classes, parameters, template parameters and declarations in bodies of functions are left out: code
// reaches a member through its class, and the others have names in their own scope only.
Declarations ReadDeclarations(std::string_view text, const OriginOf& origin_of);

}  // namespace kernix::language
