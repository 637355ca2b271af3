// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd with several users: what each of them sees and gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/wire/kernixd_exit.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"
#include "tests/support/need_right.h"
#include "tests/support/other_groups.h"

namespace kernix::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t kAlice = 70001;
constexpr uid_t kBob = 70002;
constexpr uid_t kCarol = 70003;

class KernixdMembersTest : public SharedKernixdTest {
 protected:
  void SetUp() override { KERNIX_NEED_ROOT("only root can be several users"); }

  // The module's name is its owner's.
  static LoadOutcome LoadAs(TestClient& client, const std::string& name, int addend) {
    v1::LoadRequest request = AddKernel(addend);
    request.set_name(name);
    return client.Load(request);
  }

  static std::vector<std::string> NamesSeenBy(TestClient& client) {
    grpc::ClientContext context;
    v1::ListCacheResponse response;
    EXPECT_TRUE(client.stub().ListCache(&context, {}, &response).ok());
    std::vector<std::string> names;
    for (const v1::CacheEntry& entry : response.entry()) names.push_back(entry.name());
    return names;
  }
};

TEST_F(KernixdMembersTest, AMemberNeitherSeesNorGetsWhatIsAnothers) {
  const auto daemon = ServeShared();
  OpenToAll();
  const auto alice = ConnectAs(kAlice);
  const auto bob = ConnectAs(kBob);
  const LoadOutcome hers = LoadAs(*alice, "hers", 1);
  ASSERT_TRUE(hers.result) << hers.status.error_message();
  const std::string digest = hers.result->artifact_digest();
  EXPECT_THAT(NamesSeenBy(*alice), ElementsAre("hers"));
  EXPECT_THAT(NamesSeenBy(*bob), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(bob->Fetch(digest).status()));
  EXPECT_EQ(alice->Fetch(digest)->size(), hers.result->artifact_size());
  // Root is not a member.
  EXPECT_THAT(NamesSeenBy(*Connect()), ElementsAre("hers"));
  EXPECT_THAT(Connect()->Fetch(digest), IsOk());

  // Anyone who sends the same request gets an entry for it.
  const LoadOutcome his = LoadAs(*bob, "his", 1);
  ASSERT_TRUE(his.result) << his.status.error_message();
  EXPECT_TRUE(his.result->cache_hit());
  EXPECT_EQ(bob->Fetch(digest)->size(), hers.result->artifact_size());
  EXPECT_THAT(NamesSeenBy(*bob), ElementsAre("his"));
  EXPECT_THAT(NamesSeenBy(*alice), ElementsAre("hers"));
}

TEST_F(KernixdMembersTest, WhatAMemberWasJustGivenStaysTheirsThoughTheEntryIsPurged) {
  const auto daemon = ServeShared();
  OpenToAll();
  const auto alice = ConnectAs(kAlice);
  const auto bob = ConnectAs(kBob);
  const LoadOutcome built = LoadAs(*alice, "hers", 1);
  ASSERT_TRUE(built.result) << built.status.error_message();
  const LoadOutcome hit = LoadAs(*bob, "his", 1);
  ASSERT_TRUE(hit.result) << hit.status.error_message();
  ASSERT_TRUE(hit.result->cache_hit());
  EXPECT_EQ(*alice->Purge("hers"), 1u);
  EXPECT_EQ(*bob->Purge("his"), 1u);
  EXPECT_TRUE(Env::Posix().Stat(built.result->artifact_path()).ok()) << "they are about to open it";
  const std::string digest = built.result->artifact_digest();
  EXPECT_THAT(alice->Fetch(digest), IsOk());
  EXPECT_THAT(bob->Fetch(digest), IsOk());
  EXPECT_TRUE(absl::IsNotFound(ConnectAs(kCarol)->Fetch(digest).status()));
}

TEST_F(KernixdMembersTest, EveryoneWhoWaitedForABuildMayFetchItAtOnce) {
  const auto daemon = ServeShared();
  OpenToAll();
  const std::string header = "#define MINE 1\n";
  const auto alice = ConnectAs(kAlice);
  const auto bob = ConnectAs(kBob);
  LoadStream hers(alice->stub());
  hers.Send(WithHeader(header));
  ASSERT_TRUE(hers.Next()->has_need_blobs());  // the build cannot begin before she sends it
  LoadStream his(bob->stub());
  his.Send(WithHeader(header));
  Await("the second asker", [&] { return bob->Stats()->joined() > 0; });
  hers.SendBlob(header);
  const LoadOutcome of_bob = his.Finish();
  const LoadOutcome of_alice = hers.Finish();
  ASSERT_TRUE(of_bob.result) << of_bob.status.error_message();
  ASSERT_TRUE(of_alice.result) << of_alice.status.error_message();
  EXPECT_THAT(bob->Fetch(of_bob.result->artifact_digest()), IsOk());
  EXPECT_THAT(alice->Fetch(of_alice.result->artifact_digest()), IsOk());
  EXPECT_EQ(bob->Stats()->builds(), 1u);
}

TEST_F(KernixdMembersTest, TheAdminGroupSeesAndDropsEverybodysEntries) {
  const KnownUser admin = AUserThatIsNotUs();
  const auto daemon = ServeShared({"--admin-group", admin.group});
  OpenToAll();
  const auto alice = ConnectAs(kAlice);
  const LoadOutcome hers = LoadAs(*alice, "hers", 1);
  ASSERT_TRUE(hers.result) << hers.status.error_message();
  const auto administrator = ConnectAs(admin.uid);
  EXPECT_THAT(NamesSeenBy(*administrator), ElementsAre("hers"));
  EXPECT_THAT(administrator->Fetch(hers.result->artifact_digest()), IsOk());
  EXPECT_EQ(ConnectAs(kBob)->Purge("hers").value(), 0u);
  EXPECT_EQ(administrator->Purge("hers").value(), 1u);
}

TEST_F(KernixdMembersTest, AnAdminGroupThatIsNotThereEndsTheStart) {
  const std::string config = place_.root() + "/kernixd.toml";
  ASSERT_THAT(Env::Posix().WriteFile(config,
                                     "shared = true\nadmin_group = \"no-such-group\"\n"
                                     "[[toolchain]]\nname = \"system\"\nhost_compiler = \"/usr/bin/g++\"\n",
                                     0644),
              IsOk());
  const auto daemon = LaunchWith({"--config", config});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
  EXPECT_THAT(daemon->Log(), HasSubstr("admin_group: there is no group"));
}

}  // namespace
}  // namespace kernix::server
