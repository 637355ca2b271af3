// SPDX-License-Identifier: Apache-2.0
//
// For tests: helpers that several of them need.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// EXPECT_THAT(result, IsOk()), for an absl::Status or an absl::StatusOr.
MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// EXPECT_THAT(result, HasError(absl::StatusCode::kNotFound, testing::HasSubstr("x"))).
MATCHER_P2(HasError, code, message, "is an error with that code and message") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(message, std::string(ToStd(StatusOf(arg).message())), result_listener);
}

// An empty folder on disk that is removed with the test.
class ScratchDirectory {
 public:
  ScratchDirectory() : path_(Env::Posix().CreateTempDirectory(::testing::TempDir() + "kernix-test-").value()) {}
  ~ScratchDirectory() { Env::Posix().RemoveTree(path_).IgnoreError(); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  const std::string path_;
};

}  // namespace kernix
