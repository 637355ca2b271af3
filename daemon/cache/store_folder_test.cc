// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/store_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/paths.h"
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

// What daemons leave in a folder that somebody has emptied, or of which somebody has removed a part.
TEST_F(StoreFolderTest, OneThatHoldsOnlyWhatDaemonsLeaveIsMadeAnew) {
  const std::string digest(64, 'a');
  const StorePaths paths(store_);
  for (const std::string& left :
       {paths.scratch + "/action-x1/file", paths.scratch + "/tree-x1/file", paths.steps + "/" + digest,
        paths.steps + "/" + digest + ".tmp", paths.blobs + "/" + digest + ".so", paths.private_directory + "/run/lock",
        paths.index, paths.index + ".damaged-wal", paths.lock, paths.private_directory + "/owner"}) {
    ASSERT_THAT(Env::Posix().CreateDirectories(Dirname(left), 0700), IsOk());
    ASSERT_THAT(Env::Posix().WriteFile(left, "", 0600), IsOk());
    EXPECT_THAT(Claim(), IsOk()) << left;
    EXPECT_EQ(Env::Posix().ReadFile(paths.version).value(), "1\n") << left;
    ASSERT_THAT(Env::Posix().RemoveTree(store_), IsOk());
  }
}

TEST_F(StoreFolderTest, WithoutAVersionAndWithSomebodysFilesItIsRefusedAndLeftAlone) {
  const StorePaths paths(store_);
  for (const std::string& precious : {paths.scratch + "/precious", paths.steps + "/precious", paths.blobs + "/precious",
                                      paths.blobs + "/precious.so", paths.private_directory + "/precious"}) {
    ASSERT_THAT(Env::Posix().CreateDirectories(Dirname(precious), 0700), IsOk());
    ASSERT_THAT(Env::Posix().WriteFile(precious, "x", 0600), IsOk());
    EXPECT_THAT(std::string(Claim().status().message()), HasSubstr("is not a kernix store")) << precious;
    EXPECT_THAT(Env::Posix().Stat(precious), IsOk());
    EXPECT_FALSE(Env::Posix().Stat(paths.version).ok());
    ASSERT_THAT(Env::Posix().RemoveTree(store_), IsOk());
  }
}

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
