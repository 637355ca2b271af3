// SPDX-License-Identifier: Apache-2.0
//
// Text that came from outside, made fit for protobuf `string` fields: a message with other bytes in one does not parse.
// And made fit for a terminal: a name may hold what moves the cursor or turns the line around.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kernix {

// True when `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing past U+10FFFF).
bool IsValidUtf8(std::string_view text);

// `text` with each byte that is no part of a well-formed sequence replaced by U+FFFD.
std::string ToValidUtf8(std::string_view text);

// The length of the longest prefix of `text` that does not end inside a multi-byte sequence: where to cut a stream into
// pieces.
size_t CompleteUtf8Prefix(std::string_view text);

// What a text begins with.
struct Character {
  std::string_view bytes;  // all of it
  uint32_t code = 0;       // its number in Unicode; of a byte that is no part of a well-formed sequence, that byte
  bool well_formed = false;
  // False for what does something to a terminal instead of standing there: control characters (C0, DEL, C1), marks that
  // change the direction of writing, separators of lines, and bytes that are no text.
  bool printable = false;
};

// `text` is not empty.
Character FirstCharacter(std::string_view text);

// `text` as one line that is safe to print: what is not printable as "\x1b" or "\u202e".
std::string Printable(std::string_view text);

// The same of several lines: line feeds and tabs stay.
std::string PrintableLines(std::string_view text);

}  // namespace kernix
