// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_folder.h"

#include <gtest/gtest.h>

#include <iostream>

#include "common/base/paths.h"
#include "common/os/env.h"

namespace kernix::testing {

TempFolder::TempFolder() {
  Env& env = Env::Posix();
  const auto made = env.CreateTempDirectory(JoinPath(ProcessGetEnv("TMPDIR").value_or("/tmp"), "kernix-test-"));
  EXPECT_TRUE(made.ok()) << made.status();
  path_ = env.RealPath(made.value()).value();
}

TempFolder::~TempFolder() {
  if (::testing::Test::HasFailure()) {
    std::cerr << "kept: " << path_ << "\n";
    return;
  }
  EXPECT_TRUE(Env::Posix().RemoveTree(path_).ok());
}

std::string TempFolder::File(std::string_view name) const { return JoinPath(path_, name); }

std::string TempFolder::Write(std::string_view name, std::string_view text, bool executable) const {
  std::string path = File(name);
  EXPECT_TRUE(Env::Posix().CreateDirectories(Dirname(path)).ok());
  EXPECT_TRUE(Env::Posix().WriteFile(path, text, executable ? 0755 : 0644).ok());
  return path;
}

}  // namespace kernix::testing
