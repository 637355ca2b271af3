// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/toolchain.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "daemon/exec/executor.h"
#include "daemon/toolchain/cuda_toolkit.h"
#include "daemon/toolchain/description.h"
#include "daemon/toolchain/flags/flags.h"
#include "daemon/toolchain/tool_query.h"
#include "tests/support/await.h"
#include "tests/support/fault_env.h"
#include "tests/support/find_tools.h"
#include "tests/support/temp_folder.h"

namespace kernix::toolchain {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TempFolder;

// Can make a file look changed, under whatever path it is reached, or make a missing file look present.
class PretendingEnv : public FaultEnv {
 public:
  PretendingEnv() : FaultEnv(Env::Posix()) {}

  void PretendChanged(const std::string& path) { changed_ = Env::Posix().RealPath(path).value_or(path); }
  void PretendThere(const std::string& path) { there_ = path; }

  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow) override {
    if (path == there_) return FileInfo{.type = FileType::kRegular, .size = 5};
    absl::StatusOr<FileInfo> info = FaultEnv::Stat(path, follow);
    if (info.ok() && IsChanged(path)) ++info->inode;
    return info;
  }

  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    if (path == there_) return "there";
    absl::StatusOr<std::string> content = FaultEnv::ReadFile(path);
    if (content.ok() && IsChanged(path)) content->append("changed");
    return content;
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(const std::string& path) override {
    if (IsChanged(path)) return absl::InternalError("read it whole");
    return FaultEnv::OpenFile(path);
  }

 private:
  bool IsChanged(const std::string& path) const {
    return !changed_.empty() && Env::Posix().RealPath(path).value_or(path) == changed_;
  }

  std::string changed_;
  std::string there_;
};

class ToolchainTest : public ::testing::Test {
 protected:
  absl::StatusOr<ToolchainPtr> Resolve(const std::string& host, const std::string& nvcc = "") {
    v1::ToolchainPaths paths;
    paths.set_host_compiler(host);
    paths.set_nvcc(nvcc);
    return registry_.Resolve(paths, nvcc.empty() ? v1::LANGUAGE_CPP : v1::LANGUAGE_CUDA);
  }

  ToolchainPtr MustResolve(const std::string& host, const std::string& nvcc = "") {
    absl::StatusOr<ToolchainPtr> toolchain = Resolve(host, nvcc);
    EXPECT_TRUE(toolchain.ok()) << toolchain.status();
    return toolchain.ok() ? *toolchain : nullptr;
  }

  std::string ErrorOf(const std::string& host, const std::string& nvcc = "") {
    const absl::StatusOr<ToolchainPtr> toolchain = Resolve(host, nvcc);
    EXPECT_FALSE(toolchain.ok());
    if (toolchain.ok()) return "";
    EXPECT_EQ(KindOf(toolchain.status()), v1::ErrorDetail::TOOLCHAIN);
    return std::string(toolchain.status().message());
  }

  TempFolder temp_;
  PretendingEnv env_;
  ToolchainRegistry registry_{env_};
};

std::string Script(const std::string& command) { return StrCat("#!/bin/sh\n", command, "\n"); }

TEST_F(ToolchainTest, Gcc) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const ToolchainPtr toolchain = MustResolve(gxx);
  ASSERT_NE(toolchain, nullptr);
  EXPECT_EQ(toolchain->host.kind, HostCompilerKind::kGcc);
  EXPECT_GE(toolchain->host.major_version, 9);
  EXPECT_THAT(toolchain->host.version, StartsWith(StrCat(toolchain->host.major_version, ".")));
  EXPECT_THAT(toolchain->host.system_include_directories, Contains("/usr/include"));
  EXPECT_THAT(toolchain->host.library_directories, Not(IsEmpty()));
  EXPECT_FALSE(toolchain->cuda.has_value());
  EXPECT_NE(toolchain->identity, Digest());
  EXPECT_EQ(toolchain->environment.at("PWD"), "/proc/self/cwd");
  EXPECT_EQ(toolchain->environment.count("HOME"), 0u);
}

TEST_F(ToolchainTest, ClangKeepsTheNameThatMakesItCpp) {
  KERNIX_NEED_PROGRAM(clangxx, "clang++");
  const ToolchainPtr toolchain = MustResolve(clangxx);
  ASSERT_NE(toolchain, nullptr);
  EXPECT_EQ(toolchain->host.kind, HostCompilerKind::kClang);
  EXPECT_EQ(Basename(toolchain->host.path), "clang++");
  EXPECT_GE(toolchain->host.major_version, 10);
}

TEST_F(ToolchainTest, TwoCompilersHaveTwoIdentities) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_PROGRAM(clangxx, "clang++");
  const ToolchainPtr gcc = MustResolve(gxx);
  const ToolchainPtr clang = MustResolve(clangxx);
  ASSERT_TRUE(gcc != nullptr && clang != nullptr);
  EXPECT_NE(gcc->identity, clang->identity);
}

