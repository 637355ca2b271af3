// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd, as a process, with a real g++.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/digest.h"
#include "daemon/base/env.h"
#include "daemon/base/error.h"
#include "daemon/base/paths.h"
#include "daemon/base/test_util.h"
#include "daemon/base/version.h"
#include "daemon/server/kernixd_fixture.h"
#include "daemon/server/listener.h"
#include "daemon/server/server.h"
#include "daemon/server/socket_address.h"
#include "daemon/server/status_conversion.h"
#include "daemon/server/test_client.h"
#include "daemon/server/unix_peer.h"
#include "tests/support/kernixd_process.h"

namespace kernix::server {
namespace {

using testing::HasSubstr;

// --- Serving ---------------------------------------------------------------------------------------------------------

TEST_F(KernixdTest, SaysWhoItIs) {
  const auto daemon = Serve();
  const auto info = Connect()->Info();
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->pid(), daemon->pid());
  EXPECT_EQ(info->version(), Version());
  EXPECT_EQ(info->build_id(), BuildId());
  EXPECT_EQ(info->protocol_version(), kProtocolVersion);
  EXPECT_EQ(info->store_directory(), place_.store());
  EXPECT_EQ(info->max_request_bytes(), 64u << 20);
  EXPECT_FALSE(info->shared());
  EXPECT_FALSE(info->draining());
}

TEST_F(KernixdTest, HasTheStandardHealthServiceAndReflection) {
  const auto daemon = Serve();
  const auto client = Connect();
  const std::string serving = "\x08\x01";  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(client->CallRaw("/grpc.health.v1.Health/Check", "").value(), serving);
  EXPECT_EQ(client->CallRaw("/grpc.health.v1.Health/Check", "\x0a\x10kernix.v1.Kernix").value(), serving);
  // ServerReflectionRequest{list_services: "*"}
  EXPECT_THAT(client->CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*").value(),
              HasSubstr("kernix.v1.Kernix"));
}

TEST_F(KernixdTest, BuildsOnceThenServesFromTheCache) {
  const auto daemon = Serve();
  const auto client = Connect();
  const LoadOutcome built = client->Load(AddKernel(1));
  ASSERT_TRUE(built.result) << built.failure->DebugString();
  EXPECT_TRUE(built.status.ok());
  EXPECT_FALSE(built.result->cache_hit());
  const std::string artifact = Env::Posix().ReadFile(built.result->artifact_path()).value();
  EXPECT_EQ(DigestOf(artifact).Raw(), built.result->artifact_digest());
  EXPECT_EQ(client->Fetch(built.result->artifact_digest()).value(), artifact);

  const LoadOutcome hit = Connect()->Load(AddKernel(1));
  ASSERT_TRUE(hit.result);
  EXPECT_TRUE(hit.result->cache_hit());
  EXPECT_EQ(hit.result->artifact_digest(), built.result->artifact_digest());
  const auto stats = client->Stats();
  EXPECT_EQ(stats->builds(), 1u);
  EXPECT_EQ(stats->hits(), 1u);
  EXPECT_THAT(daemon->Log(), HasSubstr(StrCat("info load uid=", geteuid(), " name=adder key=")));
  EXPECT_THAT(daemon->Log(), HasSubstr("outcome=built"));
  EXPECT_THAT(daemon->Log(), HasSubstr("outcome=hit"));
}

TEST_F(KernixdTest, ManyWhoAskAtOnceGetOneBuild) {
  constexpr int kAskers = 40;
  const auto daemon = Serve();
  std::vector<LoadOutcome> outcomes(kAskers);
  std::vector<std::thread> askers;
  for (LoadOutcome& outcome : outcomes) {
    askers.emplace_back([this, &outcome] { outcome = Connect()->Load(AddKernel(1)); });
  }
  for (std::thread& asker : askers) asker.join();
  for (const LoadOutcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.result) << outcome.status.error_message();
    EXPECT_EQ(outcome.result->artifact_digest(), outcomes[0].result->artifact_digest());
  }
  const auto stats = Connect()->Stats();
  EXPECT_EQ(stats->builds(), 1u);
  EXPECT_EQ(stats->hits() + stats->misses(), static_cast<uint64_t>(kAskers));
}

