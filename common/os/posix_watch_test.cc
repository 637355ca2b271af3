// SPDX-License-Identifier: Apache-2.0
//
// Against the real kernel: each way to change what a path leads to.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "common/os/posix_env.h"
#include "common/os/unique_fd.h"
#include "tests/support/test_util.h"

namespace kernix::posix {
namespace {

namespace fs = std::filesystem;

// Calls may fail only where a test is about that.
void Must(bool ok) { ASSERT_TRUE(ok) << std::system_category().message(errno); }

class PosixWatchTest : public testing::Test {
 protected:
  // usr/include/file, which is also one/two/file by links of a folder and of the file itself.
  PosixWatchTest() {
    fs::create_directories(At("usr/include"));
    fs::create_directories(At("one"));
    Write("usr/include/file", "text");
    Write("usr/include/other", "text");
    fs::create_directory_symlink("../usr/include", At("one/two"));
    fs::create_symlink(At("one/two/file"), At("link"));
    watch_ = Env::Posix().WatchFiles();
  }

  fs::path At(const std::string& name) const { return fs::path(scratch_.path()) / name; }

  void Write(const std::string& name, const std::string& text) { std::ofstream(At(name)) << text; }

  // Whether Changed() is true once, and then no more.
  bool Tells() {
    const bool told = watch_->Changed();
    EXPECT_FALSE(watch_->Changed());
    return told;
  }

  // Whether Changed() is false after `act`. A mount anywhere on the machine counts as a change, so this tries again.
  bool IsQuietAfter(const std::string& watched, const std::function<void()>& act) {
    for (int i = 0; i < 20; ++i) {
      watch_->Changed();
      EXPECT_TRUE(watch_->Add(At(watched)));
      act();
      if (!watch_->Changed()) return true;
    }
    return false;
  }

