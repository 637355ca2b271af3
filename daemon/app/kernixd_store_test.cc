// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd on stores that are not writable, are full, or go away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "common/base/paths.h"
#include "common/wire/kernixd_exit.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"
#include "tests/support/need_right.h"

namespace kernix::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Root may write anywhere, so as root these tests prove nothing.
class ForbiddenStoreTest : public KernixdTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) return;
    // Runs as nobody, in a folder of nobody's, with a copy of the program: the build's folder may be closed to other
    // users.
    program_ = place_.root() + "/kernixd";
    for (const std::string program : {KERNIXD_PROGRAM, KERNIX_SPAWN_PROGRAM}) {
      const std::string copy = place_.root() + "/" + std::string(Basename(program));
      ASSERT_THAT(Env::Posix().WriteFile(copy, Env::Posix().ReadFile(program).value(), 0755), IsOk());
    }
    ASSERT_EQ(chown(place_.root().c_str(), kNobody, kNobody), 0);
    user_ = kNobody;
  }

  std::unique_ptr<KernixdProcess> LaunchAsUser() { return Launch(KernixdCommand{.program = program_, .user = user_}); }

  std::string program_ = KERNIXD_PROGRAM;
  std::optional<uid_t> user_;
};

TEST_F(ForbiddenStoreTest, AFolderThatCannotBeMadeIsSaidAtStart) {
  const std::string closed = place_.root() + "/closed";
  ASSERT_EQ(mkdir(closed.c_str(), 0555), 0);
  const std::string store = closed + "/store";
  const auto daemon = Launch(KernixdCommand{.program = program_,
                                            .arguments = {"--store-directory", store, "--socket", place_.socket()},
                                            .user = user_,
                                            .place_arguments = false});
  EXPECT_EQ(daemon->AwaitExit(), kExitStoreUnusable);
  EXPECT_THAT(daemon->Log(), AllOf(HasSubstr(store), HasSubstr("Permission denied"), HasSubstr("KERNIX_CACHE_DIR")));
}

TEST_F(ForbiddenStoreTest, AFolderThatCannotBeWrittenIsSaidAtStart) {
  ASSERT_EQ(mkdir(place_.store().c_str(), 0555), 0);  // as root: the folder does not even belong to them
  const auto daemon = LaunchAsUser();
  EXPECT_EQ(daemon->AwaitExit(), kExitStoreUnusable);
  EXPECT_THAT(daemon->Log(),
              AllOf(HasSubstr(place_.store()), HasSubstr("Permission denied"), HasSubstr("make it writable")));
}