TEST_F(KernixdTest, WhatWasBuiltIsAHitForTheNextDaemon) {
  {
    const auto daemon = Serve();
    ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
    daemon->Signal(SIGKILL);
    EXPECT_EQ(daemon->AwaitExit(), 128 + SIGKILL);
  }
  const auto daemon = Serve();  // also: in the place of a socket that nobody answers
  EXPECT_TRUE(Connect()->Load(AddKernel(1)).result->cache_hit());
}

TEST_F(KernixdTest, ListsAndPurges) {
  const auto daemon = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Load(AddKernel(1)).result);
  grpc::ClientContext list_context;
  v1::ListCacheResponse list;
  ASSERT_TRUE(client->stub().ListCache(&list_context, v1::ListCacheRequest(), &list).ok());
  ASSERT_EQ(list.entry_size(), 1);
  EXPECT_EQ(list.entry(0).name(), "adder");
  EXPECT_EQ(list.entry(0).function(0), "add");

  grpc::ClientContext nothing_context;
  v1::PurgeCacheResponse purged;
  EXPECT_EQ(client->stub().PurgeCache(&nothing_context, v1::PurgeCacheRequest(), &purged).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext purge_context;
  v1::PurgeCacheRequest request;
  request.set_name("adder");
  ASSERT_TRUE(client->stub().PurgeCache(&purge_context, request, &purged).ok());
  EXPECT_EQ(purged.removed_entries(), 1u);
  EXPECT_FALSE(client->Load(AddKernel(1)).result->cache_hit());
}

// --- Errors of a load ------------------------------------------------------------------------------------------------

TEST_F(KernixdTest, ACompileErrorComesWhole) {
  const auto daemon = Serve();
  v1::LoadRequest request = AddKernel(1);
  *request.mutable_source(0)->mutable_text() += "int broken = nonsense;\n";
  const LoadOutcome outcome = Connect()->Load(request);
  ASSERT_TRUE(outcome.failure);
  EXPECT_FALSE(outcome.result);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(outcome.failure->compiler_output(), HasSubstr("adder.cpp:7:"));
  EXPECT_THAT(outcome.failure->compiler_output(), HasSubstr("nonsense"));
  // The status travels in headers: the kind is in it, the compiler's words are not.
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(KindOf(FromGrpcStatus(outcome.status)), v1::ErrorDetail::COMPILATION);
  EXPECT_EQ(GetErrorDetail(FromGrpcStatus(outcome.status)).compiler_output(), "");
  EXPECT_THAT(daemon->Log(), HasSubstr("kind=COMPILATION"));
}

TEST_F(KernixdTest, ARequestOverTheLimitIsRefusedInWords) {
  const auto daemon = Serve({"--max-request-bytes", "64KiB"});
  v1::LoadRequest request = AddKernel(1);
  request.mutable_source(0)->mutable_text()->append(100'000, '\n');
  const auto client = Connect();
  const LoadOutcome outcome = client->Load(request);
  ASSERT_TRUE(outcome.failure) << outcome.status.error_message();
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("at most 65536"));
  EXPECT_THAT(outcome.failure->message(), HasSubstr("max_request_bytes"));
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
}

TEST_F(KernixdTest, ARequestFarOverTheLimitDoesNoHarm) {
  const auto daemon = Serve({"--max-request-bytes", "64KiB"});
  v1::LoadRequest request = AddKernel(1);
  request.mutable_source(0)->mutable_text()->append(8 << 20, '\n');
  const auto client = Connect();
  EXPECT_EQ(client->Load(request).status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
}

TEST_F(KernixdTest, ALoadWithoutARequestIsRefused) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.HalfClose();
  EXPECT_THAT(stream.Finish().failure->message(), HasSubstr("begins with a request"));
}

