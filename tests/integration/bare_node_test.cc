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

  engine_.reset();
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n") << "from its own store";
  EXPECT_EQ(InRoot({"/bin/kernixctl", "shutdown"}).exit_code, ctl::kOk);
  EXPECT_EQ(Probe(), "cpp: 7\ncuda: opened\n") << "also when kernixd has started anew";
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