// Simulates a compiler with a configuration file and runtime libraries, as Clang reports them; the real compiler does
// the rest.
TEST_F(ToolchainTest, ClangIsWhatItsConfigurationAndItsResourcesMakeIt) {
  KERNIX_NEED_PROGRAM(clangxx, "clang++");
  const std::string config = temp_.File("clang++.cfg");
  std::filesystem::create_directories(temp_.File("resources/lib/linux"));
  const std::string builtins = temp_.File("resources/lib/linux/libclang_rt.builtins-x86_64.a");
  const auto write = [](const std::string& path, const std::string& text, mode_t mode) {
    ASSERT_TRUE(Env::Posix().WriteFile(path, text, mode).ok());
  };
  write(temp_.File("clang++"),
        Script(StrCat("case \"$1\" in\n-v) echo \"Configuration file: ", config, "\" ;;\n-print-resource-dir) echo ",
                      temp_.File("resources"), "; exit 0 ;;\nesac\nexec ", clangxx, " \"$@\"")),
        0755);
  write(config, "-O1\n", 0644);
  write(builtins, "1", 0644);
  const ToolchainPtr first = MustResolve(temp_.File("clang++"));
  write(config, "-O2\n", 0644);
  const ToolchainPtr configured = MustResolve(temp_.File("clang++"));
  write(builtins, "22", 0644);
  const ToolchainPtr updated = MustResolve(temp_.File("clang++"));
  ASSERT_TRUE(first != nullptr && configured != nullptr && updated != nullptr);
  EXPECT_NE(first->identity, configured->identity);
  EXPECT_NE(configured->identity, updated->identity);
}

// A link to the same compiler: other path, same content.
TEST_F(ToolchainTest, IdentityDoesNotDependOnThePath) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  std::filesystem::create_symlink(gxx, temp_.File("g++"));
  const ToolchainPtr here = MustResolve(gxx);
  const ToolchainPtr there = MustResolve(temp_.File("g++"));
  ASSERT_TRUE(here != nullptr && there != nullptr);
  EXPECT_NE(here->host.path, there->host.path);
  EXPECT_EQ(here->identity, there->identity);
}

// The driver is replaced once it has been read, which is after the fourth look at it, while another part is read.
TEST_F(ToolchainTest, APartThatIsReplacedWhileTheOthersAreReadIsLookedAtAgain) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const std::string driver = temp_.File("g++");
  ASSERT_TRUE(Env::Posix().WriteFile(driver, Script(StrCat("exec ", gxx, " \"$@\"")), 0755).ok());
  Fault replace{.operation = Operation::kReadFile, .match = "crti.o"};
  replace.before = [&] {
    Await("the driver to be read", [&] { return env_.Calls(Operation::kStat, driver) >= 4; });
    EXPECT_TRUE(Env::Posix().WriteFile(driver, Script(StrCat("exec ", gxx, " \"$@\" # new")), 0755).ok());
  };
  env_.Inject(replace);
  const ToolchainPtr before = MustResolve(driver);
  const ToolchainPtr after = MustResolve(driver);
  ASSERT_TRUE(before != nullptr && after != nullptr);
  EXPECT_NE(before->identity, after->identity);
  EXPECT_FALSE(Unchanged(env_, before->files));
  EXPECT_TRUE(Unchanged(env_, after->files));
}

TEST_F(ToolchainTest, AWarmResolveOnlyAsksForTheFilesStates) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const ToolchainPtr first = MustResolve(gxx);
  const int runs = env_.Calls(Operation::kRunProcess);
  const int reads = env_.Calls(Operation::kReadFile);
  const int stats = env_.Calls(Operation::kStat);
  EXPECT_EQ(MustResolve(gxx), first);
  EXPECT_EQ(env_.Calls(Operation::kRunProcess), runs);
  EXPECT_EQ(env_.Calls(Operation::kReadFile), reads);
  EXPECT_LE(env_.Calls(Operation::kStat) - stats, 60);
}

TEST_F(ToolchainTest, WhatIsKnownIsFoundAsLongAsItsFilesAreAsTheyWere) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  v1::ToolchainPaths paths;
  paths.set_host_compiler(gxx);
  const auto find = [&] {
    FileCheck check(env_);
    return registry_.FindKnown(paths, v1::LANGUAGE_CPP, check);
  };
  EXPECT_EQ(find(), nullptr);
  const ToolchainPtr toolchain = MustResolve(gxx);
  const int processes = env_.Calls(Operation::kRunProcess);
  EXPECT_EQ(find(), toolchain);
  env_.PretendChanged(gxx);
  EXPECT_EQ(find(), nullptr);
  EXPECT_EQ(env_.Calls(Operation::kRunProcess), processes);
  EXPECT_NE(MustResolve(gxx), toolchain);
  EXPECT_NE(find(), nullptr);
}

TEST_F(ToolchainTest, WhoAsksForOtherToolsKeepsNothing) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  v1::ToolchainPaths paths;
  paths.set_host_compiler(gxx);
  const ToolchainPtr toolchain = MustResolve(gxx);
  v1::ToolchainPaths others;
  for (int i = 0; i < 1'000; ++i) {
    others.set_host_compiler(StrCat("/no/such/", i));
    EXPECT_FALSE(registry_.HasFound(others, v1::LANGUAGE_CPP));
  }
  EXPECT_TRUE(registry_.HasFound(paths, v1::LANGUAGE_CPP));
  for (int i = 0; i < 1'000; ++i) {
    others.set_host_compiler(StrCat("/no/such/", i));
    EXPECT_FALSE(registry_.Resolve(others, v1::LANGUAGE_CPP).ok());
  }
  EXPECT_FALSE(registry_.HasFound(paths, v1::LANGUAGE_CPP)) << "those that are not used make room";
  EXPECT_EQ(MustResolve(gxx)->identity, toolchain->identity);
}

