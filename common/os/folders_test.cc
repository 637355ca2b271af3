// SPDX-License-Identifier: Apache-2.0
#include "common/os/folders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "common/os/private_directory.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kUser = 1000;
constexpr uid_t kNobodyKnown = 987654;

GetEnv Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

class FoldersTest : public testing::Test {
 protected:
  FoldersTest() {
    EXPECT_THAT(env_.CreateDirectories("/tmp", 01777), IsOk());
    EXPECT_THAT(env_.CreateDirectories("/run/user/1000", 0700), IsOk());
  }

  MemEnv env_;
  GetEnv with_runtime_ = Variables({{"XDG_RUNTIME_DIR", "/run/user/1000"}});
  absl::StatusOr<std::string> RuntimeDirectory(const GetEnv& get_env) {
    return kernix::RuntimeDirectory(env_, get_env, kUser);
  }

  GetEnv without_ = Variables({});
};

TEST_F(FoldersTest, CanonicalPathIsTheSameBeforeAndAfterAFolderIsMade) {
  ASSERT_THAT(env_.CreateDirectories("/data/u", 0755), IsOk());
  ASSERT_TRUE(env_.CreateSymlink("/data", "/home").ok());
  const std::string before = CanonicalPath(env_, "/home/u/./.cache/kernix");
  ASSERT_THAT(env_.CreateDirectories("/home/u/.cache/kernix", 0755), IsOk());
  EXPECT_EQ(before, "/data/u/.cache/kernix");
  EXPECT_EQ(CanonicalPath(env_, "/home/u/.cache/kernix"), before);
}

TEST_F(FoldersTest, RuntimeDirectoryIsPrivateAndWhereTheLoginManagerSays) {
  ASSERT_EQ(RuntimeDirectory(with_runtime_).value(), "/run/user/1000/kernix");
  EXPECT_EQ(env_.Stat("/run/user/1000/kernix")->mode, 0700u);
  // And again, now that it exists.
  EXPECT_EQ(RuntimeDirectory(with_runtime_).value(), "/run/user/1000/kernix");
}

TEST_F(FoldersTest, RuntimeDirectoryIsUnderTmpWhereTheVariableIsNoUse) {
  const std::string under_tmp = "/tmp/kernix-1000";
  EXPECT_EQ(RuntimeDirectory(without_).value(), under_tmp);
  EXPECT_EQ(RuntimeDirectory(Variables({{"XDG_RUNTIME_DIR", "/run/user/7"}})).value(), under_tmp);
  EXPECT_EQ(RuntimeDirectory(Variables({{"XDG_RUNTIME_DIR", "relative"}})).value(), under_tmp);
  env_.SetMode("/run/user/1000", 0777);
  EXPECT_EQ(RuntimeDirectory(with_runtime_).value(), under_tmp);
  env_.SetMode("/run/user/1000", 0700);
  env_.SetOwner("/run/user/1000", kNobodyKnown);
  EXPECT_EQ(RuntimeDirectory(with_runtime_).value(), under_tmp);
}

TEST_F(FoldersTest, SomebodyElsesDirectoryIsRefusedByName) {
  ASSERT_THAT(env_.CreateDirectories("/tmp/kernix-1000", 0700), IsOk());
  env_.SetOwner("/tmp/kernix-1000", kNobodyKnown);
  EXPECT_THAT(RuntimeDirectory(without_),
              HasError(absl::StatusCode::kPermissionDenied, AllOf(HasSubstr("/tmp/kernix-1000"), HasSubstr("987654"))));
  env_.SetOwner("/tmp/kernix-1000", 0);
  EXPECT_THAT(RuntimeDirectory(without_), HasError(absl::StatusCode::kPermissionDenied, HasSubstr("root (uid 0)")));
}

TEST_F(FoldersTest, ALinkIsRefused) {
  ASSERT_THAT(env_.CreateDirectories("/tmp/elsewhere", 0700), IsOk());
  ASSERT_TRUE(env_.CreateSymlink("/tmp/elsewhere", "/tmp/kernix-1000").ok());
  EXPECT_THAT(RuntimeDirectory(without_), HasError(absl::StatusCode::kPermissionDenied, HasSubstr("a link")));
}

TEST_F(FoldersTest, AnOpenDirectoryIsRefusedWithTheRemedy) {
  ASSERT_THAT(env_.CreateDirectories("/tmp/kernix-1000", 0750), IsOk());
  EXPECT_THAT(RuntimeDirectory(without_),
              HasError(absl::StatusCode::kPermissionDenied, AllOf(HasSubstr("0750"), HasSubstr("chmod 700"))));
}

