// SPDX-License-Identifier: Apache-2.0
//
// kernixctl against a real daemon: what it prints, and its exit codes.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "client/kernixctl/command.h"
#include "common/base/strings.h"
#include "tests/integration/client_world.h"
#include "tests/support/find_tools.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

class KernixctlTest : public ClientWorld {
 protected:
  static ProgramOutcome Ctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), KERNIXCTL_PROGRAM);
    return RunProgram(arguments);
  }

  // The output of a command that succeeds.
  static std::string Output(const std::vector<std::string>& arguments) {
    ProgramOutcome outcome = Ctl(arguments);
    EXPECT_EQ(outcome.exit_code, ctl::kOk) << arguments.front();
    return std::move(outcome.output);
  }

  std::string WriteSource(const std::string& name, const std::string& text) {
    const std::string path = Path(name);
    EXPECT_TRUE(Env::Posix().WriteFile(path, "#include \"brainevent/common.h\"\n" + text, 0600).ok());
    return path;
  }

  std::string WriteGood(const std::string& name) {
    return WriteSource(name,
                       "// @BE one ret\nvoid one(BE::Tensor out) { *static_cast<float*>(out.data_ptr()) = 1; }\n");
  }
};

TEST_F(KernixctlTest, CompileBuildsOnceAndThenFindsItInTheCache) {
  const std::string file = WriteGood("one.cpp");
  EXPECT_THAT(Output({"compile", file, "--json"}),
              AllOf(HasSubstr("\"cache_hit\": false"), HasSubstr("\"miss_reason\": \"new source\""),
                    HasSubstr("{\"name\": \"one\", \"arg_spec\": \"ret\"}")));
  EXPECT_THAT(Output({"compile", file, "--json"}), HasSubstr("\"cache_hit\": true"));
  EXPECT_THAT(Output({"compile", file}), StartsWith(file + ": one (from the cache) -> " + Path("store/artifacts/")));
  EXPECT_THAT(Output({"cache", "stats", "--json"}),
              AllOf(HasSubstr("\"builds\": 1,"), HasSubstr("\"hits\": 2,"), HasSubstr("\"misses\": 1,"),
                    HasSubstr("\"entries\": 1,"), HasSubstr("\"store_directory\": \"" + Path("store") + "\"")));
}

TEST_F(KernixctlTest, CompileCopiesTheArtifact) {
  const std::string copy = Path("copy.so");
  EXPECT_THAT(Output({"compile", WriteGood("one.cpp"), "-o", copy}), HasSubstr(" -> " + copy + "\n"));
  EXPECT_THAT(Env::Posix().ReadFile(copy).value(), StartsWith("\177ELF"));
}

TEST_F(KernixctlTest, CompileTakesFunctionsByName) {
  const std::string file = WriteSource("two.cpp", "void a(BE::Tensor x, BE::Tensor y) {}\nvoid b(BE::Tensor y) {}\n");
  EXPECT_THAT(Output({"compile", file, "--json", "--function", "a=arg,ret", "--function", "b=ret"}),
              AllOf(HasSubstr("\"name\": \"a\", \"arg_spec\": \"arg ret\""), HasSubstr("\"name\": \"b\"")));
}

TEST_F(KernixctlTest, CompileKeepsATokenWithCommasWhole) {
  const std::string file = WriteSource("scratch.cpp", "void f(BE::Tensor x, BE::Scratch memory, BE::Tensor y) {}\n");
  EXPECT_THAT(Output({"compile", file, "--json", "--function", "f=arg, scratch:arg0.size(0)+(4,8), ret"}),
              HasSubstr("\"arg_spec\": \"arg scratch:arg0.size(0)+(4,8) ret\""));
}

