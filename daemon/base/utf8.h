// SPDX-License-Identifier: Apache-2.0
//
// Text that came from outside, made fit for protobuf `string` fields: a message with other bytes in one does not parse.
#pragma once

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

}  // namespace kernix