// --- Headers ---------------------------------------------------------------------------------------------------------

TEST_F(KernixdTest, AsksForHeadersOnce) {
  const auto daemon = Serve();
  const auto client = Connect();
  const std::string header = "#define MINE 1\n";
  LoadStream stream(client->stub());
  stream.Send(WithHeader(header));
  const auto event = stream.Next();
  ASSERT_TRUE(event && event->has_need_blobs()) << (event ? event->DebugString() : "");
  EXPECT_EQ(event->need_blobs().digest(0), DigestOf(header).Raw());
  stream.SendBlob(header);
  const LoadOutcome outcome = stream.Finish();
  ASSERT_TRUE(outcome.result) << outcome.failure->DebugString();
  EXPECT_FALSE(outcome.result->cache_hit());

  const LoadOutcome hit = client->Load(WithHeader(header));  // sends no header
  ASSERT_TRUE(hit.result);
  EXPECT_TRUE(hit.result->cache_hit());
}

TEST_F(KernixdTest, AClientThatSendsNoHeadersIsToldSo) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.Send(WithHeader("x"));
  stream.HalfClose();
  const LoadOutcome outcome = stream.Finish();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("headers"));
}

TEST_F(KernixdTest, HeadersOverTheLimitAreRefusedBeforeTheyAreSent) {
  const auto daemon = Serve({"--max-request-bytes", "64KiB"});
  const LoadOutcome outcome = Connect()->Load(WithHeader(std::string(100'000, '\n')));
  ASSERT_TRUE(outcome.failure);
  EXPECT_THAT(outcome.failure->message(), HasSubstr("max_request_bytes"));
}

TEST_F(KernixdTest, ACancelledLoadLeaves) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream stream(client->stub());
  stream.Send(WithHeader("x"));
  ASSERT_TRUE(stream.Next()->has_need_blobs());
  stream.Cancel();
  EXPECT_EQ(stream.Finish().status.error_code(), grpc::StatusCode::CANCELLED);
  // Nobody inside: the drain has nothing to wait for.
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

// --- Who may come in -------------------------------------------------------------------------------------------------

TEST_F(KernixdTest, NoiseEndsItsConnectionOnly) {
  const auto daemon = Serve();
  const UniqueFd noise = ConnectTo(place_.socket()).value();
  fcntl(noise.get(), F_SETFL, fcntl(noise.get(), F_GETFL) & ~O_NONBLOCK);
  const std::string words(64, '?');
  ASSERT_EQ(write(noise.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  std::string answer(4096, '\0');
  while (read(noise.get(), answer.data(), answer.size()) > 0) {
  }
  EXPECT_THAT(Connect()->Info(), IsOk());
}

// Whether a connection comes about that the daemon closes at once.
bool IsTurnedAway(const SocketAddress& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  char byte = 0;
  return connect(fd, address.get(), address.size()) == 0 && read(fd, &byte, 1) == 0;
}

TEST_F(KernixdTest, AnotherUserIsTurnedAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const auto daemon = Serve();
  const SocketAddress address(place_.socket());
  const auto is_forbidden = [&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, address.get(), address.size()) != 0;
  };
  EXPECT_TRUE(AsNobody(is_forbidden));
  // Also where the file's mode would let them in.
  ASSERT_EQ(chmod(place_.root().c_str(), 0755), 0);
  ASSERT_EQ(chmod(place_.socket().c_str(), 0666), 0);
  EXPECT_TRUE(AsNobody([&] { return IsTurnedAway(address); }));
  EXPECT_THAT(daemon->Log(), HasSubstr("warning connection_refused uid=65534"));
  EXPECT_THAT(Connect()->Info(), IsOk());
}

// --- Shared ----------------------------------------------------------------------------------------------------------

class SharedKernixdTest : public KernixdTest {
 protected:
  std::unique_ptr<KernixdProcess> ServeShared(std::vector<std::string> more = {}) {
    const std::string config = place_.root() + "/kernixd.toml";
    EXPECT_THAT(
        Env::Posix().WriteFile(
            config, "shared = true\n[[toolchain]]\nname = \"system\"\nhost_compiler = \"/usr/bin/g++\"\n", 0644),
        IsOk());
    more.insert(more.end(), {"--config", config});
    return Serve(std::move(more));
  }
};

TEST_F(SharedKernixdTest, BuildsWithARegisteredToolchainOnly) {
  const auto daemon = ServeShared();
  const auto client = Connect();
  EXPECT_TRUE(client->Info()->shared());
  EXPECT_THAT(daemon->Log(), HasSubstr("toolchain=system"));

  v1::LoadRequest request = AddKernel(1);
  const std::string copy = place_.root() + "/my-g++";
  ASSERT_THAT(Env::Posix().WriteFile(copy, Env::Posix().ReadFile("/usr/bin/g++").value(), 0755), IsOk());
  request.mutable_toolchain()->set_host_compiler(copy);
  EXPECT_TRUE(client->Load(request).result);

  const std::string trap = place_.root() + "/trap";
  const std::string script = StrCat("#!/bin/sh\ntouch ", place_.root(), "/was-run\n");
  ASSERT_THAT(Env::Posix().WriteFile(trap, script, 0755), IsOk());
  request.mutable_toolchain()->set_host_compiler(trap);
  const LoadOutcome refused = client->Load(request);
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->kind(), v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN);
  EXPECT_THAT(refused.failure->message(), HasSubstr("system (/usr/bin/g++)"));
  EXPECT_FALSE(Env::Posix().Stat(place_.root() + "/was-run").ok());
}

TEST_F(SharedKernixdTest, TheGroupOwnsTheSocket) {
  const struct group* own = getgrgid(getegid());
  ASSERT_NE(own, nullptr);
  const auto daemon = ServeShared({"--socket-group", own->gr_name});
  EXPECT_EQ(Env::Posix().Stat(place_.socket())->mode, 0660u);
}

// --- Stopping --------------------------------------------------------------------------------------------------------

TEST_F(KernixdTest, StopsOnASignalAndTakesItsSocketAlong) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const auto daemon = Serve();
    daemon->Signal(number);
    EXPECT_EQ(daemon->AwaitExit(), kExitOk);
    EXPECT_FALSE(Env::Posix().Stat(place_.socket()).ok());
    EXPECT_THAT(daemon->Log(), HasSubstr(StrCat("drain reason=SIG", sigabbrev_np(number))));
  }
}

TEST_F(KernixdTest, StopsWhenAsked) {
  const auto daemon = Serve();
  const auto client = Connect();
  grpc::ClientContext context;
  v1::ShutdownRequest request;
  request.set_reason("a test");
  v1::ShutdownResponse response;
  EXPECT_TRUE(client->stub().Shutdown(&context, request, &response).ok());
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(daemon->Log(), HasSubstr("drain reason=\"a test\""));
}

// Returns once the daemon says that it drains.
void AwaitDraining(TestClient& client) {
  while (client.Info()->draining() == false) std::this_thread::yield();
}

TEST_F(KernixdTest, ADrainLetsRunningLoadsFinishAndTakesNoNewOnes) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  daemon->Signal(SIGTERM);
  AwaitDraining(*client);

  const LoadOutcome refused = client->Load(AddKernel(2));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.failure->kind(), v1::ErrorDetail::UNREACHABLE);
  EXPECT_THAT(refused.failure->message(), HasSubstr("draining"));
  EXPECT_EQ(client->CallRaw("/grpc.health.v1.Health/Check", "").value(), "\x08\x02");  // NOT_SERVING

  running.SendBlob("\n");
  EXPECT_TRUE(running.Finish().result);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(daemon->Log(), HasSubstr("stop drained=true"));
}