TEST_F(ForbiddenStoreTest, AStoreThatBecomesUnwritableFailsTheLoadsThatNeedIt) {
  const auto daemon = LaunchAsUser();
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  const auto client = Connect();
  ASSERT_TRUE(client->Load(AddKernel(1)).result);
  const std::string blobs = JoinPath(place_.store(), "artifacts");
  ASSERT_EQ(chmod(blobs.c_str(), 0555), 0);
  const LoadOutcome refused = client->Load(AddKernel(2));
  ASSERT_TRUE(refused.failure) << "built, though it could not be kept";
  EXPECT_EQ(refused.failure->kind(), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(refused.failure->message(), AllOf(HasSubstr(place_.store()), HasSubstr("Permission denied")));
  EXPECT_TRUE(client->Load(AddKernel(1)).result->cache_hit()) << "what is there is still served";
  ASSERT_EQ(chmod(blobs.c_str(), 0711), 0);
  EXPECT_TRUE(client->Load(AddKernel(2)).result);
}

using KernixdStoreTest = KernixdTest;

// That user could put another folder in its place between a client's check of an artifact and its dlopen().
TEST_F(KernixdStoreTest, AStoreBelowAFolderOfSomebodyElseEndsTheStart) {
  KERNIX_NEED_ROOT("giving a folder away takes root");
  const std::string his = place_.root() + "/his";
  ASSERT_THAT(Env::Posix().CreateDirectories(his + "/store", 0755), IsOk());
  ASSERT_EQ(chown(his.c_str(), kNobody, kNobody), 0);
  const KernixdCommand command{.arguments = {"--store-directory", his + "/store", "--socket", place_.socket()},
                               .place_arguments = false};
  const auto daemon = Launch(command);
  EXPECT_EQ(daemon->AwaitExit(), kExitStoreUnusable);
  EXPECT_THAT(daemon->Log(), AllOf(HasSubstr(his + " is on the way"), HasSubstr("(uid 65534)")));
  ASSERT_EQ(chown(his.c_str(), 0, 0), 0);
  const auto harmless = Launch(command);
  EXPECT_THAT(harmless->AwaitReady(), IsOk());
}

// As the field's usual advice has it: "delete the cache folder".
TEST_F(KernixdStoreTest, ADaemonWhoseStoreIsRemovedEndsAndTheNextMakesItAnew) {
  for (const char* part :
       {"", "/version", "/artifacts", "/private", "/private/tmp", "/private/lock", "/private/index.sqlite"}) {
    const auto daemon = Serve();
    const auto client = Connect();
    ASSERT_TRUE(client->Load(AddKernel(1)).result) << part;
    client->AwaitEndOfLearning();
    ASSERT_THAT(Env::Posix().RemoveTree(place_.store() + part), IsOk());
    EXPECT_EQ(daemon->AwaitExit(), kExitFailure) << part;
    EXPECT_THAT(daemon->Log(), AllOf(HasSubstr(place_.store() + part), HasSubstr("was removed or exchanged")));
  }
  const auto daemon = Serve();
  EXPECT_TRUE(Connect()->Load(AddKernel(1)).result);
}

TEST_F(KernixdStoreTest, ALostIndexIsReplacedByItsCopy) {
  {
    const auto daemon = Serve();
    ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
    daemon->Signal(SIGTERM);
    ASSERT_EQ(daemon->AwaitExit(), kExitOk);
  }
  ASSERT_THAT(Env::Posix().RemoveFile(place_.store() + "/private/index.sqlite"), IsOk());
  const auto daemon = Serve();
  EXPECT_TRUE(Connect()->Load(AddKernel(1)).result->cache_hit());
  EXPECT_THAT(daemon->Log(), HasSubstr("cache_index_copy_used"));
}

TEST_F(KernixdStoreTest, ADaemonWhoseStoreIsEmptiedOrMovedEndsToo) {
  for (const bool moved : {false, true}) {
    const auto daemon = Serve();
    const auto client = Connect();
    ASSERT_TRUE(client->Load(AddKernel(1)).result);
    client->AwaitEndOfLearning();
    if (moved) {
      ASSERT_THAT(Env::Posix().Rename(place_.store(), place_.root() + "/moved"), IsOk());
    } else {
      const std::vector<std::string> names = Env::Posix().ListDirectory(place_.store()).value();
      for (const std::string& name : names) {
        ASSERT_THAT(Env::Posix().RemoveTree(place_.store() + "/" + name), IsOk());
      }
    }
    EXPECT_EQ(daemon->AwaitExit(), kExitFailure);
  }
}

TEST_F(KernixdStoreTest, ADaemonBehindALinkThatLeadsElsewhereEnds) {
  const std::string link = place_.root() + "/link";
  ASSERT_EQ(symlink(place_.store().c_str(), link.c_str()), 0);
  ASSERT_EQ(mkdir(place_.store().c_str(), 0700), 0);
  const auto daemon = Launch(
      KernixdCommand{.arguments = {"--store-directory", link, "--socket", place_.socket()}, .place_arguments = false});
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
  ASSERT_EQ(unlink(link.c_str()), 0);
  EXPECT_EQ(daemon->AwaitExit(), kExitFailure);
}

// The client comes back to the next daemon after that answer.
TEST_F(KernixdStoreTest, ALoadWhoseStoreIsRemovedIsTurnedAwayAsByADaemonThatStops) {
  const auto daemon = Serve({"--drain-timeout", "1h"});
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  ASSERT_THAT(Env::Posix().RemoveTree(place_.store()), IsOk());
  const LoadOutcome late = client->Load(AddKernel(2));
  EXPECT_EQ(late.status.error_code(), grpc::StatusCode::UNAVAILABLE) << late.status.error_message();
  EXPECT_TRUE(client->Info()->draining());
  running.SendBlob("\n");
  const LoadOutcome outcome = running.Finish();
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE) << outcome.status.error_message();
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(outcome.failure->message(), HasSubstr(place_.store() + " was removed"));
  EXPECT_EQ(daemon->AwaitExit(), kExitFailure);

  const auto next = Serve();
  EXPECT_TRUE(Connect()->Load(AddKernel(2)).result) << "what the build has left there is no obstacle";
}

