// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/shared_results.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "common/base/error.h"
#include "daemon/exec/remote_execution.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

namespace reapi = build::bazel::remote::execution::v2;

using kernix::testing::CasdProcess;
using kernix::testing::EngineFault;
using kernix::testing::FaultProxy;
using kernix::testing::TempFolder;
using ::testing::HasSubstr;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

// The headers of one node.
using Headers = std::map<std::string, std::string>;

DigestOfHeader DigestsOf(const Headers& headers) {
  return [&headers](const std::string& name) -> std::optional<Digest> {
    const auto header = headers.find(name);
    return header == headers.end() ? std::nullopt : std::optional(DigestOf(header->second));
  };
}

SharedResult MakeResult(const Headers& headers, std::string content) {
  SharedResult result;
  for (const auto& [name, text] : headers) result.headers.push_back({name, DigestOf(text)});
  result.files.emplace_back("artifact", exec::MakeContent(std::move(content)));
  return result;
}

class SharedResultsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = new CasdProcess; }
  static void TearDownTestSuite() { delete std::exchange(engine_, nullptr); }

  // What one node finds: the content of its file, or "" for nothing.
  static std::string Find(SharedResults& results, const Digest& key, const Headers& headers,
                          uint64_t max_bytes = kNoLimit) {
    const auto found = results.Find(key, DigestsOf(headers), max_bytes, nullptr);
    EXPECT_THAT(found, IsOk());
    if (!found.ok() || !*found) return "";
    EXPECT_EQ((*found)->files.size(), 1u);
    return std::string(*(*found)->files.front().second);
  }

  // A key for one test: other tests share the engine.
  static Digest Key() {
    static int number = 0;
    return DigestOf(StrCat("key ", ++number));
  }

  SigningKey MakeKey(const std::string& name, TrustedKeys& trusted) {
    const std::string path = folder_.File(name);
    const auto run = [](const std::string& command) {
      const auto made = Env::Posix().RunProcess(
          {.argv = {"/bin/sh", "-c", command}, .environment = {{"PATH", "/usr/bin:/bin"}}, .working_directory = "/"},
          nullptr, nullptr);
      EXPECT_THAT(made, IsOk());
      return made->output;
    };
    run(StrCat("umask 077; openssl genpkey -algorithm ed25519 -out ", path));
    std::string text = run(StrCat("openssl pkey -in ", path, " -pubout | grep -v -- ----- | tr -d '\n'"));
    EXPECT_THAT(trusted.Add(text), IsOk());
    return *SigningKey::Read(env_, path);
  }

  static CasdProcess* engine_;
  TempFolder folder_;
  SteppedEnv env_;
  std::unique_ptr<Upstream> upstream_ = OpenUpstream(env_, {.address = engine_->address()});
  SharedResults results_{*upstream_, {}};
};

CasdProcess* SharedResultsTest::engine_ = nullptr;

TEST_F(SharedResultsTest, FindsWhatWasWritten) {
  const Digest key = Key();
  const Headers headers = {{"a.h", "1"}, {"b.h", "2"}};
  EXPECT_EQ(Find(results_, key, headers), "");
  ASSERT_THAT(results_.Put(key, MakeResult(headers, "made"), nullptr), IsOk());
  EXPECT_EQ(Find(results_, key, headers), "made");
  EXPECT_EQ(Find(results_, Key(), headers), "");
}

TEST_F(SharedResultsTest, ResultsOfOneKeyStandSideBySide) {
  const Digest key = Key();
  const Headers here = {{"a.h", "1"}};
  const Headers there = {{"a.h", "another"}};
  const Headers more = {{"a.h", "1"}, {"b.h", "2"}};
  ASSERT_THAT(results_.Put(key, MakeResult(here, "here"), nullptr), IsOk());
  EXPECT_EQ(Find(results_, key, there), "");
  EXPECT_EQ(Find(results_, key, {}), "");
  ASSERT_THAT(results_.Put(key, MakeResult(there, "there"), nullptr), IsOk());
  ASSERT_THAT(results_.Put(key, MakeResult({}, "none"), nullptr), IsOk());
  EXPECT_EQ(Find(results_, key, here), "none");  // it depends on no header
  const Digest other = Key();
  ASSERT_THAT(results_.Put(other, MakeResult(here, "here"), nullptr), IsOk());
  ASSERT_THAT(results_.Put(other, MakeResult(there, "there"), nullptr), IsOk());
  ASSERT_THAT(results_.Put(other, MakeResult(more, "more"), nullptr), IsOk());
  EXPECT_EQ(Find(results_, other, here), "here");
  EXPECT_EQ(Find(results_, other, there), "there");
}

