// SPDX-License-Identifier: Apache-2.0
//
// docs/remote-execution-api.md shows messages byte by byte: these are kernixd's. tests/python/test_plain_reapi.py makes
// the same from the rules of the page.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/strings.h"
#include "daemon/exec/action_digest.h"
#include "daemon/remote/shared_results.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_util.h"
#include "tests/support/upstream_test_util.h"

namespace kernix::remote {
namespace {

using Messages = std::map<std::string, std::pair<exec::BlobDigest, std::string>>;  // by their names on the page

// Lines "NAME = HASH/SIZE", each followed by lines of hexadecimal digits.
Messages MessagesOnPage() {
  const auto page = Env::Posix().ReadFile(KERNIX_SOURCE_DIR "/docs/remote-execution-api.md");
  EXPECT_THAT(page, IsOk());
  const std::regex message("\n(\\S[^\n]*) = ([0-9a-f]{64})/(\\d+)((\n  [0-9a-f]+)+)");
  Messages found;
  for (std::sregex_iterator at(page->begin(), page->end(), message), end; at != end; ++at) {
    const exec::BlobDigest digest = {Digest::FromHex((*at)[2].str()).value(), std::stoull((*at)[3].str())};
    const std::string bytes = absl::HexStringToBytes(std::regex_replace((*at)[4].str(), std::regex("\\s"), ""));
    EXPECT_EQ(exec::BlobDigestOf(bytes), digest) << (*at)[1];
    found[(*at)[1]] = {digest, bytes};
  }
  return found;
}

class DocumentedMessagesTest : public ::testing::Test {
 protected:
  std::map<exec::BlobDigest, std::string> OnPage(const std::vector<std::string>& names) const {
    std::map<exec::BlobDigest, std::string> messages;
    for (const std::string& name : names) messages.insert(page_.at(name));
    return messages;
  }
  exec::BlobDigest DigestOnPage(const std::string& name) const { return page_.at(name).first; }

  const Messages page_ = MessagesOnPage();
};

exec::Action Step() {
  const std::vector<exec::InputFile> headers = {exec::MakeInput("x.h", "int x;\n")};
  exec::MerkleTree tree;
  for (const exec::InputFile& file : headers) tree.AddFile(file.path, file.digest);
  exec::Action action;
  action.argv = {"toolchain/host/g++", "-c", "a.cc", "-o", "a.o"};
  action.environment = {{"LC_ALL", "C"}, {"PATH", "toolchain/host"}};
  action.inputs = {exec::MakeInput("gen.sh", "exit 0\n"), exec::MakeInput("a.cc", "int a;\n")};
  action.inputs[0].executable = true;
  action.trees = std::make_shared<std::vector<exec::MountedTree>>(
      1, exec::MountedTree{"inc/0", tree.Digest(), std::make_shared<exec::InputTree>(headers)});
  action.outputs = {"a.o", "a.d"};
  action.salt = DigestOf("the toolchain");
  return action;
}

TEST_F(DocumentedMessagesTest, AStep) {
  const exec::ActionMessages made = exec::MessagesOf(Step(), {});
  EXPECT_EQ(made.action, DigestOnPage("Action of the step"));
  EXPECT_EQ(exec::DigestOfAction(Step()), made.action);
  EXPECT_EQ(made.messages, OnPage({"Action of the step", "Command of the step", "Directory of the step",
                                   "Directory inc", "Directory inc/0"}));
}

TEST_F(DocumentedMessagesTest, AStepForWorkers) {
  const exec::EngineForm form = {.links = {{"toolchain/host", "/usr/bin"}},
                                 .platform = {{"OSFamily", "linux"}, {"ISA", "x86-64"}}};
  const exec::ActionMessages made = exec::MessagesOf(Step(), form);
  EXPECT_EQ(made.action, DigestOnPage("Action for workers"));
  EXPECT_EQ(made.messages, OnPage({"Action for workers", "Command for workers", "Directory for workers",
                                   "Directory toolchain", "Directory inc", "Directory inc/0"}));
}

class DocumentedResultTest : public DocumentedMessagesTest {
 protected:
  // What the engine has at an address of the page: its file, whose content is that of the page.
  void ExpectAt(const std::string& name) {
    const auto files = upstream_->FindResult(DigestOnPage("Action of " + name));
    ASSERT_THAT(files, IsOk());
    ASSERT_TRUE(files->has_value()) << name;
    EXPECT_EQ((*files)->front().path, name);
    EXPECT_EQ((*files)->front().digest, DigestOnPage(name));
    for (const std::string& blob : {name, "Action of " + name, "Command of " + name}) {
      const auto content = upstream_->Read({DigestOnPage(blob)}, 1 << 20, nullptr);
      ASSERT_THAT(content, IsOk()) << blob;
      EXPECT_EQ(*content->front(), page_.at(blob).second) << blob;
    }
  }

  testing::CasdProcess engine_;
  SteppedEnv env_;
  std::unique_ptr<Upstream> upstream_ = OpenUpstream(env_, {.address = engine_.address()});
  const Digest key_ = DigestOf("a key");
};

TEST_F(DocumentedResultTest, AResult) {
  const testing::TempFolder folder;
  const std::string key_file = folder.File("key.pem");
  // Test 2 of RFC 8032, section 7.1.
  ASSERT_THAT(env_.WriteFile(key_file,
                             "-----BEGIN PRIVATE KEY-----\n"
                             "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
                             "-----END PRIVATE KEY-----\n",
                             0600),
              IsOk());
  auto signing_key = SigningKey::Read(env_, key_file);
  ASSERT_THAT(signing_key, IsOk());
  SharedResults results(*upstream_, {.trusted = {}, .signs_with = *std::move(signing_key)});
  const SharedResult result = {.headers = {{"kernix-host-0/a.h", DigestOf("int h;\n")}},
                               .files = {{"artifact", exec::MakeContent("an artifact\n")}}};
  ASSERT_THAT(results.Put(key_, result, nullptr), IsOk());
  ExpectAt("headers");
  ExpectAt("statement");
  EXPECT_THAT(page_.at("statement").second, ::testing::HasSubstr(page_.at("Statement").second));
}

TEST_F(DocumentedResultTest, AClaim) {
  BuildClaims claims(*upstream_, "a node");
  ASSERT_THAT(claims.Write(key_, 1, ClaimState::kBuilding, nullptr), IsOk());
  ExpectAt("claim");
}

}  // namespace
}  // namespace kernix::remote
