// SPDX-License-Identifier: Apache-2.0
//
// A kernixd whose steps run on the workers of a real engine, as users and administrators meet it.
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <set>

#include "client/kernixctl/command.h"
#include "common/base/strings.h"
#include "tests/integration/client_world.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/find_tools.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Kernel(const std::string& name, const std::string& more = "") {
  return StrCat("#include \"brainevent/common.h\"\n", more, "// @BE ", name, " ret\nvoid ", name,
                "(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = 1; }\n");
}

// The value of the first field of that name in kernixctl's JSON.
std::string Field(const std::string& json, const std::string& name) {
  const std::string beginning = StrCat("\"", name, "\": \"");
  const size_t at = json.find(beginning);
  if (at == std::string::npos) return "";
  const size_t value = at + beginning.size();
  return json.substr(value, json.find('"', value) - value);
}

class WorkersTest : public ClientWorld {
 protected:
  // `folders`: more tools in the sandbox of the workers.
  void StartEngine(std::vector<std::string> folders = {}) {
    engine_ = testing::CasdProcess::Executing(std::move(folders));
    SetVariable("KERNIX_UPSTREAM_ADDRESS", engine_->address());
    SetVariable("KERNIX_UPSTREAM_READ", "false");  // what is there was made there
  }
  void SetUp() override { KERNIX_NEED_SANDBOX(); }
  void TearDown() override {
    for (const std::string& store : stores_) Run({"--store", Path(store), "shutdown"});
  }

  static ProgramOutcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KERNIXCTL_PROGRAM);
    return RunProgram(arguments);
  }
  // What kernixctl says with the kernixd of this store, which begins with the variables of now; it must end well.
  std::string On(const std::string& store, std::vector<std::string> arguments) {
    stores_.insert(store);
    arguments.insert(arguments.begin(), {"--store", Path(store)});
    ProgramOutcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, ctl::kOk) << arguments[2];
    return std::move(outcome.output);
  }

  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(Env::Posix().WriteFile(Path(name), text, 0600).ok());
    return Path(name);
  }

  struct Artifact {
    std::string key;
    std::string bytes;
  };
  Artifact Build(const std::string& store, std::vector<std::string> compile) {
    compile.emplace_back("--json");
    const std::string json = On(store, compile);
    return {Field(json, "key"), Env::Posix().ReadFile(Field(json, "path")).value_or("")};
  }

  // Of a sample in the metrics: "kernix_placed_steps_total{place=\"remote\"}".
  int64_t Number(const std::string& store, const std::string& sample) {
    const std::string text = On(store, {"metrics"});
    const size_t at = text.find("\n" + sample + " ");
    EXPECT_NE(at, std::string::npos) << sample;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size() + 2));
  }
  int64_t RanThere(const std::string& store) { return Number(store, "kernix_placed_steps_total{place=\"remote\"}"); }

  std::unique_ptr<testing::CasdProcess> engine_;
  std::set<std::string> stores_;
};

TEST_F(WorkersTest, WorkersMakeTheArtifactThatThisMachineMakes) {
  const std::vector<std::string> compile = {"compile", Write("one.cpp", Kernel("one"))};
  const Artifact here = Build("here", compile);
  ASSERT_FALSE(here.bytes.empty());
  StartEngine();
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  const Artifact there = Build("there", compile);
  EXPECT_TRUE(there.bytes == here.bytes);
  EXPECT_NE(there.key, here.key) << "nobody has said that the workers have the same tools";
  EXPECT_GE(RanThere("there"), 2) << "a compile and a link";
  EXPECT_EQ(Number("there", "kernix_placed_steps_total{place=\"local\"}"), 0);
  EXPECT_THAT(On("there", {"status"}), AllOf(HasSubstr("STEPS"), HasSubstr("remote")));
  EXPECT_THAT(On("there", {"status", "--json"}), HasSubstr("\"host_compiles\": \"remote\""));
  EXPECT_THAT(On("there", {"trace", there.key}), AllOf(HasSubstr("@ ran on a worker"), HasSubstr(" on workers")));
  SetVariable("KERNIX_UPSTREAM_SAME_TOOLS", "true");
  const Artifact same = Build("same", compile);
  EXPECT_EQ(same.key, here.key);
  EXPECT_TRUE(same.bytes == here.bytes);
}

