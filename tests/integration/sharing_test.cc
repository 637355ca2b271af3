// SPDX-License-Identifier: Apache-2.0
//
// Two kernixds that share results through a real engine, as users and administrators meet them.
#include <gmock/gmock.h>
#include <signal.h>

#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "client/kernixctl/command.h"
#include "common/base/strings.h"
#include "tests/integration/client_world.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/find_tools.h"
#include "tests/support/kernixd_process.h"

namespace kernix {
namespace {

namespace reapi = build::bazel::remote::execution::v2;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClientSharingTest : public ClientWorld {
 protected:
  ClientSharingTest() {
    SetVariable("KERNIX_UPSTREAM_ADDRESS", engine_.address());
    SetVariable("KERNIX_UPSTREAM_WRITE", "true");
  }
  ~ClientSharingTest() override {
    if (std::exchange(other_runs_, false)) Run({"--store", Path("other"), "shutdown"});
  }

  static ProgramOutcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KERNIXCTL_PROGRAM);
    return RunProgram(arguments);
  }

  // What kernixctl says on this node; it must end well.
  static std::string Here(const std::vector<std::string>& arguments) {
    ProgramOutcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, ctl::kOk) << arguments.front();
    return std::move(outcome.output);
  }
  // On another node: a store, and so a kernixd, of its own.
  std::string There(std::vector<std::string> arguments) {
    other_runs_ = true;
    arguments.insert(arguments.begin(), {"--store", Path("other")});
    return Here(arguments);
  }

  // Everything is written once the daemon has ended.
  static void StopHere() { Here({"shutdown"}); }

  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(Env::Posix().WriteFile(Path(name), text, 0600).ok());
    return Path(name);
  }

  testing::CasdProcess engine_;
  bool other_runs_ = false;
};

TEST_F(ClientSharingTest, OneNodeBuildsForBoth) {
  const std::string file = Write("one.cpp",
                                 "#include \"brainevent/common.h\"\n"
                                 "// @BE one ret\n"
                                 "void one(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = 1; }\n");
  EXPECT_THAT(Here({"compile", file}), HasSubstr("built in"));
  StopHere();
  EXPECT_THAT(There({"compile", file}), HasSubstr("one (from another node)"));
  EXPECT_THAT(There({"compile", file, "--json"}),
              AllOf(HasSubstr("\"cache_hit\": true"), HasSubstr("\"from_upstream\": false")));
  EXPECT_THAT(There({"cache", "stats", "--json"}),
              AllOf(HasSubstr("\"builds\": 0,"), HasSubstr("\"upstream_hits\": 1,")));
  EXPECT_THAT(There({"status"}), AllOf(HasSubstr("UPSTREAM"), HasSubstr(engine_.address()), HasSubstr("answers since "),
                                       HasSubstr("read, write")));
  EXPECT_THAT(There({"status", "--json"}), AllOf(HasSubstr("\"health\": \"answers\""), HasSubstr("\"writes\": true")));
  const std::string list = There({"cache", "list", "--json"});
  const size_t key = list.find("\"key\": \"") + 8;
  EXPECT_THAT(There({"cache", "show", list.substr(key, 12)}), HasSubstr("from       " + engine_.address()));
  EXPECT_THAT(There({"metrics"}), HasSubstr("kernix_upstream_lookups_total{result=\"found\"} 1\n"));
}

// An edit that changes what the preprocessor makes, but not the device code: the other node needs no cicc and no ptxas.
TEST_F(ClientSharingTest, NodesShareThePhasesOfNvcc) {
  KERNIX_NEED_NVCC(nvcc);
  const std::string text =
      "#include \"brainevent/common.h\"\n"
      "__global__ void fill(float* out) { out[threadIdx.x] = 1; }\n"
      "// @BE one ret stream\n"
      "void one(BE::Tensor out, int64_t stream) {\n"
      "  fill<<<1, 1, 0, (cudaStream_t)stream>>>(static_cast<float*>(out.data_ptr()));\n"
      "}\n";
  SetVariable("PATH", nvcc.substr(0, nvcc.rfind('/')) + ":" + getenv("PATH"));
  const std::vector<std::string> compile = {"compile", Write("one.cu", text), "--arch", "sm_90"};
  EXPECT_THAT(Here(compile), HasSubstr("built in"));
  StopHere();
  Write("one.cu", text + "// a comment\n");
  EXPECT_THAT(There(compile), HasSubstr("built in"));
  const std::string list = There({"cache", "list", "--json"});
  const size_t key = list.find("\"key\": \"") + 8;
  const std::string trace = There({"trace", list.substr(key, 12)});
  EXPECT_THAT(trace, AllOf(HasSubstr("u taken from another node"), HasSubstr("from other nodes")));
}

