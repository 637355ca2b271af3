// SPDX-License-Identifier: Apache-2.0
//
// A node without any compiler: a root folder that has kernixd, its clients, the libraries that these need, and nothing
// else. It takes what this machine, which has compilers, has built, or what an engine's workers make for it.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/kernixctl/command.h"
#include "common/base/strings.h"
#include "tests/integration/client_world.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/child_process.h"
#include "tests/support/find_tools.h"

namespace kernix {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kCpp[] =
    "#include <cmath>\n"
    "#include \"brainevent/common.h\"\n"
    "// @BE seven ret\n"
    "void seven(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = std::sqrt(49.0f); }\n";

constexpr char kCuda[] =
    "#include \"brainevent/common.h\"\n"
    "__global__ void fill(float* out) { out[threadIdx.x] = 7; }\n"
    "// @BE seven ret stream\n"
    "void seven(BE::Tensor out, int64_t stream) {\n"
    "  fill<<<1, 1, 0, (cudaStream_t)stream>>>(static_cast<float*>(out.data_ptr()));\n"
    "}\n";

// The absolute paths in what ldd says of a program.
std::vector<std::string> LibrariesOf(const std::string& program) {
  std::istringstream words(RunProgram({"/usr/bin/ldd", program}).output);
  std::vector<std::string> paths;
  for (std::string word; words >> word;) {
    if (word.starts_with('/')) paths.push_back(word);
  }
  return paths;
}

class BareNodeTest : public ClientWorld {
 protected:
  BareNodeTest() : BareNodeTest(std::make_unique<testing::CasdProcess>()) {}
  explicit BareNodeTest(std::unique_ptr<testing::CasdProcess> engine) : engine_(std::move(engine)) {
    SetVariable("KERNIX_UPSTREAM_ADDRESS", engine_->address());
    SetVariable("KERNIX_UPSTREAM_WRITE", "true");
    for (const char* folder : {"bin", "tmp", "home", "run"}) fs::create_directories(root() + "/" + folder);
    for (const char* program : {KERNIXD_PROGRAM, KERNIX_SPAWN_PROGRAM, KERNIXCTL_PROGRAM, BARE_PROBE}) {
      Put(program, "/bin/" + fs::path(program).filename().string());
      for (const std::string& library : LibrariesOf(program)) Put(library, library);
    }
    fs::create_hard_link(engine_->socket(), root() + "/engine");  // a socket is found by its inode
    fs::create_directories(root() + "/dev");
    has_null_ = mknod((root() + "/dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0;
    Write("seven.cpp", kCpp);
    Write("seven.cu", kCuda);
  }
  ~BareNodeTest() override { InRoot({"/bin/kernixctl", "shutdown"}); }

  std::string root() const { return Path("root"); }

  void Put(const std::string& file, const std::string& place) const {
    fs::create_directories(fs::path(root() + place).parent_path());
    fs::copy_file(file, root() + place, fs::copy_options::skip_existing);
  }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(Env::Posix().WriteFile(Path(name), text, 0600).ok());
    ASSERT_TRUE(Env::Posix().WriteFile(root() + "/" + name, text, 0600).ok());
  }

  // The path of a config file: `place` with ".sock" is its socket. Both sides have the file; `more` ends with tables.
  std::string SharedConfig(const std::string& name, const std::string& place, const std::string& more) const {
    Write(name, StrCat("shared = true\nsocket = \"", place, ".sock\"\nstore_directory = \"", place, "\"\n", more));
    return Path(name);
  }

  // Nothing of this process' environment is seen in the root.
  std::vector<std::string> CommandInRoot(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {"/usr/bin/env",
                                        "-i",
                                        "HOME=/home",
                                        "XDG_RUNTIME_DIR=/run",
                                        "PATH=/bin",
                                        "KERNIX_IDLE_TIMEOUT=60s",
                                        "KERNIX_UPSTREAM_ADDRESS=unix:///engine"};
    if (described_) command.emplace_back("KERNIX_TOOLCHAIN_DESCRIPTION=/fleet.toolchain");
    command.insert(command.end(), settings_.begin(), settings_.end());
    command.insert(command.end(), {"/usr/sbin/chroot", root()});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  ProgramOutcome InRoot(const std::vector<std::string>& arguments) const {
    return RunProgram(CommandInRoot(arguments));
  }
  // The output has what it prints to stderr, too.
  ProgramOutcome InRootWithErrors(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {"/bin/sh", "-c", "\"$@\" 2>&1", "sh"};
    const std::vector<std::string> words = CommandInRoot(arguments);
    command.insert(command.end(), words.begin(), words.end());
    return RunProgram(command);
  }
  std::string Probe() const { return InRoot({"/bin/bare_probe", "/seven.cpp", "/seven.cu"}).output; }

  // As kernixctl finds the compilers here. Empty: no nvcc but those that it finds by itself.
  void Describe(const std::string& nvcc = "") {
    if (!nvcc.empty()) SetVariable("PATH", nvcc.substr(0, nvcc.rfind('/')) + ":" + getenv("PATH"));
    SetVariable("CXX", "/usr/bin/g++");
    const ProgramOutcome outcome = RunProgram({KERNIXCTL_PROGRAM, "describe", "-o", root() + "/fleet.toolchain"});
    ASSERT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.output, HasSubstr("describes /usr/bin/g++"));
    described_ = true;
  }

  // On this machine, until all is written.
  void Build() {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"compile", Path("seven.cpp")},
                                                      {"compile", Path("seven.cu"), "--arch", "sm_90"},
                                                      {"shutdown"}}) {
      std::vector<std::string> command = {KERNIXCTL_PROGRAM};
      command.insert(command.end(), arguments.begin(), arguments.end());
      EXPECT_EQ(RunProgram(command).exit_code, ctl::kOk);
    }
  }

  std::unique_ptr<testing::CasdProcess> engine_;
  std::vector<std::string> settings_;  // more variables in the root
  bool described_ = false;
  bool has_null_ = false;  // as every root has
};