TEST_F(KernixctlTest, CompileMakesOneModuleOfSeveralFiles) {
  const std::string one = WriteSource("one.cpp", "// @BE one ret\nint two();\nvoid one(BE::Tensor out) { two(); }\n");
  const std::string two = WriteSource("two.cpp", "static int hidden = 2;\nint two() { return hidden; }\n");
  const std::string three = WriteSource("three.cpp", "static int hidden = 3;\n");
  EXPECT_THAT(Output({"compile", one, two, three, "--separate", "--json"}),
              AllOf(HasSubstr("\"name\": \"one\", \"files\": [\"" + one + "\", \"" + two),
                    HasSubstr("{\"name\": \"one\", \"arg_spec\": \"ret\"}")));
  EXPECT_THAT(Output({"compile", one, two, "--name", "both", "-o", Path("both.so")}),
              AllOf(StartsWith("both: one ("), HasSubstr(" -> " + Path("both.so") + "\n")));
  EXPECT_EQ(Ctl({"compile", one, two, three, "--name", "all"}).exit_code, ctl::kCompilation);  // two of one name
}

TEST_F(KernixctlTest, CompileShowsWhatItGenerated) {
  const std::string file = WriteGood("one.cpp");
  EXPECT_THAT(Output({"compile", file, "--print", "source"}),
              AllOf(HasSubstr("void one(BE::Tensor out)"), HasSubstr("kernix_handler_one")));
  Output({"compile", file, "--build-directory", Path("out")});
  EXPECT_THAT(Env::Posix().ListDirectory(Path("out")).value(), ElementsAre("one.kernix.cpp", "one.so"));
  EXPECT_EQ(Ctl({"compile", file, "--print", "ptx"}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"compile", file, "--print", "poem"}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"compile", file, "--print", "source", "--json"}).exit_code, ctl::kUsage);
}

TEST_F(KernixctlTest, BuildWarmsTheCacheWithFoldersAndFiles) {
  std::filesystem::create_directories(Path("kernels/more"));
  const std::string first = WriteGood("kernels/one.cpp");
  const std::string second = WriteSource("kernels/more/two.cc", "// @BE two ret\nvoid two(BE::Tensor) {}\n");
  WriteSource("kernels/more/helper.cc", "int helper;\n");
  const std::string third = WriteSource("three.cpp", "// @BE three ret\nvoid three(BE::Tensor) {}\n");
  const std::vector<std::string> build = {"build", Path("kernels"), third, "--arch", "sm_90", "-j", "2"};
  const std::string output = Output(build);
  for (const std::string& file : {first, second, third}) {
    EXPECT_THAT(output, HasSubstr(StrCat(file, ": "))) << output;
  }
  EXPECT_THAT(output, Not(HasSubstr("helper")));
  EXPECT_THAT(Output({"build", Path("kernels"), third, "--json"}),
              AllOf(HasSubstr("\"name\": \"three\""), HasSubstr("\"cache_hit\": true"),
                    Not(HasSubstr("\"cache_hit\": false"))));
  EXPECT_THAT(Output({"compile", first, "--json"}), HasSubstr("\"cache_hit\": true"));
  EXPECT_THAT(Output({"cache", "stats", "--json"}), HasSubstr("\"builds\": 3,"));
}

TEST_F(KernixctlTest, BuildGoesOnAfterAFailureAndSaysByItsExitCodeWhatItWas) {
  const std::string broken = WriteSource("broken.cpp", "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n");
  const std::string good = WriteGood("one.cpp");
  const ProgramOutcome outcome = Ctl({"build", broken, good, Path("missing.cpp")});
  EXPECT_EQ(outcome.exit_code, ctl::kCompilation);
  EXPECT_THAT(outcome.output, StartsWith(good + ": one (built in "));
  EXPECT_EQ(Ctl({"build", Path("missing.cpp")}).exit_code, ctl::kFailure);
  EXPECT_EQ(Ctl({"build", Path("text.txt")}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"build", good, "-j", "0"}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"--address", Path("nobody.sock"), "build", good, broken}).exit_code, ctl::kNoDaemon);
  std::filesystem::create_directories(Path("empty"));
  EXPECT_EQ(Ctl({"build", Path("empty")}).exit_code, ctl::kFailure);
  WriteSource("empty/helper.cc", "int helper;\n");
  EXPECT_EQ(Ctl({"build", Path("empty")}).exit_code, ctl::kFailure);
}

TEST_F(KernixctlTest, CompileForADebugger) {
  const std::string file = WriteGood("one.cpp");
  Output({"compile", file, "-o", Path("plain.so")});
  Output({"compile", file, "--debug", "--jobs", "1", "-o", Path("debug.so")});
  EXPECT_THAT(Env::Posix().ReadFile(Path("plain.so")).value(), Not(HasSubstr(".debug_info")));
  EXPECT_THAT(Env::Posix().ReadFile(Path("debug.so")).value(), HasSubstr(".debug_info"));
}

