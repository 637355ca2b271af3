// SPDX-License-Identifier: Apache-2.0
//
// Makes text from outside safe for protobuf `string` fields (a message with ill-formed UTF-8 in one does not parse),
// and for a terminal (a name may contain characters that move the cursor or reverse the line).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kernix {

// True when `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing past U+10FFFF).
bool IsValidUtf8(std::string_view text);

// `text` with U+FFFD in place of each byte that does not belong to a well-formed sequence.
std::string ToValidUtf8(std::string_view text);

// The length of the longest prefix of `text` that does not end inside a multi-byte sequence. Callers cut a stream into
// pieces there.
size_t CompleteUtf8Prefix(std::string_view text);

// The first character of a text.
struct Character {
  std::string_view bytes;  // all its bytes
  uint32_t code = 0;       // its Unicode code point; for a byte outside of any well-formed sequence, that byte
  bool well_formed = false;
  // False for characters that control a terminal instead of being displayed: control characters (C0, DEL, C1), marks
  // that change the writing direction, line separators, and ill-formed bytes.
  bool printable = false;
};

// `text` must not be empty.
Character FirstCharacter(std::string_view text);

// `text` as one line that is safe to print. Characters that are not printable appear as "\x1b" or "\u202e".
std::string Printable(std::string_view text);

// The same for several lines: line feeds and tabs stay.
std::string PrintableLines(std::string_view text);

}  // namespace kernix