#define KERNIX_NEED_ROOT() \
  if (!has_null_) GTEST_SKIP() << "only root may make a root folder with /dev/null, and not in every container"

TEST_F(BareNodeTest, TakesAndCallsWhatOthersHaveBuilt) {
  KERNIX_NEED_ROOT();
  KERNIX_NEED_NVCC(nvcc);
  Describe(nvcc);
  const std::string missing = Probe();
  EXPECT_THAT(missing, AllOf(HasSubstr("cpp: this node has no compiler for module \"seven\""),
                             HasSubstr("cuda: this node has no compiler for module \"seven\""),
                             HasSubstr("the engine at unix:///engine has no matching result"),
                             HasSubstr("prefetch them on a node with /usr/bin/g++")));
  Build();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n");
  const std::string stats = InRoot({"/bin/kernixctl", "cache", "stats", "--json"}).output;
  EXPECT_THAT(stats, AllOf(HasSubstr("\"builds\": 0,"), HasSubstr("\"upstream_hits\": 2,")));
  EXPECT_THAT(InRoot({"/bin/kernixctl", "status"}).output, HasSubstr("(described by /fleet.toolchain)"));
  EXPECT_THAT(InRoot({"/bin/kernixctl", "doctor"}).output,
              HasSubstr("none here: loads use the description /fleet.toolchain"));
  EXPECT_EQ(InRoot({"/bin/kernixd", "--check-config"}).exit_code, 0);

  engine_.reset();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n") << "from its own store";
  EXPECT_EQ(InRoot({"/bin/kernixctl", "shutdown"}).exit_code, ctl::kOk);
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n") << "also when kernixd has started anew";
}