TEST_F(KernixctlTest, CompileShowsWhatNvccMadeOnTheWay) {
  KERNIX_NEED_NVCC(nvcc);
  SetVariable("BRAINEVENT_NVCC_PATH", nvcc);
  const std::string file = WriteSource("fill.cu",
                                       "__global__ void fill_kernel(float* y) { y[threadIdx.x] = 1; }\n"
                                       "// @BE fill\n"
                                       "void fill(BE::Tensor y, cudaStream_t stream) {\n"
                                       "  fill_kernel<<<1, 1, 0, stream>>>(y.data_ptr<float>());\n}\n");
  const std::vector<std::string> compile = {"compile", file, "--arch", "sm_80,sm_90"};
  const auto with = [&compile](std::vector<std::string> more) {
    more.insert(more.begin(), compile.begin(), compile.end());
    return Output(more);
  };
  EXPECT_THAT(with({"--print", "ptx"}), AllOf(HasSubstr(".target sm_90"), HasSubstr(".entry _Z11fill_kernelPf")));
  EXPECT_THAT(with({"--print", "resources"}), AllOf(StartsWith("KERNEL "), HasSubstr("\nfill_kernel(float*)  sm_80 "),
                                                    HasSubstr("\nfill_kernel(float*)  sm_90 ")));
  EXPECT_THAT(with({"--keep", "--json", "--build-directory", Path("out")}),
              AllOf(HasSubstr("\"cache_hit\": true"), HasSubstr("\"kernels\": [{\"name\": \"fill_kernel(float*)\""),
                    HasSubstr("\"architecture\": \"sm_80\", \"registers\": ")));
  EXPECT_THAT(Env::Posix().ListDirectory(Path("out")).value(),
              IsSupersetOf({"fill.kernix.cu", "fill.sm_80.ptx", "fill.sm_90.ptx", "fill.sm_90.ptxas", "fill.so"}));
  const std::string plain = with({"--json", "--no-cuda-graph"});
  EXPECT_THAT(plain, HasSubstr("\"kernels\": [{\"name\": \"fill_kernel(float*)\""));
  const std::string key = plain.substr(plain.find("\"key\": \"") + 8, 20);
  EXPECT_THAT(Output({"cache", "show", key}), HasSubstr("\n\nKERNEL "));
  EXPECT_THAT(Output({"cache", "show", key, "--json"}),
              AllOf(HasSubstr("\"spill_stores\": 0, "), HasSubstr("\"occupancy_percent_256_threads\": 100}")));
}

TEST_F(KernixctlTest, CompileSaysByItsExitCodeWhatWasWrong) {
  const std::string good = WriteGood("one.cpp");
  const std::string broken = WriteSource("broken.cpp", "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n");
  EXPECT_EQ(Ctl({"compile", broken}).exit_code, ctl::kCompilation);
  EXPECT_EQ(Ctl({"compile", Path("text.txt")}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"compile", good, broken, "-o", Path("copy.so")}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"compile", Path("missing.cpp")}).exit_code, ctl::kFailure);
  EXPECT_EQ(Ctl({"--address", Path("nobody.sock"), "compile", good}).exit_code, ctl::kNoDaemon);
  SetVariable("CXX", "/nonexistent/c++");
  EXPECT_EQ(Ctl({"compile", good}).exit_code, ctl::kToolchain);
  unsetenv("CXX");
}

TEST_F(KernixctlTest, CompileShowsACommandThatFailedOnDemand) {
  const std::string broken = WriteSource("broken.cpp", "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n");
  const auto said = [&broken](const std::string& options) {
    return RunProgram({"/bin/sh", "-c", StrCat(KERNIXCTL_PROGRAM, " compile ", broken, options, " 2>&1")}).output;
  };
  EXPECT_THAT(said(""), AllOf(Not(HasSubstr(" -c ")), HasSubstr("-v shows the commands; --build-directory DIR keeps")));
  EXPECT_THAT(said(" -v"), HasSubstr(" -c "));
  EXPECT_THAT(said(" --build-directory " + Path("out")), AllOf(Not(HasSubstr(" -c ")), Not(HasSubstr("-v shows"))));
}

