// SPDX-License-Identifier: Apache-2.0
//
// Kinds of flag values, for rules that open a flag to everyone. A value of one of these kinds (except kAnyValue) names
// no file, runs nothing, quotes nothing, and is not itself a flag.
#pragma once

#include <string_view>

namespace kernix::flags {

// Kinds, which can be combined with "|".
inline constexpr unsigned kNumber = 1;     // "64"
inline constexpr unsigned kWord = 2;       // letters, digits and _ + . - (no leading -: it might read as a flag)
inline constexpr unsigned kWords = 4;      // one or several, separated by ','
inline constexpr unsigned kNumbers = 8;    // separated by ':', as in alignments
inline constexpr unsigned kPair = 16;      // "name=word"
inline constexpr unsigned kEnding = 32;    // the rest of a name: small letters, digits, - and _, or nothing
inline constexpr unsigned kAnyValue = 64;  // the code that reads the flag checks the value

// Whether `value` matches one of `kinds`.
bool IsOfKind(unsigned kinds, std::string_view value);

}  // namespace kernix::flags
