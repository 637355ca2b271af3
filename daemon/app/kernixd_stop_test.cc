// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd: how it stops, and what happens to running loads.
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/base/error.h"
#include "common/os/env.h"
#include "common/wire/grpc_status.h"
#include "common/wire/kernixd_exit.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class KernixdStopTest : public KernixdTest {};

TEST_F(KernixdStopTest, StopsOnASignalAndTakesItsSocketAlong) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const auto daemon = Serve();
    daemon->Signal(number);
    EXPECT_EQ(daemon->AwaitExit(), kExitOk);
    EXPECT_FALSE(Env::Posix().Stat(place_.socket()).ok());
    EXPECT_THAT(daemon->Log(), HasSubstr(StrCat("drain reason=SIG", sigabbrev_np(number))));
  }
}

TEST_F(KernixdStopTest, StopsWhenAsked) {
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

// Returns once the daemon reports that it drains.
void AwaitDraining(TestClient& client) {
  Await("the drain", [&] { return client.Info()->draining(); });
}

TEST_F(KernixdStopTest, ADrainLetsRunningLoadsFinishAndTakesNoNewOnes) {
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

TEST_F(KernixdStopTest, ADrainHasABound) {
  const auto daemon = Serve({"--drain-timeout", "100ms"});
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  daemon->Signal(SIGTERM);
  const LoadOutcome outcome = running.Finish();
  EXPECT_FALSE(outcome.result);
  EXPECT_EQ(outcome.failure->kind(), v1::ErrorDetail::UNREACHABLE);  // clients try another
  EXPECT_EQ(daemon->AwaitExit(), kExitDrainTimeout);
}

TEST_F(KernixdStopTest, ASecondSignalCutsTheDrainShort) {
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

TEST_F(KernixdStopTest, ShutdownsOwnDrainTimeoutCounts) {
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

// logind removes a user's runtime folder at the last logout, cleaners remove sockets in /tmp.
TEST_F(KernixdStopTest, EndsOnceItsSocketIsNotItsOwn) {
  const std::string folder = place_.root() + "/run";
  const std::string socket = folder + "/k.sock";
  const auto is_removed = [&] { ASSERT_THAT(Env::Posix().RemoveFile(socket), IsOk()); };
  const auto goes_with_its_folder = [&] { ASSERT_THAT(Env::Posix().RemoveTree(folder), IsOk()); };
  const auto is_moved_with_its_folder = [&] { ASSERT_THAT(Env::Posix().Rename(folder, folder + "-before"), IsOk()); };
  const auto is_replaced = [&] {
    ASSERT_THAT(Env::Posix().WriteFile(socket + "2", "", 0600), IsOk());
    ASSERT_THAT(Env::Posix().Rename(socket + "2", socket), IsOk());
  };
  const std::pair<const char*, std::function<void()>> ways[] = {{"removed", is_removed},
                                                                {"removed with its folder", goes_with_its_folder},
                                                                {"moved", is_moved_with_its_folder},
                                                                {"replaced", is_replaced}};
  for (const auto& [name, happens] : ways) {
    SCOPED_TRACE(name);
    ASSERT_THAT(Env::Posix().CreateDirectories(folder, 0700), IsOk());
    const auto daemon = Launch(KernixdCommand{.arguments = {"--socket", socket, "--store-directory", place_.store()},
                                              .place_arguments = false});
    ASSERT_THAT(daemon->AwaitReady(), IsOk());
    happens();
    EXPECT_EQ(daemon->AwaitExit(), kExitFailure);
    EXPECT_THAT(daemon->Log(), HasSubstr(socket + " was removed or exchanged"));
  }
  EXPECT_THAT(Env::Posix().ReadFile(socket), IsOk()) << "what is there now is another's";
}

TEST_F(KernixdStopTest, ALoadUnderWayFinishesWithoutTheSocket) {
  const auto daemon = Serve();
  const auto client = Connect();
  LoadStream running(client->stub());
  running.Send(WithHeader("\n"));
  ASSERT_TRUE(running.Next()->has_need_blobs());
  ASSERT_THAT(Env::Posix().RemoveFile(place_.socket()), IsOk());
  AwaitDraining(*client);
  running.SendBlob("\n");
  EXPECT_TRUE(running.Finish().result);
  EXPECT_EQ(daemon->AwaitExit(), kExitFailure);
}

TEST_F(KernixdStopTest, ItsSocketMayGetAnotherModeAndFilesBesideIt) {
  const auto daemon = Serve();
  ASSERT_EQ(chmod(place_.socket().c_str(), 0666), 0);
  ASSERT_THAT(Env::Posix().WriteFile(place_.root() + "/beside", "", 0600), IsOk());
  EXPECT_TRUE(Connect()->Load(AddKernel(1)).result);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

TEST_F(KernixdStopTest, EndsWhenIdle) {
  const auto daemon = Serve({"--idle-timeout", "50ms"});
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_THAT(daemon->Log(), HasSubstr("drain reason=idle"));
}

}  // namespace
}  // namespace kernix::server