TEST_F(KernixctlTest, CompileSavesACommandThatFailed) {
  const std::string broken = WriteSource("broken.cpp", "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n");
  EXPECT_EQ(Ctl({"compile", broken, "--build-directory", Path("out")}).exit_code, ctl::kCompilation);
  const ProgramOutcome again = RunProgram({"/bin/sh", "-c", Path("out/broken.failed/run.sh") + " 2>&1"});
  EXPECT_NE(again.exit_code, 0);
  EXPECT_THAT(again.output, HasSubstr("broken.cpp:3:26: error: "));
}

TEST_F(KernixctlTest, CompileGoesOnAfterAFailure) {
  const std::string broken = WriteSource("broken.cpp", "// @BE f ret\nvoid f(BE::Tensor out) { nonsense; }\n");
  const ProgramOutcome outcome = Ctl({"compile", broken, WriteGood("one.cpp")});
  EXPECT_EQ(outcome.exit_code, ctl::kCompilation);
  EXPECT_THAT(outcome.output, HasSubstr("one.cpp: one ("));
}

TEST_F(KernixctlTest, ListShowsWhatIsThere) {
  EXPECT_EQ(Output({"cache", "list", "--json"}), "[]\n");
  Output({"compile", WriteGood("one.cpp"), WriteGood("other.cpp")});
  EXPECT_THAT(Output({"cache", "list"}), AllOf(StartsWith("NAME "), HasSubstr("\none "), HasSubstr("\nother ")));
  EXPECT_THAT(Output({"cache", "list", "--name", "one", "--json"}),
              AllOf(HasSubstr("\"name\": \"one\""), HasSubstr("\"language\": \"cpp\""), Not(HasSubstr("other")),
                    HasSubstr("\"owner\": " + std::to_string(geteuid()))));
}

TEST_F(KernixctlTest, StatusShowsTheDaemonItsToolchainsAndTheCache) {
  EXPECT_EQ(Ctl({"status"}).exit_code, ctl::kNoDaemon);
  Output({"compile", WriteGood("one.cpp")});
  EXPECT_THAT(Output({"status"}), AllOf(HasSubstr("\nLOADS\nnone\n"),
                                        ContainsRegex("\nTOOLCHAINS\nNAME +STATE +TOOLS\n- +ok +/.* [0-9]+\\."),
                                        ContainsRegex("\nCACHE\nOWNER +ENTRIES +SIZE\n.* 1 +[0-9.]+ KiB\n$")));
  EXPECT_THAT(Output({"status", "--json"}), AllOf(HasSubstr("\"loads\": [], \"hidden_loads\": 0, \"toolchains\": [{"),
                                                  HasSubstr("\"problem\": \"\""), HasSubstr("\"entries\": 1, ")));
}

TEST_F(KernixctlTest, DoctorExaminesEverythingAndLeavesNothing) {
  EXPECT_THAT(
      Output({"doctor"}),
      AllOf(StartsWith("ok    kernixctl     "), ContainsRegex("\nok    C\\+\\+ compiler  /"),
            ContainsRegex("\n(ok|warn)  +GPU "), ContainsRegex("\nok    kernixd       " + std::string(KERNIXD_PROGRAM)),
            HasSubstr("\nok    socket        unix:" + RunFolderOfStore().socket),
            HasSubstr("store         " + Path("store") + ", "),
            ContainsRegex("\nok    C\\+\\+ kernel    compiled in [0-9]+ ms")));
  EXPECT_EQ(Output({"cache", "list", "--json"}), "[]\n");
}

