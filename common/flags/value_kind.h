// SPDX-License-Identifier: Apache-2.0
//
// What the value of a flag may be, for rules that let everybody use it: a value of one of these kinds (but kAnyValue)
// names no file, runs nothing, quotes nothing, and is no flag itself.
#pragma once

#include <string_view>

namespace kernix::flags {

// Kinds, which can be combined.
inline constexpr unsigned kNumber = 1;     // "64"
inline constexpr unsigned kWord = 2;       // letters, digits and _ + . - (not first: a tool could take it for a flag)
inline constexpr unsigned kWords = 4;      // one or several, with ',' between them
inline constexpr unsigned kNumbers = 8;    // with ':' between them, as alignments have it
inline constexpr unsigned kPair = 16;      // "name=word"
inline constexpr unsigned kEnding = 32;    // the rest of a name: small letters, digits, - and _, or nothing
inline constexpr unsigned kAnyValue = 64;  // who uses this kind checks the value

// Whether `value` is of one of `kinds`.
bool IsOfKind(unsigned kinds, std::string_view value);

}  // namespace kernix::flags
