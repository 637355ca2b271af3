// SPDX-License-Identifier: Apache-2.0
//
// A node without any compiler: a root folder that has kernixd, its clients, the libraries that these need, and nothing
// else. It takes what this machine, which has compilers, has built.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <sstream>

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
  BareNodeTest() {
    SetVariable("KERNIX_UPSTREAM_ADDRESS", engine_->address());
    SetVariable("KERNIX_UPSTREAM_WRITE", "true");
    for (const char* folder : {"bin", "tmp", "home", "run"}) fs::create_directories(root() + "/" + folder);
    for (const char* program : {KERNIXD_PROGRAM, KERNIXCTL_PROGRAM, BARE_PROBE}) {
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

  // Runs a program in the root. Nothing of this process' environment is seen there.
  ProgramOutcome InRoot(std::vector<std::string> arguments) const {
    std::vector<std::string> command = {"/usr/bin/env",
                                        "-i",
                                        "HOME=/home",
                                        "XDG_RUNTIME_DIR=/run",
                                        "PATH=/bin",
                                        "KERNIX_IDLE_TIMEOUT=60s",
                                        "KERNIX_UPSTREAM_ADDRESS=unix:///engine"};
    if (described_) command.emplace_back("KERNIX_TOOLCHAIN_DESCRIPTION=/fleet.toolchain");
    command.insert(command.end(), {"/usr/sbin/chroot", root()});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command);
  }
  std::string Probe() const { return InRoot({"/bin/bare_probe", "/seven.cpp", "/seven.cu"}).output; }

  // As kernixctl finds the compilers here.
  void Describe(const std::string& nvcc) {
    SetVariable("PATH", nvcc.substr(0, nvcc.rfind('/')) + ":" + getenv("PATH"));
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

  std::unique_ptr<testing::CasdProcess> engine_ = std::make_unique<testing::CasdProcess>();
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
                             HasSubstr("the engine at unix:///engine has none that fits"),
                             HasSubstr("prefetch them on a node with /usr/bin/g++")));
  Build();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n");
  const std::string stats = InRoot({"/bin/kernixctl", "cache", "stats", "--json"}).output;
  EXPECT_THAT(stats, AllOf(HasSubstr("\"builds\": 0,"), HasSubstr("\"upstream_hits\": 2,")));
  EXPECT_THAT(InRoot({"/bin/kernixctl", "status"}).output, HasSubstr("(described by /fleet.toolchain)"));
  EXPECT_THAT(InRoot({"/bin/kernixctl", "doctor"}).output,
              HasSubstr("none here: loads go by the description /fleet.toolchain"));
  EXPECT_EQ(InRoot({"/bin/kernixd", "--check-config"}).exit_code, 0);

  engine_.reset();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n") << "from its own store";
  EXPECT_EQ(InRoot({"/bin/kernixctl", "shutdown"}).exit_code, ctl::kOk);
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n") << "also when kernixd has started anew";
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

}  // namespace
}  // namespace kernix
