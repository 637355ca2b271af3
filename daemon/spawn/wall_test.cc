// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "tests/support/need_right.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using spawn::Rung;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// A scratch folder with a run folder, a tree and somebody else's folder; beside it, a file that no job names.
class JobTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"scratch", "scratch/run", "scratch/tree", "scratch/other"}) {
      ASSERT_EQ(mkdir(Path(folder).c_str(), 0755), 0);
    }
    for (const char* file : {"secret", "scratch/tree/header", "scratch/other/secret"}) {
      ASSERT_THAT(Env::Posix().WriteFile(Path(file), "content of a file", 0644), IsOk());
    }
  }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }

  ProcessSpec Shell(const std::string& script, Rung rung, std::vector<std::string> readable = {}) const {
    return {.argv = {"/bin/bash", "-c", script},
            .environment = {{"PATH", "/usr/bin:/bin"}, {"PWD", "/proc/self/cwd"}, {"TMPDIR", Path("scratch/run")}},
            .working_directory = Path("scratch/run"),
            .enclosure = {.rung = rung, .readable = std::move(readable), .scratch = Path("scratch")},
            .folders = {"tree"},
            .writable = "run"};
  }

  static absl::StatusOr<ProcessResult> Run(const ProcessSpec& spec) {
    return Env::Posix().RunProcess(spec, nullptr, nullptr);
  }

  static std::string OutputOf(const ProcessSpec& spec) {
    const auto result = Run(spec);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->output : "";
  }

  ScratchDirectory top_;
  const std::string root_ = Env::Posix().RealPath(top_.path()).value();
};

struct Case {
  std::string name;
  Rung rung;
  std::vector<std::string> readable;
};

// What holds on each rung.
class RungTest : public JobTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    const auto probe = Run(ShellHere("true"));
    KERNIX_NEED_RIGHT(probe.ok(), "there is no " + GetParam().name + " here: " + std::string(probe.status().message()));
  }
  ProcessSpec ShellHere(const std::string& script) const { return Shell(script, GetParam().rung, GetParam().readable); }
  std::string OutputHere(const std::string& script) const { return OutputOf(ShellHere(script)); }
  bool ReadsMachine() const { return !GetParam().readable.empty(); }
};

INSTANTIATE_TEST_SUITE_P(Rungs, RungTest,
                         testing::Values(Case{"Wall", Rung::kWall, {}},
                                         Case{"WallThatShowsTheMachine", Rung::kWall, {"/"}},
                                         Case{"Landlock", Rung::kLandlock, {}},
                                         Case{"LandlockThatShowsTheMachine", Rung::kLandlock, {"/"}}),
                         [](const auto& test) { return test.param.name; });

TEST_P(RungTest, AJobReadsAndWritesItsOwnFolders) {
  EXPECT_EQ(OutputHere("cat ../tree/header; echo made > file; cat file"), "content of a filemade\n");
  EXPECT_EQ(Env::Posix().ReadFile(Path("scratch/run/file")).value(), "made\n");
}

TEST_P(RungTest, AJobReadsNothingElseUnlessTheMachineIsShown) {
  const std::string read = OutputHere("cat " + Path("secret") + " /etc/passwd 2>/dev/null");
  EXPECT_EQ(read.empty(), !ReadsMachine()) << read;
}

TEST_P(RungTest, AJobWritesNothingElse) {
  OutputHere("for f in ../tree/made ../made ../other/made ../../made /made /usr/made /dev/made; do echo x > $f; done");
  for (const char* file : {"scratch/tree/made", "scratch/made", "scratch/other/made", "made"}) {
    EXPECT_THAT(Env::Posix().Stat(Path(file)), HasError(absl::StatusCode::kNotFound, HasSubstr(""))) << file;
  }
  for (const char* file : {"/made", "/usr/made", "/dev/made"}) {
    EXPECT_THAT(Env::Posix().Stat(file), HasError(absl::StatusCode::kNotFound, HasSubstr(""))) << file;
  }
}

TEST_P(RungTest, AJobChangesNoOtherFilesModeOrTime) {
  const FileInfo before = Env::Posix().Stat(Path("scratch/tree/header")).value();
  OutputHere(
      "chmod 777 ../tree/header ../other /tmp; touch -d 2000-01-01 ../tree/header; truncate -s 0 ../tree/header");
  const FileInfo after = Env::Posix().Stat(Path("scratch/tree/header")).value();
  EXPECT_EQ(after.mode, before.mode);
  EXPECT_EQ(after.mtime_ns, before.mtime_ns);
  EXPECT_EQ(after.size, before.size);
  EXPECT_EQ(Env::Posix().Stat(Path("scratch/other"))->mode & 0777, 0755u);
}