TEST_F(WorkersTest, WorkersTakeWhatThisMachineHasLearned) {
  const std::string headers = "#include <vector>\n#include <string>\n";
  const std::vector<std::string> compile = {"compile", Write("one.cpp", Kernel("two", headers))};
  const Artifact here = Build("here", compile);
  StartEngine();
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  for (const char* name : {"one", "three"}) {  // the second teaches
    Write("one.cpp", Kernel(name, headers));
    On("there", compile);
  }
  ASSERT_TRUE(Eventually([&] { return Number("there", "kernix_lessons") == 0; }));
  Write("one.cpp", Kernel("two", headers));
  const Artifact there = Build("there", compile);
  EXPECT_TRUE(there.bytes == here.bytes);
  EXPECT_EQ(Number("there", "kernix_compiled_preambles_total{how=\"compiled\"}"), 1);
  EXPECT_EQ(Number("there", "kernix_step_seconds_count{step=\"compile\"}"), 3)
      << "the last with the header, and not again";
  EXPECT_EQ(Number("there", "kernix_placed_steps_total{place=\"local\"}"), 0);
}

TEST_F(WorkersTest, DeviceCodeIsTheSameOnWorkers) {
  KERNIX_NEED_NVCC(nvcc);
  const std::string root = nvcc.substr(0, nvcc.rfind("/bin/"));
  SetVariable("PATH", root + "/bin:" + getenv("PATH"));
  const std::string text =
      "#include \"brainevent/common.h\"\n"
      "__global__ void fill(float* out) { out[threadIdx.x] = 1; }\n"
      "// @BE one ret stream\n"
      "void one(BE::Tensor out, int64_t stream) {\n"
      "  fill<<<1, 1, 0, (cudaStream_t)stream>>>(static_cast<float*>(out.data_ptr()));\n"
      "}\n";
  const std::vector<std::string> compile = {"compile", Write("one.cu", text), "--arch", "sm_90"};
  const Artifact here = Build("here", compile);
  ASSERT_FALSE(here.bytes.empty());
  StartEngine();
  SetVariable("KERNIX_UPSTREAM_SHIPPED_FOLDERS", root);
  SetVariable("KERNIX_UPSTREAM_DEVICE_COMPILES", "remote");
  const Artifact device = Build("device", compile);
  EXPECT_TRUE(device.bytes == here.bytes);
  EXPECT_EQ(device.key, here.key) << "nvcc's own programs travel";
  EXPECT_EQ(RanThere("device"), 4) << "cudafe++, cicc, ptxas, fatbinary";
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  const Artifact all = Build("all", compile);
  EXPECT_TRUE(all.bytes == here.bytes);
  EXPECT_NE(all.key, here.key) << "the host compiler does not travel";
  EXPECT_GT(RanThere("all"), 6);
}

TEST_F(WorkersTest, AnEngineThatDiesCostsNoLoad) {
  StartEngine();
  SetVariable("KERNIX_UPSTREAM_STEPS", "prefer-remote");
  On("prefer", {"compile", Write("one.cpp", Kernel("one"))});
  EXPECT_GE(RanThere("prefer"), 2);
  const std::string instead = "kernix_steps_run_here_instead_total{why=\"engine\"}";
  EXPECT_EQ(Number("prefer", instead), 0);
  engine_->Kill();
  On("prefer", {"compile", Write("two.cpp", Kernel("two"))});
  On("prefer", {"compile", Write("three.cpp", Kernel("three"))});
  EXPECT_GE(Number("prefer", instead), 4);
  const auto folder = RunFolderForStore(Env::Posix(), ProcessGetEnv, geteuid(), Path("prefer"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string log = Env::Posix().ReadFile(folder->log).value_or("");
  EXPECT_THAT(log, HasSubstr("workers_fail "));
  EXPECT_EQ(log.find("workers_fail "), log.rfind("workers_fail ")) << log;
}

TEST_F(WorkersTest, WithoutWorkersRemoteStepsSayWhatToDo) {
  SetVariable("KERNIX_UPSTREAM_ADDRESS", "unix://" + Path("nobody"));
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  stores_.insert("remote");
  const std::string file = Write("one.cpp", Kernel("one"));
  const ProgramOutcome outcome =
      RunProgram({"/bin/sh", "-c", StrCat(KERNIXCTL_PROGRAM, " --store ", Path("remote"), " compile ", file, " 2>&1")});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("step \"compile\" could not run on a worker"), HasSubstr(Path("nobody")),
                                    HasSubstr("set \"prefer-remote\"")));
  SetVariable("KERNIX_UPSTREAM_STEPS", "prefer-remote");
  On("prefer", {"compile", file});
}