TEST_F(ClientSharingTest, ANodeThatDoesNotBelieveItselfSaysSo) {
  const auto key = [&](const std::string& name) {
    const std::string path = Path(name);
    return RunProgram({"/bin/sh", "-c",
                       StrCat("umask 077; openssl genpkey -algorithm ed25519 -out ", path, " && openssl pkey -in ",
                              path, " -pubout | grep -v -- ----- | tr -d '\\n'")})
        .output;
  };
  const std::string own = key("own.pem"), other = key("other.pem");
  ASSERT_FALSE(own.empty() || other.empty());
  SetVariable("KERNIX_UPSTREAM_SIGNING_KEY_FILE", Path("own.pem"));
  const auto log_with = [&](const std::string& trusted) {
    SetVariable("KERNIX_UPSTREAM_TRUSTED_KEYS", trusted);
    Here({"compile", Write("one.cpp", "#include \"brainevent/common.h\"\n// @BE one ret\nvoid one(BE::Tensor) {}\n")});
    StopHere();
    const std::string log = Env::Posix().ReadFile(RunFolderOfStore().log).value_or("");
    EXPECT_THAT(log, HasSubstr(" ready"));
    return log;
  };
  EXPECT_THAT(log_with(StrCat(other, ",", own)), Not(HasSubstr("own_results_not_believed")));
  EXPECT_THAT(log_with(other), HasSubstr("own_results_not_believed"));
}

TEST_F(ClientSharingTest, SettingsThatMakeNoSenseAreNamed) {
  SetVariable("KERNIX_UPSTREAM_ADDRESS", "http://engine");
  const ProgramOutcome outcome = RunProgram({KERNIXD_PROGRAM, "--check-config"});
  EXPECT_EQ(outcome.exit_code, 2);
  SetVariable("KERNIX_UPSTREAM_ADDRESS", engine_.address());
  SetVariable("KERNIX_UPSTREAM_STEPS", "remote");
  EXPECT_EQ(RunProgram({KERNIXD_PROGRAM, "--check-config"}).exit_code, 0);
  SetVariable("KERNIX_UPSTREAM_SHIPPED_FOLDERS", Path("nowhere"));
  EXPECT_EQ(RunProgram({KERNIXD_PROGRAM, "--check-config"}).exit_code, 2);
}

// A kernixd of which nobody has asked anything but how it is.
class FreshNodeTest : public ClientWorld {
 protected:
  void Start(const std::string& engine, std::vector<std::string> more = {}) {
    more.push_back("--upstream-address=" + engine);
    auto daemon = KernixdProcess::Start(place_, {.program = KERNIXD_PROGRAM, .arguments = std::move(more)});
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    const absl::Status ready = daemon_->AwaitReady();
    ASSERT_TRUE(ready.ok()) << ready;
  }
  std::string Status(const std::string& form = "--json") const {
    std::vector<std::string> words = {KERNIXCTL_PROGRAM, "--address", place_.socket(), "status"};
    if (!form.empty()) words.push_back(form);
    return RunProgram(words).output;
  }
  bool EventuallySays(const std::string& text) const {
    return Eventually([&] { return Status().find(text) != std::string::npos; });
  }

  const KernixdPlace place_;
  std::unique_ptr<KernixdProcess> daemon_;
};

TEST_F(FreshNodeTest, KnowsItsEngineFromTheBeginning) {
  testing::CasdProcess engine;
  testing::FaultProxy proxy(engine.address());
  Start(proxy.address());
  EXPECT_TRUE(EventuallySays("\"health\": \"answers\""));
  EXPECT_EQ(proxy.Calls("GetCapabilities"), 1);
  EXPECT_THAT(Status(""), HasSubstr("answers since "));
}

TEST_F(FreshNodeTest, SaysThatItsEngineRunsNoSteps) {
  testing::CasdProcess engine;
  testing::FaultProxy cache_alone(engine.address());
  cache_alone.Inject({.method = "GetCapabilities", .times = 0, .change = [](google::protobuf::Message& message) {
                        static_cast<reapi::ServerCapabilities&>(message).clear_execution_capabilities();
                      }});
  Start(cache_alone.address(), {"--upstream-steps=prefer-remote"});
  EXPECT_TRUE(EventuallySays("\"refuses_steps\": \"the engine runs no actions: it is only a cache."));
  EXPECT_THAT(Status(""), HasSubstr("no steps run there: the engine runs no actions"));
}

TEST_F(FreshNodeTest, SaysNothingOfStepsThatRunHere) {
  testing::CasdProcess engine;
  Start(engine.address());
  EXPECT_TRUE(EventuallySays("\"health\": \"answers\""));
  EXPECT_THAT(Status(), HasSubstr("\"refuses_steps\": \"\""));
  EXPECT_THAT(Status(""), Not(HasSubstr("no steps run there")));
}

TEST_F(FreshNodeTest, SaysThatItsEngineIsAway) {
  Start("unix://" + Path("nobody"));
  EXPECT_TRUE(EventuallySays("\"health\": \"fails\""));
  EXPECT_THAT(Status(), HasSubstr(Path("nobody")));
  EXPECT_TRUE(Eventually([&] { return daemon_->Log().find("upstream_does_not_answer ") != std::string::npos; }));
}

TEST_F(FreshNodeTest, AnEngineThatHangsDelaysNeitherStartNorEnd) {
  testing::CasdProcess engine;
  testing::FaultProxy proxy(engine.address());
  proxy.Inject({.method = "GetCapabilities", .times = 0, .hang = true});
  Start(proxy.address(), {"--upstream-timeout=1h"});
  EXPECT_TRUE(Eventually([&] { return proxy.Calls("GetCapabilities") == 1; }));
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->AwaitExit(), 0);
  EXPECT_THAT(daemon_->Log(), Not(HasSubstr("upstream_does_not_answer")));
}

}  // namespace
}  // namespace kernix