TEST_F(FoldersTest, EachStoreHasARunFolderOfItsOwn) {
  const RunFolder a = RunFolderForStore(env_, with_runtime_, kUser, "/home/u/.cache/kernix").value();
  const RunFolder b = RunFolderForStore(env_, with_runtime_, kUser, "/scratch/kernix").value();
  const RunFolder a_again = RunFolderForStore(env_, with_runtime_, kUser, "/home/u//.cache/x/../kernix/").value();
  EXPECT_EQ(Dirname(a.directory), "/run/user/1000/kernix");
  EXPECT_NE(a.directory, b.directory);
  EXPECT_EQ(a.directory, a_again.directory);
  EXPECT_EQ(env_.Stat(a.directory)->mode, 0700u);
  EXPECT_EQ(a.socket, a.directory + "/kernixd.sock");
  EXPECT_EQ(a.lock, a.directory + "/kernixd.lock");
  EXPECT_EQ(a.start_lock, a.directory + "/start.lock");
  EXPECT_EQ(a.log, a.directory + "/kernixd.log");
}

TEST_F(FoldersTest, WhoOnlyLooksCreatesNothing) {
  const RunFolder found = FindRunFolderForStore(env_, with_runtime_, kUser, "/store").value();
  EXPECT_TRUE(absl::IsNotFound(env_.Stat("/run/user/1000/kernix").status()));
  EXPECT_EQ(RunFolderForStore(env_, with_runtime_, kUser, "/store")->socket, found.socket);
  env_.SetOwner(found.directory, kNobodyKnown);
  EXPECT_EQ(FindRunFolderForStore(env_, with_runtime_, kUser, "/store")->socket, "/store/private/run/kernixd.sock");
  EXPECT_TRUE(absl::IsNotFound(env_.Stat("/store").status()));
}

TEST_F(FoldersTest, AFileInPlaceOfTheRuntimeDirectoryIsRefused) {
  ASSERT_THAT(env_.WriteFile("/run/user/1000/kernix", "", 0600), IsOk());
  for (auto* run_folder : {&RunFolderForStore, &FindRunFolderForStore}) {
    EXPECT_THAT(run_folder(env_, with_runtime_, kUser, "/store"),
                HasError(absl::StatusCode::kAlreadyExists, HasSubstr("/run/user/1000/kernix")));
  }
}

TEST_F(FoldersTest, ASocketPathThatIsTooLongMovesUnderTmp) {
  const std::string folder = RunFolderForStore(env_, with_runtime_, kUser, "/store")->directory;
  const size_t rest = folder.size() - std::string("/run/user/1000").size() + std::string("/kernixd.sock").size();
  for (const bool fits : {true, false}) {
    const std::string root = "/run/" + std::string(kMaxSocketPath - rest - 5 + (fits ? 0 : 1), 'x');
    ASSERT_THAT(env_.CreateDirectories(root, 0700), IsOk());
    const RunFolder got = RunFolderForStore(env_, Variables({{"XDG_RUNTIME_DIR", root}}), kUser, "/store").value();
    EXPECT_EQ(got.socket.size() == kMaxSocketPath, fits) << got.socket;
    EXPECT_EQ(got.socket.starts_with("/tmp/kernix-1000/"), !fits) << got.socket;
  }
}

TEST_F(FoldersTest, WhereSomebodyElseHasTheRunFolderItIsInTheStore) {
  const RunFolder folder = RunFolderForStore(env_, with_runtime_, kUser, "/store").value();
  EXPECT_EQ(folder.warning, "");
  env_.SetOwner(folder.directory, kNobodyKnown);
  const RunFolder other = RunFolderForStore(env_, with_runtime_, kUser, "/store").value();
  EXPECT_EQ(other.socket, "/store/private/run/kernixd.sock");
  EXPECT_THAT(other.warning, AllOf(HasSubstr(folder.directory), HasSubstr("987654"), HasSubstr("Have it removed")));
  EXPECT_EQ(env_.Stat("/store/private")->mode, 0700u);
  EXPECT_EQ(RunFolderForStore(env_, with_runtime_, kUser, "/./store")->socket, other.socket) << "alike for everybody";

  env_.SetOwner("/store/private", kNobodyKnown);
  EXPECT_THAT(RunFolderForStore(env_, with_runtime_, kUser, "/store"),
              HasError(absl::StatusCode::kPermissionDenied, HasSubstr(folder.directory)));
}