v1::LoadRequest OnlyCached(int addend) {
  v1::LoadRequest request = AddKernel(addend);
  request.set_only_cached(true);
  return request;
}

TEST_F(KernixdStoreTest, StoresAfterTheFirstAreRead) {
  const std::string image = place_.root() + "/image";
  const auto serve = [&](const std::string& stores) {
    auto daemon = Launch(KernixdCommand{.arguments = {"--store-directory", stores, "--socket", place_.socket()},
                                        .place_arguments = false});
    EXPECT_THAT(daemon->AwaitReady(), IsOk());
    return daemon;
  };
  const auto in = [](const std::string& store) { return testing::StartsWith(store + "/artifacts/"); };
  {
    const auto daemon = serve(image);
    ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
    daemon->Signal(SIGKILL);  // as the end of an image's build does
    EXPECT_EQ(daemon->AwaitExit(), 128 + SIGKILL);
  }
  const auto daemon = serve(place_.store() + ":" + image);
  const auto client = Connect();
  const auto info = client->Info();
  ASSERT_THAT(info, IsOk());
  EXPECT_THAT(info->read_store(), testing::ElementsAre(image));
  EXPECT_EQ(info->unwritable_store(), "");
  for (int times = 0; times < 2; ++times) {
    const LoadOutcome hit = client->Load(OnlyCached(1));
    ASSERT_TRUE(hit.result) << hit.status.error_message();
    EXPECT_TRUE(hit.result->cache_hit());
    EXPECT_THAT(hit.result->artifact_path(), in(image));
    EXPECT_THAT(client->Fetch(hit.result->artifact_digest()), IsOk());
  }
  EXPECT_TRUE(client->Load(OnlyCached(2)).failure);
  const LoadOutcome built = client->Load(AddKernel(2));
  ASSERT_TRUE(built.result) << built.status.error_message();
  EXPECT_THAT(built.result->artifact_path(), in(place_.store()));
}

TEST_F(KernixdStoreTest, AStoreOnAReadOnlyFileSystemIsReadAndAnotherIsWritten) {
  ASSERT_EQ(mkdir(place_.store().c_str(), 0700), 0);
  const bool mounted = mount("tmpfs", place_.store().c_str(), "tmpfs", 0, "size=64m,mode=0700") == 0;
  KERNIX_NEED_RIGHT(mounted, "no file system can be mounted here: " + std::generic_category().message(errno));
  {
    const auto daemon = Serve();
    ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
    daemon->Signal(SIGTERM);
    ASSERT_EQ(daemon->AwaitExit(), kExitOk);
  }
  // The tools of its lessons end a moment after it.
  Await("a store without writers",
        [&] { return mount(nullptr, place_.store().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0; });
  {
    const std::string runtime = place_.root() + "/runtime";
    ASSERT_EQ(mkdir(runtime.c_str(), 0700), 0);
    const auto daemon = Launch(KernixdCommand{.environment = {{"XDG_RUNTIME_DIR", runtime}}});
    ASSERT_THAT(daemon->AwaitReady(), IsOk());
    const auto client = Connect();
    const auto info = client->Info();
    ASSERT_THAT(info, IsOk());
    EXPECT_THAT(info->read_store(), testing::ElementsAre(place_.store()));
    EXPECT_EQ(info->unwritable_store(), place_.store());
    const LoadOutcome hit = client->Load(OnlyCached(1));
    ASSERT_TRUE(hit.result) << hit.status.error_message();
    EXPECT_THAT(hit.result->artifact_path(), testing::StartsWith(place_.store()));
    const LoadOutcome built = client->Load(AddKernel(2));
    ASSERT_TRUE(built.result) << built.status.error_message();
    EXPECT_THAT(built.result->artifact_path(), testing::StartsWith(runtime));
    daemon->Signal(SIGTERM);
    EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  }
  EXPECT_EQ(umount2(place_.store().c_str(), MNT_DETACH), 0);
}

// As an administrator, or the kernel after an error of the disk, does.
TEST_F(KernixdStoreTest, ADaemonWhoseStoreBecomesReadOnlyEnds) {
  const auto daemon = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Load(AddKernel(1)).result);
  client->AwaitEndOfLearning();
  const std::string folder = place_.store();
  const char* const store = folder.c_str();
  const bool mounted = mount(store, store, nullptr, MS_BIND, nullptr) == 0;
  KERNIX_NEED_RIGHT(mounted, "no file system can be mounted here: " + std::generic_category().message(errno));
  EXPECT_EQ(mount(nullptr, store, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
  EXPECT_EQ(daemon->AwaitExit(), kExitFailure);
  EXPECT_THAT(daemon->Log(), HasSubstr(place_.store() + " was removed or exchanged, or became read-only"));
  EXPECT_EQ(umount2(store, MNT_DETACH), 0);
}

// A file system of a few megabytes as the store.
class FullDiskTest : public KernixdTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(mkdir(place_.store().c_str(), 0700), 0);
    mounted_ = mount("tmpfs", place_.store().c_str(), "tmpfs", 0, "size=4m,mode=0700") == 0;
    KERNIX_NEED_RIGHT(mounted_, "no file system can be mounted here: " + std::generic_category().message(errno));
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(umount2(place_.store().c_str(), MNT_DETACH), 0);
    }
  }

  std::string Ballast() const { return place_.store() + "/ballast"; }

  // Takes all but `left` bytes of the free space, and less if the daemon writes meanwhile.
  void Fill(uint64_t left) {
    const uint64_t free = Env::Posix().FreeBytes(place_.store()).value();
    ASSERT_GT(free, left);
    std::ofstream(Ballast()) << std::string(free - left, 'x');  // what finds no room is dropped
  }

  bool mounted_ = false;
};

