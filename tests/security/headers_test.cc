// SPDX-License-Identifier: Apache-2.0
//
// The headers that kernixd remembers of its users' uploads: whoever knows a digest of another's header builds nothing
// with it, and nobody's headers push out another's.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kHeaders[] = "6 others' headers";
constexpr char kSecretHeader[] = "#define ANSWER 4711\n";

// One that includes `path`.
Kernel Including(const std::string& path, const std::string& content, const std::string& rest) {
  Kernel kernel = CppKernel(StrCat("#include \"", path, "\"\n", rest));
  AddHeader(kernel, path, content);
  return kernel;
}

// The number of headers that kernixd asks the sender of `kernel` for; 0: it answers without.
int AskedFor(server::LoadStream& stream) {
  const std::optional<v1::LoadEvent> event = stream.Next();
  return event && event->has_need_blobs() ? event->need_blobs().digest_size() : 0;
}

// How many `user` must upload to load it.
int Uploads(server::TestClient& client, const Kernel& kernel) {
  server::LoadStream stream(client.stub());
  stream.Send(kernel.request);
  const int asked = AskedFor(stream);
  stream.Cancel();
  return asked;
}

class HeadersTest : public SecurityTest {
 protected:
  HeadersTest() {
    Serve();
    other_ = Connect(TheUsers().other);
  }

  void OtherLoads(const Kernel& kernel) {
    const server::LoadOutcome outcome = Load(*other_, kernel);
    EXPECT_TRUE(outcome.result) << Answer(outcome);
  }

  std::unique_ptr<server::TestClient> other_;
};

TEST_F(HeadersTest, WhoKnowsADigestBuildsNothingWithIt) {
  OtherLoads(Including("secret.h", kSecretHeader, ""));
  for (const char* guess : {"static_assert(ANSWER == 4711);", "const char answer[] = {ANSWER % 128, 0};"}) {
    const int asked = Uploads(member(), Including("mine.h", kSecretHeader, guess));
    Judge(kHeaders, "a build with the digest of another's header", asked == 1 ? "" : "it needed no upload");
  }
  const server::LoadOutcome own = Load(*other_, Including("secret.h", kSecretHeader, "int again;"));
  JudgeTwin(kHeaders, "one's own header", own.result ? "" : Answer(own));
}

// Whoever joins another one's load is asked for what that one's build would have had from memory.
TEST_F(HeadersTest, WhoTakesOverALoadSendsItsHeaders) {
  OtherLoads(Including("secret.h", kSecretHeader, ""));
  Kernel both = Including("secret.h", kSecretHeader, "#include \"known.h\"\nstatic_assert(ANSWER == 4711);");
  AddHeader(both, "known.h", "#pragma once\n");
  server::LoadStream first(other_->stub());
  first.Send(both.request);
  EXPECT_EQ(AskedFor(first), 2);
  server::LoadStream second(member().stub());
  second.Send(both.request);
  first.Cancel();
  const int asked = AskedFor(second);
  Judge(kHeaders, "taking over another's load", asked == 2 ? "" : StrCat("it took ", asked, " uploads of 2"));
  second.Cancel();
  const server::LoadOutcome whole = Load(member(), both);
  JudgeTwin(kHeaders, "the same load with both headers", whole.result ? "" : Answer(whole));
}

}  // namespace
}  // namespace kernix::security
