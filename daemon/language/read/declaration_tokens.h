// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a declaration: its brackets, and what kind of declaration it is.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

using Tokens = absl::Span<const Token>;

inline bool IsOpen(const Token& token) { return token.Is("(") || token.Is("[") || token.Is("{"); }
inline bool IsClose(const Token& token) { return token.Is(")") || token.Is("]") || token.Is("}"); }

bool IsOneOf(const Token& token, std::initializer_list<std::string_view> words);

// The index after the bracket that closes the one at `at`; the end if none does.
size_t AfterBrackets(Tokens tokens, size_t at);

// The index after the '>' that closes the '<' at `at`; the end if none does.
size_t AfterAngles(Tokens tokens, size_t at);

// A declaration without attributes, linkage, and heads of templates.
std::vector<Token> EssenceOf(Tokens tokens);

// Whether the token is '=' by itself, and not a part of "==", ">=" and the like.
bool IsAssignment(Tokens tokens, size_t at);

// Whether a token stands outside of all brackets; "=": as an assignment.
bool HasAtTop(Tokens tokens, std::string_view word);

// Whether what stands before a '{' makes it the body of a function.
bool BeginsFunction(Tokens before_brace);

}  // namespace kernix::language