TEST_F(ToolchainTest, AChangedCompilerIsFoundOutAgain) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const std::string wrapper = temp_.Write("g++", Script("exec " + gxx + " \"$@\""), true);
  const ToolchainPtr before = MustResolve(wrapper);
  EXPECT_EQ(MustResolve(wrapper), before);
  temp_.Write("g++", Script("exec " + gxx + " \"$@\"  # another"), true);
  const ToolchainPtr after = MustResolve(wrapper);
  ASSERT_TRUE(before != nullptr && after != nullptr);
  EXPECT_NE(before->identity, after->identity);
}

TEST_F(ToolchainTest, ADriverOfCIsFoundOutByWhatItLinks) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_PROGRAM(gcc, "gcc");
  EXPECT_TRUE(MustResolve(gxx)->host.links_cxx);
  EXPECT_FALSE(MustResolve(gcc)->host.links_cxx);
  EXPECT_TRUE(MustResolve(temp_.Write("gcc", Script("exec " + gxx + " \"$@\""), true))->host.links_cxx);
  EXPECT_FALSE(MustResolve(temp_.Write("g++", Script("exec " + gcc + " \"$@\""), true))->host.links_cxx);
}

// --- Compilers that need variables -----------------------------------------------------------------------------------

class NeedyCompilerTest : public ToolchainTest {
 protected:
  // A compiler that works only if `variable` has "/needed" among its folders.
  v1::ToolchainPaths Needing(const std::string& gxx, const std::string& variable) {
    v1::ToolchainPaths paths;
    paths.set_host_compiler(temp_.Write(
        "g++-" + variable,
        Script(StrCat("case \":$", variable, ":\" in *:/needed:*) unset ", variable, "; exec ", gxx, " \"$@\";; esac\n",
                      "echo 'cc1plus: error while loading shared libraries: libmpfr.so.6' >&2; exit 127")),
        true));
    return paths;
  }
};

TEST_F(NeedyCompilerTest, RunsWithTheVariablesThatTheClientHas) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  for (const char* variable : {"LD_LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"}) {
    v1::ToolchainPaths paths = Needing(gxx, variable);
    const auto without = registry_.Resolve(paths, v1::LANGUAGE_CPP);
    EXPECT_THAT(std::string(without.status().message()), HasSubstr("libmpfr.so.6"));
    EXPECT_THAT(std::string(without.status().message()), HasSubstr("set CXX to a script that sets them"));
    paths.add_variable(StrCat(variable, "=/needed:relative::/opt/x"));
    const auto with = registry_.Resolve(paths, v1::LANGUAGE_CPP);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_EQ((*with)->environment.at(variable), "/needed:/opt/x") << "only absolute folders";
    FileCheck check(env_);
    EXPECT_EQ(registry_.FindKnown(paths, v1::LANGUAGE_CPP, check), *with);
    paths.set_variable(0, StrCat(variable, "=/opt/y:/needed"));
    EXPECT_NE((*registry_.Resolve(paths, v1::LANGUAGE_CPP))->identity, (*with)->identity);
    paths.set_variable(0, StrCat(variable, "=/opt/y"));
    EXPECT_FALSE(registry_.Resolve(paths, v1::LANGUAGE_CPP).ok());
  }
}

TEST_F(NeedyCompilerTest, ACompilerThatRunsWithoutDoesNotSeeThem) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  v1::ToolchainPaths paths;
  paths.set_host_compiler(gxx);
  const auto without = registry_.Resolve(paths, v1::LANGUAGE_CPP);
  ASSERT_TRUE(without.ok()) << without.status();
  paths.add_variable("LD_LIBRARY_PATH=/opt/x");
  EXPECT_EQ(*registry_.Resolve(paths, v1::LANGUAGE_CPP), *without);
  EXPECT_EQ((*without)->environment.at("LD_LIBRARY_PATH"), "/nonexistent");
}

// GCC's own answer about where it has a program or a file; empty if it has none.
std::string PartOfGcc(const std::string& gxx, const std::string& question) {
  const absl::StatusOr<std::string> answer = AskTool(Env::Posix(), {gxx, question});
  EXPECT_TRUE(answer.ok()) << answer.status();
  const std::string path = answer.ok() ? answer->substr(0, answer->find('\n')) : "";
  return path.starts_with("/") ? path : testing::FindOnPath(path).value_or("");
}

TEST_F(ToolchainTest, EveryPartOfGccIsPartOfTheIdentity) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const ToolchainPtr before = MustResolve(gxx);
  ASSERT_NE(before, nullptr);
  for (const char* question :
       {"-print-prog-name=cc1plus", "-print-prog-name=as", "-print-prog-name=ld", "-print-prog-name=collect2",
        "-print-file-name=crti.o", "-print-file-name=crtn.o", "-print-file-name=crtbeginS.o",
        "-print-file-name=crtendS.o", "-print-file-name=libgcc.a", "-print-file-name=libgcc_s.so.1",
        "-print-file-name=libstdc++.so", "-print-file-name=libc.so.6"}) {
    const std::string part = PartOfGcc(gxx, question);
    ASSERT_NE(part, "") << question;
    env_.PretendChanged(part);
    const ToolchainPtr after = MustResolve(gxx);
    ASSERT_NE(after, nullptr);
    EXPECT_NE(after->identity, before->identity) << part;
  }
  env_.PretendChanged("");
  EXPECT_EQ(MustResolve(gxx)->identity, before->identity);
}

