// SPDX-License-Identifier: Apache-2.0
//
// Loads through a stand-in for the daemon. It stages a request and compiles it with the real compiler, like the daemon.
#include "kernix/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "client/connection/daemon_client.h"
#include "client/load/history.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/wire/artifact_texts.h"
#include "kernix/call_frame.h"
#include "kernix/error.h"
#include "kernix/inspection.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using testing::AddConstantHandler;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScratchFolder;

// "src" + the lines of each source after its label, as the daemon's generator writes them.
std::string Unit(const v1::LoadRequest& request) {
  std::string unit;
  for (const v1::Source& source : request.source())
    StrAppend(&unit, "#line 1 \"", source.label(), "\"\n", source.text(), "\n");
  return unit;
}

class StandIn : public DaemonClient {
 public:
  absl::StatusOr<v1::LoadResult> SendLoad(const v1::LoadRequest& request, const BlobProvider& blobs,
                                          const LoadCallbacks& callbacks) override {
    requests.push_back(request);
    if (before_build) std::exchange(before_build, nullptr)();
    if (!refusals.empty()) {
      const absl::Status refusal = refusals.back();
      refusals.pop_back();
      return refusal;
    }
    KERNIX_RETURN_IF_ERROR(Stage(request, blobs));
    KERNIX_ASSIGN_OR_RETURN(const ProcessResult compiled, Compile(request));
    if (callbacks.output) callbacks.output(compiled.output);
    if (compiled.exit_code != 0) return CompileError(compiled);
    return Result(request);
  }

  absl::StatusOr<std::string> LocalArtifact(const v1::LoadResult& result) override { return result.artifact_path(); }
  absl::StatusOr<std::string> OwnFolder(const std::string& name) override { return folder_ / name; }

  absl::StatusOr<DaemonInfo> Info(bool) override { return DaemonInfo(); }
  absl::Status Call(std::string_view, const google::protobuf::MessageLite&, bool,
                    google::protobuf::MessageLite&) override {
    return absl::OkStatus();
  }
  absl::Status Shutdown(std::chrono::milliseconds) override { return absl::OkStatus(); }
  const ClientOptions& options() const override { return options_; }

  std::vector<v1::LoadRequest> requests;
  std::function<void()> before_build;   // once
  std::vector<absl::Status> refusals;   // returned, one per load, instead of building
  std::vector<std::string> lost_paths;  // returned, one per load, instead of the artifact's

 private:
  std::string Root() const { return folder_ / StrCat("build", requests.size()); }

  absl::Status Stage(const v1::LoadRequest& request, const BlobProvider& blobs) {
    for (const v1::Header& header : request.header()) {
      KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(header.digest()));
      KERNIX_ASSIGN_OR_RETURN(const std::string content, blobs(digest));
      folder_.Write(StrCat("build", requests.size(), "/inc/", header.include_root(), "/", header.path()), content);
    }
    folder_.Write(StrCat("build", requests.size(), "/unit.cc"), Unit(request));
    return absl::OkStatus();
  }

  absl::StatusOr<ProcessResult> Compile(const v1::LoadRequest& request) {
    ProcessSpec spec;
    spec.argv = {request.toolchain().host_compiler(),
                 "-shared",
                 "-fPIC",
                 "-I",
                 testing::SourceRoot(),
                 "unit.cc",
                 "-o",
                 "kernel.so"};
    for (uint32_t i = 0; i < request.options().include_root_count(); ++i) spec.argv.push_back(StrCat("-Iinc/", i));
    spec.argv.insert(spec.argv.end(), request.options().compile_flags().begin(),
                     request.options().compile_flags().end());
    spec.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
    spec.working_directory = Root();
    return Env::Posix().RunProcess(spec, nullptr, nullptr);
  }

  static absl::Status CompileError(const ProcessResult& compiled) {
    v1::ErrorDetail detail;
    detail.set_kind(v1::ErrorDetail::COMPILATION);
    detail.set_message(StrCat("compile failed: ", compiled.output.substr(0, compiled.output.find('\n'))));
    detail.set_compiler_output(compiled.output);
    return MakeError(std::move(detail));
  }

  absl::StatusOr<v1::LoadResult> Result(const v1::LoadRequest& request) {
    v1::LoadResult result;
    result.set_artifact_path(Root() + "/kernel.so");
    KERNIX_ASSIGN_OR_RETURN(std::string artifact, Env::Posix().ReadFile(result.artifact_path()));
    v1::ArtifactTexts texts;
    texts.add_unit()->set_text(Unit(request));
    KERNIX_RETURN_IF_ERROR(AddTexts(texts, artifact));
    KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFile(result.artifact_path(), artifact, 0700));
    result.set_artifact_digest(DigestOf(artifact).Raw());
    result.set_key(DigestOf(Unit(request)).Raw());
    for (const v1::Function& function : request.functions().function()) {
      v1::ResolvedFunction& resolved = *result.add_function();
      resolved.set_name(function.name());
      *resolved.mutable_tokens() = function.tokens();
      resolved.set_handler_symbol(function.name());
    }
    if (requests.size() <= lost_paths.size()) result.set_artifact_path(lost_paths[requests.size() - 1]);
    return result;
  }

  ScratchFolder folder_;
  const ClientOptions options_{.store_directory = folder_.path()};  // a store that no other test has used
};