TEST_F(KernixdTest, ADrainHasABound) {
  const auto daemon = Serve({"--drain-timeout", "100ms"});
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  daemon->Signal(SIGTERM);
  const LoadOutcome outcome = running.Finish();
  EXPECT_FALSE(outcome.result);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::CANCELLED);
  EXPECT_EQ(daemon->AwaitExit(), kExitDrainTimeout);
}

TEST_F(KernixdTest, ASecondSignalCutsTheDrainShort) {
  const auto daemon = Serve({"--drain-timeout", "1h"});
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  daemon->Signal(SIGINT);
  AwaitDraining(*client);
  daemon->Signal(SIGINT);
  EXPECT_EQ(daemon->AwaitExit(), kExitDrainTimeout);
  EXPECT_THAT(daemon->Log(), HasSubstr("drain_cut_short running_loads=1 reason=SIGINT"));
}

TEST_F(KernixdTest, ShutdownsOwnDrainTimeoutCounts) {
  const auto daemon = Serve({"--drain-timeout", "1h"});
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  grpc::ClientContext context;
  v1::ShutdownRequest request;
  request.set_drain_timeout_ms(1);
  v1::ShutdownResponse response;
  ASSERT_TRUE(client->stub().Shutdown(&context, request, &response).ok());
  EXPECT_EQ(response.running_jobs(), 1u);
  EXPECT_EQ(daemon->AwaitExit(), kExitDrainTimeout);
}

