// SPDX-License-Identifier: Apache-2.0
//
// The service's methods for callers other than the daemon's own user.
#include "daemon/rpc/kernix_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "daemon/transport/local_user.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/other_groups.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uid_t kAlice = 70001;
constexpr uid_t kBob = 70002;

class KernixServiceTest : public BackendFixture {
 protected:
  void Store(const std::string& name, uid_t owner) {
    cache::Entry entry;
    entry.key = DigestOf(StrCat(name, owner));
    ASSERT_THAT(parts_.backend().cache.Insert(entry, {name, UserId{owner}}, StrCat("artifact of ", name, owner)),
                IsOk());
  }

  IdentityPtr User(uid_t uid) const { return LocalUser(uid, options_.admin_group); }

  std::vector<std::string> List(uid_t caller, const std::string& name = "") {
    v1::ListCacheRequest request;
    request.set_name(name);
    v1::ListCacheResponse response;
    EXPECT_TRUE(KernixService(parts_.backend(), User(caller)).ListCache(nullptr, &request, &response).ok());
    std::vector<std::string> found;
    for (const v1::CacheEntry& entry : response.entry()) found.push_back(StrCat(entry.name(), " of ", entry.owner()));
    return found;
  }

  std::vector<v1::CacheEntry> ListKey(uid_t caller, const std::string& key_prefix) {
    v1::ListCacheRequest request;
    request.set_key_prefix(key_prefix);
    v1::ListCacheResponse response;
    EXPECT_TRUE(KernixService(parts_.backend(), User(caller)).ListCache(nullptr, &request, &response).ok());
    return {response.entry().begin(), response.entry().end()};
  }

  grpc::Status Trace(uid_t caller, const std::string& key, v1::BuildTrace* trace = nullptr) {
    v1::GetTraceRequest request;
    request.set_key(key);
    v1::GetTraceResponse response;
    const grpc::Status status = KernixService(parts_.backend(), User(caller)).GetTrace(nullptr, &request, &response);
    if (trace != nullptr) *trace = response.trace();
    return status;
  }

  v1::GetStatusResponse Status(uid_t caller) {
    const v1::GetStatusRequest request;
    v1::GetStatusResponse response;
    EXPECT_TRUE(KernixService(parts_.backend(), User(caller)).GetStatus(nullptr, &request, &response).ok());
    return response;
  }

  std::unique_ptr<LoadGate::Permit> Begin(uid_t owner, const std::string& name) {
    v1::LoadRequest request;
    request.set_name(name);
    request.add_source()->set_label(name + ".cu");
    std::unique_ptr<LoadGate::Permit> permit = parts_.backend().gate.Enter(std::make_shared<Cancellation>()).value();
    permit->Show(UserId{owner}, request, Env::Posix().Now());
    return permit;
  }

  uint64_t Purge(uid_t caller, const v1::PurgeCacheRequest& request) {
    v1::PurgeCacheResponse response;
    EXPECT_TRUE(KernixService(parts_.backend(), User(caller)).PurgeCache(nullptr, &request, &response).ok());
    return response.removed_entries();
  }

  uint64_t PurgeName(uid_t caller, const std::string& name) {
    v1::PurgeCacheRequest request;
    request.set_name(name);
    return Purge(caller, request);
  }

  uint64_t PurgeAll(uid_t caller) {
    v1::PurgeCacheRequest request;
    request.set_all(true);
    return Purge(caller, request);
  }

  grpc::StatusCode Pin(uid_t caller, const std::string& name, bool unpin = false) {
    v1::PinCacheRequest request;
    request.set_name(name);
    request.set_unpin(unpin);
    v1::PinCacheResponse response;
    return KernixService(parts_.backend(), User(caller)).PinCache(nullptr, &request, &response).error_code();
  }

  grpc::Status Verify(uid_t caller, v1::VerifyCacheResponse& response) {
    const v1::VerifyCacheRequest request;
    return KernixService(parts_.backend(), User(caller)).VerifyCache(nullptr, &request, &response);
  }

  grpc::Status Shutdown(uid_t caller) {
    const v1::ShutdownRequest request;
    v1::ShutdownResponse response;
    return KernixService(parts_.backend(), User(caller)).Shutdown(nullptr, &request, &response);
  }
};

TEST_F(KernixServiceTest, EveryoneDropsTheirOwnEntriesOnly) {
  Store("k", kAlice);
  Store("other", kAlice);
  Store("k", kBob);
  EXPECT_EQ(PurgeName(kAlice, "k"), 1u);
  EXPECT_EQ(PurgeName(kAlice, "k"), 0u);
  EXPECT_EQ(PurgeAll(kBob), 1u);
  EXPECT_EQ(parts_.backend().cache.Stats().entries(), 1u);
}