TEST_F(SharedResultsTest, KeepsTheNewestListsOfHeaders) {
  const Digest key = Key();
  for (size_t i = 0; i <= SharedResults::kMostHeaderLists; ++i) {
    const Headers headers = {{StrCat(i, ".h"), "1"}};
    ASSERT_THAT(results_.Put(key, MakeResult(headers, StrCat(i)), nullptr), IsOk());
    EXPECT_EQ(Find(results_, key, headers), StrCat(i));
  }
  EXPECT_EQ(Find(results_, key, {{"0.h", "1"}}), "");
  EXPECT_EQ(Find(results_, key, {{"1.h", "1"}}), "1");
}

TEST_F(SharedResultsTest, TakesNoMoreThanItWasAskedFor) {
  const Digest key = Key();
  ASSERT_THAT(results_.Put(key, MakeResult({}, "12345"), nullptr), IsOk());
  FaultProxy proxy(engine_->address());
  const auto through_proxy = OpenUpstream(env_, {.address = proxy.address()});
  SharedResults results(*through_proxy, {});
  MetricsRegistry registry;
  results.Register(registry);
  EXPECT_EQ(Find(results, key, {}, 4), "");
  EXPECT_EQ(proxy.Calls("BatchReadBlobs"), 2) << "the lists and the statement";
  EXPECT_THAT(registry.Text(), HasSubstr("kernix_upstream_results_too_large_total 1\n"));
  EXPECT_THAT(registry.Text(), HasSubstr("kernix_upstream_results_ignored_total 0\n"));
  EXPECT_EQ(Find(results, key, {}, 5), "12345");
}

TEST_F(SharedResultsTest, BelievesTrustedKeysOnly) {
  TrustedKeys both;
  TrustedKeys only_first;
  const SigningKey first = MakeKey("first.pem", only_first);
  ASSERT_THAT(only_first.empty(), false);
  both = only_first;
  const SigningKey second = MakeKey("second.pem", both);
  SharedResults signs_first(*upstream_, {.trusted = {}, .signs_with = first});
  SharedResults signs_second(*upstream_, {.trusted = {}, .signs_with = second});
  SharedResults believes_first(*upstream_, {.trusted = only_first, .signs_with = std::nullopt});
  SharedResults believes_both(*upstream_, {.trusted = both, .signs_with = std::nullopt});

  const Digest unsigned_key = Key();
  ASSERT_THAT(results_.Put(unsigned_key, MakeResult({}, "made"), nullptr), IsOk());
  EXPECT_EQ(Find(believes_both, unsigned_key, {}), "");
  EXPECT_EQ(Find(results_, unsigned_key, {}), "made");

  const Digest key = Key();
  ASSERT_THAT(signs_second.Put(key, MakeResult({}, "made"), nullptr), IsOk());
  EXPECT_EQ(Find(believes_first, key, {}), "");
  EXPECT_EQ(Find(believes_both, key, {}), "made");
  ASSERT_THAT(signs_first.Put(key, MakeResult({}, "made again"), nullptr), IsOk());
  EXPECT_EQ(Find(believes_first, key, {}), "made again");
}