// As a slim container has it that was made from the one that built.
TEST_F(BareNodeTest, AStoreThatWasFilledElsewhereServesWhatItHolds) {
  KERNIX_NEED_ROOT();
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("PATH", nvcc.substr(0, nvcc.rfind('/')) + ":" + getenv("PATH"));
  unsetenv("KERNIX_UPSTREAM_ADDRESS");
  unsetenv("KERNIX_UPSTREAM_WRITE");
  SetVariable("KERNIX_CACHE_DIR", root() + "/store");
  settings_ = {"KERNIX_UPSTREAM_ADDRESS=", "KERNIX_CACHE_DIR=/store"};
  Build();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n");
  Write("other.cpp", StrCat(kCpp, "// other\n"));
  const auto says_so = HasSubstr("no C++ compiler found");
  EXPECT_THAT(InRootWithErrors({"/bin/kernixctl", "compile", "/other.cpp"}).output, says_so);
  EXPECT_THAT(InRootWithErrors({"/bin/kernixctl", "compile", "/seven.cpp", "--force"}).output, says_so);
  EXPECT_EQ(InRoot({"/bin/kernixctl", "cache", "purge", "--all"}).exit_code, ctl::kOk);
  EXPECT_THAT(Probe(), AllOf(HasSubstr("cpp: no C++ compiler found"), HasSubstr("cuda: no nvcc found")));
}

// An image whose layers have had several compilers.
TEST_F(BareNodeTest, AStoreServesWhatAnyOfItsCompilersHasBuilt) {
  KERNIX_NEED_ROOT();
  KERNIX_NEED_PROGRAM(clang, "clang++");
  unsetenv("KERNIX_UPSTREAM_ADDRESS");
  unsetenv("KERNIX_UPSTREAM_WRITE");
  SetVariable("KERNIX_CACHE_DIR", root() + "/store");
  settings_ = {"KERNIX_UPSTREAM_ADDRESS=", "KERNIX_CACHE_DIR=/store"};
  const std::vector<std::pair<std::string, std::string>> loads = {
      {"/usr/bin/g++", "seven.cpp"}, {clang, "eight.cpp"}, {"/usr/bin/g++", "nine.cpp"}};
  for (const auto& [compiler, file] : loads) {
    if (file != "seven.cpp") Write(file, StrCat(kCpp, "// ", file, "\n"));
    SetVariable("CXX", compiler);
    EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "compile", Path(file)}).exit_code, ctl::kOk);
  }
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "shutdown"}).exit_code, ctl::kOk);
  for (int time = 0; time < 2; ++time) {
    for (const auto& [compiler, file] : loads) {
      EXPECT_THAT(InRootWithErrors({"/bin/kernixctl", "compile", "/" + file}).output, HasSubstr("from the cache"))
          << compiler;
    }
  }
  const std::string stats = InRoot({"/bin/kernixctl", "cache", "stats", "--json"}).output;
  EXPECT_THAT(stats, HasSubstr("\"builds\": 3,"));
  Write("other.cpp", StrCat(kCpp, "// other\n"));
  EXPECT_THAT(InRootWithErrors({"/bin/kernixctl", "compile", "/other.cpp"}).output, HasSubstr("no C++ compiler found"));
}

TEST_F(BareNodeTest, PrefetchesWhatWasRecordedWhereTheCompilersAre) {
  KERNIX_NEED_ROOT();
  KERNIX_NEED_NVCC(nvcc);
  Describe(nvcc);
  const std::string manifest = Path("kernels.manifest");
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "record", "-o", manifest, "--", KERNIXCTL_PROGRAM, "build",
                        Path("seven.cpp"), Path("seven.cu"), "--arch", "sm_90"})
                .exit_code,
            ctl::kOk);
  Put(manifest, "/kernels.manifest");
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "shutdown"}).exit_code, ctl::kOk);
  EXPECT_EQ(InRoot({"/bin/kernixctl", "prefetch", "/kernels.manifest"}).exit_code, ctl::kOk);
  engine_.reset();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n");
}

