// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "common/base/version.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/app/settings.h"
#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix::server {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class OptionsTest : public testing::Test {
 protected:
  ParsedCommandLine Parse(std::vector<std::string> arguments) {
    return ParseCommandLine(
        env_,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto found = environment_.find(name);
          return found == environment_.end() ? std::nullopt : std::optional(found->second);
        },
        arguments);
  }

  void WriteConfig(std::string_view text) { ASSERT_THAT(env_.WriteFile("/kernixd.toml", text, 0644), IsOk()); }

  MemEnv env_;
  std::map<std::string, std::string> environment_;
};

TEST_F(OptionsTest, DefaultsNeedNothing) {
  const ParsedCommandLine parsed = Parse({});
  EXPECT_FALSE(parsed.exit_now) << parsed.text;
  EXPECT_EQ(parsed.options.cache_limit_bytes, 10ull << 30);
  EXPECT_EQ(parsed.options.drain_timeout, milliseconds(30'000));
  EXPECT_FALSE(parsed.options.shared);
}

TEST_F(OptionsTest, FlagsWinOverEnvironmentAndThatOverTheFile) {
  WriteConfig("jobs = 1\nidle_timeout = \"1m\"\ncache_limit_bytes = \"1GiB\"\n");
  environment_ = {{"KERNIX_JOBS", "2"}, {"KERNIX_IDLE_TIMEOUT", "2m"}};
  const ParsedCommandLine parsed = Parse({"--config", "/kernixd.toml", "--jobs", "3"});
  ASSERT_FALSE(parsed.exit_now) << parsed.text;
  EXPECT_EQ(parsed.options.jobs, 3);
  EXPECT_EQ(parsed.options.idle_timeout, milliseconds(120'000));
  EXPECT_EQ(parsed.options.cache_limit_bytes, 1ull << 30);
}

TEST_F(OptionsTest, ASharedDaemonNeedsASandboxForItsCompilersUnlessItsAdministratorNeedsNone) {
  ServerOptions options;
  options.shared = true;
  options.toolchains = {{.name = "system", .paths = {}, .origin = ""}};
  const exec::Sandbox nothing = {.lack = "no wall"};
  EXPECT_THAT(CheckSandbox(options, nothing), HasError(absl::StatusCode::kInvalidArgument,
                                                       AllOf(HasSubstr("no wall"), HasSubstr("sandbox = \"none\""))));
  EXPECT_THAT(CheckSandbox(options, {.rung = spawn::Rung::kLandlock}), IsOk());
  options.sandbox = exec::SandboxChoice::kNone;
  EXPECT_THAT(CheckSandbox(options, nothing), IsOk());
  EXPECT_THAT(CheckSandbox(ServerOptions(), nothing), IsOk());
  ServerOptions without_compilers;
  without_compilers.shared = true;
  EXPECT_THAT(CheckSandbox(without_compilers, nothing), IsOk());
}

TEST_F(OptionsTest, EverySettingCanComeFromAllThreeSources) {
  const std::map<std::string_view, std::string> values = {{"socket", "/run/x.sock"},
                                                          {"store_directory", "/store"},
                                                          {"cache_limit_bytes", "5MiB"},
                                                          {"cache_limit_per_user", "4MiB"},
                                                          {"jobs", "7"},
                                                          {"memory_budget_bytes", "6MiB"},
                                                          {"job_timeout", "8s"},
                                                          {"idle_timeout", "9s"},
                                                          {"drain_timeout", "10s"},
                                                          {"max_request_bytes", "11MiB"},
                                                          {"shared", "true"},
                                                          {"sandbox", "landlock"},
                                                          {"spawn_socket", "/spawn.sock"},
                                                          {"max_output_bytes", "12MiB"},
                                                          {"upload_timeout", "13s"},
                                                          {"max_loads_per_user", "14"},
                                                          {"socket_group", "kernix"},
                                                          {"max_process_memory_bytes", "15MiB"},
                                                          {"max_processes_per_job", "16"},
                                                          {"max_connections_per_user", "17"},
                                                          {"max_request_bytes_per_user", "18MiB"},
                                                          {"max_fetches_per_user", "15"},
                                                          {"admin_group", "wheel"},
                                                          {"unknown_users", "true"},
                                                          {"log_file", "/log"},
                                                          {"log_level", "debug"},
                                                          {"disabled_shortcuts", "stand_ins,link_stubs"},
                                                          {"toolchain_description", "/fleet.toolchain"},
                                                          {"upstream.address", "grpcs://engine:8980"},
                                                          {"upstream.instance", "main"},
                                                          {"upstream.ca_file", "/tls/ca.pem"},
                                                          {"upstream.certificate_file", "/tls/node.pem"},
                                                          {"upstream.key_file", "/tls/node.key"},
                                                          {"upstream.token_file", "/tls/token"},
                                                          {"upstream.token_header", "x-key"},
                                                          {"upstream.timeout", "19s"},
                                                          {"upstream.read", "true"},
                                                          {"upstream.write", "true"},
                                                          {"upstream.build_once", "true"},
                                                          {"upstream.trusted_keys", "a,b"},
                                                          {"upstream.signing_key_file", "/tls/signing.pem"},
                                                          {"upstream.steps", "prefer-remote"},
                                                          {"upstream.host_compiles", "overflow"},
                                                          {"upstream.device_compiles", "remote"},
                                                          {"upstream.links", "local"},
                                                          {"upstream.overflow_after", "20s"},
                                                          {"upstream.queue_timeout", "22s"},
                                                          {"upstream.jobs", "21"},
                                                          {"upstream.platform", "OSFamily=linux,ISA=x86-64"},
                                                          {"upstream.shipped_folders", "/opt/cuda,/opt/more"},
                                                          {"upstream.same_tools", "true"}};
  constexpr char kToolchain[] = "[[toolchain]]\nname = \"a\"\nhost_compiler = \"/usr/bin/g++\"\n";
  std::string config;
  std::vector<std::string> flags;
  for (const Setting& setting : Settings()) {
    ASSERT_TRUE(values.contains(setting.name)) << setting.name;
    const std::string& value = values.at(setting.name);
    const std::string quoted = StrCat("\"", value, "\"");
    const std::string in_file =
        setting.is_list ? StrCat("[", absl::StrReplaceAll(quoted, {{",", "\", \""}}), "]") : quoted;
    config += StrCat(setting.name, " = ", in_file, "\n");
    flags.push_back(setting.value.empty() ? setting.Flag() : StrCat(setting.Flag(), "=", value));
    environment_[setting.Variable()] = value;
  }
  const auto expect_all = [](const ParsedCommandLine& parsed) {
    ASSERT_FALSE(parsed.exit_now) << parsed.text;
    EXPECT_EQ(parsed.options.socket, "/run/x.sock");
    EXPECT_EQ(parsed.options.store_directory, "/store");
    EXPECT_EQ(parsed.options.cache_limit_bytes, 5ull << 20);
    EXPECT_EQ(parsed.options.cache_limit_per_user, 4ull << 20);
    EXPECT_EQ(parsed.options.jobs, 7);
    EXPECT_EQ(parsed.options.memory_budget_bytes, 6ull << 20);
    EXPECT_EQ(parsed.options.job_timeout, milliseconds(8'000));
    EXPECT_EQ(parsed.options.idle_timeout, milliseconds(9'000));
    EXPECT_EQ(parsed.options.drain_timeout, milliseconds(10'000));
    EXPECT_EQ(parsed.options.max_request_bytes, 11ull << 20);
    EXPECT_EQ(parsed.options.max_output_bytes, 12ull << 20);
    EXPECT_EQ(parsed.options.upload_timeout, milliseconds(13'000));
    EXPECT_EQ(parsed.options.max_loads_per_user, 14);
    EXPECT_EQ(parsed.options.max_process_memory_bytes, 15ull << 20);
    EXPECT_EQ(parsed.options.max_processes_per_job, 16);
    EXPECT_EQ(parsed.options.max_connections_per_user, 17);
    EXPECT_EQ(parsed.options.max_request_bytes_per_user, 18ull << 20);
    EXPECT_TRUE(parsed.options.shared);
    EXPECT_EQ(parsed.options.sandbox, exec::SandboxChoice::kLandlock);
    EXPECT_EQ(parsed.options.spawn_socket, "/spawn.sock");
    EXPECT_EQ(parsed.options.socket_group, "kernix");
    EXPECT_EQ(parsed.options.admin_group, "wheel");
    EXPECT_TRUE(parsed.options.unknown_users);
    EXPECT_EQ(parsed.options.max_fetches_per_user, 15);
    EXPECT_EQ(parsed.options.log_file, "/log");
    EXPECT_EQ(parsed.options.log_level, LogLevel::kDebug);
    EXPECT_EQ(parsed.options.disabled_shortcuts,
              (build::Shortcuts{build::Shortcut::kStandIns, build::Shortcut::kLinkStubs}));
    EXPECT_EQ(parsed.options.toolchain_description, "/fleet.toolchain");
    UpstreamSettings upstream{{.address = "grpcs://engine:8980",
                               .instance = "main",
                               .ca_file = "/tls/ca.pem",
                               .certificate_file = "/tls/node.pem",
                               .key_file = "/tls/node.key",
                               .token_file = "/tls/token",
                               .token_header = "x-key",
                               .timeout = milliseconds(19'000)}};
    upstream.read = true;
    upstream.write = true;
    upstream.build_once = true;
    upstream.trusted_keys = "a,b";
    upstream.signing_key_file = "/tls/signing.pem";
    upstream.steps = exec::Placement::kPreferRemote;
    upstream.host_compiles = exec::Placement::kOverflow;
    upstream.device_compiles = exec::Placement::kRemote;
    upstream.links = exec::Placement::kLocal;
    upstream.overflow_after = milliseconds(20'000);
    upstream.queue_timeout = milliseconds(22'000);
    upstream.jobs = 21;
    upstream.platform = {{"OSFamily", "linux"}, {"ISA", "x86-64"}};
    upstream.shipped_folders = {"/opt/cuda", "/opt/more"};
    upstream.same_tools = true;
    EXPECT_EQ(parsed.options.upstream, upstream);
  };
  WriteConfig(kToolchain);
  expect_all(Parse({"--config", "/kernixd.toml"}));
  environment_.clear();
  flags.insert(flags.end(), {"--config", "/kernixd.toml"});
  expect_all(Parse(flags));
  WriteConfig(config + kToolchain);
  expect_all(Parse({"--config", "/kernixd.toml"}));
}

TEST_F(OptionsTest, ReadsTheTableOfTheUpstream) {
  WriteConfig(R"(
jobs = 3
[upstream]
address = "unix:///run/engine.sock"
write = true
trusted_keys = ["a", "b"]
)");
  const ParsedCommandLine parsed = Parse({"--config=/kernixd.toml", "--upstream-instance=x"});
  ASSERT_FALSE(parsed.exit_now) << parsed.text;
  UpstreamSettings expected{{.address = "unix:///run/engine.sock", .instance = "x"}};
  expected.write = true;
  expected.trusted_keys = "a,b";
  EXPECT_EQ(parsed.options.upstream, expected);
}

TEST_F(OptionsTest, NamesTheFaultsOfAnUpstream) {
  WriteConfig("[upstream]\nadress = \"grpc://x:1\"\nwrite = \"perhaps\"\ntrusted_keys = \"a\"\n");
  EXPECT_THAT(Parse({"--config=/kernixd.toml"}).text,
              AllOf(HasSubstr("/kernixd.toml:2: unknown key \"upstream.adress\""),
                    HasSubstr("/kernixd.toml:3: upstream.write: \"perhaps\" is neither true nor false"),
                    HasSubstr("/kernixd.toml:4: upstream.trusted_keys must be a list of strings")));
  for (const char* keys : {"", "a,", ",a"}) {
    environment_["KERNIX_UPSTREAM_TRUSTED_KEYS"] = keys;
    EXPECT_THAT(Parse({"--upstream-address=grpc://x:1"}).text, HasSubstr("a key is empty"));
  }
  environment_.clear();
  WriteConfig("[upstream]\naddress = \"grpc://x:1\"\ntrusted_keys = []\n");
  EXPECT_THAT(Parse({"--config=/kernixd.toml"}).text,
              HasSubstr("/kernixd.toml:3: upstream.trusted_keys: a key is empty"));
  EXPECT_THAT(Parse({"--upstream-write=true"}).text, HasSubstr("have no effect without upstream.address"));
  EXPECT_THAT(Parse({"--upstream-address=grpc://x:1", "--upstream-timeout=0"}).text,
              HasSubstr("upstream.timeout must not be 0"));
  EXPECT_THAT(Parse({"--upstream-address=grpc://x:1", "--upstream-build-once=true"}).text,
              HasSubstr("upstream.build_once needs upstream.read and upstream.write"));
  EXPECT_THAT(Parse({"--upstream-address=grpc://x:1", "--upstream-build-once=true", "--toolchain-description=/d"}).text,
              Not(HasSubstr("upstream.build_once")));
  EXPECT_FALSE(Parse({"--upstream-address=grpc://x:1", "--upstream-read=false"}).options.upstream.read);
}

TEST_F(OptionsTest, AKindOfWorkWithoutAPlacementHasThatOfAllSteps) {
  const auto placements = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"--upstream-address=grpc://x:1"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ParsedCommandLine parsed = Parse(all);
    EXPECT_FALSE(parsed.exit_now) << parsed.text;
    return parsed.options.upstream.Placements();
  };
  EXPECT_TRUE(placements({}).AllLocal());
  EXPECT_EQ(
      placements({"--upstream-steps=prefer-remote", "--upstream-links=local"}),
      (exec::Placements{exec::Placement::kPreferRemote, exec::Placement::kPreferRemote, exec::Placement::kLocal}));
}

TEST_F(OptionsTest, StepsThatCanRunElsewhereWaitLessForABuilder) {
  const auto timeout = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"--upstream-address=grpc://x:1"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ParsedCommandLine parsed = Parse(all);
    EXPECT_FALSE(parsed.exit_now) << parsed.text;
    return parsed.options.QueueTimeout();
  };
  EXPECT_EQ(timeout({"--upstream-steps=prefer-remote"}), milliseconds(120'000));
  EXPECT_EQ(timeout({"--upstream-steps=prefer-remote", "--upstream-links=remote"}), milliseconds(600'000));
  EXPECT_EQ(timeout({"--upstream-steps=prefer-remote", "--toolchain-description=/fleet.toolchain"}),
            milliseconds(600'000));
  EXPECT_EQ(timeout({"--upstream-steps=remote", "--upstream-queue-timeout=3s"}), milliseconds(3'000));
}

TEST_F(OptionsTest, NamesTheFaultsOfWorkers) {
  const auto fault = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"--upstream-address=grpc://x:1"};
    all.insert(all.end(), flags.begin(), flags.end());
    return Parse(all).text;
  };
  EXPECT_THAT(Parse({"--upstream-steps=remote"}).text, HasSubstr("have no effect without upstream.address"));
  EXPECT_THAT(fault({"--upstream-steps=away"}), HasSubstr("not one of local, remote, prefer-remote, overflow"));
  EXPECT_THAT(fault({"--upstream-links=overflow"}), HasSubstr("overflow needs upstream.overflow_after"));
  EXPECT_THAT(fault({"--upstream-steps=remote", "--upstream-overflow-after=1s"}),
              HasSubstr("upstream.overflow_after has no effect"));
  EXPECT_THAT(fault({"--upstream-jobs=3"}), HasSubstr("no effect while all steps run here"));
  EXPECT_THAT(fault({"--upstream-queue-timeout=3s"}), HasSubstr("no effect while all steps run here"));
  EXPECT_THAT(fault({"--upstream-steps=remote", "--upstream-queue-timeout=0"}), HasSubstr("must not be 0"));
  EXPECT_THAT(fault({"--upstream-steps=remote", "--upstream-jobs=0"}), HasSubstr("must be at least 1"));
  EXPECT_THAT(fault({"--upstream-steps=remote", "--upstream-platform=linux"}), HasSubstr("is not NAME=VALUE"));
  EXPECT_THAT(fault({"--upstream-steps=remote", "--upstream-platform=a=1,a=2"}), HasSubstr("a is there twice"));
  EXPECT_THAT(fault({"--upstream-steps=remote", "--upstream-shipped-folders=cuda"}), HasSubstr("not an absolute path"));
  const std::string image = "--upstream-platform=container-image=docker://builder:latest";
  EXPECT_THAT(fault({"--upstream-steps=remote", image}), HasSubstr("name the container-image by its digest"));
  EXPECT_EQ(fault({"--upstream-steps=remote", image, "--upstream-same-tools=true"}), "");
  EXPECT_EQ(fault({"--upstream-steps=remote", "--upstream-platform=container-image=docker://builder@sha256:00"}), "");
}

TEST_F(OptionsTest, ADescriptionServesASharedDaemonWithoutToolchains) {
  EXPECT_FALSE(Parse({"--shared", "--toolchain-description=/d", "--upstream-address=grpc://x:1"}).exit_now);
  EXPECT_THAT(Parse({"--shared"}).text, HasSubstr("or, if this node has no compiler, toolchain_description"));
  EXPECT_THAT(Parse({"--toolchain-description=/d", "--upstream-address=grpc://x:1", "--upstream-read=false"}).text,
              HasSubstr("toolchain_description needs upstream.read"));
  const std::vector<std::string> workers = {"--toolchain-description=/d", "--upstream-address=grpc://x:1",
                                            "--upstream-steps=remote"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> flags = workers;
    flags.push_back(flag);
    return Parse(flags).text;
  };
  EXPECT_EQ(with("--upstream-read=false"), "");
  EXPECT_THAT(with("--upstream-build-once=true"), HasSubstr("upstream.build_once needs upstream.read and"))
      << "it builds, so it must write";
  EXPECT_THAT(Parse({"--toolchain-description=d"}).text, HasSubstr("\"d\" is not an absolute path"));
}

TEST_F(OptionsTest, WhatToDescribeIsOnTheCommandLine) {
  const ParsedCommandLine parsed =
      Parse({"--describe-toolchain=out", "--host-compiler=/g++", "--nvcc=/nvcc", "--cuda-include-directory=/a",
             "--cuda-include-directory=/b", "--cuda-library-directory=/c"});
  ASSERT_TRUE(parsed.describe.has_value()) << parsed.text;
  EXPECT_EQ(parsed.describe->output, "out");
  const v1::ToolchainPaths& paths = parsed.describe->paths;
  EXPECT_EQ(paths.host_compiler(), "/g++");
  EXPECT_EQ(paths.nvcc(), "/nvcc");
  EXPECT_THAT(paths.cuda_include_directories(), ::testing::ElementsAre("/a", "/b"));
  EXPECT_THAT(paths.cuda_library_directories(), ::testing::ElementsAre("/c"));
  EXPECT_EQ(Parse({"--nvcc=/nvcc"}).exit_code, 2) << "it says nothing of what to do with it";
}

TEST_F(OptionsTest, ReadsToolchains) {
  WriteConfig(R"(
shared = true
[[toolchain]]
name = "cuda13"
host_compiler = "/usr/bin/g++"
nvcc = "/usr/local/cuda/bin/nvcc"
cuda_include_directories = ["/opt/cccl", "/opt/crt"]
cuda_library_directories = ["/opt/lib"]
[[toolchain]]
name = "plain"
host_compiler = "/usr/bin/clang++"
)");
  const ParsedCommandLine parsed = Parse({"--config=/kernixd.toml"});
  ASSERT_FALSE(parsed.exit_now) << parsed.text;
  ASSERT_EQ(parsed.options.toolchains.size(), 2u);
  EXPECT_EQ(parsed.options.toolchains[0].name, "cuda13");
  EXPECT_EQ(parsed.options.toolchains[0].paths.nvcc(), "/usr/local/cuda/bin/nvcc");
  EXPECT_EQ(parsed.options.toolchains[0].paths.cuda_include_directories(1), "/opt/crt");
  EXPECT_EQ(parsed.options.toolchains[0].paths.cuda_library_directories(0), "/opt/lib");
  EXPECT_EQ(parsed.options.toolchains[1].paths.host_compiler(), "/usr/bin/clang++");
}

TEST_F(OptionsTest, ErrorsInTheFileNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"jobs = 1\ncolour = \"red\"\n",
       "/kernixd.toml:2: unknown key \"colour\"; known keys are socket, store_directory"},
      {"cache_limit_byte = 1\n", "unknown key \"cache_limit_byte\": did you mean cache_limit_bytes?; known keys are"},
      {"cache_limit = 1\n", "unknown key \"cache_limit\": did you mean cache_limit_bytes?"},
      {"[upstream]\nadress = \"x\"\n", "unknown key \"upstream.adress\": did you mean upstream.address?"},
      {"[upstream]\ncolour = 1\n",
       "/kernixd.toml:2: unknown key \"upstream.colour\"; known keys are upstream.address, upstream.instance"},
      {"jobs = \"many\"\n", "/kernixd.toml:1: jobs: \"many\" is not a whole number"},
      {"jobs = [1]\n", "/kernixd.toml:1: jobs must be a string"},
      {"jobs = \n", "/kernixd.toml:1: "},
      {"socket = \"run/x\"\n", "/kernixd.toml:1: socket: \"run/x\" is not an absolute path"},
      {"shared = \"perhaps\"\n", "neither true nor false"},
      {"log_level = \"loud\"\n", "not one of debug, info, warning, error"},
      {"disabled_shortcuts = [\"phases\", \"all\"]\n", "\"all\" is none of the shortcuts: phases, stand_ins, "},
      {"max_request_bytes = \"1GiB\"\n", "is not between"},
      {"toolchain = 1\n", "[[toolchain]] tables"},
      {"\n[[toolchain]]\nname = \"a\"\n", "/kernixd.toml:2: a [[toolchain]] needs name and host_compiler"},
      {"[[toolchain]]\nname = \"a\"\nhost_compiler = \"g++\"\n",
       "/kernixd.toml:3: host_compiler must be an absolute path"},
      {"[[toolchain]]\nname = \"a\"\ncompiler = \"/g++\"\n",
       "/kernixd.toml:3: unknown key \"compiler\" of a toolchain"},
  };
  for (const auto& [config, message] : cases) {
    WriteConfig(config);
    const ParsedCommandLine parsed = Parse({"--config", "/kernixd.toml"});
    EXPECT_TRUE(parsed.exit_now) << config;
    EXPECT_EQ(parsed.exit_code, kExitUsage) << config;
    EXPECT_THAT(parsed.text, HasSubstr(message)) << config;
  }
}

TEST_F(OptionsTest, EveryProblemOfAFileIsTold) {
  WriteConfig("jobs = \"many\"\ncolour = 1\nsocket = \"x\"\n[[toolchain]]\nname = \"a\"\n");
  const ParsedCommandLine parsed = Parse({"--config", "/kernixd.toml", "--check-config"});
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  for (const int line : {1, 2, 3, 4})
    EXPECT_THAT(parsed.text, HasSubstr(StrCat("kernixd: /kernixd.toml:", line, ": ")));
}

TEST_F(OptionsTest, EveryProblemOfToolchainsAndOfSharingIsTold) {
  WriteConfig("[[toolchain]]\nname = 1\nkey = 2\n[[toolchain]]\nkey = 3\n");
  const std::string toolchains = Parse({"--config", "/kernixd.toml"}).text;
  for (const int line : {2, 3, 5}) EXPECT_THAT(toolchains, HasSubstr(StrCat("/kernixd.toml:", line, ": ")));
  WriteConfig("socket_group = \"a\"\nadmin_group = \"b\"\n");
  const std::string sharing = Parse({"--config", "/kernixd.toml"}).text;
  for (const int line : {1, 2}) EXPECT_THAT(sharing, HasSubstr(StrCat("/kernixd.toml:", line, ": ")));
}

TEST_F(OptionsTest, AContradictionNamesItsPlaceInTheFile) {
  WriteConfig("jobs = 1\nsocket_group = \"kernix\"\n");
  EXPECT_THAT(Parse({"--config", "/kernixd.toml"}).text, HasSubstr("/kernixd.toml:2: socket_group requires shared"));
  WriteConfig("jobs = 1\n");
  EXPECT_TRUE(Parse({"--config", "/kernixd.toml", "--check-config"}).check_only);
}

TEST_F(OptionsTest, TwoToolchainsOfOneNameAreAMistake) {
  ServerOptions options;
  constexpr char kOne[] = "[[toolchain]]\nname = \"a\"\nhost_compiler = \"/g++\"\n";
  EXPECT_THAT(ParseConfig("f", StrCat(kOne, kOne), options),
              HasError(absl::StatusCode::kInvalidArgument, HasSubstr("f:4: duplicate toolchain \"a\"")));
}

TEST_F(OptionsTest, BadFlagsAreUsageErrors) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--frobnicate"}, "--frobnicate"},
      {{"serve"}, "serve"},
      {{"--jobs", "-3"}, "--jobs: \"-3\" is not a whole number"},
      {{"--idle-timeout", "15"}, "--idle-timeout: \"15\" is not a time"},
      {{"--config", "/none.toml"}, "/none.toml"},
      {{"--socket-group", "x"}, "socket_group requires shared"},
      {{"--admin-group", "x"}, "admin_group requires shared"},
      {{"--unknown-users", "true"}, "unknown_users requires shared"},
      {{"--shared"}, "[[toolchain]]"},
      {{"--oneshot-fd", "3", "--socket", "/x"}, "--oneshot-fd serves one connection"},
  };
  for (const auto& [flags, message] : cases) {
    const ParsedCommandLine parsed = Parse(flags);
    EXPECT_TRUE(parsed.exit_now) << flags[0];
    EXPECT_EQ(parsed.exit_code, kExitUsage) << flags[0];
    EXPECT_THAT(parsed.text, HasSubstr(message));
  }
}

TEST_F(OptionsTest, ABadVariableIsNamed) {
  environment_["KERNIX_CACHE_LIMIT_BYTES"] = "huge";
  EXPECT_THAT(Parse({}).text, HasSubstr("KERNIX_CACHE_LIMIT_BYTES: \"huge\" is not a size"));
}

TEST_F(OptionsTest, HelpAndVersionEndWell) {
  const ParsedCommandLine help = Parse({"--help"});
  EXPECT_TRUE(help.exit_now);
  EXPECT_EQ(help.exit_code, kExitOk);
  for (const Setting& setting : Settings()) EXPECT_THAT(help.text, HasSubstr(setting.Flag()));
  EXPECT_THAT(help.text, HasSubstr("Examples:"));

  const ParsedCommandLine version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, kExitOk);
  EXPECT_EQ(version.text, StrCat("kernixd ", Version(), " (build ", BuildId(), ")\n"));
}

TEST_F(OptionsTest, OneshotTakesADescriptor) {
  EXPECT_EQ(Parse({"--oneshot-fd", "3"}).options.oneshot_fd, 3);
  EXPECT_EQ(Parse({"--oneshot-fd", "-3"}).exit_code, kExitUsage);
}

// Compares the documentation with the table of settings.
std::string SourceFile(const std::string& path) {
  return Env::Posix().ReadFile(StrCat(KERNIX_SOURCE_DIR, "/", path)).value();
}

TEST(Documentation, HasEverySetting) {
  const std::string page = SourceFile("docs/reference.md");
  for (const Setting& setting : Settings()) EXPECT_THAT(page, HasSubstr(StrCat("\n| `", setting.name, "` |")));
}

TEST(Documentation, TheExampleConfigIsGoodAndNamesEverySetting) {
  const std::string example = SourceFile("deploy/kernixd.toml");
  ServerOptions options;
  EXPECT_THAT(ParseConfig("kernixd.toml", example, options), IsOk());
  EXPECT_THAT(CheckOptions(options), IsOk());
  EXPECT_TRUE(options.shared);
  for (const Setting& setting : Settings()) {
    if (setting.name == "socket" || setting.name == "socket_group") continue;      // set by the socket unit
    const std::string_view key = setting.name.substr(setting.name.find('.') + 1);  // in its table
    EXPECT_THAT(example, HasSubstr(StrCat(key, " = ")));
  }
}

// What applies them may wait for compilers. The daemon's main loop, which asks for them, must not wait as well.
TEST(LiveOptionsTest, CanBeAskedForWhileTheyAreApplied) {
  LiveOptions live({}, [] {
    ServerOptions fresh;
    fresh.idle_timeout = Duration{5};
    return fresh;
  });
  Duration during{};
  const auto report = live.Reload([&](const ServerOptions&) { during = live.Latest().idle_timeout; });
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->applied(), ElementsAre("idle_timeout"));
  EXPECT_EQ(during, ServerOptions().idle_timeout);
  EXPECT_EQ(live.Latest().idle_timeout, Duration{5});
}

}  // namespace
}  // namespace kernix::server