class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    options_.functions = {{.name = "f", .tokens = {"arg", "ret"}}};
    options_.environment = {{StrCat("PATH=", std::getenv("PATH"))}};  // and not what a shell sets for compilers
    options_.callbacks.warning = [this](std::string_view text) { warnings_.emplace_back(text); };
    options_.callbacks.output = [this](std::string_view text) { output_ += text; };
  }

  static float Run(const Module& module) {
    const float x = 40;
    float y = 0;
    const auto handler = module.handler("f");
    EXPECT_TRUE(handler.ok()) << handler.status();
    EXPECT_TRUE(CallFrame()
                    .AddArgument(&x, DataType::kFloat32, {1})
                    .AddResult(&y, DataType::kFloat32, {1})
                    .Call(*handler)
                    .ok());
    return y;
  }

  void ExpectInvalid(const absl::StatusOr<std::shared_ptr<Module>>& module, const std::string& words) {
    EXPECT_EQ(KindOf(module.status()), v1::ErrorDetail::INVALID_REQUEST);
    EXPECT_THAT(module.status().ToString(), HasSubstr(words));
  }

  StandIn client_;
  ScratchFolder folder_;
  LoadOptions options_;
  std::vector<std::string> warnings_;
  std::string output_;
};

TEST_F(LoadTest, AnInlineKernelRuns) {
  const auto module = LoadCppInline(client_, "adder", {AddConstantHandler("f", 2, 1)}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Run(**module), 42);
  EXPECT_EQ((*module)->name(), "adder");
  EXPECT_THAT((*module)->functions()[0].tokens, ElementsAre("arg", "ret"));
  EXPECT_EQ((*module)->functions()[0].traits, 1u);
  EXPECT_EQ((*module)->artifact_digest(), DigestOf(*Env::Posix().ReadFile((*module)->path())).Hex());
  EXPECT_EQ((*module)->artifact(), Env::Posix().ReadFile((*module)->path()).value());
  EXPECT_THAT((*module)->handler("g").status().ToString(), AllOf(HasSubstr("no function 'g'"), HasSubstr("f")));
}

TEST_F(LoadTest, ALoadBelongsToTheHistoryOfItsExecutable) {
  const auto known = [this] {
    const std::string executable = Env::Posix().ReadLink("/proc/self/exe").value();
    return History(Env::Posix(), client_.OwnFolder(kHistoriesFolder).value(), executable).Read().loads.size();
  };
  LoadOptions others = options_;
  others.in_history = false;
  ASSERT_TRUE(LoadCppInline(client_, "variant", {AddConstantHandler("f", 1)}, others).ok());
  others = options_;
  others.environment->push_back("KERNIX_HISTORY=0");
  ASSERT_TRUE(LoadCppInline(client_, "switched_off", {AddConstantHandler("f", 1)}, others).ok());
  EXPECT_EQ(known(), 0u);
  ASSERT_TRUE(LoadCppInline(client_, "adder", {AddConstantHandler("f", 1)}, options_).ok());
  EXPECT_EQ(known(), 1u);
}