TEST_P(RungTest, AJobWithoutAFolderGetsOneForTemporaryFiles) {
  ProcessSpec spec =
      ShellHere("echo made > $TMPDIR/file && cat $TMPDIR/file && echo $TMPDIR/file; ls -A $TMPDIR | wc -l");
  spec.working_directory = "/";
  spec.environment.erase("TMPDIR");
  spec.writable = "";
  const std::string first = OutputOf(spec);
  EXPECT_THAT(first, AllOf(HasSubstr("made\n/"), EndsWith("/file\n1\n")));
  std::istringstream lines(first);
  std::string path;
  while (std::getline(lines, path) && !path.ends_with("/file")) {
  }
  EXPECT_THAT(Env::Posix().Stat(path), HasError(absl::StatusCode::kNotFound, HasSubstr("")));
  EXPECT_THAT(OutputOf(spec), EndsWith("/file\n1\n")) << "the next one does not find it";
}

TEST_P(RungTest, AJobWorksInItsFolderByThePathThatAllKnow) {
  if (GetParam().rung == Rung::kWall) {
    EXPECT_EQ(OutputHere("[ /proc/self/cwd -ef . ] && echo same"), "same\n");
  }
  EXPECT_EQ(OutputHere("/bin/pwd -P"), Path("scratch/run") + "\n");
}

TEST_P(RungTest, AJobReachesNoNetworkAndNoSocket) {
  const UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(server.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(server.get(), 1), 0);
  ASSERT_EQ(getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string connect =
      "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(ntohs(address.sin_port)) + " && echo connected";
  EXPECT_THAT(OutputHere(connect), Not(HasSubstr("connected")));
  EXPECT_EQ(OutputOf(Shell(connect, Rung::kNone)), "connected\n");
}

TEST_P(RungTest, AJobSignalsNobodyElse) {
  const std::string script = "kill -CONT " + std::to_string(getpid()) + " && echo reached";
  if (GetParam().rung == Rung::kLandlock) {
    KERNIX_NEED_RIGHT(!OutputHere(script).starts_with("reached"), "Landlock stops signals since Linux 6.12");
  }
  EXPECT_THAT(OutputHere(script), Not(HasSubstr("reached")));
  EXPECT_EQ(OutputOf(Shell(script, Rung::kNone)), "reached\n");
}

TEST_P(RungTest, AJobChangesNoOtherProcess) {
  const pid_t other = fork();
  if (other == 0) {
    while (true) pause();
  }
  const std::string number = std::to_string(other);
  const std::string script = "prlimit --pid " + number + " --core=0:0 >&- 2>&- && echo limits; renice 5 " + number +
                             " >&- 2>&- && echo priority; taskset -p 1 " + number + " >&- 2>&- && echo processors; :";
  EXPECT_EQ(OutputHere(script), "");
  EXPECT_EQ(OutputOf(Shell(script, Rung::kNone)), "limits\npriority\nprocessors\n");
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_P(RungTest, AJobHasNoPrivileges) {
  EXPECT_THAT(OutputHere("mount -t tmpfs x . && echo mounted; unshare --user true && echo unshared; "
                         "mknod device c 1 3 && echo made; chroot . /bin/true && echo entered"),
              AllOf(Not(HasSubstr("mounted")), Not(HasSubstr("unshared")), Not(HasSubstr("made\n")),
                    Not(HasSubstr("entered"))));
}

TEST_P(RungTest, WhatAJobLeavesBehindIsKilled) {
  const std::string fifo = Path("scratch/run/fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(OutputHere("exec 3>fifo; setsid sh -c 'setsid sleep 1000 & exec sleep 1000' & sleep 0.1; echo done"),
            "done\n");
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "somebody still has it open";
}

TEST_P(RungTest, AForkBombIsKilled) {
  ProcessSpec spec = ShellHere("while :; do sleep 1000 & done");
  spec.max_processes = 50;
  const auto result = Run(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->excess, ProcessResult::Excess::kProcesses);
}

TEST_P(RungTest, AJobThatStopsItselfIsKilledInTime) {
  ProcessSpec spec = ShellHere("kill -STOP $$");
  spec.timeout = std::chrono::milliseconds(300);
  const auto result = Run(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->timed_out);
}

TEST_P(RungTest, ALargeFileIsNotWritten) {
  ProcessSpec spec = ShellHere("exec head -c 100000000 /dev/zero > large");
  spec.max_file_bytes = 1 << 20;
  const auto result = Run(spec);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->signal, SIGXFSZ);
  EXPECT_EQ(Env::Posix().Stat(Path("scratch/run/large"))->size, 1u << 20);
}

TEST_P(RungTest, FilesThatAreTooLargeTogetherEndTheJob) {
  for (const char* script :
       {"for i in {1..9}; do head -c 90000 /dev/zero > $i; done", "touch file; fallocate --keep-size -l 1M file",
        "for i in {1..200}; do mkdir -p d/$i; done"}) {
    ProcessSpec spec = ShellHere(std::string(script) + "; exec sleep 1000");
    spec.max_folder_bytes = 500'000;
    spec.timeout = std::chrono::seconds(20);
    const auto result = Run(spec);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->excess, ProcessResult::Excess::kBytesOfFiles) << script << ": " << result->output;
    ASSERT_THAT(Run(ShellHere("rm -rf *")), IsOk());
  }
  ProcessSpec within = ShellHere("head -c 90000 /dev/zero > 1; sleep 0.5; echo ended");
  within.max_folder_bytes = 500'000;
  EXPECT_EQ(OutputOf(within), "ended\n");
}

