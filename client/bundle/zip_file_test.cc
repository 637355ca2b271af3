// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/zip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/os/env.h"
#include "tests/support/client_support.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;

class ZipFileTest : public ::testing::Test {
 protected:
  std::string Content(const std::string& path) { return Env::Posix().ReadFile(path).value(); }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "a.zip";
};

TEST_F(ZipFileTest, KeepsNamesAndBytes) {
  const std::map<std::string, std::string> contents = {
      {"empty", ""}, {"a.so", std::string("\0\x7f\n\r", 4)}, {"large", std::string(300'000, 'x')}};
  ASSERT_THAT(WriteZip(path_, contents), IsOk());
  EXPECT_EQ(ReadZip(path_).value(), contents);
  EXPECT_THAT(Content(path_), HasSubstr(std::string(300'000, 'x')));  // stored
}

TEST_F(ZipFileTest, EqualContentsMakeEqualFiles) {
  ASSERT_THAT(WriteZip(path_, {{"a", "1"}, {"b", "2"}}), IsOk());
  ASSERT_THAT(WriteZip(folder_ / "other.zip", {{"b", "2"}, {"a", "1"}}), IsOk());
  EXPECT_EQ(Content(path_), Content(folder_ / "other.zip"));
}

TEST_F(ZipFileTest, DamageIsFound) {
  ASSERT_THAT(WriteZip(path_, {{"a", std::string(1000, 'x')}}), IsOk());
  const std::string whole = Content(path_);
  std::string edited = whole;
  edited[500] = 'y';
  for (const std::string& content : {whole.substr(0, 700), whole.substr(0, whole.size() - 30), edited, std::string()}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadZip(folder_.Write("bad.zip", content)).status())) << content.size();
  }
}

TEST_F(ZipFileTest, FoldersAreRefused) {
  ASSERT_THAT(WriteZip(path_, {{"../a", "1"}}), IsOk());
  EXPECT_TRUE(absl::IsDataLoss(ReadZip(path_).status()));
}

TEST_F(ZipFileTest, NothingIsWrittenWhereNothingCanBe) {
  const absl::Status status = WriteZip(folder_ / "none/a.zip", {{"a", "1"}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/a.zip: No such file or directory"));
}

TEST_F(ZipFileTest, AFullDiskIsNamed) {
  ASSERT_EQ(symlink("/dev/full", (folder_ / "full.zip").c_str()), 0);
  const absl::Status status = WriteZip(folder_ / "full.zip", {{"a", std::string(100'000, 'x')}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("full.zip: No space left on device"));
}

}  // namespace
}  // namespace kernix