// A shared kernixd's keys are its own: what a private one has built is not for it.
TEST_F(BareNodeTest, ASharedKernixdServesMembersWithoutCompilers) {
  KERNIX_NEED_ROOT();
  KERNIX_NEED_NVCC(nvcc);
  Describe(nvcc);
  const std::string builds = StrCat("unix://", Path("builds.sock"));
  {
    const testing::ChildProcess kernixd(
        {.argv = {KERNIXD_PROGRAM, "--config",
                  SharedConfig("builds.toml", Path("builds"),
                               StrCat("[upstream]\naddress = \"", engine_->address(), "\"\nwrite = true\n",
                                      "[[toolchain]]\nname = \"system\"\nhost_compiler = \"/usr/bin/g++\"\n"))},
         .environment = {{"PATH", "/usr/bin:/bin"}},
         .log = Path("builds.log")});
    ASSERT_TRUE(Eventually([&] { return fs::exists(Path("builds.sock")); }));
    EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "--address", builds, "compile", Path("seven.cpp")}).exit_code, ctl::kOk);
    EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "--address", builds, "shutdown"}).exit_code, ctl::kOk);
  }
  SharedConfig("kernixd.toml", "/bare",
               "toolchain_description = \"/fleet.toolchain\"\n[upstream]\naddress = \"unix:///engine\"\n");
  const testing::ChildProcess shared({.argv = {"/usr/sbin/chroot", root(), "/bin/kernixd", "--config", "/kernixd.toml"},
                                      .environment = {{"PATH", "/bin"}},
                                      .log = Path("shared.log")});
  ASSERT_TRUE(Eventually([&] { return fs::exists(root() + "/bare.sock"); }));
  EXPECT_THAT(InRoot({"/bin/kernixctl", "--address", "/bare.sock", "compile", "/seven.cpp"}).output,
              HasSubstr("seven (from another node)"));
  EXPECT_THAT(shared.Log(), HasSubstr("toolchain toolchain=/fleet.toolchain host_compiler=/usr/bin/g++"));
}

TEST_F(BareNodeTest, WithoutADescriptionTheErrorSaysWhereACompilerWasLookedFor) {
  KERNIX_NEED_ROOT();
  const std::string output = Probe();
  EXPECT_THAT(output,
              StartsWith("cpp: no C++ compiler found. Looked for: $CXX (not set); c++, g++ and clang++ on PATH"));
  EXPECT_THAT(output, HasSubstr("\ncuda: no nvcc found. Looked at: $CUDA_HOME (not set)"));
}

// One whose workers have the compilers of this machine.
std::unique_ptr<testing::CasdProcess> WithWorkers() {
  std::vector<std::string> folders;
  if (const auto nvcc = testing::FindNvcc()) folders.push_back(nvcc->substr(0, nvcc->rfind("/bin/")));
  return testing::CasdProcess::Executing(std::move(folders));
}

class BareNodeAndWorkersTest : public BareNodeTest {
 protected:
  BareNodeAndWorkersTest() : BareNodeAndWorkersTest(WithWorkers) {}
  explicit BareNodeAndWorkersTest(std::unique_ptr<testing::CasdProcess> (*start)())
      : BareNodeTest(testing::SandboxWorks() ? start() : std::make_unique<testing::CasdProcess>()) {
    settings_ = {"KERNIX_UPSTREAM_STEPS=prefer-remote", "KERNIX_UPSTREAM_SAME_TOOLS=true",
                 "KERNIX_UPSTREAM_WRITE=true"};
  }
  void SetUp() override { KERNIX_NEED_SANDBOX(); }

  // Of a sample in the metrics of the root's kernixd.
  int64_t Number(const std::string& sample) const {
    const std::string text = InRoot({"/bin/kernixctl", "metrics"}).output;
    const size_t at = text.find("\n" + sample + " ");
    EXPECT_NE(at, std::string::npos) << sample;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size() + 2));
  }

  static std::string KernelThatReturns(const std::string& value) {
    return StrCat("#include \"brainevent/common.h\"\n// @BE seven ret\nvoid seven(BE::Tensor out) {\n",
                  "  *static_cast<float*>(out.data_ptr()) = ", value, ";\n}\n");
  }
};