  ScratchDirectory scratch_;
  std::unique_ptr<FileWatch> watch_;
};

TEST_F(PosixWatchTest, IsQuietAsLongAsNothingChanges) {
  EXPECT_TRUE(IsQuietAfter("link", [&] {
    EXPECT_TRUE(watch_->Add(At("usr/include/file")));
    EXPECT_EQ(std::ifstream(At("link")).get(), 't');
    EXPECT_EQ(fs::file_size(At("link")), 4u);
  }));
}

TEST_F(PosixWatchTest, HearsNothingOfOtherFilesInTheFolders) {
  EXPECT_TRUE(IsQuietAfter("link", [&] {
    for (const std::string folder : {"", "usr/", "usr/include/", "one/"}) {
      Write(folder + "new", "");
      fs::rename(At(folder + "new"), At(folder + "newer"));
      fs::permissions(At(folder + "newer"), fs::perms::owner_read);
      fs::remove(At(folder + "newer"));
    }
    Write("usr/include/other", "changed");
  }));
}

TEST_F(PosixWatchTest, AfterAChangeItWatchesNothingUntilItIsToldTo) {
  ASSERT_TRUE(watch_->Add(At("link")));
  Write("usr/include/file", "1");
  EXPECT_TRUE(Tells());
  EXPECT_TRUE(IsQuietAfter("usr/include/other", [&] { Write("usr/include/file", "2"); }));
  ASSERT_TRUE(watch_->Add(At("link")));
  Write("usr/include/file", "3");
  EXPECT_TRUE(Tells());
}

TEST_F(PosixWatchTest, TakesNothingThatItCannotTellOf) {
  EXPECT_FALSE(watch_->Add(At("usr/include/missing")));
  EXPECT_FALSE(watch_->Add(At("missing/file")));
  EXPECT_FALSE(watch_->Add(At("usr/include")));
  EXPECT_FALSE(watch_->Add(At("usr/include/file/below")));
  EXPECT_FALSE(watch_->Add("relative"));
  EXPECT_FALSE(watch_->Add("/"));
  EXPECT_FALSE(watch_->Add("/proc/self/mountinfo"));
  fs::create_symlink("missing", At("dangling"));
  EXPECT_FALSE(watch_->Add(At("dangling")));
  fs::create_symlink("loop", At("loop"));
  EXPECT_FALSE(watch_->Add(At("loop")));
  fs::create_symlink("/proc/self/mountinfo", At("to_proc"));
  EXPECT_FALSE(watch_->Add(At("to_proc")));
  EXPECT_TRUE(watch_->Add(At("link"))) << "a link on the same device";
  Must(mkfifo(At("pipe").c_str(), 0600) == 0);
  EXPECT_FALSE(watch_->Add(At("pipe")));
}

TEST_F(PosixWatchTest, WalksAsTheKernelDoes) {
  EXPECT_TRUE(watch_->Add(At("one/two/../include/./file").string()));  // ".." of where the link leads
  EXPECT_FALSE(watch_->Add(At("one/two/../two/file").string()));
  EXPECT_TRUE(watch_->Add("/.." + At("link").string()));
}

TEST_F(PosixWatchTest, ManyEventsAreOne) {
  ASSERT_TRUE(watch_->Add(At("link")));
  for (int i = 0; i < 20'000; ++i) {  // more than the kernel's queue holds: each differs from the one before it
    Must(chmod(At("link").c_str(), i % 2 == 0 ? 0600 : 0644) == 0);
    Must(truncate(At("link").c_str(), i) == 0);
  }
  EXPECT_TRUE(Tells());
}

TEST_F(PosixWatchTest, TakesNoMoreThanItsShare) {
  fs::create_directories(At("many"));
  size_t taken = 0;
  for (size_t i = 0; i < kMostWatches + 10; ++i) {
    const std::string name = "many/" + std::to_string(i);
    Write(name, "");
    taken += watch_->Add(At(name)) ? 1 : 0;
  }
  EXPECT_LT(taken, kMostWatches);
  EXPECT_GT(taken, kMostWatches - 20);
  Write("many/0", "changed");
  EXPECT_TRUE(Tells());
  EXPECT_TRUE(watch_->Add(At("link"))) << "there is room again";
}

// Every way to change what "link" leads to.
struct Change {
  const char* name;
  std::function<void(const fs::path& root)> make;
};

std::ostream& operator<<(std::ostream& out, const Change& change) { return out << change.name; }

class PosixWatchChangeTest : public PosixWatchTest, public testing::WithParamInterface<Change> {};

TEST_P(PosixWatchChangeTest, IsNoticed) {
  fs::create_hard_link(At("usr/include/file"), At("hard_link"));
  ASSERT_TRUE(watch_->Add(At("link")));
  EXPECT_FALSE(watch_->Changed());
  GetParam().make(At(""));
  EXPECT_TRUE(Tells());
}

void WriteFile(const fs::path& path) { std::ofstream(path) << "changed"; }

void WriteMapped(const fs::path& path) {
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  // It shows when the file is closed.
  void* memory = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  *static_cast<char*>(memory) = 'x';
  munmap(memory, 1);
}

void Append(const fs::path& path) { std::ofstream(path, std::ios::app) << "more"; }

INSTANTIATE_TEST_SUITE_P(
    Files, PosixWatchChangeTest,
    testing::Values(
        Change{"Write", [](const fs::path& root) { WriteFile(root / "usr/include/file"); }},
        Change{"WriteByTheLink", [](const fs::path& root) { WriteFile(root / "link"); }},
        Change{"WriteByAHardLink", [](const fs::path& root) { Append(root / "hard_link"); }},
        Change{"WriteMapped", [](const fs::path& root) { WriteMapped(root / "hard_link"); }},
        Change{"Truncate", [](const fs::path& root) { fs::resize_file(root / "usr/include/file", 1); }},
        Change{"Mode", [](const fs::path& root) { fs::permissions(root / "link", fs::perms::none); }},
        Change{"Time",
               [](const fs::path& root) { fs::last_write_time(root / "link", fs::file_time_type::clock::now()); }},
        Change{"AnotherHardLink", [](const fs::path& root) { fs::create_hard_link(root / "hard_link", root / "h2"); }},
        Change{"Remove", [](const fs::path& root) { fs::remove(root / "usr/include/file"); }},
        Change{"RenameAway", [](const fs::path& root) { fs::rename(root / "usr/include/file", root / "away"); }},
        Change{"RenameOver",
               [](const fs::path& root) { fs::rename(root / "usr/include/other", root / "usr/include/file"); }},
        Change{"Exchange",
               [](const fs::path& root) {
                 Must(renameat2(AT_FDCWD, (root / "usr/include/other").c_str(), AT_FDCWD,
                                (root / "usr/include/file").c_str(), RENAME_EXCHANGE) == 0);
               }},
        Change{"ALinkInItsPlace",
               [](const fs::path& root) {
                 fs::create_symlink("other", root / "new");
                 fs::rename(root / "new", root / "usr/include/file");
               }}),
    [](const auto& change) { return std::string(change.param.name); });

INSTANTIATE_TEST_SUITE_P(
    TheWay, PosixWatchChangeTest,
    testing::Values(
        Change{"TheFolder", [](const fs::path& root) { fs::rename(root / "usr/include", root / "usr/old"); }},
        Change{"TheFolderAboveIt", [](const fs::path& root) { fs::rename(root / "usr", root / "old"); }},
        Change{"TheFolderIsRemoved", [](const fs::path& root) { fs::remove_all(root / "usr/include"); }},
        Change{"TheFolderIsExchanged",
               [](const fs::path& root) {
                 Must(renameat2(AT_FDCWD, (root / "usr/include").c_str(), AT_FDCWD, (root / "one").c_str(),
                                RENAME_EXCHANGE) == 0);
               }},
        Change{"TheFolderOfALink", [](const fs::path& root) { fs::rename(root / "one", root / "three"); }},
        Change{"ALinkIsRemoved", [](const fs::path& root) { fs::remove(root / "one/two"); }},
        Change{"ALinkIsRenamed", [](const fs::path& root) { fs::rename(root / "one/two", root / "one/three"); }},
        Change{"ALinkIsReplaced",
               [](const fs::path& root) {
                 fs::create_symlink("elsewhere", root / "one/new");
                 fs::rename(root / "one/new", root / "one/two");
               }},
        Change{"TheFirstLinkIsReplaced",
               [](const fs::path& root) {
                 fs::create_symlink("usr/include/other", root / "new");
                 fs::rename(root / "new", root / "link");
               }},
        Change{"TheFirstLinkIsMadeAgain",
               [](const fs::path& root) {
                 fs::remove(root / "link");
                 fs::create_symlink("usr/include/other", root / "link");
               }}),
    [](const auto& change) { return std::string(change.param.name); });

// What a child with mounts of its own has found out.
enum class Verdict { kNoticed, kMissed, kCannotMount };

class PosixWatchMountTest : public PosixWatchTest {
 protected:
  // Watches link in a child, calls `mount_something` there, and tells whether that was noticed.
  Verdict Try(const std::function<bool()>& prepare, const std::function<bool()>& mount_something) {
    const pid_t child = fork();
    if (child == 0) _exit(static_cast<int>(InChild(prepare, mount_something)));
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return static_cast<Verdict>(WEXITSTATUS(status));
  }

