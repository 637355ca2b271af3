// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec/action_digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "daemon/exec/remote_execution.h"

namespace kernix::exec {
namespace {

Action Example() {
  Action action;
  action.step = "compile";
  action.argv = {"toolchain/host/g++", "-c", "a.cc", "-o", "a.o"};
  action.environment = {{"LC_ALL", "C"}, {"PATH", "toolchain/host"}};
  action.inputs = {MakeInput("a.cc", "int a;"), MakeInput("inc/b.h", "int b;")};
  auto trees = std::make_shared<std::vector<MountedTree>>();
  trees->push_back({"inc/0", BlobDigestOf("a folder"), nullptr});
  action.trees = std::move(trees);
  action.outputs = {"a.o", "a.d"};
  action.salt = DigestOf("the toolchain");
  return action;
}

TEST(ActionDigestTest, EachPartOfWhatIsRunChangesIt) {
  std::map<Digest, std::string> seen = {{DigestOfAction(Example()).hash, "nothing"}};
  const auto expect_another = [&](const std::string& what, const std::function<void(Action&)>& change) {
    Action action = Example();
    change(action);
    const auto [at, is_new] = seen.emplace(DigestOfAction(action).hash, what);
    EXPECT_TRUE(is_new) << what << " gives the digest of " << at->second;
  };
  for (size_t i = 0; i < Example().argv.size(); ++i) {
    expect_another("word " + Example().argv[i], [i](Action& a) { a.argv[i] += "x"; });
  }
  expect_another("a word more", [](Action& a) { a.argv.emplace_back("-g"); });
  expect_another("an empty word more", [](Action& a) { a.argv.emplace_back(); });
  expect_another("a variable's value", [](Action& a) { a.environment["LC_ALL"] = "D"; });
  expect_another("a variable's name", [](Action& a) { a.environment = {{"LANG", "C"}, {"PATH", "toolchain/host"}}; });
  expect_another("a variable more", [](Action& a) { a.environment["TMPDIR"] = std::string("."); });
  expect_another("an input's content", [](Action& a) { a.inputs[0] = MakeInput("a.cc", "int c;"); });
  expect_another("an input's name", [](Action& a) { a.inputs[0].path = "c.cc"; });
  expect_another("an input's folder", [](Action& a) { a.inputs[0].path = "d/a.cc"; });
  expect_another("an input's mode", [](Action& a) { a.inputs[0].executable = true; });
  expect_another("an input more", [](Action& a) { a.inputs.push_back(MakeInput("d.h", "")); });
  expect_another("an input less", [](Action& a) { a.inputs.pop_back(); });
  expect_another("a tree's content", [](Action& a) {
    a.trees = std::make_shared<std::vector<MountedTree>>(1, MountedTree{"inc/0", BlobDigestOf("another"), nullptr});
  });
  expect_another("a tree's place", [](Action& a) {
    a.trees = std::make_shared<std::vector<MountedTree>>(1, MountedTree{"inc/1", BlobDigestOf("a folder"), nullptr});
  });
  expect_another("no tree", [](Action& a) { a.trees = nullptr; });
  expect_another("an output", [](Action& a) { a.outputs[0] = "b.o"; });
  expect_another("an output more", [](Action& a) { a.outputs.emplace_back("c"); });
  expect_another("the tools", [](Action& a) { a.salt = DigestOf("another toolchain"); });
}

TEST(ActionDigestTest, HowItIsRunHereDoesNotChangeIt) {
  const BlobDigest digest = DigestOfAction(Example());
  Action action = Example();
  action.step = "another name";
  action.links = {{"toolchain/host", "/somewhere/else/bin"}};
  action.local_paths = {{"{folder}", "/somewhere"}};
  action.timeout = std::chrono::seconds(1);
  action.memory_estimate_bytes = 7;
  std::swap(action.inputs[0], action.inputs[1]);
  std::swap(action.outputs[0], action.outputs[1]);
  for (InputFile& input : action.inputs) input.content = nullptr;
  EXPECT_EQ(DigestOfAction(action), digest);
}

TEST(ActionDigestTest, AnInputThatComesLaterCountsAsIfItWereThere) {
  Action action = Example();
  const InputFile last = action.inputs.back();
  action.inputs.pop_back();
  EXPECT_EQ(DigestOfAction(action, {last}), DigestOfAction(Example()));
}

Action WithTree() {
  Action action = Example();
  const std::vector<InputFile> files = {MakeInput("x.h", "x"), MakeInput("deep/y.h", "y")};
  action.trees = std::make_shared<std::vector<MountedTree>>(
      1, MountedTree{"inc/0", MerkleTree(files).Digest(), std::make_shared<InputTree>(files)});
  return action;
}

TEST(ActionMessagesTest, AreThoseThatTheDigestIsMadeOf) {
  const Action action = WithTree();
  const ActionMessages all = MessagesOf(action, {});
  EXPECT_EQ(all.action, DigestOfAction(action));
  for (const auto& [digest, message] : all.messages) EXPECT_EQ(digest, BlobDigestOf(message));
  reapi::Action sent;
  ASSERT_TRUE(sent.ParseFromString(all.messages.at(all.action)));
  const auto holds = [&](const reapi::Digest& digest) {
    return all.messages.contains({Digest::FromHex(digest.hash()).value(), static_cast<uint64_t>(digest.size_bytes())});
  };
  EXPECT_TRUE(holds(sent.command_digest()));
  EXPECT_TRUE(holds(sent.input_root_digest()));
  // Action, Command, and the folders "", inc, inc/0, inc/0/deep.
  EXPECT_EQ(all.messages.size(), 6U);
}

TEST(ActionMessagesTest, LinksAndPlatformMakeAnotherAction) {
  const Action action = WithTree();
  std::map<BlobDigest, std::string> seen;
  const std::vector<EngineForm> forms = {{},
                                         {.links = {{"toolchain/host", "/usr/bin"}}},
                                         {.links = {{"toolchain/host", "/opt/bin"}}},
                                         {.links = {{"toolchain/cuda", "/usr/bin"}}},
                                         {.platform = {{"OSFamily", "linux"}}},
                                         {.platform = {{"OSFamily", "other"}}}};
  for (const EngineForm& form : forms) seen[MessagesOf(action, form).action] = "";
  EXPECT_EQ(seen.size(), forms.size());
}

// The digests of the empty Directory and of a Directory with one file, as Remote Execution API implementations compute
// them.
TEST(MerkleTreeTest, IsWhatTheRemoteExecutionApiSays) {
  EXPECT_EQ(MerkleTree().Digest(), BlobDigestOf(""));
  MerkleTree tree;
  tree.AddFile("a", BlobDigestOf("1"));
  // Directory{files: [FileNode{name: "a", digest: Digest{hash: SHA-256("1"), size_bytes: 1}}]} in wire format.
  const std::string digest = "\x0a\x40" + DigestOf("1").Hex() + "\x10\x01";
  const std::string node = std::string("\x0a\x01") + "a" + "\x12" + static_cast<char>(digest.size()) + digest;
  EXPECT_EQ(tree.Digest(), BlobDigestOf("\x0a" + std::string(1, static_cast<char>(node.size())) + node));
}

TEST(MerkleTreeTest, AFolderIsWorthWhatItHolds) {
  MerkleTree folder;
  folder.AddFile("x.h", BlobDigestOf("x"));
  folder.AddFile("deep/y.h", BlobDigestOf("y"), /*executable=*/true);
  MerkleTree by_files;
  by_files.AddFile("inc/0/deep/y.h", BlobDigestOf("y"), /*executable=*/true);
  by_files.AddFile("inc/0/x.h", BlobDigestOf("x"));
  by_files.AddFile("a.cc", BlobDigestOf("a"));
  MerkleTree by_folder;
  by_folder.AddFile("a.cc", BlobDigestOf("a"));
  by_folder.AddFolder("inc/0", folder.Digest());
  EXPECT_EQ(by_folder.Digest(), by_files.Digest());
}

}  // namespace
}  // namespace kernix::exec
