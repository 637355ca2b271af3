// SPDX-License-Identifier: Apache-2.0
//
// The contract of env.h for files and locks, tested on both the operating system and its twin in memory.
#include "common/os/env.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An Env with an empty folder to work in.
struct Place {
  virtual ~Place() = default;
  virtual Env& env() = 0;
  virtual std::string root() = 0;
};

struct PosixPlace : Place {
  Env& env() override { return Env::Posix(); }
  std::string root() override { return Env::Posix().RealPath(scratch.path()).value(); }
  ScratchDirectory scratch;
};

struct MemPlace : Place {
  MemPlace() { EXPECT_THAT(mem.CreateDirectories("/work", 0755), IsOk()); }
  Env& env() override { return mem; }
  std::string root() override { return "/work"; }
  MemEnv mem;
};

class EnvTest : public testing::TestWithParam<std::string> {
 protected:
  EnvTest() {
    if (GetParam() == "Posix") {
      place_ = std::make_unique<PosixPlace>();
    } else {
      place_ = std::make_unique<MemPlace>();
    }
    root_ = place_->root();
  }
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  Env& env() { return place_->env(); }
  void Link(const std::string& target, const std::string& link) {
    ASSERT_THAT(env().CreateSymlink(target, link), IsOk());
  }

  std::unique_ptr<Place> place_;
  std::string root_;
};

INSTANTIATE_TEST_SUITE_P(Env, EnvTest, testing::Values("Posix", "Mem"), [](const auto& test) { return test.param; });

TEST_P(EnvTest, WritesAndReads) {
  const std::string data("bytes\0and more", 14);
  ASSERT_THAT(env().WriteFile(At("f"), data, 0640), IsOk());
  EXPECT_EQ(env().ReadFile(At("f")).value(), data);
  EXPECT_EQ(env().Stat(At("f"))->mode, 0640u);
  EXPECT_EQ(env().Stat(At("f"))->size, 14u);
  EXPECT_EQ(env().Stat(At("f"))->type, FileType::kRegular);

  ASSERT_THAT(env().WriteFile(At("f"), "", 0600), IsOk());
  EXPECT_EQ(env().ReadFile(At("f")).value(), "");
  EXPECT_EQ(env().Stat(At("f"))->mode, 0600u);
}

std::string ReadAt(ReadableFile& file, uint64_t offset, size_t most) {
  std::string buffer(most, '?');
  buffer.resize(file.ReadAt(offset, buffer).value());
  return buffer;
}

TEST_P(EnvTest, AnOpenFileStaysTheSameOne) {
  ASSERT_THAT(env().WriteFileDurably(At("f"), "first content", 0640), IsOk());
  const auto file = env().OpenFile(At("f")).value();
  EXPECT_EQ(file->Stat()->mode, 0640u);
  EXPECT_EQ(file->Stat()->inode, env().Stat(At("f"))->inode);
  ASSERT_THAT(env().WriteFileDurably(At("f"), "second", 0600), IsOk());
  EXPECT_EQ(file->Stat()->size, 13u);
  EXPECT_EQ(ReadAt(*file, 0, 5), "first");
  ASSERT_THAT(env().RemoveFile(At("f")), IsOk());
  EXPECT_EQ(ReadAt(*file, 6, 100), "content");
  EXPECT_EQ(ReadAt(*file, 13, 100), "");
  EXPECT_EQ(ReadAt(*file, 1000, 100), "");
}