TEST_F(KernixServiceTest, EveryonePinsTheirOwnEntriesOnly) {
  Store("k", kAlice);
  Store("his", kBob);
  EXPECT_EQ(Pin(kAlice, "his"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Pin(kAlice, "k"), grpc::StatusCode::OK);
  EXPECT_EQ(Pin(kBob, "k", /*unpin=*/true), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(PurgeAll(0), 1u) << "one is pinned";
  EXPECT_THAT(List(0), ElementsAre(StrCat("k of ", kAlice)));
  EXPECT_EQ(Pin(0, "k", /*unpin=*/true), grpc::StatusCode::OK);
  EXPECT_EQ(PurgeAll(0), 1u);
}

TEST_F(KernixServiceTest, APurgeSaysWhatItLeavesAndTakesItOnDemand) {
  Store("kept", kAlice);
  Store("other", kAlice);
  ASSERT_EQ(Pin(kAlice, "kept"), grpc::StatusCode::OK);
  KernixService service(parts_.backend(), User(kAlice));
  v1::PurgeCacheRequest request;
  request.set_all(true);
  v1::PurgeCacheResponse response;
  ASSERT_TRUE(service.PurgeCache(nullptr, &request, &response).ok());
  EXPECT_EQ(response.removed_entries(), 1u);
  EXPECT_EQ(response.kept_entries(), 1u);
  request.set_pinned(true);
  ASSERT_TRUE(service.PurgeCache(nullptr, &request, &response).ok());
  EXPECT_EQ(response.removed_entries(), 1u);
}

TEST_F(KernixServiceTest, OnlyAnAdministratorVerifiesTheStore) {
  Store("k", kAlice);
  v1::VerifyCacheResponse response;
  EXPECT_EQ(Verify(kAlice, response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(Verify(0, response).ok());
  EXPECT_EQ(response.artifacts(), 1u);
}

TEST_F(KernixServiceTest, EveryoneSeesTheirOwnEntriesOnly) {
  Store("k", kAlice);
  Store("k", kBob);
  Store("secret", kBob);
  EXPECT_THAT(List(kAlice), ElementsAre(StrCat("k of ", kAlice)));
  EXPECT_THAT(List(kAlice, "secret"), IsEmpty());
  EXPECT_THAT(List(kBob, "secret"), ElementsAre(StrCat("secret of ", kBob)));
  EXPECT_THAT(List(0), SizeIs(3));
  EXPECT_THAT(List(geteuid()), SizeIs(3));
}

TEST_F(KernixServiceTest, AKeyIsShownToItsOwnerWithAllDetails) {
  cache::Entry entry;
  entry.key = DigestOf("key");
  v1::ResolvedFunction& function = *entry.detail.add_function();
  for (const char* token : {"arg", "ret"}) function.add_tokens(token);
  entry.detail.add_build_option("-O3");
  entry.detail.set_toolchain("/usr/bin/g++ 12.2.0");
  ASSERT_THAT(parts_.backend().cache.Insert(entry, {"k", UserId{kAlice}}, "artifact"), IsOk());
  Store("other", kAlice);
  const std::vector<v1::CacheEntry> found = ListKey(kAlice, entry.key.Hex().substr(0, 12));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].detail().function(0).tokens_size(), 2);
  EXPECT_THAT(found[0].detail().build_option(), ElementsAre("-O3"));
  EXPECT_EQ(found[0].detail().toolchain(), "/usr/bin/g++ 12.2.0");
  EXPECT_EQ(found[0].detail().artifact_path(), parts_.backend().cache.BlobPath(DigestOf("artifact")));
  EXPECT_THAT(ListKey(kBob, entry.key.Hex()), IsEmpty());
}

TEST_F(KernixServiceTest, ATraceIsShownToWhoSeesItsEntry) {
  cache::Entry entry;
  entry.key = DigestOf("key");
  v1::BuildTrace kept;
  kept.set_total_us(900);
  kept.add_step()->set_how(v1::TracedStep::REUSED);
  ASSERT_THAT(parts_.backend().cache.Insert(entry, {"k", UserId{kAlice}}, "artifact", [&] { return kept; }), IsOk());
  v1::BuildTrace trace;
  ASSERT_TRUE(Trace(kAlice, entry.key.Raw(), &trace).ok());
  EXPECT_EQ(trace.SerializeAsString(), kept.SerializeAsString());
  EXPECT_TRUE(Trace(0, entry.key.Raw()).ok());
  const grpc::Status others = Trace(kBob, entry.key.Raw(), &trace);
  EXPECT_EQ(others.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(trace.step_size(), 0);
  EXPECT_EQ(Trace(kBob, DigestOf("nothing").Raw()).error_message(),
            absl::StrReplaceAll(others.error_message(), {{entry.key.Hex(), DigestOf("nothing").Hex()}}))
      << "another user's entry is told apart from none";
}

TEST_F(KernixServiceTest, ATraceThatThereIsNotIsAnErrorThatSaysWhatToDo) {
  Store("old", kAlice);
  const grpc::Status status = Trace(kAlice, DigestOf(StrCat("old", kAlice)).Raw());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("force_rebuild"));
  EXPECT_FALSE(Trace(kAlice, "no key").ok());
}

TEST_F(KernixServiceTest, OfOthersLoadsAndCacheAUserSeesOnlyHowMuchThereIs) {
  Store("k", kAlice);
  Store("k", kBob);
  Store("secret", kBob);
  const auto of_alice = Begin(kAlice, "scale");
  auto of_bob = Begin(kBob, "secret");
  v1::Progress progress;
  progress.set_state(v1::Progress::RUNNING);
  progress.set_step("compile");
  of_alice->Note(progress);

  const v1::GetStatusResponse seen = Status(kAlice);
  ASSERT_THAT(seen.load(), SizeIs(1));
  EXPECT_EQ(seen.load(0).name(), "scale");
  EXPECT_THAT(seen.load(0).source(), ElementsAre("scale.cu"));
  EXPECT_EQ(seen.load(0).progress().step(), "compile");
  EXPECT_EQ(seen.hidden_loads(), 1u);
  ASSERT_THAT(seen.cache(), SizeIs(1));
  EXPECT_EQ(seen.cache(0).entries(), 1u);
  EXPECT_GE(seen.cache(0).bytes(), StrCat("artifact of k", kAlice).size());
  EXPECT_EQ(seen.hidden_entries(), 2u);
  EXPECT_THAT(seen.DebugString(), Not(HasSubstr("secret")));

  const v1::GetStatusResponse all = Status(geteuid());
  EXPECT_THAT(all.load(), SizeIs(2));
  EXPECT_THAT(all.cache(), SizeIs(2));
  EXPECT_EQ(all.cache(0).owner(), kBob) << "the largest first";
  EXPECT_EQ(all.hidden_loads() + all.hidden_entries(), 0u);
  of_bob.reset();
  EXPECT_THAT(Status(geteuid()).load(), SizeIs(1));
}

TEST_F(KernixServiceTest, AToolchainThatNoLongerWorksIsShownWithItsProblem) {
  v1::ToolchainPaths paths;
  paths.set_host_compiler(scratch_ / "g++");
  ASSERT_EQ(symlink("/usr/bin/g++", paths.host_compiler().c_str()), 0);
  ASSERT_THAT(parts_.backend().compilers.Resolve(paths, v1::LANGUAGE_CPP).status(), IsOk());
  ASSERT_THAT(Status(kAlice).toolchain(), SizeIs(1));
  EXPECT_THAT(Status(kAlice).toolchain(0).tools(), AllOf(HasSubstr(paths.host_compiler()), HasSubstr(".")));
  EXPECT_EQ(Status(kAlice).toolchain(0).problem(), "");
  ASSERT_EQ(unlink(paths.host_compiler().c_str()), 0);
  EXPECT_THAT(Status(kAlice).toolchain(0).problem(), HasSubstr(paths.host_compiler()));
}

TEST_F(KernixServiceTest, AnEntryThatIsNotOnTheDiskYetIsSeen) {
  Store("k", kAlice);
  parts_.backend().cache.AddTag(DigestOf(StrCat("k", kAlice)), {"joined", UserId{kBob}});
  EXPECT_THAT(List(kBob), ElementsAre(StrCat("joined of ", kBob)));
}

TEST_F(KernixServiceTest, AnArtifactOfSomebodyElseIsAsOneThatIsNotThere) {
  Store("k", kAlice);
  const auto fetch = [&](uid_t caller, const Digest& digest) {
    v1::FetchArtifactRequest request;
    request.set_artifact_digest(digest.Raw());
    const grpc::Status status =
        KernixService(parts_.backend(), User(caller)).FetchArtifact(nullptr, &request, /*writer=*/nullptr);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    return absl::StrReplaceAll(status.error_message(), {{digest.Hex(), "DIGEST"}});
  };
  const std::string of_alice = fetch(kBob, DigestOf(StrCat("artifact of k", kAlice)));
  EXPECT_EQ(of_alice, fetch(kBob, DigestOf("nobody has this")));
  EXPECT_EQ(of_alice, fetch(0, DigestOf("nobody has this")));
}

TEST_F(KernixServiceTest, MembersOfTheAdminGroupDoWhatRootMay) {
  const KnownUser admin = AUserThatIsNotUs();
  Store("k", kAlice);
  EXPECT_THAT(List(admin.uid), IsEmpty());
  EXPECT_EQ(PurgeAll(admin.uid), 0u);
  EXPECT_EQ(Shutdown(admin.uid).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  options_.admin_group = admin.group;
  EXPECT_THAT(List(kAlice), SizeIs(1));
  EXPECT_THAT(List(kBob), IsEmpty()) << "one whom the user database does not know";
  EXPECT_THAT(List(admin.uid), SizeIs(1));
  EXPECT_EQ(PurgeAll(admin.uid), 1u);
  EXPECT_TRUE(Shutdown(admin.uid).ok());
}

TEST_F(KernixServiceTest, WhoBecomesAnAdministratorNeedsNoNewConnection) {
  const auto user = std::make_shared<TestIdentity>(kBob);
  KernixService service(parts_.backend(), user);
  const auto count = [&] {
    const v1::ListCacheRequest request;
    v1::ListCacheResponse response;
    EXPECT_TRUE(service.ListCache(nullptr, &request, &response).ok());
    return response.entry_size();
  };
  Store("k", kAlice);
  EXPECT_EQ(count(), 0);
  user->SetAdministrator(true);
  EXPECT_EQ(count(), 1);
  user->SetAdministrator(false);
  EXPECT_EQ(count(), 0);
}

TEST_F(KernixServiceTest, MetricsCountWhoIsRefused) {
  Store("k", kAlice);
  KernixService service(parts_.backend(), User(kBob));
  const v1::ReloadRequest reload;
  v1::ReloadResponse reloaded;
  EXPECT_EQ(service.Reload(nullptr, &reload, &reloaded).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const v1::GetMetricsRequest request;
  v1::GetMetricsResponse response;
  EXPECT_TRUE(service.GetMetrics(nullptr, &request, &response).ok());
  EXPECT_THAT(response.text(), AllOf(HasSubstr("\nkernix_builds_total 1\n"), HasSubstr("\nkernix_cache_tags 1\n"),
                                     HasSubstr("\nkernix_refusals_total{reason=\"administrator\"} 1\n")));
}

TEST_F(KernixServiceTest, MembersCancelTheirOwnLoadsAndAdministratorsAll) {
  const auto cancel = [&](uid_t caller, uint64_t id) {
    v1::CancelLoadRequest request;
    request.set_id(id);
    v1::CancelLoadResponse response;
    return KernixService(parts_.backend(), User(caller)).CancelLoad(nullptr, &request, &response).error_code();
  };
  LoadGate& gate = parts_.backend().gate;
  for (const uid_t who : {uid_t{kAlice}, geteuid()}) {
    const auto cancellation = std::make_shared<Cancellation>();
    const auto permit = *gate.Enter(cancellation);
    permit->Show(UserId{kAlice}, v1::LoadRequest(), {});
    const uint64_t id = gate.List({}).at(0).id();
    EXPECT_EQ(cancel(kBob, id), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(cancel(who, id + 1), grpc::StatusCode::NOT_FOUND);
    EXPECT_FALSE(cancellation->cancelled());
    EXPECT_EQ(cancel(who, id), grpc::StatusCode::OK);
    EXPECT_TRUE(cancellation->cancelled());
  }
}

TEST_F(KernixServiceTest, RootAndTheDaemonsUserDropAll) {
  for (const uid_t caller : {uid_t{0}, geteuid()}) {
    Store("k", kAlice);
    Store("k", kBob);
    EXPECT_EQ(PurgeName(caller, "k"), 2u);
  }
}

TEST_F(KernixServiceTest, AnAgeAloneIsEnough) {
  Store("k", kAlice);
  v1::PurgeCacheRequest request;
  request.set_older_than_ms(1000ull * 3600 * 24);
  EXPECT_EQ(Purge(kAlice, request), 0u);  // the entry is newer than that
  EXPECT_EQ(parts_.backend().cache.Stats().entries(), 1u);
}

TEST_F(KernixServiceTest, NothingAtAllIsNotEverything) {
  Store("k", kAlice);
  const v1::PurgeCacheRequest request;
  v1::PurgeCacheResponse response;
  EXPECT_EQ(KernixService(parts_.backend(), User(kAlice)).PurgeCache(nullptr, &request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(parts_.backend().cache.Stats().entries(), 1u);
}

TEST_F(KernixServiceTest, OnlyItsUserAndRootStopIt) {
  EXPECT_EQ(Shutdown(kAlice).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_FALSE(stop_.Get().has_value());
  EXPECT_TRUE(Shutdown(geteuid()).ok());
  EXPECT_EQ(stop_.Get()->text, "shutdown request");
}

}  // namespace
}  // namespace kernix::server