TEST_F(BareNodeAndWorkersTest, CompilesWhatNobodyHasBuiltAndSharesItWithNodesThatHaveCompilers) {
  KERNIX_NEED_ROOT();
  KERNIX_NEED_NVCC(nvcc);
  Describe(nvcc);
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n");
  EXPECT_THAT(InRoot({"/bin/kernixctl", "cache", "stats", "--json"}).output,
              AllOf(HasSubstr("\"builds\": 2,"), HasSubstr("\"upstream_hits\": 0,")));
  EXPECT_GT(Number("kernix_placed_steps_total{place=\"remote\"}"), 4) << "compile and link, and those of CUDA";
  EXPECT_EQ(Number("kernix_placed_steps_total{place=\"local\"}"), 0);
  EXPECT_EQ(Number("kernix_steps_run_here_instead_total{why=\"step\"}"), 0);
  EXPECT_EQ(Number("kernix_lessons"), 0);
  EXPECT_EQ(InRoot({"/bin/kernixctl", "shutdown"}).exit_code, ctl::kOk);  // it has written all
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{Path("seven.cpp")}, {Path("seven.cu"), "--arch", "sm_90"}}) {
    std::vector<std::string> command = {KERNIXCTL_PROGRAM, "compile"};
    command.insert(command.end(), more.begin(), more.end());
    EXPECT_THAT(RunProgram(command).output, HasSubstr("seven (from another node)")) << more.front();
  }
  Write("other.cpp", KernelThatReturns("8"));
  EXPECT_THAT(RunProgram({KERNIXCTL_PROGRAM, "compile", Path("other.cpp")}).output, HasSubstr("seven (built"));
  EXPECT_EQ(RunProgram({KERNIXCTL_PROGRAM, "shutdown"}).exit_code, ctl::kOk);
  EXPECT_THAT(InRoot({"/bin/kernixctl", "compile", "/other.cpp"}).output, HasSubstr("seven (from another node)"));
}

TEST_F(BareNodeAndWorkersTest, ACompileErrorShowsTheUsersLine) {
  KERNIX_NEED_ROOT();
  Describe();
  Write("bad.cpp", KernelThatReturns("nothing"));
  const ProgramOutcome outcome = InRootWithErrors({"/bin/kernixctl", "compile", "/bad.cpp"});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("bad.cpp:4:42: error: 'nothing' was not declared in this scope"),
                                    HasSubstr("4 |   *static_cast<float*>(out.data_ptr()) = nothing;")));
}

TEST_F(BareNodeAndWorkersTest, WithoutTheEngineTheErrorSaysWhatIsMissing) {
  KERNIX_NEED_ROOT();
  Describe();
  engine_.reset();
  const ProgramOutcome outcome = InRootWithErrors({"/bin/kernixctl", "compile", "/seven.cpp"});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("step \"compile\" could not run on a worker"),
                                    HasSubstr("unix:///engine"), HasSubstr("This node has no compiler")));
}

TEST_F(BareNodeAndWorkersTest, MembersOfASharedKernixdSeeErrorsToo) {
  KERNIX_NEED_ROOT();
  Describe();
  SharedConfig("kernixd.toml", "/bare",
               "toolchain_description = \"/fleet.toolchain\"\n"
               "[upstream]\naddress = \"unix:///engine\"\nsteps = \"remote\"\n");
  const testing::ChildProcess shared({.argv = {"/usr/sbin/chroot", root(), "/bin/kernixd", "--config", "/kernixd.toml"},
                                      .environment = {{"PATH", "/bin"}},
                                      .log = Path("shared.log")});
  ASSERT_TRUE(Eventually([&] { return fs::exists(root() + "/bare.sock"); }));
  const auto compile = [&](const std::string& file) {
    return InRootWithErrors({"/bin/kernixctl", "--address", "/bare.sock", "compile", file}).output;
  };
  EXPECT_THAT(compile("/seven.cpp"), HasSubstr("seven (built"));
  Write("bad.cpp", KernelThatReturns("nothing"));
  EXPECT_THAT(compile("/bad.cpp"), AllOf(HasSubstr("bad.cpp:4:42: error: 'nothing' was not declared in this scope"),
                                         HasSubstr("= nothing;")));
}

class BareNodeAndBareWorkersTest : public BareNodeAndWorkersTest {
 protected:
  BareNodeAndBareWorkersTest() : BareNodeAndWorkersTest(testing::CasdProcess::WithoutTools) {}
};

TEST_F(BareNodeAndBareWorkersTest, TheErrorSaysWhichToolWorkersLack) {
  KERNIX_NEED_ROOT();
  Describe();
  const ProgramOutcome outcome = InRootWithErrors({"/bin/kernixctl", "compile", "/seven.cpp"});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("the worker seems to lack /usr/bin/"), HasSubstr("those of its toolchain_description"),
                    HasSubstr("This node has no compiler")));
}

}  // namespace
}  // namespace kernix