// The libraries that the loader loads for `program` and whose names contain `part`.
std::vector<std::string> LibrariesOf(const std::string& program, const std::string& part) {
  const auto answer = AskTool(Env::Posix(), {"/usr/bin/ldd", program});
  EXPECT_TRUE(answer.ok()) << answer.status();
  std::vector<std::string> libraries;
  for (const std::string& line : SplitLines(answer.value_or(""))) {
    const size_t path = line.find("=> /");
    if (path == std::string::npos || line.find(part) == std::string::npos) continue;
    libraries.push_back(line.substr(path + 3, line.rfind(" (") - path - 3));
  }
  return libraries;
}

// Programs of distributions are thin: libbfd links, libLLVM compiles.
TEST_F(ToolchainTest, TheLibrariesOfItsProgramsArePartOfTheIdentity) {
  struct Case {
    const char* compiler;
    const char* program;
    const char* library;
  };
  for (const Case& c : {Case{"g++", "as", "libbfd"}, Case{"clang++", "clang++", "libLLVM"}}) {
    KERNIX_NEED_PROGRAM(compiler, c.compiler);
    KERNIX_NEED_PROGRAM(program, c.program);
    env_.PretendChanged("");
    const ToolchainPtr before = MustResolve(compiler);
    ASSERT_NE(before, nullptr);
    const std::vector<std::string> libraries = LibrariesOf(program, c.library);
    if (libraries.empty()) GTEST_SKIP() << program << " is not linked with " << c.library;
    for (const std::string& library : libraries) {
      env_.PretendChanged(library);
      const ToolchainPtr after = MustResolve(compiler);
      ASSERT_NE(after, nullptr);
      EXPECT_NE(after->identity, before->identity) << library;
    }
  }
}

// Their contents by the files' names.
std::map<std::string, Digest> FilesOf(Env& env, const Toolchain& toolchain, const std::vector<std::string>& compile,
                                      const std::vector<std::string>& link = {}) {
  const auto checked = CheckFlags(env, toolchain, v1::LANGUAGE_CPP, FlagPolicy::kPerUser, compile, link);
  EXPECT_TRUE(checked.ok()) << checked.status();
  std::map<std::string, Digest> files;
  if (!checked.ok()) return files;
  for (const FlagFile& file : checked->files) files[Basename(file.path)] = file.digest;
  return files;
}

TEST_F(ToolchainTest, WhatOnlySomeFlagsOfGccNeedIsAFileOfTheseFlags) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const std::string lto1 = PartOfGcc(gxx, "-print-prog-name=lto1");
  const std::string asan = PartOfGcc(gxx, "-print-file-name=libasan.so");
  if (lto1.empty() || asan.empty()) GTEST_SKIP() << gxx << " has no lto1 or no libasan.so";
  const std::string specs = temp_.Write("specs", "");
  const ToolchainPtr before = MustResolve(gxx);
  ASSERT_NE(before, nullptr);
  const auto lto = FilesOf(env_, *before, {"-flto"}), sanitizer = FilesOf(env_, *before, {"-fsanitize=address"});
  for (const std::string& part : {lto1, asan}) {
    env_.PretendChanged(part);
    EXPECT_EQ(MustResolve(gxx)->identity, before->identity) << part;
    EXPECT_EQ(FilesOf(env_, *before, {"-flto"}) != lto, part == lto1);
    EXPECT_EQ(FilesOf(env_, *before, {}, {"-flto=auto"}) != lto, part == lto1);
    EXPECT_EQ(FilesOf(env_, *before, {"-fsanitize=address"}) != sanitizer, part == asan);
  }
  EXPECT_THAT(FilesOf(env_, *before, {"-O2", "-fno-lto", "-fno-sanitize=all"}, {"-s"}), IsEmpty());
  const auto any = FilesOf(env_, *before, {"-specs=" + specs});
  EXPECT_TRUE(any.contains("lto1") && any.contains("libasan.so"));
}

// The identity need not cover the libraries of programs that it does not cover.
TEST_F(ToolchainTest, TheProgramsForLtoLoadWhatTheCompilerLoads) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const ToolchainPtr toolchain = MustResolve(gxx);
  ASSERT_NE(toolchain, nullptr);
  std::set<std::string> covered;
  for (const WatchedFile& file : toolchain->files) covered.insert(file.path);
  for (const std::string& program : toolchain->host.lto_programs) {
    for (const std::string& library : LibrariesOf(program, "")) EXPECT_TRUE(covered.contains(library)) << library;
  }
}

// Distributions have no specs file: their compilers use the built-in specs.
TEST_F(ToolchainTest, ASpecsFileIsPartOfTheIdentity) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const ToolchainPtr before = MustResolve(gxx);
  env_.PretendThere(JoinPath(Dirname(PartOfGcc(gxx, "-print-libgcc-file-name")), "specs"));
  ToolchainRegistry fresh(env_);
  v1::ToolchainPaths paths;
  paths.set_host_compiler(gxx);
  const absl::StatusOr<ToolchainPtr> after = fresh.Resolve(paths, v1::LANGUAGE_CPP);
  ASSERT_TRUE(before != nullptr && after.ok()) << after.status();
  EXPECT_NE((*after)->identity, before->identity);
}