  bool Bind(const std::string& what, const std::string& where) const {
    return mount(At(what).c_str(), At(where).c_str(), nullptr, MS_BIND, nullptr) == 0;
  }

 private:
  Verdict InChild(const std::function<bool()>& prepare, const std::function<bool()>& mount_something) {
    const bool has_own = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!has_own || !prepare()) return Verdict::kCannotMount;
    watch_ = Env::Posix().WatchFiles();  // of this process's mounts
    if (!watch_->Add(At("link")) || watch_->Changed()) return Verdict::kMissed;
    if (!mount_something()) return Verdict::kCannotMount;
    return watch_->Changed() && !watch_->Changed() ? Verdict::kNoticed : Verdict::kMissed;
  }
};

TEST_F(PosixWatchMountTest, AMountOverTheFile) {
  const Verdict verdict = Try([] { return true; }, [&] { return Bind("usr/include/other", "usr/include/file"); });
  if (verdict == Verdict::kCannotMount) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(verdict, Verdict::kNoticed);
}

TEST_F(PosixWatchMountTest, AMountOverAFolderOnTheWay) {
  const Verdict verdict = Try([] { return true; }, [&] { return Bind("one", "usr"); });
  if (verdict == Verdict::kCannotMount) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(verdict, Verdict::kNoticed);
}

TEST_F(PosixWatchMountTest, AMountThatIsRemoved) {
  const Verdict verdict =
      Try([&] { return Bind("usr", "usr"); }, [&] { return umount2(At("usr").c_str(), MNT_DETACH) == 0; });
  if (verdict == Verdict::kCannotMount) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(verdict, Verdict::kNoticed);
}

// The first change of a file copies it from the lower layer to the upper one, as in a container.
TEST_F(PosixWatchMountTest, AFileOfALowerLayer) {
  fs::create_directories(At("layers"));
  const auto overlay = [&] {
    // A file system of its own, since an overlay cannot be the upper layer of another one.
    if (mount("tmpfs", At("layers").c_str(), "tmpfs", 0, nullptr) != 0) return false;
    fs::create_directories(At("layers/upper"));
    fs::create_directories(At("layers/work"));
    const std::string options = "lowerdir=" + At("usr").string() + ",upperdir=" + At("layers/upper").string() +
                                ",workdir=" + At("layers/work").string();
    return mount("overlay", At("usr").c_str(), "overlay", 0, options.c_str()) == 0;
  };
  const Verdict verdict = Try(overlay, [&] {
    Append(At("usr/include/file"));
    return true;
  });
  if (verdict == Verdict::kCannotMount) GTEST_SKIP() << "this user may not mount an overlay";
  EXPECT_EQ(verdict, Verdict::kNoticed);
}

}  // namespace
}  // namespace kernix::posix