TEST_F(KernixdTest, EndsWhenIdle) {
  const auto daemon = Serve({"--idle-timeout", "50ms"});
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(daemon->Log(), HasSubstr("drain reason=idle"));
}

// --- Exit codes ------------------------------------------------------------------------------------------------------

TEST_F(KernixdTest, BadUsage) {
  const auto daemon = LaunchWith({"--frobnicate"});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
  EXPECT_THAT(daemon->Log(), HasSubstr("kernixd --help"));
  EXPECT_EQ(LaunchWith({"--socket", "/tmp/" + std::string(200, 'x')})->AwaitExit(), kExitUsage);
}

TEST_F(KernixdTest, HelpAndVersion) {
  const auto help = Launch(KernixdCommand{.arguments = {"--help"}, .place_arguments = false});
  EXPECT_EQ(help->AwaitExit(), kExitOk);
  EXPECT_THAT(help->Log(), HasSubstr("--store-directory"));
  const auto version = Launch(KernixdCommand{.arguments = {"--version"}, .place_arguments = false});
  EXPECT_EQ(version->AwaitExit(), kExitOk);
  EXPECT_THAT(version->Log(), HasSubstr(Version()));
}

TEST_F(KernixdTest, AnUnusableStore) {
  ASSERT_THAT(Env::Posix().WriteFile(place_.root() + "/file", "", 0600), IsOk());
  const auto daemon = Launch(
      KernixdCommand{.arguments = {"--store-directory", place_.root() + "/file/store", "--socket", place_.socket()},
                     .place_arguments = false});
  EXPECT_EQ(daemon->AwaitExit(), kExitStoreUnusable);
  EXPECT_THAT(daemon->Log(), HasSubstr(place_.root() + "/file/store"));
}

TEST_F(KernixdTest, ASecondOneOnTheSocketNamesTheFirst) {
  const auto first = Serve();
  const auto second = LaunchWith({});
  EXPECT_EQ(second->AwaitExit(), kExitAlreadyRunning);
  EXPECT_THAT(second->Log(), HasSubstr(StrCat("kernixd (process ", first->pid(), ") already serves")));
  EXPECT_THAT(Connect()->Info(), IsOk());
}

TEST_F(KernixdTest, ASecondOneOnTheStoreNamesTheFirst) {
  const auto first = Serve();
  const auto second = Launch(
      KernixdCommand{.arguments = {"--store-directory", place_.store(), "--socket", place_.root() + "/other.sock"},
                     .place_arguments = false});
  EXPECT_EQ(second->AwaitExit(), kExitAlreadyRunning);
  EXPECT_THAT(second->Log(), HasSubstr(StrCat("process ", first->pid())));
}