TEST_F(ToolchainTest, WhatIsNoCompilerIsNamed) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("CXX"));
  EXPECT_THAT(ErrorOf("/nonexistent/g++"), HasSubstr("/nonexistent/g++"));
  EXPECT_THAT(ErrorOf("g++"), HasSubstr("g++"));
  EXPECT_THAT(ErrorOf("/bin/true"), HasSubstr("neither a GCC nor a Clang: set CXX to one of them"));
  EXPECT_THAT(ErrorOf(temp_.Write("broken", Script("echo cannot find cc1plus; exit 1"), true)),
              HasSubstr("cannot find cc1plus"));
  EXPECT_THAT(ErrorOf(temp_.Write("plain", "text")), HasSubstr("plain"));
}

TEST_F(ToolchainTest, AnErrorIsNotKept) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const std::string wrapper = temp_.Write("g++", Script("exit 1"), true);
  ErrorOf(wrapper);
  temp_.Write("g++", Script("exec " + gxx + " \"$@\""), true);
  EXPECT_NE(MustResolve(wrapper), nullptr);
}

// The compiler must accept the flags that replace -march=native.
TEST_F(ToolchainTest, NativeFlagsOfTheRealCompilers) {
  for (const char* name : {"g++", "clang++"}) {
    const std::optional<std::string> path = testing::FindOnPath(name);
    if (!path) continue;
    const ToolchainPtr toolchain = MustResolve(*path);
    ASSERT_NE(toolchain, nullptr);
    for (const char* native : {"-march=native", "-mtune=native"}) {
      const auto checked = CheckFlags(env_, *toolchain, v1::LANGUAGE_CPP, FlagPolicy::kShared, {native}, {});
      ASSERT_TRUE(checked.ok()) << checked.status();
      std::vector<std::string> argv = {*path, "-fsyntax-only", "-x", "c++"};
      argv.insert(argv.end(), checked->host.begin(), checked->host.end());
      argv.push_back("/dev/null");
      const auto answer = AskTool(env_, argv);
      EXPECT_TRUE(answer.ok()) << answer.status();
    }
  }
}

// A user's shared library in a user's folder: the link finds it, and the artifact names neither folder.
TEST_F(ToolchainTest, ALibraryOfTheUserIsLinkedByItsContent) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  const std::string source = temp_.Write("u.cc", "int in_library() { return 7; }");
  ASSERT_TRUE(AskTool(env_, {gxx, "-shared", "-fPIC", "-o", temp_.File("libu.so"), source}).ok());
  const ToolchainPtr toolchain = MustResolve(gxx);
  ASSERT_NE(toolchain, nullptr);
  const auto checked =
      CheckFlags(env_, *toolchain, v1::LANGUAGE_CPP, FlagPolicy::kPerUser, {}, {"-L" + temp_.path(), "-lu"});
  ASSERT_TRUE(checked.ok()) << checked.status();
  ASSERT_EQ(checked->files.size(), 1u);

  exec::Action link;
  link.step = "link";
  link.argv = {gxx, "-shared", "-fPIC", "-o", "k.so", "k.cc"};
  link.argv.insert(link.argv.end(), checked->link.begin(), checked->link.end());
  link.environment = toolchain->environment;
  link.inputs = {exec::MakeInput("k.cc", "int in_library(); int f() { return in_library(); }"),
                 exec::MakeInput(checked->files[0].staged, Env::Posix().ReadFile(checked->files[0].path).value())};
  link.outputs = {"k.so"};
  const auto linked = exec::RunAction(env_, {temp_.File("scratch")}, link, nullptr, nullptr);
  ASSERT_TRUE(linked.ok()) << linked.status();
  ASSERT_EQ(linked->exit_code, 0) << linked->output;
  const std::string artifact(*linked->outputs.at("k.so"));
  EXPECT_NE(artifact.find("libu.so"), std::string::npos);
  EXPECT_EQ(artifact.find("flag-files"), std::string::npos);
  EXPECT_EQ(artifact.find(temp_.path()), std::string::npos);
}

class CudaToolchainTest : public ToolchainTest {};

TEST_F(CudaToolchainTest, Nvcc) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr toolchain = MustResolve(gxx, nvcc);
  ASSERT_NE(toolchain, nullptr);
  ASSERT_TRUE(toolchain->cuda.has_value());
  const CudaToolkit& cuda = *toolchain->cuda;
  EXPECT_GE(cuda.major_version, 12);
  EXPECT_EQ(cuda.version, StrCat(cuda.major_version, ".", cuda.minor_version));
  EXPECT_THAT(cuda.architectures, Contains(90));
  EXPECT_TRUE(std::filesystem::exists(JoinPath(cuda.library_directories.at(0), "libcudart_static.a")));
  EXPECT_THAT(cuda.include_directories, Each(StartsWith("/")));
  EXPECT_THAT(cuda.include_directories, Not(Contains("/usr/include")));
  EXPECT_EQ(cuda.host_refusal, "");
  EXPECT_NE(toolchain->identity, MustResolve(gxx)->identity);
}

TEST_F(CudaToolchainTest, AWarmResolveOnlyAsksForTheFilesStates) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr first = MustResolve(gxx, nvcc);
  const int runs = env_.Calls(Operation::kRunProcess);
  const int stats = env_.Calls(Operation::kStat);
  EXPECT_EQ(MustResolve(gxx, nvcc), first);
  EXPECT_EQ(env_.Calls(Operation::kRunProcess), runs);
  EXPECT_LE(env_.Calls(Operation::kStat) - stats, 80);
}

