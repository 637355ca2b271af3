// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd, with clients that look entries up without gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/os/file_identity.h"
#include "common/wire/kernixd_exit.h"
#include "common/wire/quick_lookup.h"
#include "daemon/transport/local_user.h"
#include "tests/support/await.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

class KernixdLookupTest : public KernixdTest {
 protected:
  static MonotonicTime Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

  UniqueFd ConnectRaw() { return ConnectTo(place_.socket()).value(); }

  absl::StatusOr<v1::LookupReply> Ask(const std::string& request) { return Ask(ConnectRaw(), kLookupMagic, request); }

  // On a connection that is there. `magic`: for its first question.
  static absl::StatusOr<v1::LookupReply> Ask(const UniqueFd& socket, std::string_view magic,
                                             const std::string& request) {
    KERNIX_RETURN_IF_ERROR(SendFrame(socket.get(), magic, request, Soon()));
    KERNIX_ASSIGN_OR_RETURN(const std::string text, ReceiveFrame(socket.get(), 1 << 20, Soon()));
    v1::LookupReply reply;
    if (!reply.ParseFromString(text)) return absl::InternalError("not a reply");
    return reply;
  }

  static std::string RequestOf(const v1::LoadRequest& load, const std::string& build = std::string(BuildId())) {
    v1::LookupRequest request = LookupOf(load);
    request.set_build_id(build);
    return request.SerializeAsString();
  }
};

TEST_F(KernixdLookupTest, AMissSaysNothingAndAHitAllThatLoadSays) {
  const auto daemon = Serve();
  const auto client = Connect();
  const v1::LoadRequest load = AddKernel(1);
  auto reply = Ask(RequestOf(load));
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->has_result());
  EXPECT_EQ(client->Stats()->misses(), 0u) << "the load that follows counts";

  ASSERT_TRUE(client->Load(load).result);
  const LoadOutcome hit = client->Load(load);
  reply = Ask(RequestOf(load));
  ASSERT_THAT(reply, IsOk());
  ASSERT_TRUE(hit.result);
  EXPECT_EQ(reply->result().SerializeAsString(), hit.result->SerializeAsString());
  Await("the lookup, which counts once it is answered", [&] { return client->Stats()->hits() == 2; });
  EXPECT_EQ(client->Stats()->builds(), 1u);
}

TEST_F(KernixdLookupTest, ABadRequestAnotherBuildAndGarbageSayNothing) {
  const auto daemon = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Load(AddKernel(1)).result);
  v1::LoadRequest bad = AddKernel(1);
  bad.clear_source();
  for (const std::string& request :
       {RequestOf(bad), RequestOf(AddKernel(1), "another build"), std::string("\xff\xff")}) {
    const auto reply = Ask(request);
    ASSERT_THAT(reply, IsOk());
    EXPECT_FALSE(reply->has_result());
  }
  EXPECT_EQ(client->Stats()->hits(), 0u);
  EXPECT_EQ(client->Stats()->failures(), 0u);
}

TEST_F(KernixdLookupTest, OneThatIsTooLongIsClosed) {
  const auto daemon = Serve({"--max-request-bytes", "1KiB"});
  EXPECT_TRUE(absl::IsUnavailable(Ask(std::string(1 << 20, 'x')).status()));
  EXPECT_THAT(Connect()->Info(), IsOk());
}

TEST_F(KernixdLookupTest, OneThatStopsInTheMiddleHoldsNobodyUp) {
  const auto daemon = Serve();
  ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
  const UniqueFd stalled = ConnectRaw();
  ASSERT_EQ(send(stalled.get(), kLookupMagic.data(), kLookupMagic.size(), 0), 8);
  EXPECT_TRUE(Ask(RequestOf(AddKernel(1)))->has_result());
  char byte = 0;
  EXPECT_EQ(recv(stalled.get(), &byte, 1, MSG_DONTWAIT), -1) << "it is answered, or given up, later";
}

