// SPDX-License-Identifier: Apache-2.0
//
// The real compilers that tests run.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace kernix::testing {

// The absolute path of a program on this process's PATH.
std::optional<std::string> FindOnPath(const std::string& name);

// $KERNIX_TEST_NVCC, otherwise the nvcc on PATH, in /usr/local/cuda, or in the repository's .venv (where `make setup`
// installs the wheels).
std::optional<std::string> FindNvcc();

}  // namespace kernix::testing

// Declares `path`, a const std::string. If this machine does not have the tool, skips the test and says why.
#define KERNIX_NEED_NVCC(path)                                                                             \
  const std::optional<std::string> path##_found = ::kernix::testing::FindNvcc();                           \
  if (!path##_found) GTEST_SKIP() << "no nvcc: `make setup` installs one; or set KERNIX_TEST_NVCC to one"; \
  const std::string path = path##_found.value_or("")

#define KERNIX_NEED_PROGRAM(path, name)                                                \
  const std::optional<std::string> path##_found = ::kernix::testing::FindOnPath(name); \
  if (!path##_found) GTEST_SKIP() << "there is no " << (name) << " on PATH";           \
  const std::string path = path##_found.value_or("")
