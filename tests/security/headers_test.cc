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

std::string Filler(int number) { return StrCat("//", number, std::string(1 << 20, 'x')); }

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
  const Kernel again = Including("secret.h", kSecretHeader, "int again;");
  const int asked = Uploads(*other_, again);
  JudgeTwin(kHeaders, "one's own header is remembered", asked == 0 ? "" : StrCat(asked, " uploads"));
}

// Whoever joins another one's load is asked for what that one's build would have had from memory.
TEST_F(HeadersTest, WhoTakesOverALoadSendsItsHeaders) {
  OtherLoads(Including("secret.h", kSecretHeader, ""));
  Kernel both = Including("secret.h", kSecretHeader, "#include \"known.h\"\nstatic_assert(ANSWER == 4711);");
  AddHeader(both, "known.h", "#pragma once\n");
  server::LoadStream first(other_->stub());
  first.Send(both.request);
  EXPECT_EQ(AskedFor(first), 1);
  server::LoadStream second(member().stub());
  second.Send(both.request);
  first.Cancel();
  const int asked = AskedFor(second);
  Judge(kHeaders, "taking over another's load", asked == 2 ? "" : StrCat("it took ", asked, " uploads of 2"));
  second.Cancel();
  const server::LoadOutcome whole = Load(member(), both);
  JudgeTwin(kHeaders, "the same load with both headers", whole.result ? "" : Answer(whole));
}

TEST_F(HeadersTest, NobodysHeadersPushOutAnothers) {
  const Kernel others = Including("other.h", StrCat("//", std::string(2 << 20, 'o'), "\n"), "");
  OtherLoads(others);
  for (int load = 0; load < 5; ++load) {
    Kernel flood = CppKernel(StrCat("int flood = ", load, ";"));
    for (int i = 0; i < 8; ++i) AddHeader(flood, StrCat(i, ".h"), Filler(load * 8 + i));
    const server::LoadOutcome outcome = Load(member(), flood);
    EXPECT_TRUE(outcome.result) << Answer(outcome);
  }
  Kernel next = others;
  next.request.mutable_source(0)->mutable_text()->append("\nint next;");
  const int asked = Uploads(*other_, next);
  Judge(kHeaders, "40 MiB of headers", asked == 0 ? "" : "another's header is gone");
}

}  // namespace
}  // namespace kernix::security
