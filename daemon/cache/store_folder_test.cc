// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/store_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/error.h"
#include "tests/support/need_right.h"
#include "tests/support/test_util.h"

namespace kernix::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StoreFolderTest : public testing::Test {
 protected:
  StoreFolderTest() { EXPECT_THAT(Env::Posix().CreateDirectories(store_, 0700), IsOk()); }

  absl::StatusOr<std::unique_ptr<FileLock>> Claim() { return ClaimStore(Env::Posix(), StorePaths(store_)); }

  std::string RefusalText() {
    const absl::Status status = Claim().status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
    EXPECT_FALSE(Env::Posix().Stat(store_ + "/private").ok()) << "nothing is written there";
    return std::string(status.message());
  }

  ScratchDirectory scratch_;
  const std::string store_ = scratch_ / "store";
};

TEST_F(StoreFolderTest, OneThatOthersMayReadIsFine) {
  ASSERT_EQ(chmod(store_.c_str(), 0755), 0);
  EXPECT_THAT(Claim(), IsOk());
}

TEST_F(StoreFolderTest, OneBehindALinkIsFine) {
  const std::string link = scratch_ / "link";
  ASSERT_EQ(symlink(store_.c_str(), link.c_str()), 0);
  EXPECT_THAT(ClaimStore(Env::Posix(), StorePaths(link)), IsOk());
}

TEST_F(StoreFolderTest, OneThatOthersMayWriteToIsRefusedWithTheRemedy) {
  for (const mode_t mode : {0770, 0707, 01777}) {
    ASSERT_EQ(chmod(store_.c_str(), mode), 0);
    EXPECT_THAT(RefusalText(), AllOf(HasSubstr("chmod go-w " + store_), HasSubstr("set_cache_dir()")));
  }
}

TEST_F(StoreFolderTest, OneOfSomebodyElseIsRefusedByName) {
  KERNIX_NEED_ROOT("giving a folder away takes root");
  ASSERT_EQ(chown(store_.c_str(), 4711, 4711), 0);
  EXPECT_THAT(RefusalText(), AllOf(HasSubstr(store_), HasSubstr("belongs to uid 4711")));
}

TEST_F(StoreFolderTest, OneThatSomebodyElseCanExchangeIsRefusedNamingTheFolder) {
  const std::string parent = scratch_ / "parent";
  const std::string below = parent + "/store";
  ASSERT_THAT(Env::Posix().CreateDirectories(below, 0700), IsOk());
  const auto refusal = [&](const std::string& store) {
    const absl::Status status = ClaimStore(Env::Posix(), StorePaths(store)).status();
    EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE) << status;
    return std::string(status.message());
  };
  ASSERT_EQ(chmod(parent.c_str(), 0777), 0);
  EXPECT_THAT(refusal(below), AllOf(HasSubstr(parent + " is on the way"), HasSubstr("chmod go-w " + parent),
                                    HasSubstr("choose another store")));
  EXPECT_FALSE(Env::Posix().Stat(below + "/private").ok()) << "nothing is written there";
  if (geteuid() == 0) {
    ASSERT_EQ(chmod(parent.c_str(), 0755), 0);
    ASSERT_EQ(chown(parent.c_str(), 4711, 4711), 0);
    EXPECT_THAT(refusal(below), HasSubstr("uid 4711"));
    const std::string link = scratch_ / "link";
    ASSERT_EQ(symlink(below.c_str(), link.c_str()), 0);
    EXPECT_THAT(refusal(link), HasSubstr("uid 4711")) << "through a link of ours";
    ASSERT_EQ(chown(parent.c_str(), 0, 0), 0);
  }
  ASSERT_EQ(chmod(parent.c_str(), 01777), 0);
  EXPECT_THAT(ClaimStore(Env::Posix(), StorePaths(below)), IsOk()) << "as below /tmp";
}

}  // namespace
}  // namespace kernix::cache