TEST_P(RungTest, TheUsualToolsWork) {
  ASSERT_THAT(Env::Posix().WriteFile(Path("scratch/run/a.cc"), "#include <vector>\nint f() { return 1; }\n", 0644),
              IsOk());
  EXPECT_EQ(OutputHere("g++ -shared -fPIC -pipe -o a.so a.cc && ls -1 a.so"), "a.so\n");
}

class WallTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    const auto probe = Run(Shell("true", Rung::kWall));
    KERNIX_NEED_RIGHT(probe.ok(), "there is no wall here: " + std::string(probe.status().message()));
  }
};

TEST_F(WallTest, OtherJobsFoldersDoNotExist) {
  for (const std::vector<std::string>& readable : {std::vector<std::string>{}, {"/"}}) {
    EXPECT_EQ(
        OutputOf(Shell("for name in run tree other; do [ -e ../$name ] && echo $name; done", Rung::kWall, readable)),
        "run\ntree\n");
  }
}

TEST_F(WallTest, OnlyTheToolchainExists) {
  EXPECT_EQ(OutputOf(Shell("[ -e " + Path("secret") + " ] || [ -e /etc/passwd ] || [ -e /root ] || echo nothing",
                           Rung::kWall)),
            "nothing\n");
}

// A compiler may be reached through links, and its files through others.
TEST_F(WallTest, LinksLeadWhereTheyLeadOutside) {
  ASSERT_EQ(mkdir(Path("tools").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(Path("tools/bin").c_str(), 0755), 0);
  ASSERT_THAT(Env::Posix().WriteFile(Path("tools/bin/hello"), "#!/bin/sh\necho hello\n", 0755), IsOk());
  ASSERT_EQ(symlink("tools", Path("current").c_str()), 0);
  ASSERT_EQ(symlink("current/../current/bin/hello", Path("link").c_str()), 0);
  ProcessSpec spec = Shell("", Rung::kWall, {Path("current"), Path("link"), Path("gone")});
  spec.argv = {Path("current/bin/hello")};
  EXPECT_EQ(OutputOf(spec), "hello\n");
  spec.argv = {Path("link")};
  EXPECT_EQ(OutputOf(spec), "hello\n");
}

TEST_F(WallTest, AWallThatCannotBeMadeIsAnErrorAndNothingRuns) {
  ProcessSpec spec = Shell("echo ran > " + Path("ran"), Rung::kWall);
  spec.enclosure.scratch = Path("gone");
  EXPECT_THAT(Run(spec),
              HasError(absl::StatusCode::kUnavailable, AllOf(HasSubstr("cannot enclose"), HasSubstr(Path("gone")))));
  spec = Shell("echo ran > " + Path("ran"), Rung::kWall);
  spec.folders = {"gone"};
  EXPECT_THAT(Run(spec), HasError(absl::StatusCode::kUnavailable, HasSubstr("scratch/gone")));
  EXPECT_THAT(Env::Posix().Stat(Path("ran")), HasError(absl::StatusCode::kNotFound, HasSubstr("")));
  EXPECT_EQ(OutputOf(Shell("echo next", Rung::kWall)), "next\n");
}

TEST_F(WallTest, ASpawnerThatDiesIsStartedAgain) {
  // The shell's parent is kernix-spawn's zygote, whose parent is kernix-spawn.
  const std::string spawner = OutputOf(Shell("ps -o ppid= $(ps -o ppid= $PPID)", Rung::kNone));
  ASSERT_GT(std::atoi(spawner.c_str()), 1);
  kill(std::atoi(spawner.c_str()), SIGKILL);
  EXPECT_EQ(OutputOf(Shell("echo alive", Rung::kWall)), "alive\n");
}

}  // namespace
}  // namespace kernix
