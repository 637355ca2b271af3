// SPDX-License-Identifier: Apache-2.0
//
// kernixctl against a real daemon: what it prints, and its exit codes.
#include <gmock/gmock.h>

#include "client/kernixctl/command.h"
#include "tests/integration/client_world.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
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
              AllOf(HasSubstr("\"cache_hit\": false"), HasSubstr("{\"name\": \"one\", \"arg_spec\": \"ret\"}")));
  EXPECT_THAT(Output({"compile", file, "--json"}), HasSubstr("\"cache_hit\": true"));
  EXPECT_THAT(Output({"compile", file}), StartsWith(file + ": one (from the cache) -> " + Path("store/blobs/")));
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

TEST_F(KernixctlTest, PurgeRemovesWhatItIsTold) {
  const std::vector<std::string> compile = {"compile", WriteGood("one.cpp"), WriteGood("other.cpp")};
  Output(compile);
  EXPECT_EQ(Ctl({"cache", "purge"}).exit_code, ctl::kUsage);
  EXPECT_EQ(Ctl({"cache", "purge", "--older-than", "soon"}).exit_code, ctl::kUsage);
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