// Engines may send small files along with a result, and then nothing else is asked for.
TEST_F(SharedResultsTest, WhatComesAlongIsNotAskedForAgain) {
  const Digest key = Key();
  ASSERT_THAT(results_.Put(key, MakeResult({{"a.h", "1"}}, "made"), nullptr), IsOk());
  FaultProxy proxy(engine_->address());
  const auto through_proxy = OpenUpstream(env_, {.address = proxy.address()});
  SharedResults results(*through_proxy, {});
  const auto find = [&] { return Find(results, key, {{"a.h", "1"}}); };
  EXPECT_EQ(find(), "made");
  EXPECT_EQ(proxy.Calls("GetActionResult"), 2);
  EXPECT_EQ(proxy.Calls("BatchReadBlobs"), 2) << "the lists; the statement with the file";

  const auto send_along = [&](google::protobuf::Message& message) {
    for (auto& file : *static_cast<reapi::ActionResult&>(message).mutable_output_files()) {
      const auto content = upstream_->Read({exec::FromReapi(file.digest()).value()}, kNoLimit);
      file.set_contents(std::string(*content.value().front()));
    }
  };
  proxy.Inject({.method = "GetActionResult", .times = 2, .change = send_along});
  EXPECT_EQ(find(), "made");
  EXPECT_EQ(proxy.Calls("GetActionResult"), 4);
  EXPECT_EQ(proxy.Calls("BatchReadBlobs"), 2);

  const auto spoil = [&](google::protobuf::Message& message) {
    for (auto& file : *static_cast<reapi::ActionResult&>(message).mutable_output_files()) file.set_contents("other");
  };
  proxy.Inject({.method = "GetActionResult", .times = 2, .change = spoil});
  EXPECT_EQ(find(), "made");
  EXPECT_EQ(proxy.Calls("BatchReadBlobs"), 4) << "other bytes count as none";
}

// Whoever may write could put the signed result of one key under another one.
TEST_F(SharedResultsTest, AStatementIsAboutOneKey) {
  const Digest key = Key();
  const Digest other = Key();
  ASSERT_THAT(results_.Put(key, MakeResult({}, "made"), nullptr), IsOk());
  ASSERT_THAT(results_.Put(other, MakeResult({}, "made for the other key"), nullptr), IsOk());
  FaultProxy proxy(engine_->address());
  const auto through_proxy = OpenUpstream(env_, {.address = proxy.address()});
  SharedResults results(*through_proxy, {});
  std::vector<std::string> said;
  proxy.Inject({.method = "GetActionResult", .times = 2, .change = [&](google::protobuf::Message& message) {
                  said.push_back(message.SerializeAsString());
                }});
  EXPECT_EQ(Find(results, key, {}), "made");
  ASSERT_EQ(said.size(), 2u);
  size_t asked = 0;
  proxy.Inject({.method = "GetActionResult", .times = 2, .change = [&](google::protobuf::Message& message) {
                  message.ParseFromString(said[asked++]);
                }});
  EXPECT_EQ(Find(results, other, {}), "");
  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(Find(results, other, {}), "made for the other key");
}

TEST_F(SharedResultsTest, WhatTheEngineHasLostIsAbsent) {
  const Digest key = Key();
  ASSERT_THAT(results_.Put(key, MakeResult({}, "made"), nullptr), IsOk());
  FaultProxy proxy(engine_->address());
  const auto through_proxy = OpenUpstream(env_, {.address = proxy.address()});
  SharedResults results(*through_proxy, {});
  proxy.Inject({.method = "GetActionResult", .times = 1, .answer = grpc::Status(grpc::NOT_FOUND, "lost")});
  EXPECT_EQ(Find(results, key, {}), "");
  EXPECT_EQ(Find(results, key, {}), "made");
}

TEST_F(SharedResultsTest, ErrorsOfTheEngineAreErrors) {
  const auto nobody =
      OpenUpstream(env_, {.address = StrCat("unix://", folder_.File("nobody")), .timeout = Duration(200)});
  SharedResults results(*nobody, {});
  EXPECT_EQ(KindOf(results.Find(Key(), DigestsOf({}), kNoLimit, nullptr).status()), v1::ErrorDetail::UNREACHABLE);
  EXPECT_EQ(KindOf(results.Put(Key(), MakeResult({}, "made"), nullptr)), v1::ErrorDetail::UNREACHABLE);
}

}  // namespace
}  // namespace kernix::remote