TEST_F(KernixctlTest, DoctorSaysWhatIsWrongAndWhatToDo) {
  SetVariable("CXX", "/nonexistent/c++");
  SetVariable("BRAINEVENT_NVCC_PRFER", "pip");
  const ProgramOutcome outcome = Ctl({"doctor"});
  EXPECT_EQ(outcome.exit_code, ctl::kFailure);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("\nwarn  variables     "), HasSubstr("BRAINEVENT_NVCC_PRFER"),
                                    HasSubstr("\nfail  C++ compiler  "), HasSubstr("/nonexistent/c++"),
                                    HasSubstr("\nfail  C++ kernel    ")));
  unsetenv("CXX");
  unsetenv("BRAINEVENT_NVCC_PRFER");
  const ProgramOutcome unreachable = Ctl({"--address", Path("nobody.sock"), "doctor", "--json"});
  EXPECT_EQ(unreachable.exit_code, ctl::kFailure);
  EXPECT_THAT(unreachable.output,
              ContainsRegex("\\{\"state\": \"fail\", \"subject\": \"socket\", \"text\": \".*nobody.sock"));
}

TEST_F(KernixctlTest, ShowTellsAllAboutAnEntry) {
  EXPECT_EQ(Ctl({"cache", "show", "00"}).exit_code, ctl::kNoDaemon);
  const std::string listed = Output({"compile", WriteGood("one.cpp"), "-D", "N=4", "--flag=-fno-math-errno", "--json"});
  const size_t key = listed.find("\"key\": \"") + 8;
  const std::string digits = listed.substr(key, 9);
  EXPECT_THAT(Output({"cache", "show", digits}),
              AllOf(StartsWith("key        " + digits), HasSubstr("\ntag        one of "),
                    HasSubstr("\nfunction   one: ret\n"), HasSubstr("N 4"), HasSubstr("-fno-math-errno"),
                    HasSubstr("++ "), HasSubstr("\npath       " + Path("store/artifacts/"))));
  EXPECT_THAT(
      Output({"cache", "show", listed.substr(key, 64), "--json"}),
      AllOf(HasSubstr("\"tags\": [{\"name\": \"one\", "), HasSubstr("{\"name\": \"one\", \"arg_spec\": \"ret\"}")));
  EXPECT_EQ(Ctl({"cache", "show", digits + "0123456789"}).exit_code, ctl::kFailure);
  EXPECT_EQ(Ctl({"cache", "show", "one"}).exit_code, ctl::kUsage) << "a name is no key";
}

TEST_F(KernixctlTest, TraceShowsWhereTheTimeOfABuildWent) {
  EXPECT_EQ(Ctl({"trace", "00"}).exit_code, ctl::kNoDaemon);
  const std::string listed = Output({"compile", WriteGood("one.cpp"), "--json"});
  const std::string digits = listed.substr(listed.find("\"key\": \"") + 8, 12);
  EXPECT_THAT(Output({"trace", digits}),
              AllOf(StartsWith("one " + digits + ", built 20"), HasSubstr("\nSTEP "), HasSubstr("\nplan "),
                    ContainsRegex("\ncompile +[^#]*#"), HasSubstr("\nkeep artifact "), HasSubstr("# ran"),
                    HasSubstr("\ntotal ")));
  EXPECT_THAT(Output({"trace", digits, "--json"}),
              AllOf(StartsWith("{\"traceEvents\": [{"), HasSubstr("\"name\": \"kernixd: one " + digits + "\"")));
  EXPECT_EQ(Ctl({"trace", "0123456789abcdef"}).exit_code, ctl::kFailure);
  EXPECT_EQ(Ctl({"trace", "one"}).exit_code, ctl::kUsage) << "a name is no key";
}

TEST_F(KernixctlTest, ABeginningThatSeveralKeysHaveIsRefused) {
  std::set<char> beginnings;
  for (int i = 0;; ++i) {  // soon two keys begin with the same digit
    const std::string name = StrCat("k", i);
    const std::string file =
        WriteSource(name + ".cpp", StrCat("// @BE ", name, " ret\nvoid ", name, "(BE::Tensor) {}\n"));
    const std::string output = Output({"compile", file, "-O", "0", "--json"});
    const char beginning = output.at(output.find("\"key\": \"") + 8);
    EXPECT_EQ(Ctl({"cache", "show", std::string(1, beginning)}).exit_code,
              beginnings.contains(beginning) ? ctl::kUsage : ctl::kOk);
    if (!beginnings.insert(beginning).second) break;
  }
}

