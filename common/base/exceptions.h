// SPDX-License-Identifier: Apache-2.0
//
// kernix's own code throws nothing, but the standard library does: std::bad_alloc where something is too large, and
// std::logic_error where kernix has a fault. Then only that user's request must fail.
#pragma once

#include <exception>
#include <stdexcept>
#include <string_view>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace kernix {

// The words for a load that an exception ended.
inline constexpr std::string_view kLoadNotHandled = "kernixd could not handle this load";

// The error for a fault of kernix. A line of the log names it.
inline absl::Status LogicError(std::string_view what, const std::logic_error& error) {
  Log(LogLevel::kError, "logic_error", {{"what", what}, {"error", error.what()}});
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat(what, ", because of a fault in kernix: ", error.what(), ". Please report it"));
}

// Returns what `work` returns: an absl::Status or absl::StatusOr. An exception in it becomes a RESOURCE error, whose
// message is `what` and the exception's own, or a LogicError().
template <typename Work>
auto CatchExceptions(std::string_view what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::length_error& error) {  // something is too large
    return MakeError(v1::ErrorDetail::RESOURCE, StrCat(what, ": ", error.what()));
  } catch (const std::logic_error& error) {
    return LogicError(what, error);
  } catch (const std::exception& error) {
    return MakeError(v1::ErrorDetail::RESOURCE, StrCat(what, ": ", error.what()));
  }
}

// For work that may be left undone: an exception only ends it. The log names a fault of kernix.
template <typename Work>
void IgnoreExceptions(std::string_view what, const Work& work) {
  (void)CatchExceptions(what, [&] {
    work();
    return absl::OkStatus();
  });
}

}  // namespace kernix