TEST_F(WorkersTest, WithTrustedKeysWorkersRunEveryStep) {
  StartEngine();
  testing::FaultProxy proxy(engine_->address());
  SetVariable("KERNIX_UPSTREAM_ADDRESS", proxy.address());
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  const std::vector<std::string> compile = {"compile", Write("one.cpp", Kernel("one"))};
  const Artifact any = Build("any", compile);
  EXPECT_EQ(proxy.CallsThatSkipTheCache(), 0);
  const int before = proxy.Calls("Execute");
  SetVariable("KERNIX_UPSTREAM_TRUSTED_KEYS", "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
  const Artifact anew = Build("anew", compile);
  EXPECT_TRUE(anew.bytes == any.bytes);
  EXPECT_GE(proxy.CallsThatSkipTheCache(), 2) << "a compile and a link";
  EXPECT_EQ(proxy.CallsThatSkipTheCache(), proxy.Calls("Execute") - before);
}

// An engine that takes actions and has nobody to run them.
TEST_F(WorkersTest, WorkersThatNeverComeCostOneWait) {
  StartEngine();
  testing::FaultProxy proxy(engine_->address());
  proxy.Inject({.method = "Execute", .times = 0, .queue = true});
  SetVariable("KERNIX_UPSTREAM_ADDRESS", proxy.address());
  SetVariable("KERNIX_UPSTREAM_QUEUE_TIMEOUT", "300ms");
  SetVariable("KERNIX_UPSTREAM_STEPS", "prefer-remote");
  On("prefer", {"compile", Write("one.cpp", Kernel("one"))});
  On("prefer", {"compile", Write("two.cpp", Kernel("two"))});
  EXPECT_EQ(proxy.Calls("Execute"), 1) << "the first compile";
  EXPECT_EQ(Number("prefer", "kernix_steps_run_here_instead_total{why=\"engine\"}"), 1);
  EXPECT_GE(Number("prefer", "kernix_steps_run_here_instead_total{why=\"pause\"}"), 3);
  EXPECT_THAT(On("prefer", {"status"}), AllOf(HasSubstr("answers since"), HasSubstr("no steps run there: no worker of"),
                                              HasSubstr("within 300 ms"), HasSubstr("except for one a minute")));
  EXPECT_THAT(On("prefer", {"status", "--json"}), HasSubstr("\"refuses_steps\": \"no worker of the engine at"));
  stores_.insert("remote");
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  const ProgramOutcome outcome = RunProgram(
      {"/bin/sh", "-c", StrCat(KERNIXCTL_PROGRAM, " --store ", Path("remote"), " compile ", Path("one.cpp"), " 2>&1")});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("could not run on a worker: no worker of the engine at"),
                                    HasSubstr("within 300 ms"), HasSubstr("upstream.queue_timeout")));
}