TEST_F(CudaToolchainTest, ScriptsAndLinksLeadToTheSameToolkit) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr direct = MustResolve(gxx, nvcc);
  const ToolchainPtr script = MustResolve(gxx, temp_.Write("nvcc", Script("exec " + nvcc + " \"$@\""), true));
  ASSERT_TRUE(direct != nullptr && script != nullptr);
  EXPECT_EQ(script->cuda->nvcc, direct->cuda->nvcc);
  EXPECT_EQ(script->identity, direct->identity);
}

TEST_F(CudaToolchainTest, AScriptThatAddsFlagsIsRefused) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  for (const char* flag : {"-DVAL=2", "-use_fast_math", "-Xptxas -O1"}) {
    const std::string script = temp_.Write("nvcc", Script(StrCat("exec ", nvcc, " ", flag, " \"$@\"")), true);
    EXPECT_THAT(ErrorOf(gxx, script), HasSubstr("put these flags into NVCC_PREPEND_FLAGS"));
  }
}

// A toolkit made of links to the parts of the real one: it has another place, and any part can be left out.
class LinkedToolkit {
 public:
  LinkedToolkit(const TempFolder& temp, const CudaToolkit& real) : temp_(temp), real_(real) {
    namespace fs = std::filesystem;
    fs::create_directories(temp.File("cuda"));
    for (const char* folder : {"bin", "include", "lib", "lib64", "targets"}) CopyOrLink(folder);
    fs::copy(fs::path(real.root) / "nvvm", temp.File("cuda/nvvm"), fs::copy_options::recursive);
  }

  std::string nvcc() const { return temp_.File("cuda/bin/nvcc"); }
  std::string File(const std::string& name) const { return temp_.File("cuda/" + name); }

 private:
  // nvcc looks beside itself, so bin must be a real folder; the other folders are too large to copy.
  void CopyOrLink(const std::string& folder) {
    namespace fs = std::filesystem;
    const fs::path from = fs::path(real_.root) / folder;
    if (!fs::exists(from)) return;
    if (folder == "bin") {
      fs::copy(from, File(folder), fs::copy_options::recursive);
    } else {
      fs::create_directory_symlink(fs::canonical(from), File(folder));
    }
  }

  const TempFolder& temp_;
  const CudaToolkit& real_;
};

TEST_F(CudaToolchainTest, ACopyOfTheToolkitElsewhereIsTheSameToolchain) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr real = MustResolve(gxx, nvcc);
  ASSERT_NE(real, nullptr);
  const LinkedToolkit copy(temp_, *real->cuda);
  const ToolchainPtr copied = MustResolve(gxx, copy.nvcc());
  ASSERT_NE(copied, nullptr);
  EXPECT_EQ(copied->cuda->root, temp_.File("cuda"));
  EXPECT_EQ(copied->identity, real->identity);
}

// The layout of Debian and Ubuntu: nvcc and cicc in a folder of their own, the other programs beside the host compiler,
// headers and libraries where the host compiler has its own.
class DistributionToolkit {
 public:
  DistributionToolkit(const TempFolder& temp, const CudaToolkit& real, const std::string& gxx) : temp_(temp) {
    namespace fs = std::filesystem;
    for (const char* folder : {"lib/cuda/bin", "bin"}) fs::create_directories(temp.File(folder));
    Copy(real.nvcc, "lib/cuda/bin/nvcc");
    Copy(real.root + "/nvvm/bin/cicc", "lib/cuda/bin/cicc");
    for (const char* name : {"cudafe++", "ptxas", "fatbinary", "nvlink"}) {
      Copy(JoinPath(Dirname(real.nvcc), name), StrCat("bin/", name));
    }
    temp.Write("lib/cuda/bin/nvcc.profile",
               StrCat("NVVMIR_LIBRARY_DIR = ", real.root, "/nvvm/libdevice\nPATH += ", temp.File("lib/cuda/bin"),
                      ":\nLIBRARIES =+ -L", real.library_directories.at(0), "\n"));
    temp.Write("bin/nvcc", Script(StrCat("exec ", temp.File("lib/cuda/bin/nvcc"), " \"$@\"")), true);
    std::string isystem;
    for (const std::string& folder : real.include_directories) StrAppend(&isystem, " -isystem ", folder);
    temp.Write("bin/g++", Script(StrCat("exec ", gxx, isystem, " \"$@\"")), true);
  }

  std::string nvcc() const { return temp_.File("bin/nvcc"); }
  std::string gxx() const { return temp_.File("bin/g++"); }

 private:
  void Copy(const std::string& from, const std::string& to) { std::filesystem::copy(from, temp_.File(to)); }

  const TempFolder& temp_;
};

TEST_F(CudaToolchainTest, ADistributionsToolkitLiesWhereTheHostCompilerDoes) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr real = MustResolve(gxx, nvcc);
  ASSERT_NE(real, nullptr);
  const DistributionToolkit toolkit(temp_, *real->cuda, gxx);
  const ToolchainPtr toolchain = MustResolve(toolkit.gxx(), toolkit.nvcc());
  ASSERT_NE(toolchain, nullptr);
  EXPECT_EQ(toolchain->cuda->nvcc, temp_.File("lib/cuda/bin/nvcc"));
  EXPECT_THAT(toolchain->cuda->include_directories, IsEmpty());
  EXPECT_EQ(toolchain->cuda->host_refusal, "");
  EXPECT_TRUE(toolchain->cuda->programs_beside_host_compiler);
  EXPECT_FALSE(real->cuda->programs_beside_host_compiler);
  ASSERT_TRUE(Env::Posix().RemoveFile(temp_.File("bin/fatbinary")).ok());
  EXPECT_THAT(ErrorOf(toolkit.gxx(), toolkit.nvcc()), HasSubstr("fatbinary"));
}