TEST_F(FoldersTest, AStoreWithALongPathHoldsNoSocket) {
  const std::string store = "/" + std::string(100, 's');
  env_.SetOwner(RunFolderForStore(env_, with_runtime_, kUser, store)->directory, kNobodyKnown);
  EXPECT_THAT(RunFolderForStore(env_, with_runtime_, kUser, store),
              HasError(absl::StatusCode::kPermissionDenied, HasSubstr("987654")));
}

TEST_F(FoldersTest, DefaultStoreIsTheFirstOfVariableCacheHomeAndHome) {
  std::map<std::string, std::string> variables = {
      {"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/c"}, {"KERNIX_CACHE_DIR", "/k/./d/"}};
  EXPECT_EQ(DefaultStoreDirectory(env_, Variables(variables), kUser).value(), "/k/d");
  variables.erase("KERNIX_CACHE_DIR");
  EXPECT_EQ(DefaultStoreDirectory(env_, Variables(variables), kUser).value(), "/c/kernix");
  variables["XDG_CACHE_HOME"] = "relative";
  EXPECT_EQ(DefaultStoreDirectory(env_, Variables(variables), kUser).value(), "/home/u/.cache/kernix");
  EXPECT_THAT(env_.Stat("/home"), HasError(absl::StatusCode::kNotFound, HasSubstr("/home")));
}

TEST_F(FoldersTest, DefaultStoreMustBeAnAbsolutePathBelowTheRoot) {
  for (const std::string folder : {"cache", "/", "//", "/a/..", "/s:/"}) {
    EXPECT_THAT(DefaultStoreDirectory(env_, Variables({{"KERNIX_CACHE_DIR", folder}}), kUser),
                HasError(absl::StatusCode::kInvalidArgument, HasSubstr(StrCat("\"", folder, "\""))))
        << folder;
  }
}

TEST_F(FoldersTest, AStoreHasAPathOfUtf8) {
  EXPECT_THAT(
      DefaultStoreDirectory(env_, Variables({{"KERNIX_CACHE_DIR", "/caf\xe9"}}), kUser),
      HasError(absl::StatusCode::kInvalidArgument, HasSubstr("KERNIX_CACHE_DIR must name a folder whose path")));
  EXPECT_EQ(DefaultStoreDirectory(env_, Variables({{"HOME", "/home/caf\xe9"}}), kUser).value(), "/var/tmp/kernix-1000");
}

TEST_F(FoldersTest, DefaultStoreAvoidsANetworkHomeUnlessAskedFor) {
  env_.AddNetworkFileSystem("/home");
  EXPECT_EQ(DefaultStoreDirectory(env_, Variables({{"HOME", "/home/u"}}), kUser).value(), "/var/tmp/kernix-1000");
  EXPECT_EQ(env_.Stat("/var/tmp/kernix-1000")->mode, 0700u);
  EXPECT_EQ(DefaultStoreDirectory(env_, Variables({{"KERNIX_CACHE_DIR", "/home/u/k"}}), kUser).value(), "/home/u/k");
}

TEST_F(FoldersTest, DefaultStoreWithoutAHomeIsNodeLocalAndOurs) {
  env_.SetUid(kNobodyKnown);
  EXPECT_EQ(DefaultStoreDirectory(env_, without_, kNobodyKnown).value(), "/var/tmp/kernix-987654");
}

TEST_F(FoldersTest, WhereSomebodyElseHasTheNodeLocalStoreItIsInTheRuntimeDirectory) {
  const auto stores = [&](const GetEnv& get_env) { return UserStores(env_, get_env, kNobodyKnown, "", ""); };
  env_.SetUid(kNobodyKnown);
  EXPECT_EQ(stores(without_)->warning, "");
  env_.SetOwner("/var/tmp/kernix-987654", 1);
  EXPECT_EQ(stores(without_)->written, "/tmp/kernix-987654/store");
  EXPECT_THAT(stores(without_)->warning, AllOf(HasSubstr("/var/tmp/kernix-987654: it belongs to"), HasSubstr("(uid 1)"),
                                               HasSubstr("KERNIX_CACHE_DIR"), HasSubstr("/tmp/kernix-987654/store")));
  EXPECT_EQ(env_.Stat("/tmp/kernix-987654")->mode, 0700u);

  env_.SetOwner("/tmp/kernix-987654", 1);
  EXPECT_THAT(stores(without_), HasError(absl::StatusCode::kPermissionDenied, HasSubstr("/var/tmp/kernix-987654")));
}

}  // namespace

}  // namespace kernix
