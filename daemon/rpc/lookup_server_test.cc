// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/lookup_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "common/wire/quick_lookup.h"
#include "daemon/app/engine.h"
#include "daemon/cache/memory_cache.h"
#include "tests/support/await.h"
#include "tests/support/test_identity.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const IdentityPtr kAlice = std::make_shared<TestIdentity>(70001);
const IdentityPtr kBob = std::make_shared<TestIdentity>(70002);

class LookupServerTest : public testing::Test {
 protected:
  // The client's end of a connection on which a lookup has begun but is not complete.
  static UniqueFd Begin(LookupServer& server, IdentityPtr user) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    UniqueFd client(ends[0]);
    EXPECT_EQ(send(client.get(), kLookupMagic.data(), kLookupMagic.size(), 0), 8);
    server.Serve(UniqueFd(ends[1]), std::move(user));
    return client;
  }

  // Whether the server has closed it by now.
  static bool IsOver(const UniqueFd& client) {
    char byte = 0;
    return recv(client.get(), &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
  }

  ScratchDirectory scratch_;
  ServerOptions options_;
  StopRequest stop_;
  Engine engine_{Env::Posix(), options_, cache::MakeMemoryCache(Env::Posix(), {.directory = scratch_ / "store"}), stop_,
                 [] { return ReloadReport(); }};
};

TEST_F(LookupServerTest, AUserHasABoundedNumberAtOnce) {
  LookupServer server(engine_.backend(), std::chrono::hours(1));
  std::vector<UniqueFd> clients;
  for (int i = 0; i < LookupServer::kMaxPerUser; ++i) clients.push_back(Begin(server, kAlice));
  for (const UniqueFd& client : clients) EXPECT_FALSE(IsOver(client));
  EXPECT_TRUE(IsOver(Begin(server, kAlice)));
  EXPECT_FALSE(IsOver(Begin(server, kBob)));
  clients.pop_back();
  Await("room for one more", [&] { return !IsOver(Begin(server, kAlice)); });
}

TEST_F(LookupServerTest, ARefusalIsCountedByItsReason) {
  MetricsRegistry registry;
  engine_.backend().metrics.Register(registry);
  LookupServer server(engine_.backend(), std::chrono::hours(1));
  std::vector<UniqueFd> clients;
  for (int i = 0; i < LookupServer::kMaxPerUser; ++i) clients.push_back(Begin(server, kAlice));
  EXPECT_TRUE(IsOver(Begin(server, kAlice)));
  server.Stop();
  EXPECT_TRUE(IsOver(Begin(server, kBob)));
  EXPECT_THAT(registry.Text(), AllOf(HasSubstr("kernix_refusals_total{reason=\"lookups\"} 1\n"),
                                     HasSubstr("kernix_refusals_total{reason=\"draining\"} 1\n")));
}

TEST_F(LookupServerTest, OneThatStopsInTheMiddleIsGivenUp) {
  LookupServer server(engine_.backend(), std::chrono::milliseconds(1));
  const UniqueFd client = Begin(server, kAlice);
  AwaitReadable("the end of the connection", client.get());
  EXPECT_TRUE(IsOver(client));
}

}  // namespace
}  // namespace kernix::server