TEST_F(FullDiskTest, IsSaidAndNothingIsLost) {
  const auto daemon = Serve();
  const auto client = Connect();
  const LoadOutcome kept = client->Load(AddKernel(1));
  ASSERT_TRUE(kept.result) << kept.status.error_message();
  // From no space at all to nearly enough: the compiler, the artifact or the index hits the end of the disk.
  for (const uint64_t left : {0, 8'192, 24'576}) {
    client->AwaitEndOfLearning();
    Fill(left);
    const LoadOutcome refused = client->Load(AddKernel(2));
    ASSERT_TRUE(refused.failure) << "with " << left << " bytes left";
    EXPECT_EQ(refused.failure->kind(), v1::ErrorDetail::RESOURCE) << refused.failure->DebugString();
    EXPECT_THAT(refused.failure->message(), AllOf(testing::ContainsRegex("[Nn]o (space|room)"),
                                                  HasSubstr(place_.store()), HasSubstr("`kernixctl cache purge`")));
    const LoadOutcome hit = client->Load(AddKernel(1));
    ASSERT_TRUE(hit.result) << hit.status.error_message();
    EXPECT_TRUE(hit.result->cache_hit());
    EXPECT_THAT(client->Stats(), IsOk());
    ASSERT_THAT(Env::Posix().RemoveFile(Ballast()), IsOk());
  }
  EXPECT_TRUE(client->Load(AddKernel(2)).result) << "there is room again";
  EXPECT_EQ(client->Fetch(kept.result->artifact_digest()).value().size(), kept.result->artifact_size());
}

TEST_F(FullDiskTest, ADaemonCannotStartOnItAndSaysSo) {
  {
    const auto daemon = Serve();
    ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
    daemon->Signal(SIGTERM);
    ASSERT_EQ(daemon->AwaitExit(), kExitOk);
  }
  Fill(0);  // not even room for SQLite's files beside an index that is opened
  const auto refused = LaunchWith({});
  EXPECT_EQ(refused->AwaitExit(), kExitStoreUnusable);
  EXPECT_THAT(refused->Log(), AllOf(HasSubstr(place_.store()), HasSubstr("no room")));
  ASSERT_THAT(Env::Posix().RemoveFile(Ballast()), IsOk());
  const auto daemon = Serve();
  EXPECT_TRUE(Connect()->Load(AddKernel(1)).result->cache_hit());
}

}  // namespace
}  // namespace kernix::server