TEST_F(KernixctlTest, APinnedEntryStaysUntilItIsNamed) {
  Output({"compile", WriteGood("one.cpp"), WriteGood("other.cpp")});
  EXPECT_EQ(Ctl({"cache", "pin", "nothing"}).exit_code, ctl::kFailure);
  EXPECT_THAT(Output({"cache", "pin", "one"}), StartsWith("pinned 1 entry; now "));
  EXPECT_THAT(Output({"cache", "list", "--name", "one", "--json"}), HasSubstr("\"pinned\": true"));
  EXPECT_THAT(Output({"cache", "purge", "--all"}),
              AllOf(StartsWith("removed 1 entry, "), HasSubstr("; 1 pinned one stays (--pinned")));
  EXPECT_THAT(Output({"cache", "list"}), HasSubstr("\none "));
  EXPECT_THAT(Output({"cache", "unpin", "one"}), StartsWith("unpinned 1 entry; now 0 B of "));
  EXPECT_THAT(Output({"cache", "pin", "one"}), StartsWith("pinned 1 entry"));
  EXPECT_THAT(Output({"cache", "purge", "--all", "--pinned"}), StartsWith("removed 1 entry, "));
}

TEST_F(KernixctlTest, VerifyFindsADamagedArtifactAndARepairHasItBuiltAgain) {
  const std::string file = WriteGood("one.cpp");
  Output({"compile", file});
  EXPECT_THAT(Output({"cache", "verify"}), AllOf(StartsWith("checked 1 artifact, "), HasSubstr(": 0 problems\n")));
  const auto artifacts = std::filesystem::directory_iterator(Path("store/artifacts"));
  const std::string path = artifacts->path();
  std::string content = Env::Posix().ReadFile(path).value();
  content.back() ^= 1;
  ASSERT_TRUE(Env::Posix().RemoveFile(path).ok());
  ASSERT_TRUE(Env::Posix().WriteFile(path, content, 0444).ok());
  const ProgramOutcome found = Ctl({"cache", "verify"});
  EXPECT_EQ(found.exit_code, ctl::kFailure);
  EXPECT_THAT(found.output, AllOf(ContainsRegex("damaged +no +" + path), HasSubstr("1 problem, 1 not repaired")));
  EXPECT_EQ(Ctl({"cache", "verify", "--json"}).exit_code, ctl::kFailure);
  EXPECT_THAT(Output({"cache", "verify", "--repair"}), HasSubstr(": 1 problem\n"));
  EXPECT_THAT(Output({"compile", file, "--json"}), HasSubstr("\"cache_hit\": false"));
  EXPECT_THAT(Output({"cache", "verify", "--json"}), HasSubstr("\"problems\": []"));
}

TEST_F(KernixctlTest, PurgeRemovesWhatItIsTold) {
  const std::vector<std::string> compile = {"compile", WriteGood("one.cpp"), WriteGood("other.cpp")};
  Output(compile);
  EXPECT_EQ(Ctl({"cache", "purge"}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"cache", "purge", "--older-than", "soon"}).exit_code, ctl::kUsage);
  for (const char* command : {"purge --name", "list --name", "pin"}) {
    const std::string line = StrCat(KERNIXCTL_PROGRAM, " cache ", command, " '\xe9' 2>&1");
    const ProgramOutcome refused = RunProgram({"/bin/sh", "-c", line});
    EXPECT_NE(refused.exit_code, 0) << command;
    EXPECT_THAT(refused.output, StartsWith("kernixctl: \"\ufffd\" cannot name a module: ")) << command;
  }
  EXPECT_THAT(Output({"cache", "purge", "--older-than", "1h"}), StartsWith("removed 0 entries, "));
  EXPECT_THAT(Output({"cache", "purge", "--name", "nothing"}), StartsWith("removed 0 entries, "));
  EXPECT_THAT(Output({"cache", "purge", "--name", "one"}), StartsWith("removed 1 entry, "));
  EXPECT_THAT(Output({"cache", "list"}), AllOf(Not(HasSubstr("\none ")), HasSubstr("\nother ")));
  EXPECT_THAT(Output({"cache", "purge", "--all"}), StartsWith("removed 1 entry, "));
  EXPECT_EQ(Output({"cache", "list", "--json"}), "[]\n");
  Output(compile);
  EXPECT_THAT(Output({"cache", "stats", "--json"}), HasSubstr("\"builds\": 4,"));
}

}  // namespace
}  // namespace kernix
