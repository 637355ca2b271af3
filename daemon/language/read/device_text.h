// SPDX-License-Identifier: Apache-2.0
//
// A preprocessed unit without what must not matter to nvcc's device compiler (cicc): white space, and where tokens
// stand. cicc gets this text where its result may serve others, so that it sees no more than the key of the result
// covers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cxx/lexer.h"

namespace kernix::language {

// The text for `preprocessed`, the output of `g++ -E` for the device: the same tokens, and the same files and flags of
// line markers, with the number 1. Messages about it name wrong lines. nullopt: lines count, since the unit asks for
// them (`__builtin_LINE()`). Linear in the size of the text.
std::optional<std::string> CanonicalDeviceText(std::string_view preprocessed);

// --- What DigestOfDeviceCode() (device_code.h) shares with it --------------------------------------------------------

// Whether two tokens mean something else without white space between them: `+ +`, `"a" b`. `left` may be empty.
bool MayJoin(const Token& left, const Token& right);

// Whether the unit asks for the place of a token.
bool AsksForItsLine(const Token& token);

// Reads line markers, `# 12 "file" 1 3`.
class LineMarkers {
 public:
  // `directive`: the tokens of a preprocessor line. Takes the number out of a marker. False for a marker that says only
  // where in the same file the text goes on.
  bool Counts(std::vector<Token>& directive);

 private:
  std::string file_;  // and its flags
};

}  // namespace kernix::language