TEST_F(CudaToolchainTest, AMissingPartIsNamedAndAChangedOneCounts) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr real = MustResolve(gxx, nvcc);
  ASSERT_NE(real, nullptr);
  const LinkedToolkit copy(temp_, *real->cuda);
  ASSERT_TRUE(Env::Posix().WriteFile(copy.File("nvvm/libdevice/libdevice.10.bc"), "other", 0644).ok());
  const ToolchainPtr changed = MustResolve(gxx, copy.nvcc());
  ASSERT_NE(changed, nullptr);
  EXPECT_NE(changed->identity, real->identity);
  ASSERT_TRUE(Env::Posix().RemoveFile(copy.File("nvvm/bin/cicc")).ok());
  EXPECT_THAT(ErrorOf(gxx, copy.nvcc()), HasSubstr("cicc"));
}

// The file of that name below `folder`, with links resolved.
std::string FileBelow(const std::string& folder, const std::string& name) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == name && entry.is_regular_file()) return std::filesystem::canonical(entry.path());
  }
  return "";
}

TEST_F(CudaToolchainTest, EveryPartOfTheToolkitIsPartOfTheIdentity) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr before = MustResolve(gxx, nvcc);
  ASSERT_NE(before, nullptr);
  std::vector<std::string> parts = {before->cuda->nvcc,
                                    JoinPath(before->cuda->library_directories.at(0), "libcudart_static.a")};
  for (const char* name : {"cudafe++", "cicc", "ptxas", "fatbinary", "nvlink", "nvcc.profile", "libdevice.10.bc"}) {
    parts.push_back(FileBelow(before->cuda->root, name));
    ASSERT_NE(parts.back(), "") << name;
  }
  for (const std::string& part : parts) {
    env_.PretendChanged(part);
    const ToolchainPtr after = MustResolve(gxx, nvcc);
    ASSERT_NE(after, nullptr);
    EXPECT_NE(after->identity, before->identity) << part;
    EXPECT_EQ(after->host.identity, before->host.identity) << part;
  }
}

// Releases from 12.5 on may have a second cicc, with a libdevice of its own, and say where (CICC_NEXT_PATH).
TEST_F(CudaToolchainTest, TheSecondCiccOfSomeReleasesIsPartOfTheIdentity) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr real = MustResolve(gxx, nvcc);
  ASSERT_NE(real, nullptr);
  const LinkedToolkit copy(temp_, *real->cuda);
  constexpr const char* kParts[] = {"nvvm-next/bin/cicc", "nvvm-next/libdevice/libdevice.10.bc"};
  const auto write = [&](const std::string& part, const char* content) {
    std::filesystem::create_directories(Dirname(copy.File(part)));
    ASSERT_TRUE(Env::Posix().WriteFile(copy.File(part), content, 0755).ok());
  };
  std::set<std::string> identities = {real->identity.Hex()};
  const auto expect_another = [&] {
    const ToolchainPtr found = MustResolve(gxx, copy.nvcc());
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(identities.insert(found->identity.Hex()).second);
  };
  for (const char* part : kParts) write(part, "one");
  expect_another();
  for (const char* part : kParts) {
    write(part, "another");
    expect_another();
  }
}

TEST_F(CudaToolchainTest, WhatIsNoNvccIsNamed) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  v1::ToolchainPaths paths;
  paths.set_host_compiler(gxx);
  const auto none = registry_.Resolve(paths, v1::LANGUAGE_CUDA);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(KindOf(none.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("CUDA_HOME"));
  EXPECT_THAT(ErrorOf(gxx, "/nonexistent/nvcc"), HasSubstr("/nonexistent/nvcc"));
  EXPECT_THAT(ErrorOf(gxx, "/bin/true"), HasSubstr("version"));
}

