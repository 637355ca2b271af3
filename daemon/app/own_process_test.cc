// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/own_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

TEST(LogFileTest, KeepsOnePreviousFile) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "kernixd.log";
  const UniqueFd descriptor(open("/dev/null", O_WRONLY));
  const auto write_log = [&](const std::string& text) {
    ASSERT_EQ(write(descriptor.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  LogFile log(path, descriptor.get(), /*limit=*/10);
  ASSERT_THAT(log.Open(), IsOk());
  write_log("ten bytes\n");
  ASSERT_THAT(log.Step(), IsOk());
  write_log("first\n");
  EXPECT_EQ(Env::Posix().ReadFile(path).value(), "ten bytes\nfirst\n") << "no more than the limit stays where it is";
  for (const std::string text : {"the second file\n", "the third file\n"}) {
    ASSERT_THAT(log.Step(), IsOk());
    write_log(text);
  }
  EXPECT_EQ(Env::Posix().ReadFile(path).value(), "the third file\n");
  EXPECT_EQ(Env::Posix().ReadFile(path + ".1").value(), "the second file\n");
  ASSERT_THAT(Env::Posix().RemoveFile(path), IsOk());
  ASSERT_THAT(log.Step(), IsOk());
  write_log("after somebody has removed it\n");
  EXPECT_EQ(Env::Posix().ReadFile(path).value(), "after somebody has removed it\n");
}

TEST(LogFileTest, StaysSmallHoweverFastItGrows) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "kernixd.log";
  const UniqueFd descriptor(open("/dev/null", O_WRONLY));
  LogFile log(path, descriptor.get(), /*limit=*/1000);
  ASSERT_THAT(log.Open(), IsOk());
  const std::string line(99, 'x');
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(write(descriptor.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    log.Wrote(line.size());
  }
  for (const char* suffix : {"", ".1"}) {
    EXPECT_LE(Env::Posix().Stat(path + suffix)->size, 1000u + 1000u / 4 + line.size()) << suffix;
  }
}

}  // namespace
}  // namespace kernix::server
