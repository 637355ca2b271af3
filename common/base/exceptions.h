// SPDX-License-Identifier: Apache-2.0
//
// kernix's own code throws nothing, but the standard library does, for example std::bad_alloc where something is too
// large. What one user asks for must then fail alone.
#pragma once

#include <exception>
#include <string_view>

#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix {

// The words for a load that an exception ended.
inline constexpr std::string_view kLoadNotHandled = "kernixd could not handle this load";

// Returns what `work` returns: an absl::Status or absl::StatusOr. An exception in it becomes a RESOURCE error, whose
// message is `what` and the exception's own.
template <typename Work>
auto CatchExceptions(std::string_view what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return MakeError(v1::ErrorDetail::RESOURCE, StrCat(what, ": ", error.what()));
  }
}

}  // namespace kernix