// A compiler that claims a future version.
TEST_F(CudaToolchainTest, AHostCompilerThatIsTooNewIsRefusedWithTheNewestThatWorks) {
  KERNIX_NEED_PROGRAM(gxx, "g++");
  KERNIX_NEED_NVCC(nvcc);
  const std::string future = temp_.Write("g++", Script("exec " + gxx + " -U__GNUC__ -D__GNUC__=99 \"$@\""), true);
  const ToolchainPtr toolchain = MustResolve(future, nvcc);
  ASSERT_NE(toolchain, nullptr);
  EXPECT_THAT(toolchain->cuda->host_refusal, HasSubstr("the newest GCC that it supports is 1"));
  EXPECT_THAT(toolchain->cuda->host_refusal, HasSubstr("CXX=g++-"));
  const auto refused = CheckFlags(env_, *toolchain, v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(KindOf(refused.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_TRUE(
      CheckFlags(env_, *toolchain, v1::LANGUAGE_CUDA, FlagPolicy::kPerUser, {"-allow-unsupported-compiler"}, {}).ok());
}

TEST(HostLimitsTest, ReadsBothLimits) {
  const HostLimits limits = ParseHostLimits(
      "#if __GNUC__ > 14\n#endif /* __GNUC__ > 14 */\n"
      "#if (__clang_major__ >= 19) || (__clang_major__ < 3)\n"
      "#if (__clang_major__ >= 20) || (__clang_major__ < 3)\n");
  EXPECT_EQ(limits.newest_gcc, 14);
  EXPECT_EQ(limits.newest_clang, 19);
  EXPECT_EQ(ParseHostLimits("nothing").newest_gcc, 0);
  EXPECT_EQ(ParseHostLimits("nothing").newest_clang, 0);
}

class RememberedToolchainsTest : public ::testing::Test {
 protected:
  ToolchainPtr Here(const std::string& nvcc = "", const std::string& host_compiler = "/usr/bin/g++") {
    v1::ToolchainPaths paths;
    paths.set_host_compiler(host_compiler);
    paths.set_nvcc(nvcc);
    auto found = registry_.Resolve(paths, nvcc.empty() ? v1::LANGUAGE_CPP : v1::LANGUAGE_CUDA);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }

  // As a later daemon sees it, where nobody names a tool.
  absl::StatusOr<ToolchainPtr> Later(v1::Language language = v1::LANGUAGE_CPP) {
    ToolchainRegistry later(Env::Posix());
    later.RememberIn({folder()});
    return later.Resolve({}, language);
  }

  std::string folder() const { return folder_.File("toolchains"); }

  // Makes the description of `toolchain` older than all others.
  void Age(const Toolchain& toolchain) const {
    const timespec old[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, JoinPath(folder(), toolchain.identity.Hex()).c_str(), old, 0), 0);
  }

  TempFolder folder_;
  ToolchainRegistry registry_{Env::Posix()};
};

TEST_F(RememberedToolchainsTest, TheLastOneThatFilledTheStoreServes) {
  const ToolchainPtr host = Here();
  registry_.RememberIn({folder()});
  EXPECT_TRUE(absl::IsUnimplemented(Later().status())) << "nothing has filled it";
  registry_.Remember(*host);
  const auto later = Later();
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ((*later)->identity, host->identity);
  EXPECT_EQ((*later)->host.path, host->host.path);
  EXPECT_TRUE((*later)->described->of_store);
  EXPECT_TRUE(absl::IsUnimplemented(Later(v1::LANGUAGE_CUDA).status())) << "it has no nvcc";
}

TEST_F(RememberedToolchainsTest, EachLanguageGetsTheLastThatServesIt) {
  KERNIX_NEED_NVCC(nvcc);
  const ToolchainPtr host = Here();
  const ToolchainPtr cuda = Here(nvcc);
  registry_.RememberIn({folder()});
  registry_.Remember(*cuda);
  EXPECT_EQ((*Later(v1::LANGUAGE_CUDA))->identity, cuda->identity);
  EXPECT_EQ((*Later())->identity, host->identity) << "the host compiler alone";
  registry_.Remember(*host);
  Age(*cuda);
  EXPECT_EQ((*Later(v1::LANGUAGE_CUDA))->identity, cuda->identity);
}

TEST_F(RememberedToolchainsTest, AStoreThatIsOnlyReadHasItsOwn) {
  const ToolchainPtr host = Here();
  registry_.RememberIn({folder()});
  registry_.Remember(*host);
  ToolchainRegistry later(Env::Posix());
  later.RememberIn({folder_.File("written"), folder()});
  const auto found = later.Resolve({}, v1::LANGUAGE_CPP);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->identity, host->identity);
}

TEST_F(RememberedToolchainsTest, AllThatFilledTheStoreAreThereTheLastOneFirst) {
  KERNIX_NEED_PROGRAM(clang, "clang++");
  const ToolchainPtr host = Here();
  const ToolchainPtr other = Here("", clang);
  registry_.RememberIn({folder()});
  registry_.Remember(*host);
  registry_.Remember(*other);
  Age(*other);
  ToolchainRegistry later(Env::Posix());
  EXPECT_TRUE(later.Remembered(v1::LANGUAGE_CPP).empty());
  later.RememberIn({folder_.File("written"), folder(), folder()});
  const std::vector<ToolchainPtr> found = later.Remembered(v1::LANGUAGE_CPP);
  ASSERT_EQ(found.size(), 2u) << "each once";
  EXPECT_EQ(found[0]->identity, host->identity);
  EXPECT_EQ(found[1]->identity, other->identity);
  EXPECT_TRUE(later.Remembered(v1::LANGUAGE_CUDA).empty());
}

TEST_F(RememberedToolchainsTest, WhatIsNoDescriptionIsPassedOver) {
  const ToolchainPtr host = Here();
  registry_.RememberIn({folder()});
  registry_.Remember(*host);
  Age(*host);
  ASSERT_TRUE(Env::Posix().WriteFile(JoinPath(folder(), "cut off"), "\x08\x01", 0600).ok());
  const auto later = Later();
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ((*later)->identity, host->identity);
}

TEST_F(RememberedToolchainsTest, WhatIsRememberedIsNotRememberedAgain) {
  registry_.RememberIn({folder()});
  registry_.Remember(*Here());
  const ToolchainPtr later = *Later();
  ToolchainRegistry other(Env::Posix());
  other.RememberIn({folder_.File("other")});
  other.Remember(*later);
  EXPECT_FALSE(Env::Posix().Stat(folder_.File("other")).ok());
}

}  // namespace

}  // namespace kernix::toolchain