// Also of the kernels of a store that is deleted while they are in use.
TEST_F(LoadTest, TheTextsOfALostArtifactCanStillBeRead) {
  const auto module = LoadCppInline(client_, "adder", {AddConstantHandler("f", 1)}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_TRUE(Env::Posix().RemoveFile((*module)->path()).ok());
  EXPECT_THAT(GeneratedSource(**module).value(), HasSubstr("#line 1 \"adder\""));
  ASSERT_TRUE(WriteBuildDirectory(**module, folder_ / "out").ok());
  const std::string library = Env::Posix().ReadFile(folder_ / "out/adder.so").value();
  EXPECT_EQ(CodeDigest(ElfImage::Parse(library).value()).value(),
            CodeDigest(ElfImage::Parse((*module)->artifact()).value()).value());
}

TEST_F(LoadTest, TheLibraryOfABuildDirectoryOpensAgain) {
  const auto module = LoadCppInline(client_, "adder", {AddConstantHandler("f", 1)}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_TRUE(WriteBuildDirectory(**module, folder_ / "out").ok());
  const size_t asked = client_.requests.size();
  options_.instance = "another";
  const auto library = LoadLibrary(client_, folder_ / "out/adder.so", options_);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(client_.requests.size(), asked);
  EXPECT_EQ(Run(**library), Run(**module));
  EXPECT_NE((*library)->functions()[0].handler, (*module)->functions()[0].handler);
  EXPECT_EQ((*library)->name(), "adder");
  EXPECT_EQ((*library)->functions()[0].tokens, (*module)->functions()[0].tokens);
  EXPECT_EQ((*library)->path(), folder_ / "out/adder.so");
  ASSERT_TRUE(WriteBuildDirectory(**library, folder_ / "again").ok());
  EXPECT_EQ(Env::Posix().ReadFile(folder_ / "again/adder.so").value(), (*library)->artifact());
}

TEST_F(LoadTest, AnotherLibraryIsNotOpened) {
  const auto module = LoadCppInline(client_, "adder", {AddConstantHandler("f", 1)}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const std::string& path : {(*module)->path(), folder_.Write("text.so", "text")}) {
    EXPECT_EQ(KindOf(LoadLibrary(client_, path, options_).status()), v1::ErrorDetail::LOAD) << path;
  }
  EXPECT_EQ(KindOf(LoadLibrary(client_, folder_ / "none.so").status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST_F(LoadTest, AFileBringsItsHeaders) {
  folder_.Write("src/value.h", "#include <deep/two.h>\n");
  folder_.Write("inc/deep/two.h", "#define VALUE 2\n");
  std::string source = "#include \"value.h\"\n" + AddConstantHandler("f", 17);
  source.replace(source.find("17"), 2, "VALUE");
  options_.include_paths = {folder_ / "inc"};
  const auto module = LoadCppFile(client_, folder_.Write("src/adder.v2.cc", source), options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Run(**module), 42);
  EXPECT_EQ((*module)->name(), "adder.v2");
  EXPECT_EQ(client_.requests[0].source(0).label(), "adder.v2.cc");
}

TEST_F(LoadTest, TheCppFilesOfAFolderAreOneModule) {
  folder_.Write("adders/b.cc", AddConstantHandler("f", 0));
  folder_.Write("adders/a.cpp", "// first\n");
  folder_.Write("adders/c.cu", "#error not one of them\n");
  const auto module = LoadCppDir(client_, folder_ / "adders", options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->name(), "adders");
  ASSERT_EQ(client_.requests[0].source_size(), 2);
  EXPECT_EQ(client_.requests[0].source(0).label(), "a.cpp");
  EXPECT_EQ(client_.requests[0].source(1).label(), "b.cc");
}

TEST_F(LoadTest, NoFolderOfTheUserIsSent) {
  folder_.Write("src/value.h", "");
  options_.include_paths = {folder_ / "src"};
  options_.compile_flags = {"-I", folder_ / "inc"};
  ASSERT_TRUE(
      LoadCppFile(client_, folder_.Write("src/k.cc", "#include \"value.h\"\n" + AddConstantHandler("f", 1)), options_)
          .ok());
  v1::LoadRequest request = client_.requests[0];
  request.clear_toolchain();
  EXPECT_THAT(request.SerializeAsString(), Not(HasSubstr(folder_.path())));
}

TEST_F(LoadTest, ACompileErrorNamesTheUsersFile) {
  folder_.Write("src/broken.h", "int h = ;\n");
  const std::string path = folder_.Write("src/k.cc", "#include \"broken.h\"\nint x = ;\n");
  const auto module = LoadCppFile(client_, path, options_);
  const v1::ErrorDetail detail = GetErrorDetail(module.status());
  EXPECT_EQ(detail.kind(), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(detail.compiler_output(),
              AllOf(HasSubstr(path + ":2:9: error"), HasSubstr(folder_ / "src/broken.h:1:9: error")));
  EXPECT_THAT(output_, HasSubstr(path + ":2:9: error"));
  const ErrorInfo info = DescribeError(module.status());
  EXPECT_EQ(info.category, ErrorCategory::kCompilation);
  EXPECT_EQ(info.compiler_output, detail.compiler_output());
  EXPECT_THAT(detail.message(), HasSubstr(folder_ / "src/"));
}

// A shared kernixd accepts names, not paths.
TEST_F(LoadTest, ALabelIsSentAsANameAndShownAsItWas) {
  const std::vector<Source> sources = {
      {.text = AddConstantHandler("f", 2) + "int x = ;\n", .label = "my/k.cc", .path = ""},
      {.text = "int y;\n", .label = "my_k.cc", .path = ""},
      {.text = "int z;\n", .label = "..", .path = ""}};
  const auto module = Load(client_, Language::kCpp, "m", sources, options_);
  EXPECT_EQ(client_.requests[0].source(0).label(), "my_k.cc");
  EXPECT_EQ(client_.requests[0].source(1).label(), "my_k.cc~2");
  EXPECT_EQ(client_.requests[0].source(2).label(), "_..");
  EXPECT_THAT(GetErrorDetail(module.status()).compiler_output(), HasSubstr("my/k.cc:"));
}

TEST_F(LoadTest, SourcesOfOneNameAreToldApart) {
  const std::vector<Source> sources = {{.text = AddConstantHandler("f", 2), .label = "", .path = folder_ / "a/k.cc"},
                                       {.text = "int x = ;\n", .label = "", .path = folder_ / "b/k.cc"},
                                       {.text = "int y;\n", .label = "", .path = ""}};
  const auto module = Load(client_, Language::kCpp, "m", sources, options_);
  EXPECT_THAT(GetErrorDetail(module.status()).compiler_output(), HasSubstr(folder_ / "b/k.cc:1:9: error"));
  EXPECT_EQ(client_.requests[0].source(1).label(), "k.cc~2");
  EXPECT_EQ(client_.requests[0].source(2).label(), "m[2]");
}

TEST_F(LoadTest, AnEvictedArtifactIsMadeAgain) {
  client_.lost_paths = {folder_ / "evicted.so"};
  const auto module = LoadCppInline(client_, "m", {AddConstantHandler("f", 1234)}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(client_.requests.size(), 2u);
}

TEST_F(LoadTest, AnArtifactThatIsEvictedAgainIsAnError) {
  client_.lost_paths.assign(4, folder_ / "evicted.so");
  const auto module = LoadCppInline(client_, "m", {AddConstantHandler("f", 1235)}, options_);
  EXPECT_EQ(KindOf(module.status()), v1::ErrorDetail::RESOURCE);
  EXPECT_THAT(module.status().ToString(), AllOf(HasSubstr("evicted.so"), HasSubstr("cache_limit_bytes")));
  EXPECT_EQ(client_.requests.size(), 4u);
}

TEST_F(LoadTest, AToolThatIsReplacedMeanwhileIsLookedAtAgain) {
  client_.refusals.assign(3, absl::AbortedError("the toolchain changed while it was being used: load again"));
  const auto module = LoadCppInline(client_, "m", {AddConstantHandler("f", 1236)}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  client_.refusals.assign(9, absl::AbortedError("the toolchain changed while it was being used: load again"));
  EXPECT_THAT(LoadCppInline(client_, "m", {AddConstantHandler("f", 1237)}, options_).status().ToString(),
              HasSubstr("the toolchain changed"));
  EXPECT_EQ(client_.refusals.size(), 5u);
}

TEST_F(LoadTest, AModuleHasThePathOfItsOwnLoad) {
  const std::vector<std::string> source = {AddConstantHandler("f", 321)};
  const auto first = LoadCppInline(client_, "m", source, options_);
  options_.force_rebuild = true;
  const auto second = LoadCppInline(client_, "m", source, options_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)->artifact_digest(), (*second)->artifact_digest());
  EXPECT_NE(*(*first)->handler("f"), *(*second)->handler("f")) << "its variables begin anew";
  EXPECT_NE((*first)->path(), (*second)->path());  // each was built in a separate folder
}

TEST_F(LoadTest, TheSameAgainIsTheSameModule) {
  const std::vector<std::string> source = {AddConstantHandler("f", 322)};
  const auto load = [&](const std::string& name = "m") {
    const auto module = LoadCppInline(client_, name, source, options_);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? *module : nullptr;
  };
  const auto first = load();
  EXPECT_EQ(load(), first);
  EXPECT_EQ(client_.requests.size(), 1u);
  EXPECT_NE(load("n"), first);
  EXPECT_NE(*LoadCppInline(client_, "m", {AddConstantHandler("f", 323)}, options_), first);
  EXPECT_EQ(client_.requests.size(), 3u);
  EXPECT_EQ(load(), first);

  options_.verbose = true;
  EXPECT_NE(load(), first);
  options_.verbose = false;
  options_.force_rebuild = true;
  const auto rebuilt = load();
  EXPECT_EQ(client_.requests.size(), 5u);
  options_.force_rebuild = false;
  EXPECT_EQ(load(), rebuilt);
}

TEST_F(LoadTest, AfterAChangeOfAHeaderItIsAnother) {
  const auto write = [&](const std::string& value) {
    const std::string path = folder_.Write("inc/v.h", "#define VALUE " + value + "\n");
    const int64_t changed_ms = Env::Posix().Stat(path)->ctime_ns / 1'000'000;
    while (Env::Posix().UnixMillis() <= changed_ms + 100) std::this_thread::yield();  // or a load would not trust it
  };
  std::string source = "#include <v.h>\n" + AddConstantHandler("f", 17);
  source.replace(source.find("17"), 2, "VALUE");
  options_.include_paths = {folder_ / "inc"};
  write("1");
  const auto first = LoadCppInline(client_, "m", {source}, options_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*LoadCppInline(client_, "m", {source}, options_), *first);
  EXPECT_EQ(client_.requests.size(), 1u);
  write("2");
  const auto second = LoadCppInline(client_, "m", {source}, options_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(client_.requests.size(), 2u);
  EXPECT_EQ(Run(**second), 42);
}

TEST_F(LoadTest, AfterAHeaderHasAppearedItIsAnother) {
  const std::string inc = folder_ / "inc";  // not there, but for the first
  const std::pair<const char*, std::function<void()>> ways[] = {
      {"a folder in an include path",
       [&] {
         ASSERT_TRUE(Env::Posix().CreateDirectories(inc + "/opt").ok());
         options_.include_paths = {inc};
       }},
      {"include_paths", [&] { options_.include_paths = {inc}; }},
      {"last_include_paths", [&] { options_.last_include_paths = {inc}; }},
      {"-I",
       [&] {
         options_.compile_flags = {"-I", inc};
       }},
      {"-isystem",
       [&] {
         options_.compile_flags = {"-isystem", inc};
       }},
      {"-idirafter",
       [&] {
         options_.compile_flags = {"-idirafter", inc};
       }},
      {"CPATH", [&] { options_.environment->push_back("CPATH=" + inc); }},
      {"CPLUS_INCLUDE_PATH", [&] { options_.environment->push_back("CPLUS_INCLUDE_PATH=" + inc); }},
  };
  std::string source = "#if __has_include(\"opt/x.h\")\n#include \"opt/x.h\"\n#else\n#define VALUE 1\n#endif\n" +
                       AddConstantHandler("f", 17);
  source.replace(source.find("17"), 2, "VALUE");
  const LoadOptions options = options_;
  for (const auto& [what, set] : ways) {
    options_ = options;
    options_.environment = ProcessVariables();
    set();
    const int64_t changed_ms = Env::Posix().Stat(folder_.Write("clock", ""))->ctime_ns / 1'000'000;
    while (Env::Posix().UnixMillis() <= changed_ms + 100) std::this_thread::yield();
    const auto first = LoadCppInline(client_, what, {source}, options_);
    ASSERT_TRUE(first.ok()) << what << first.status();
    EXPECT_EQ(*LoadCppInline(client_, what, {source}, options_), *first) << what;
    folder_.Write("inc/opt/x.h", "#define VALUE 2\n");
    const auto second = LoadCppInline(client_, what, {source}, options_);
    ASSERT_TRUE(second.ok()) << what << second.status();
    EXPECT_EQ(Run(**second), 42) << what;
    ASSERT_TRUE(Env::Posix().RemoveTree(inc).ok());
  }
}

TEST_F(LoadTest, AHeaderThatChangesMeanwhileIsReadAgain) {
  const std::string header = folder_.Write("inc/v.h", "#define VALUE 1\n");
  client_.before_build = [&] { folder_.Write("inc/v.h", "#define VALUE 2\n"); };
  std::string source = "#include <v.h>\n" + AddConstantHandler("f", 17);
  source.replace(source.find("17"), 2, "VALUE");
  options_.include_paths = {folder_ / "inc"};
  const auto module = LoadCppInline(client_, "m", {source}, options_);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Run(**module), 42);
}

TEST_F(LoadTest, OptionsAreSent) {
  options_.compile_flags = {"-DX=1", "-lm"};
  options_.link_flags = {"-Wl,-z,now"};
  options_.optimization_level = 1;
  options_.force_rebuild = true;
  options_.verbose = true;
  options_.max_parallel_jobs = 3;
  options_.batch = true;
  options_.frozen = true;
  options_.include_paths = {folder_ / "nowhere"};
  ASSERT_TRUE(LoadCppInline(client_, "m", {AddConstantHandler("f", 2)}, options_).ok());
  const v1::LoadRequest& request = client_.requests[0];
  EXPECT_THAT(request.options().compile_flags(), ElementsAre("-DX=1"));
  EXPECT_THAT(request.options().link_flags(), ElementsAre("-lm", "-Wl,-z,now"));
  EXPECT_EQ(request.options().optimization_level(), 1u);
  EXPECT_TRUE(request.force_rebuild());
  EXPECT_TRUE(request.verbose());
  EXPECT_EQ(request.max_parallel_jobs(), 3u);
  EXPECT_TRUE(request.batch());
  EXPECT_TRUE(request.frozen());
  EXPECT_FALSE(request.functions().from_annotations());
  EXPECT_THAT(warnings_, Contains(HasSubstr(folder_ / "nowhere")));
}

TEST_F(LoadTest, BadArgumentsAreNamed) {
  const std::vector<std::string> source = {AddConstantHandler("f", 2)};
  for (const char* name : {"", "a/b", "..", "a\nb", "\xff"})
    ExpectInvalid(LoadCppInline(client_, name, source, options_), "cannot name a module");
  ExpectInvalid(LoadCppInline(client_, "m", {}, options_), "no source");
  ExpectInvalid(LoadCppFile(client_, folder_ / "none.cc", options_), folder_ / "none.cc");

  LoadOptions bad = options_;
  bad.functions = std::vector<Function>();
  ExpectInvalid(LoadCppInline(client_, "m", source, bad), "functions is empty");
  bad = options_;
  bad.optimization_level = 4;
  ExpectInvalid(LoadCppInline(client_, "m", source, bad), "optimization_level 4");
  bad = options_;
  bad.compute_capability = "sm_90";
  ExpectInvalid(LoadCppInline(client_, "m", source, bad), "CUDA sources only");
  bad = options_;
  bad.compile_flags = {"-I"};
  ExpectInvalid(LoadCppInline(client_, "m", source, bad), "-I");
  EXPECT_TRUE(client_.requests.empty());
}

}  // namespace
}  // namespace kernix
