// SPDX-License-Identifier: Apache-2.0
//
// Early return for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expr`, an absl::Status, is not OK.
#define KERNIX_RETURN_IF_ERROR(expr)                 \
  do {                                               \
    absl::Status kernix_status_ = (expr);            \
    if (!kernix_status_.ok()) return kernix_status_; \
  } while (false)

#define KERNIX_CONCAT_INNER_(a, b) a##b
#define KERNIX_CONCAT_(a, b) KERNIX_CONCAT_INNER_(a, b)

// `lhs` is a declaration or an lvalue. `expr` is an absl::StatusOr, whose value is moved into `lhs`.
#define KERNIX_ASSIGN_OR_RETURN(lhs, expr) \
  KERNIX_ASSIGN_OR_RETURN_IMPL_(KERNIX_CONCAT_(kernix_statusor_, __LINE__), lhs, expr)

#define KERNIX_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return std::move(tmp).status();      \
  lhs = *std::move(tmp)