TEST_F(KernixdTest, FindsThePlaceOfItsStore) {
  const auto daemon =
      Launch(KernixdCommand{.environment = {{"XDG_RUNTIME_DIR", place_.root()}, {"KERNIX_CACHE_DIR", place_.store()}},
                            .place_arguments = false});
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  const auto place = PlaceForStore(
      Env::Posix(),
      [this](const std::string& name) {
        return name == "XDG_RUNTIME_DIR" ? std::optional(place_.root()) : std::nullopt;
      },
      geteuid(), place_.store());
  ASSERT_THAT(place, IsOk());
  EXPECT_THAT(TestClient(place->socket).Info(), IsOk());
  EXPECT_THAT(Env::Posix().TryLockFile(place->lock), HasError(absl::StatusCode::kUnavailable, testing::_));
}

// --- Other ways to be started ----------------------------------------------------------------------------------------

TEST_F(KernixdTest, OneshotServesItsConnectionAndEnds) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const auto daemon = Launch(KernixdCommand{.arguments = {"--oneshot-fd", "3", "--store-directory", place_.store()},
                                            .inherited_fd = theirs.get(),
                                            .place_arguments = false});
  theirs.reset();
  {
    TestClient client(std::move(ours));
    EXPECT_EQ(client.Info()->pid(), daemon->pid());
    EXPECT_TRUE(client.Load(AddKernel(1)).result);
  }
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

TEST_F(KernixdTest, OneshotEndsWithAClientThatNeverSpoke) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd theirs(ends[1]);
  const auto daemon = Launch(KernixdCommand{.arguments = {"--oneshot-fd", "3", "--store-directory", place_.store()},
                                            .inherited_fd = theirs.get(),
                                            .place_arguments = false});
  theirs.reset();
  close(ends[0]);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

TEST_F(KernixdTest, OneshotWantsASocket) {
  const auto daemon = Launch(KernixdCommand{.arguments = {"--oneshot-fd", "0", "--store-directory", place_.store()},
                                            .place_arguments = false});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
}

TEST_F(KernixdTest, TakesASocketFromSystemd) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address(place_.socket());
  ASSERT_EQ(bind(listener.get(), address.get(), address.size()), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  const UniqueFd early = ConnectTo(place_.socket()).value();  // waits in the queue for the daemon that comes
  const auto daemon = Launch(KernixdCommand{.inherited_fd = listener.get(), .socket_activation = true});
  ASSERT_THAT(daemon->AwaitReady(), IsOk());
  EXPECT_EQ(Connect()->Info()->pid(), daemon->pid());
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(Env::Posix().Stat(place_.socket()), IsOk());  // systemd's, not ours
}

TEST_F(KernixdTest, IsNotIdleAsLongAsAClientIsThere) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address(place_.socket());
  ASSERT_EQ(bind(listener.get(), address.get(), address.size()), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  // There before the daemon is, so that there is no moment without a client.
  auto client = std::make_unique<TestClient>(ConnectTo(place_.socket()).value());
  const auto daemon = Launch(KernixdCommand{
      .arguments = {"--idle-timeout", "1ms"}, .inherited_fd = listener.get(), .socket_activation = true});
  EXPECT_TRUE(client->Load(AddKernel(1)).result);
  EXPECT_THAT(client->Info(), IsOk());
  client.reset();
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(daemon->Log(), HasSubstr("drain reason=idle"));
}

TEST_F(KernixdTest, RefusesOtherDescriptorsFromSystemd) {
  const UniqueFd datagram(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto daemon = Launch(KernixdCommand{.inherited_fd = datagram.get(), .socket_activation = true});
  EXPECT_EQ(daemon->AwaitExit(), kExitUsage);
  EXPECT_THAT(daemon->Log(), HasSubstr("ListenStream="));
}

}  // namespace
}  // namespace kernix::server