TEST_F(WorkersTest, WorkersWithoutToolsCostNoLoadAndShowInTheLog) {
  engine_ = testing::CasdProcess::WithoutTools();
  SetVariable("KERNIX_UPSTREAM_ADDRESS", engine_->address());
  SetVariable("KERNIX_UPSTREAM_READ", "false");
  SetVariable("KERNIX_UPSTREAM_STEPS", "prefer-remote");
  On("prefer", {"compile", Write("one.cpp", Kernel("one"))});
  On("prefer", {"compile", Write("two.cpp", Kernel("two"))});
  EXPECT_GE(RanThere("prefer"), 4) << "two compiles and two links";
  EXPECT_EQ(Number("prefer", "kernix_steps_failed_on_workers_alone_total"), RanThere("prefer"));
  const auto folder = RunFolderForStore(Env::Posix(), ProcessGetEnv, geteuid(), Path("prefer"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_THAT(Env::Posix().ReadFile(folder->log).value_or(""), HasSubstr("worker_lacks_tool "));
  stores_.insert("remote");
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  const ProgramOutcome outcome = RunProgram(
      {"/bin/sh", "-c", StrCat(KERNIXCTL_PROGRAM, " --store ", Path("remote"), " compile ", Path("one.cpp"), " 2>&1")});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("the worker seems to lack /"), HasSubstr("No such file or directory"),
                                    HasSubstr("upstream.shipped_folders")));
}

TEST_F(WorkersTest, ACompileErrorIsThatOfThisMachine) {
  StartEngine();
  SetVariable("KERNIX_UPSTREAM_STEPS", "prefer-remote");
  stores_.insert("prefer");
  const std::string file = Write("one.cpp", StrCat("int f() { return nothing; }\n", Kernel("one")));
  const ProgramOutcome outcome =
      RunProgram({"/bin/sh", "-c", StrCat(KERNIXCTL_PROGRAM, " --store ", Path("prefer"), " compile ", file, " 2>&1")});
  EXPECT_NE(outcome.exit_code, ctl::kOk);
  const std::string message = "1 | int f() { return nothing; }";
  const size_t at = outcome.output.find(message);
  ASSERT_NE(at, std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find(message, at + 1), std::string::npos) << outcome.output;
  EXPECT_GE(Number("prefer", "kernix_steps_run_here_instead_total{why=\"command\"}"), 1);
  EXPECT_EQ(Number("prefer", "kernix_steps_failed_on_workers_alone_total"), 0);
}

// Takes minutes of a processor. Ends with the test.
const std::vector<std::string> kNoLimits = {"--flag=-fconstexpr-ops-limit=4000000000000",
                                            "--flag=-fconstexpr-loop-limit=2000000000"};

class LongCompile {
 public:
  LongCompile(const std::string& store, const std::string& file) {
    std::vector<std::string> words = {KERNIXCTL_PROGRAM, "--store", store, "compile", file};
    words.insert(words.end(), kNoLimits.begin(), kNoLimits.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  }
  ~LongCompile() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  LongCompile(const LongCompile&) = delete;
  LongCompile& operator=(const LongCompile&) = delete;

 private:
  pid_t pid_ = 0;
};

TEST_F(WorkersTest, AFullMachineSendsStepsAway) {
  StartEngine();
  SetVariable("KERNIX_UPSTREAM_STEPS", "overflow");
  SetVariable("KERNIX_UPSTREAM_OVERFLOW_AFTER", "10ms");
  SetVariable("KERNIX_JOBS", "1");
  const std::string slow =
      "constexpr long Count() {\n"
      "  long sum = 0;\n"
      "  for (long i = 0; i < 1000000000; ++i) sum += i;\n"
      "  return sum;\n"
      "}\n"
      "constexpr long kSum = Count();\n";
  On("overflow", {"compile", Write("one.cpp", Kernel("one"))});
  EXPECT_EQ(RanThere("overflow"), 0) << "there was room";
  // So that the long one has no other step that could take its place here.
  On("overflow", {"compile", Write("other.cpp", Kernel("other")), kNoLimits[0], kNoLimits[1]});
  const int64_t before = RanThere("overflow");
  {
    const LongCompile held(Path("overflow"), Write("held.cpp", Kernel("held", slow)));
    ASSERT_TRUE(Eventually([&] { return Number("overflow", "kernix_steps_running") == 1; }));
    On("overflow", {"compile", Write("two.cpp", Kernel("two"))});
    EXPECT_GE(RanThere("overflow") - before, 2) << "a compile and a link";
    EXPECT_EQ(Number("overflow", "kernix_steps_running"), 1) << "the long one still runs";
  }
}

}  // namespace
}  // namespace kernix