TEST_P(EnvTest, AScratchFileKeepsWhatItWasGivenAndHasNoName) {
  auto file = env().MakeScratchFile(root_, 100'000).value();
  const std::string large(50'000, 'x');
  const std::string_view last = file->Write(50'000, large).value();
  const std::string_view first = file->Write(0, "first").value();
  const std::string_view second = file->Write(8192, "second").value();
  EXPECT_FALSE(file->Write(99'999, "xx").ok()) << "beyond its capacity";
  file->Free(0, 8192);
  EXPECT_EQ(second, "second");
  EXPECT_EQ(last, large);
  EXPECT_EQ(file->Write(0, "again").value(), "again");
  EXPECT_EQ(first.size(), 5u);
  EXPECT_THAT(env().ListDirectory(root_).value(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(env().MakeScratchFile(At("nowhere"), 1).status()));
}

TEST_P(EnvTest, OpensRegularFilesOnlyAndNoLinks) {
  ASSERT_THAT(env().WriteFile(At("f"), "x", 0600), IsOk());
  Link(At("f"), At("link"));
  EXPECT_FALSE(env().OpenFile(At("link")).ok());
  EXPECT_FALSE(env().OpenFile(root_).ok());
  EXPECT_TRUE(absl::IsNotFound(env().OpenFile(At("nothing")).status()));
}

TEST_P(EnvTest, SaysWhereALinkPoints) {
  Link("some/where", At("link"));
  EXPECT_EQ(env().ReadLink(At("link")).value(), "some/where");
  EXPECT_TRUE(absl::IsNotFound(env().ReadLink(At("nothing")).status()));
  EXPECT_FALSE(env().ReadLink(root_).ok());
}

TEST_P(EnvTest, SyncsAFolderThatIsThere) {
  EXPECT_THAT(env().SyncDirectory(root_), IsOk());
  EXPECT_TRUE(absl::IsNotFound(env().SyncDirectory(At("nothing"))));
}

TEST_P(EnvTest, AnOrdinaryFolderHasNoAccessList) {
  EXPECT_FALSE(env().HasAccessList(root_).value());
  EXPECT_TRUE(absl::IsNotFound(env().HasAccessList(At("nothing")).status()));
}

TEST_P(EnvTest, WritesDurablyOverAnOldFileAndLeavesNothingBeside) {
  ASSERT_THAT(env().WriteFileDurably(At("f"), "old", 0644), IsOk());
  const uint64_t inode = env().Stat(At("f"))->inode;
  ASSERT_THAT(env().WriteFileDurably(At("f"), "new", 0444), IsOk());
  EXPECT_EQ(env().ReadFile(At("f")).value(), "new");
  EXPECT_EQ(env().Stat(At("f"))->mode, 0444u);
  EXPECT_NE(env().Stat(At("f"))->inode, inode);
  EXPECT_THAT(env().ListDirectory(root_).value(), ElementsAre("f"));
}

TEST_P(EnvTest, ADurableWriteThatFailsLeavesNothing) {
  ASSERT_THAT(env().CreateDirectories(At("folder/full"), 0755), IsOk());
  EXPECT_FALSE(env().WriteFileDurably(At("folder"), "x", 0644).ok());
  EXPECT_THAT(env().ListDirectory(root_).value(), ElementsAre("folder"));
}

TEST_P(EnvTest, ADurableWriteReplacesALinkNotItsTarget) {
  ASSERT_THAT(env().WriteFile(At("target"), "kept", 0644), IsOk());
  Link("target", At("link"));
  ASSERT_THAT(env().WriteFileDurably(At("link"), "new", 0644), IsOk());
  EXPECT_EQ(env().ReadFile(At("target")).value(), "kept");
  EXPECT_EQ(env().Stat(At("link"), false)->type, FileType::kRegular);
}

TEST_P(EnvTest, MissingFilesAreNotFoundByName) {
  EXPECT_THAT(env().ReadFile(At("no")), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().Stat(At("no")), HasError(absl::StatusCode::kNotFound, HasSubstr("No such file")));
  EXPECT_THAT(env().ListDirectory(At("no")), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().SetModificationTime(At("no"), 1), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().RemoveFile(At("no")), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().Rename(At("no"), At("b")), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().RealPath(At("no")), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().WriteFile(At("no/f"), "", 0644), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no/f"))));
  EXPECT_THAT(env().WriteFileDurably(At("no/f"), "", 0644), HasError(absl::StatusCode::kNotFound, HasSubstr("no/f")));
  EXPECT_THAT(env().RemoveTree(At("no")), IsOk());
}

TEST_P(EnvTest, AFolderIsNoFile) {
  EXPECT_THAT(env().ReadFile(root_), HasError(absl::StatusCode::kInternal, HasSubstr(root_)));
  EXPECT_THAT(env().WriteFile(root_, "", 0644), HasError(absl::StatusCode::kInternal, HasSubstr(root_)));
  ASSERT_THAT(env().WriteFile(At("f"), "", 0644), IsOk());
  EXPECT_THAT(env().CreateDirectories(At("f"), 0755), HasError(absl::StatusCode::kAlreadyExists, HasSubstr(At("f"))));
  EXPECT_FALSE(env().CreateDirectories(At("f/g"), 0755).ok());
}

TEST_P(EnvTest, CreatesFoldersWithTheirParents) {
  ASSERT_THAT(env().CreateDirectories(At("a/b/c"), 0700), IsOk());
  ASSERT_THAT(env().CreateDirectories(At("a/b/c/"), 0755), IsOk());
  EXPECT_EQ(env().Stat(At("a"))->mode, 0700u);
  EXPECT_EQ(env().Stat(At("a/b/c"))->mode, 0700u);
  EXPECT_EQ(env().Stat(At("a/b"))->type, FileType::kDirectory);
}

TEST_P(EnvTest, ListsSorted) {
  EXPECT_THAT(env().ListDirectory(root_).value(), IsEmpty());
  for (const char* name : {"b", "a.x", "c", "a"}) ASSERT_THAT(env().WriteFile(At(name), "", 0644), IsOk());
  ASSERT_THAT(env().CreateDirectories(At("d/deep"), 0755), IsOk());
  EXPECT_THAT(env().ListDirectory(root_).value(), ElementsAre("a", "a.x", "b", "c", "d"));
}

TEST_P(EnvTest, TempFoldersArePrivateAndDiffer) {
  const std::string a = env().CreateTempDirectory(At("tmp-")).value();
  const std::string b = env().CreateTempDirectory(At("tmp-")).value();
  EXPECT_NE(a, b);
  EXPECT_THAT(a, testing::StartsWith(At("tmp-")));
  EXPECT_EQ(env().Stat(a)->mode, 0700u);
  EXPECT_THAT(env().ListDirectory(a).value(), IsEmpty());
}

TEST_P(EnvTest, RemovesATreeButNotWhatItsLinksPointTo) {
  ASSERT_THAT(env().CreateDirectories(At("tree/sub"), 0755), IsOk());
  ASSERT_THAT(env().CreateDirectories(At("tree-beside"), 0755), IsOk());
  ASSERT_THAT(env().WriteFile(At("tree/sub/f"), "x", 0644), IsOk());
  ASSERT_THAT(env().CreateDirectories(At("outside"), 0755), IsOk());
  ASSERT_THAT(env().WriteFile(At("outside/kept"), "x", 0644), IsOk());
  Link(At("outside"), At("tree/link"));
  ASSERT_THAT(env().RemoveTree(At("tree")), IsOk());
  EXPECT_THAT(env().ListDirectory(root_).value(), ElementsAre("outside", "tree-beside"));
  EXPECT_THAT(env().ListDirectory(At("outside")).value(), ElementsAre("kept"));
}

TEST_P(EnvTest, SetsTheTimeOfAFileAndNothingElse) {
  ASSERT_THAT(env().WriteFile(At("f"), "x", 0640), IsOk());
  ASSERT_THAT(env().SetModificationTime(At("f"), 946684800'000'000'007), IsOk());
  EXPECT_EQ(env().Stat(At("f"))->mtime_ns, 946684800'000'000'007);
  EXPECT_EQ(env().Stat(At("f"))->mode, 0640u);
  EXPECT_EQ(env().ReadFile(At("f")).value(), "x");
}

TEST_P(EnvTest, RemovesOneFile) {
  ASSERT_THAT(env().WriteFile(At("f"), "", 0644), IsOk());
  ASSERT_THAT(env().CreateDirectories(At("d"), 0755), IsOk());
  EXPECT_THAT(env().RemoveFile(At("f")), IsOk());
  EXPECT_FALSE(env().RemoveFile(At("d")).ok());
  EXPECT_THAT(env().ListDirectory(root_).value(), ElementsAre("d"));
}

TEST_P(EnvTest, RenamesFilesAndFolders) {
  ASSERT_THAT(env().CreateDirectories(At("a/sub"), 0755), IsOk());
  ASSERT_THAT(env().WriteFile(At("a/sub/f"), "x", 0644), IsOk());
  ASSERT_THAT(env().WriteFile(At("ab"), "beside", 0644), IsOk());
  ASSERT_THAT(env().Rename(At("a"), At("z")), IsOk());
  EXPECT_EQ(env().ReadFile(At("z/sub/f")).value(), "x");
  EXPECT_THAT(env().ListDirectory(root_).value(), ElementsAre("ab", "z"));

  ASSERT_THAT(env().Rename(At("ab"), At("z/sub/f")), IsOk());
  EXPECT_EQ(env().ReadFile(At("z/sub/f")).value(), "beside");
}

TEST_P(EnvTest, RenameDoesNotLoseAFullFolder) {
  ASSERT_THAT(env().CreateDirectories(At("a"), 0755), IsOk());
  ASSERT_THAT(env().CreateDirectories(At("full/f"), 0755), IsOk());
  EXPECT_THAT(env().Rename(At("a"), At("full")), HasError(absl::StatusCode::kAlreadyExists, HasSubstr(At("full"))));
  EXPECT_FALSE(env().Rename(At("full"), At("full/f/g")).ok());
  EXPECT_THAT(env().ListDirectory(At("full")).value(), ElementsAre("f"));
}

TEST_P(EnvTest, FollowsLinks) {
  ASSERT_THAT(env().CreateDirectories(At("real/sub"), 0755), IsOk());
  ASSERT_THAT(env().WriteFile(At("real/sub/f"), "x", 0644), IsOk());
  Link("real", At("relative"));
  Link(At("relative/sub"), At("absolute"));
  EXPECT_EQ(env().ReadFile(At("absolute/f")).value(), "x");
  EXPECT_EQ(env().RealPath(At("absolute/f")).value(), At("real/sub/f"));
  EXPECT_EQ(env().Stat(At("absolute"))->type, FileType::kDirectory);
  EXPECT_EQ(env().Stat(At("absolute"), false)->type, FileType::kSymlink);
  ASSERT_THAT(env().RemoveFile(At("absolute")), IsOk());
  EXPECT_EQ(env().ReadFile(At("real/sub/f")).value(), "x");
}

TEST_P(EnvTest, ALinkDoesNotReplaceAFile) {
  ASSERT_THAT(env().WriteFile(At("f"), "x", 0644), IsOk());
  EXPECT_THAT(env().CreateSymlink("nowhere", At("f")), HasError(absl::StatusCode::kAlreadyExists, HasSubstr(At("f"))));
  EXPECT_THAT(env().CreateSymlink("nowhere", At("no/folder")), HasError(absl::StatusCode::kNotFound, HasSubstr("no")));
}

TEST_P(EnvTest, ALoopOfLinksIsAnError) {
  Link(At("b"), At("a"));
  Link(At("a"), At("b"));
  EXPECT_FALSE(env().ReadFile(At("a")).ok());
  EXPECT_FALSE(env().RealPath(At("a/x")).ok());
}

TEST_P(EnvTest, StatTellsThatAFileChanged) {
  ASSERT_THAT(env().WriteFileDurably(At("f"), "1", 0644), IsOk());
  const FileInfo before = env().Stat(At("f")).value();
  ASSERT_THAT(env().WriteFileDurably(At("f"), "2", 0644), IsOk());
  const FileInfo after = env().Stat(At("f")).value();
  EXPECT_TRUE(before.inode != after.inode || before.ctime_ns != after.ctime_ns);
}

TEST_P(EnvTest, KnowsTheFreeSpaceAndTheFileSystem) {
  EXPECT_GT(env().FreeBytes(root_).value(), 0u);
  EXPECT_THAT(env().FreeBytes(At("no")), HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_EQ(env().OnNetworkFileSystem(At("not/yet/there")).value(), env().OnNetworkFileSystem(root_).value());
}

TEST_P(EnvTest, OneHolderOfALock) {
  auto held = env().TryLockFile(At("lock"));
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(env().TryLockFile(At("lock")), HasError(absl::StatusCode::kUnavailable, HasSubstr(At("lock"))));
  EXPECT_THAT(env().TryLockFile(At("other")), IsOk());
  held->reset();
  EXPECT_THAT(env().TryLockFile(At("lock")), IsOk());
}

TEST_P(EnvTest, WaitsForALockNoLongerThanToTheDeadline) {
  auto held = env().TryLockFile(At("lock"));
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(env().LockFile(At("lock"), env().Now()),
              HasError(absl::StatusCode::kDeadlineExceeded, HasSubstr(At("lock"))));
  held->reset();
  EXPECT_THAT(env().LockFile(At("lock"), env().Now()), IsOk());
}

TEST_P(EnvTest, AProgramThatIsNotThereIsNotFound) {
  EXPECT_THAT(env().RunProcess({.argv = {At("no")}}, nullptr, nullptr),
              HasError(absl::StatusCode::kNotFound, HasSubstr(At("no"))));
  EXPECT_THAT(env().RunProcess({}, nullptr, nullptr), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("")));
}

}  // namespace
}  // namespace kernix
