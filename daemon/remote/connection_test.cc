// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/connection.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

TEST(EngineAddressTest, TellsPlainFromTlsAndThisHostFromOthers) {
  const auto plain = ParseEngineAddress("grpc://engine.lab:8980");
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ(plain->target, "dns:///engine.lab:8980");
  EXPECT_FALSE(plain->tls);
  EXPECT_FALSE(plain->on_this_host);
  const auto tls = ParseEngineAddress("grpcs://[2001:db8::1]:443");
  ASSERT_THAT(tls, IsOk());
  EXPECT_EQ(tls->target, "dns:///[2001:db8::1]:443");
  EXPECT_TRUE(tls->tls);
  const auto socket = ParseEngineAddress("unix:///run/engine.sock");
  ASSERT_THAT(socket, IsOk());
  EXPECT_EQ(socket->target, "unix:///run/engine.sock");
  EXPECT_TRUE(socket->on_this_host);
  for (const char* here : {"grpc://localhost:1", "grpc://127.0.0.1:65535", "grpc://[::1]:80"}) {
    EXPECT_TRUE(ParseEngineAddress(here).value().on_this_host) << here;
  }
}

TEST(EngineAddressTest, RefusesWhatIsNoAddressAndSaysHowToWriteOne) {
  for (const char* bad :
       {"", "engine:8980", "http://engine:80", "grpc://", "grpc://engine", "grpc://:80", "grpc://engine:0",
        "grpc://engine:65536", "grpc://engine:port", "grpc://2001:db8::1:80", "grpc://engine:80/instance",
        "grpc://user@engine:80", "grpc://a:1,b:2", "unix://", "unix:///", "unix://relative", "unix:/path"}) {
    const auto address = ParseEngineAddress(bad);
    EXPECT_THAT(address.status(), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("grpc://HOST:PORT"))) << bad;
  }
}

}  // namespace
}  // namespace kernix::remote
