// SPDX-License-Identifier: Apache-2.0
//
// The real kernixd, with clients that look entries up without gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/wire/quick_lookup.h"
#include "daemon/app/server.h"
#include "daemon/transport/unix_peer.h"
#include "tests/support/kernixd_fixture.h"

namespace kernix::server {
namespace {

class KernixdLookupTest : public KernixdTest {
 protected:
  static MonotonicTime Soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

  UniqueFd ConnectRaw() { return ConnectTo(place_.socket()).value(); }

  absl::StatusOr<v1::LookupReply> Ask(const std::string& request) {
    const UniqueFd socket = ConnectRaw();
    KERNIX_RETURN_IF_ERROR(SendFrame(socket.get(), kLookupMagic, request, Soon()));
    KERNIX_ASSIGN_OR_RETURN(const std::string text, ReceiveFrame(socket.get(), 1 << 20, Soon()));
    v1::LookupReply reply;
    if (!reply.ParseFromString(text)) return absl::InternalError("not a reply");
    return reply;
  }

  static std::string RequestOf(const v1::LoadRequest& load, const std::string& build = std::string(BuildId())) {
    v1::LookupRequest request;
    request.set_build_id(build);
    *request.mutable_load() = load;
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
  EXPECT_EQ(client->Stats()->hits(), 2u);
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

}  // namespace
}  // namespace kernix::server