TEST_F(KernixdLookupTest, OneThatStopsInTheMiddleDoesNotHoldUpTheEnd) {
  const auto daemon = Serve({"--drain-timeout", "1s"});
  const UniqueFd stalled = ConnectRaw();
  ASSERT_EQ(send(stalled.get(), kLookupMagic.data(), kLookupMagic.size(), 0), 8);
  ASSERT_THAT(Ask(RequestOf(AddKernel(1))), IsOk());  // by now, this connection and the one before it are accepted
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

// The daemon records the header, which its user may include by its path, and looks at it for each hit.
TEST_F(KernixdLookupTest, AReplacedHeaderIsNoticedOnAKeptConnection) {
  const auto daemon = Serve();
  const std::string header = place_.root() + "/mine.h";
  const auto write = [&](const std::string& text) { ASSERT_THAT(Env::Posix().WriteFile(header, text, 0644), IsOk()); };
  write("// one\n");
  // A build does not vouch for what it read from a younger file.
  Await("the header is old enough",
        [&] { return IdentityOf(Env::Posix(), header)->SettledAt(Env::Posix().UnixMillis()); });
  v1::LoadRequest load = AddKernel(1);
  load.mutable_source(0)->mutable_text()->insert(0, StrCat("#include \"", header, "\"\n"));
  const auto client = Connect();
  ASSERT_TRUE(client->Load(load).result);
  const UniqueFd socket = ConnectRaw();
  EXPECT_TRUE(Ask(socket, kLookupMagic, RequestOf(load))->has_result());
  for (const std::string text : {"// two\n", "// a third one\n"}) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Ask(socket, "", RequestOf(load))->has_result()) << "before " << text;
    write(text);
    EXPECT_FALSE(Ask(socket, "", RequestOf(load))->has_result());
    ASSERT_TRUE(client->Load(load).result);
    EXPECT_TRUE(Ask(socket, "", RequestOf(load))->has_result());
  }
}

TEST_F(KernixdLookupTest, WhatWasPurgedIsNoHitOnAKeptConnection) {
  const auto daemon = Serve();
  const auto client = Connect();
  ASSERT_TRUE(client->Load(AddKernel(1)).result);
  const UniqueFd socket = ConnectRaw();
  EXPECT_TRUE(Ask(socket, kLookupMagic, RequestOf(AddKernel(1)))->has_result());
  EXPECT_TRUE(Ask(socket, "", RequestOf(AddKernel(1)))->has_result());
  ASSERT_THAT(client->Purge("adder"), IsOk());
  EXPECT_FALSE(Ask(socket, "", RequestOf(AddKernel(1)))->has_result());
}

TEST_F(KernixdLookupTest, KeptConnectionsTakeNoThreads) {
  const auto daemon = Serve();
  ASSERT_TRUE(Connect()->Load(AddKernel(1)).result);
  const auto threads = [&] { return Env::Posix().ListDirectory(StrCat("/proc/", daemon->pid(), "/task"))->size(); };
  const size_t before = threads();
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.push_back(ConnectRaw());
    ASSERT_TRUE(Ask(sockets.back(), kLookupMagic, RequestOf(AddKernel(1)))->has_result());
  }
  Await("fewer threads than connections", [&] { return threads() < before + sockets.size(); });
  for (const UniqueFd& socket : sockets) EXPECT_TRUE(Ask(socket, "", RequestOf(AddKernel(1)))->has_result());
}

TEST_F(KernixdLookupTest, AKeptConnectionKeepsNoDaemonThatIsIdle) {
  const auto daemon = Serve({"--idle-timeout", "50ms"});
  const UniqueFd socket = ConnectRaw();
  ASSERT_THAT(Ask(socket, kLookupMagic, RequestOf(AddKernel(1))), IsOk());
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
  EXPECT_TRUE(absl::IsUnavailable(Ask(socket, "", RequestOf(AddKernel(1))).status()));
}

TEST_F(KernixdLookupTest, AKeptConnectionKeepsNoDaemonThatStops) {
  const auto daemon = Serve();
  const UniqueFd socket = ConnectRaw();
  ASSERT_THAT(Ask(socket, kLookupMagic, RequestOf(AddKernel(1))), IsOk());
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->AwaitExit(), kExitOk);
}

}  // namespace
}  // namespace kernix::server
