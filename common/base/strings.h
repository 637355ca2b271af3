// SPDX-License-Identifier: Apache-2.0
//
// Distributions build Abseil as C++14. There, absl::string_view is a separate type that does not convert from or to
// std::string_view, which kernix uses. These functions convert between the two; they also compile where both are the
// same type.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kernix {

inline absl::string_view ToAbsl(std::string_view text) { return absl::string_view(text.data(), text.size()); }

// Also accepts the result of absl::Status::message().
template <typename StringView>
std::string_view ToStd(const StringView& text) {
  return std::string_view(text.data(), text.size());
}

namespace strings_internal {
template <typename T>
const T& Piece(const T& value) {
  return value;
}
inline absl::string_view Piece(std::string_view value) { return ToAbsl(value); }
}  // namespace strings_internal

// Like absl::StrCat and absl::StrAppend, but also accept std::string_view.
template <typename... T>
std::string StrCat(const T&... pieces) {
  return absl::StrCat(absl::AlphaNum(strings_internal::Piece(pieces)).Piece()...);
}

template <typename... T>
void StrAppend(std::string* target, const T&... pieces) {
  absl::StrAppend(target, absl::AlphaNum(strings_internal::Piece(pieces)).Piece()...);
}

}  // namespace kernix
