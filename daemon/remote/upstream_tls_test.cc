// SPDX-License-Identifier: Apache-2.0
//
// Upstream through nginx, which speaks TLS, asks for client certificates and looks at tokens.
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "daemon/remote/upstream.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/tls_front.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

using ::testing::HasSubstr;

class UpstreamTlsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new testing::CasdProcess; }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  static void ExpectRoundTrip(Upstream& upstream) {
    const Blob small = MakeBlob("through TLS");
    const Blob large = MakeBlob(RandomBytes(size_t{5} << 20));
    ASSERT_THAT(upstream.Write({small, large}), IsOk());
    const auto contents = upstream.Read({small.digest, large.digest}, uint64_t{1} << 30);
    ASSERT_THAT(contents, IsOk());
    EXPECT_EQ(*contents->front(), *small.content);
    EXPECT_TRUE(*contents->back() == *large.content);
  }
  static void ExpectError(Upstream& upstream, ErrorKind kind, const std::string& words) {
    const absl::Status status = upstream.FindResult(exec::BlobDigestOf("x")).status();
    EXPECT_EQ(KindOf(status), kind) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_THAT(std::string(status.message()), HasSubstr(upstream.address()));
  }

  static testing::CasdProcess* engine_;
  SteppedEnv env_;
  const testing::TempFolder folder_;
};

testing::CasdProcess* UpstreamTlsTest::engine_ = nullptr;

TEST_F(UpstreamTlsTest, TheRightAuthorityIsEnough) {
  const testing::TlsFront front(engine_->socket(), {});
  ExpectRoundTrip(*OpenUpstream(env_, {.address = front.address(), .ca_file = front.ca_file()}));
}

TEST_F(UpstreamTlsTest, AnotherAuthorityIsNot) {
  const testing::TlsFront front(engine_->socket(), {});
  UpstreamOptions options = {.address = front.address(), .ca_file = front.other_ca_file()};
  ExpectError(*OpenUpstream(env_, options), v1::ErrorDetail::UNREACHABLE,
              "not signed by the authority in " + options.ca_file);
  options.ca_file.clear();
  ExpectError(*OpenUpstream(env_, options), v1::ErrorDetail::UNREACHABLE, "set ca_file");
}

TEST_F(UpstreamTlsTest, AClientCertificate) {
  const testing::TlsFront front(engine_->socket(), {.wants_client_certificate = true});
  UpstreamOptions options = {.address = front.address(), .ca_file = front.ca_file()};
  ExpectError(*OpenUpstream(env_, options), v1::ErrorDetail::INTERNAL, "Does it want a client certificate?");
  options.certificate_file = front.client_certificate();
  options.key_file = front.client_key();
  ExpectRoundTrip(*OpenUpstream(env_, options));
}

TEST_F(UpstreamTlsTest, ATokenIsSentAndReadAgainWhenItIsReplaced) {
  const testing::TlsFront front(engine_->socket(), {.token = "right-token"});
  UpstreamOptions options = {.address = front.address(), .ca_file = front.ca_file()};
  ExpectError(*OpenUpstream(env_, options), v1::ErrorDetail::INVALID_REQUEST, "set token_file");
  options.token_file = folder_.Write("token", "old-token\n");
  const auto upstream = OpenUpstream(env_, options);
  ExpectError(*upstream, v1::ErrorDetail::INVALID_REQUEST, options.token_file);
  folder_.Write("token", "right-token\n");
  ExpectRoundTrip(*upstream);
  EXPECT_EQ(upstream->state().health, v1::UpstreamStatus::ANSWERS);
}

// BuildBuddy's way.
TEST_F(UpstreamTlsTest, AKeyInAHeaderOfItsOwn) {
  const testing::TlsFront front(engine_->socket(), {.token = "right-key", .header = "x-buildbuddy-api-key"});
  UpstreamOptions options = {.address = front.address(), .ca_file = front.ca_file()};
  options.token_file = folder_.Write("key", "right-key\n");
  ExpectError(*OpenUpstream(env_, options), v1::ErrorDetail::INVALID_REQUEST, "authorization: Bearer");
  options.token_header = "X-BuildBuddy-API-Key";
  ExpectRoundTrip(*OpenUpstream(env_, options));
}

// bazel-remote's way.
TEST_F(UpstreamTlsTest, AUserAndAPassword) {
  const testing::TlsFront front(engine_->socket(), {.token = "node:pass word", .header = "authorization: Basic"});
  UpstreamOptions options = {.address = front.address(), .ca_file = front.ca_file()};
  options.token_header = "authorization: Basic";
  options.token_file = folder_.Write("password", "node:another\n");
  const auto upstream = OpenUpstream(env_, options);
  ExpectError(*upstream, v1::ErrorDetail::INVALID_REQUEST, "token_header");
  folder_.Write("password", "node:pass word\n");
  ExpectRoundTrip(*upstream);
}

TEST_F(UpstreamTlsTest, PlainWordsToATlsPortAreAnError) {
  const testing::TlsFront front(engine_->socket(), {});
  std::string address = front.address();
  address.erase(address.find('s'), 1);
  ExpectError(*OpenUpstream(env_, {.address = address}), v1::ErrorDetail::UNREACHABLE, "Is the engine running");
  ExpectRoundTrip(*OpenUpstream(env_, {.address = front.address(), .ca_file = front.ca_file()}));
}

}  // namespace
}  // namespace kernix::remote
