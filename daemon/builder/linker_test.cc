// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/linker.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "daemon/plan/link_stub.h"
#include "tests/support/test_util.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Code that needs names of the C and the C++ library.
constexpr char kPlain[] = "int value() { return 1; }";
constexpr char kStrings[] =
    "#include <cstdlib>\n#include <string>\n"
    "int value() { return std::stoi(std::string(\"4\") + std::to_string(std::abs(-2))); }\n";
constexpr char kFewerStrings[] = "#include <string>\nint value() { return std::stoi(\"7\"); }\n";
constexpr char kStaticPart[] =
    "#include <cstdlib>\nint value() { return 7; }\nint ends() { return std::at_quick_exit([] {}); }";
// Functions, variables, thread-local ones, virtual tables, unique and weak symbols of many headers.
constexpr char kMany[] =
    "#include <algorithm>\n#include <atomic>\n#include <cmath>\n#include <complex>\n#include <condition_variable>\n"
    "#include <filesystem>\n#include <future>\n#include <iostream>\n#include <locale>\n#include <map>\n#include "
    "<memory>\n"
    "#include <mutex>\n#include <random>\n#include <regex>\n#include <sstream>\n#include <stdexcept>\n#include "
    "<thread>\n"
    "#include <typeinfo>\n#include <vector>\n#include <cerrno>\n#include <cstring>\n"
    "struct Base { virtual ~Base() = default; virtual int f() const { return 1; } };\n"
    "struct Derived : Base { int f() const override { return 2; } };\n"
    "thread_local std::string kept = \"k\";\n"
    "int value() {\n"
    "  std::map<std::string, std::vector<double>> all{{\"a\", {1.0, 2.0}}};\n"
    "  std::stringstream text; text << std::hex << all[\"a\"][1] << std::strerror(errno) << kept;\n"
    "  std::mt19937_64 random(std::random_device{}()); std::normal_distribution<double> normal;\n"
    "  auto later = std::async(std::launch::deferred, [&] { return normal(random) > 1e9 ? 1 : 0; });\n"
    "  std::unique_ptr<Base> base = std::make_unique<Derived>();\n"
    "  if (dynamic_cast<Derived*>(base.get()) == nullptr) throw std::runtime_error(typeid(*base).name());\n"
    "  std::mutex mutex; const std::lock_guard<std::mutex> lock(mutex);\n"
    "  std::regex_match(text.str(), std::regex(\"[0-9a-z]*\"));\n"
    "  std::cout << std::filesystem::path(\"x\").string().substr(1) << std::flush;\n"
    "  try { std::stoi(\"none\"); } catch (const std::invalid_argument&) { return later.get() + base->f(); }\n"
    "  return std::abs(std::complex<double>(3, 4)) > std::tgamma(9.0);\n"
    "}\n";

class LinkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    compiler_ = compiler;
  }

  // A kernel with `code`, which defines value().
  v1::LoadRequest Request(const std::string& code) const {
    v1::LoadRequest request = CppRequest(compiler_);
    request.mutable_source(0)->mutable_text()->append(
        StrCat("\n", code, "\nextern \"C\" int value_of_kernel() { return value(); }\n"));
    return request;
  }

  // What value() of the built kernel returns.
  int ValueOf(const absl::StatusOr<v1::LoadResult>& built) {
    EXPECT_THAT(built, IsOk());
    if (!built.ok()) return -1;
    void* library = dlopen(t_.cache->BlobPath(Digest::FromRaw(built->artifact_digest()).value()).c_str(), RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return -1;
    return reinterpret_cast<int (*)()>(dlsym(library, "value_of_kernel"))();
  }

  static int Links(const TestBuilder& t, std::string_view how) {
    return Counted(t, StrCat("kernix_plain_links_total{how=\"", how, "\"}"));
  }

  int Links(std::string_view how) const { return Links(t_, how); }

  TestBuilder t_{TestBuilder::On::kInlineExecutor};
  std::string compiler_;
};

TEST_F(LinkerTest, ACppKernelIsLinkedWithoutTheWholeLibraries) {
  EXPECT_EQ(ValueOf(t_.Load(Request(kPlain))), 1);
  EXPECT_EQ(ValueOf(t_.Load(Request(kStrings))), 42);
  EXPECT_EQ(ValueOf(t_.Load(Request("#include <cmath>\nint value() { return std::lround(std::sqrt(16.0f)); }"))), 4);
  EXPECT_EQ(ValueOf(t_.Load(Request("int value() { return __builtin_cpu_supports(\"sse2\") != 0; }"))), 1)
      << "a name of the compiler's own archive";
  EXPECT_EQ(Links("stubs"), 4);
  EXPECT_EQ(Links("whole"), 0);
  EXPECT_EQ(t_.env.Calls(Operation::kRunProcess), 8) << "a compile and a link each";
}

// The one in libc's static part needs another name of libc.
TEST_F(LinkerTest, WhatAnArchiveNeedsBesidesComesFromTheWholeLibraries) {
  EXPECT_EQ(ValueOf(t_.Load(Request(kStaticPart))), 7);
  EXPECT_EQ(Links("stubs"), 0);
  EXPECT_EQ(Links("whole"), 1);
}

// The real libraries say the same: a forced load takes the result of the small ones only if it imports the same.
TEST_F(LinkerTest, SmallLibrariesGiveWhatTheWholeOnesGive) {
  for (const char* code : {kPlain, kStrings, kMany}) {
    v1::LoadRequest request = Request(code);
    const auto small = t_.Load(request);
    ASSERT_THAT(small, IsOk());
    const int links_before = Links("whole");
    request.set_force_rebuild(true);
    const auto whole = t_.Load(request);
    ASSERT_THAT(whole, IsOk());
    EXPECT_EQ(Links("whole"), links_before + 1);
    EXPECT_EQ(whole->artifact_digest(), small->artifact_digest()) << code;
  }
}

// Whatever was linked before, and also by force, the same kernel is the same library.
TEST_F(LinkerTest, WhatWasLinkedBeforeChangesNoArtifact) {
  // The last one defines names that the C++ library has, too.
  constexpr char kOwnNames[] =
      "#include <cstdlib>\n#include <memory>\n#include <new>\n#include <string>\n"
      "void* operator new(std::size_t size) { return std::malloc(size); }\n"
      "void operator delete(void* memory) noexcept { std::free(memory); }\n"
      "int value() { return *std::unique_ptr<int>(new int(5)) + std::stoi(\"4\"); }";
  for (const char* code : {kFewerStrings, kOwnNames}) {
    TestBuilder alone(TestBuilder::On::kInlineExecutor);
    v1::LoadRequest request = Request(code);
    const auto first = alone.Load(request);
    ASSERT_THAT(first, IsOk());
    ASSERT_THAT(t_.Load(Request(StrCat(kStrings, " void* more() { return std::malloc(1); }"))), IsOk());
    const auto later = t_.Load(request);
    ASSERT_THAT(later, IsOk());
    EXPECT_EQ(later->artifact_digest(), first->artifact_digest());
    request.set_force_rebuild(true);
    const auto forced = t_.Load(request);
    ASSERT_THAT(forced, IsOk());
    EXPECT_EQ(forced->artifact_digest(), first->artifact_digest());
  }
}

TEST_F(LinkerTest, ALinkThatFailsSaysWhatItSaysWithTheLibraries) {
  RecordingObserver observer;
  const auto missing = t_.Load(Request("int nowhere();\nint value() { return nowhere(); }"), observer);
  EXPECT_EQ(KindOf(missing.status()), v1::ErrorDetail::COMPILATION);
  EXPECT_THAT(GetErrorDetail(missing.status()).compiler_output(), HasSubstr("nowhere"));
  EXPECT_THAT(GetErrorDetail(missing.status()).compiler_output(), Not(HasSubstr(kSmallLibraries)));
  EXPECT_THAT(observer.output, Not(HasSubstr("undefined reference to `nowhere()\'\n")));
}

TEST_F(LinkerTest, IfALinkWithStubsFailsTheLibrariesServe) {
  t_.env.Inject(FailingChild(kSmallLibraries, 1, "a bad day\n"));
  RecordingObserver observer;
  EXPECT_EQ(ValueOf(t_.Load(Request(kPlain), observer)), 1);
  EXPECT_THAT(observer.output, Not(HasSubstr("a bad day")));
  EXPECT_EQ(Links("whole"), 1);
  EXPECT_EQ(Links("stubs"), 0);
}

TEST_F(LinkerTest, ACudaKernelIsLinkedWithStubsAndCudasArchives) {
  KERNIX_NEED_NVCC(nvcc);
  const auto edited = [&](const std::string& code) {
    v1::LoadRequest request = CudaRequest(compiler_, nvcc);
    request.mutable_source(0)->mutable_text()->append(code);
    return request;
  };
  ASSERT_THAT(
      t_.Load(edited("void more(void* p) { cudaFree(p); cudaFuncAttributes a; cudaFuncGetAttributes(&a, p); }")),
      IsOk());
  const v1::LoadRequest request = edited("void fewer(void* p) { cudaFree(p); }");
  const auto later = t_.Load(request);
  ASSERT_THAT(later, IsOk());
  EXPECT_EQ(Links("stubs"), 2);
  EXPECT_EQ(Links("whole"), 0);
  TestBuilder alone(TestBuilder::On::kInlineExecutor);
  const auto first = alone.Load(request);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(later->artifact_digest(), first->artifact_digest());

  t_.env.Inject(FailingChild(kSmallLibraries, 1, "a bad day\n"));
  RecordingObserver observer;
  ASSERT_THAT(t_.Load(edited("void same(void* p) { cudaFree(p); }"), observer), IsOk());
  EXPECT_THAT(observer.output, Not(HasSubstr("a bad day")));
  EXPECT_EQ(Links("whole"), 1);
}

TEST_F(LinkerTest, OtherWordsNameOtherLibraries) {
  v1::LoadRequest request = Request("#include <omp.h>\nint value() { return omp_get_thread_num(); }");
  request.mutable_options()->add_compile_flags("-fopenmp");
  EXPECT_EQ(ValueOf(t_.Load(request)), 0);
  EXPECT_EQ(Links("stubs"), 1);
  request.mutable_options()->add_link_flags("-Wl,-z,now");
  ASSERT_THAT(t_.Load(request), IsOk());
  EXPECT_EQ(Links("whole") + Links("stubs"), 1) << "a link with flags of the user's is not a plain one";
}

class SmallLibrariesTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(env_.CreateDirectories(folder_ / "lib", 0700), IsOk()); }

  void Write(const std::string& name, const std::string& content) {
    ASSERT_THAT(env_.WriteFile(folder_ / ("lib/" + name), content, 0600), IsOk());
  }

  // A shared library with a symbol of each name.
  void WriteLibrary(const std::string& name, const std::vector<std::string>& symbols) {
    const std::string own_name = name + ".1";
    std::string source;
    std::string versions = "VERSION_1 { global:";
    for (const std::string& symbol : symbols) {
      source += StrCat("void ", symbol, "(void) {}\n");
      versions += StrCat(" ", symbol, ";");
    }
    Write("a.c", source);
    Write("a.map", versions + " local: *; };\n");
    ProcessSpec spec;
    spec.argv = {
        "/usr/bin/cc", "-shared", "-fPIC", "-nostdlib", StrCat("-Wl,-soname,", own_name), "-Wl,--version-script,a.map",
        "-o",          name,      "a.c"};
    spec.environment = {{"PATH", "/usr/bin:/bin"}};
    spec.working_directory = folder_ / "lib";
    const auto linked = env_.RunProcess(spec, nullptr, nullptr);
    ASSERT_THAT(linked, IsOk());
    ASSERT_EQ(linked->exit_code, 0) << linked->output;
  }

  absl::StatusOr<SmallLibraries> Make(const std::vector<std::string>& names,
                                      const std::vector<std::string>& libraries = {"libone.so"}) {
    return MakeSmallLibraries(env_, {folder_ / "lib"}, libraries, names);
  }

  static std::map<std::string, std::string> Files(const SmallLibraries& small) {
    std::map<std::string, std::string> files;
    for (const exec::InputFile& file : small.files) files[file.path] = *file.content;
    return files;
  }

  Env& env_ = Env::Posix();
  const ScratchDirectory folder_;
};

TEST_F(SmallLibrariesTest, HaveTheNamesThatAreNeeded) {
  WriteLibrary("libone.so", {"first", "second", "third"});
  const auto small = Make({"second", "nowhere"});
  ASSERT_THAT(small, IsOk());
  EXPECT_THAT(small->names, ElementsAre("nowhere", "second"));
  const auto files = Files(*small);
  ASSERT_THAT(files, ElementsAre(Key("kernix-libraries/libone.so")));
  const auto image = ElfImage::Parse(files.begin()->second);
  ASSERT_THAT(image, IsOk());
  EXPECT_THAT(files.begin()->second, HasSubstr("libone.so.1"));
  EXPECT_THAT(*image->ExportedSymbols(), UnorderedElementsAre("second"));
}

TEST_F(SmallLibrariesTest, AScriptNamesTheSmallLibraryInItsPlace) {
  WriteLibrary("libone.so", {"first"});
  ASSERT_THAT(env_.Rename(folder_ / "lib/libone.so", folder_ / "lib/libone.so.1"), IsOk());
  const std::string library = folder_ / "lib/libone.so.1";
  Write("libone.so",
        StrCat("/* a script */\nGROUP ( ", library, " /lib/one_nonshared.a  AS_NEEDED ( /lib/libmore.so.3 ) )\n"));
  const auto small = Make({"first"});
  ASSERT_THAT(small, IsOk());
  const auto files = Files(*small);
  EXPECT_THAT(files, ElementsAre(Key("kernix-libraries/libone.so"), Key("kernix-libraries/libone.so.1")));
  EXPECT_EQ(files.at("kernix-libraries/libone.so"),
            "/* a script */\nGROUP ( libone.so.1 /lib/one_nonshared.a  AS_NEEDED ( /lib/libmore.so.3 ) )\n");
}

TEST_F(SmallLibrariesTest, WhatStartFilesNeedIsThereToo) {
  WriteLibrary("libone.so", {"first", "finalize"});
  Write("a.c", "void finalize(void) __attribute__((weak)); void (*kept)(void) = finalize;\n");
  ProcessSpec spec;
  spec.argv = {"/usr/bin/cc", "-c", "-fPIC", "-o", "crtbeginS.o", "a.c"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.working_directory = folder_ / "lib";
  ASSERT_THAT(env_.RunProcess(spec, nullptr, nullptr), IsOk());
  const auto small = Make({});
  ASSERT_THAT(small, IsOk());
  EXPECT_THAT(small->names, ElementsAre("finalize"));
  const auto image = ElfImage::Parse(*small->files.front().content);
  EXPECT_THAT(*image->ExportedSymbols(), UnorderedElementsAre("finalize"));
}

TEST_F(SmallLibrariesTest, AScriptOfAnotherFormGivesNone) {
  WriteLibrary("libone.so", {"first"});
  ASSERT_THAT(env_.Rename(folder_ / "lib/libone.so", folder_ / "lib/libone.so.1"), IsOk());
  const std::string library = folder_ / "lib/libone.so.1";
  for (const std::string& script :
       {std::string("INPUT ( -lthree )"), StrCat("INPUT ( ", library, " -lone_nonshared )"),
        StrCat("GROUP ( ", library, " -lmore )"), StrCat("GROUP ( ", library, " /lib/other.a )"),
        StrCat("GROUP ( ", library), std::string("GROUP ( libone.so.1 )"), std::string("/* no end"), std::string()}) {
    Write("libone.so", script);
    EXPECT_FALSE(Make({"first"}).ok()) << script;
  }
  Write("libone.so", StrCat("GROUP ( ", library, " )"));
  EXPECT_THAT(Make({"first"}), IsOk());
}

// The linker reads the path below the sysroot.
TEST_F(SmallLibrariesTest, AScriptThatNamesAnotherFolderGivesNone) {
  WriteLibrary("libone.so", {"first"});
  ASSERT_THAT(env_.CreateDirectories(folder_ / "host", 0700), IsOk());
  ASSERT_THAT(env_.Rename(folder_ / "lib/libone.so", folder_ / "host/libone.so.1"), IsOk());
  const std::string library = folder_ / "host/libone.so.1";
  Write("libone.so", StrCat("GROUP ( ", library, " )"));
  EXPECT_FALSE(Make({"first"}).ok());
}

TEST_F(SmallLibrariesTest, ALibraryWithoutVersionsGivesNone) {
  Write("a.c", "void first(void) {}\n");
  ProcessSpec spec;
  spec.argv = {"/usr/bin/cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libone.so.1", "-o", "libone.so", "a.c"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.working_directory = folder_ / "lib";
  ASSERT_THAT(env_.RunProcess(spec, nullptr, nullptr), IsOk());
  EXPECT_TRUE(absl::IsNotFound(Make({"first"}).status()));
}

// As where libstdc++ is an archive.
TEST_F(SmallLibrariesTest, WithoutOneOfTheLibrariesThereAreNone) {
  WriteLibrary("libone.so", {"first"});
  EXPECT_TRUE(absl::IsNotFound(Make({"first"}, {"libone.so", "libtwo.so"}).status()));
}

}  // namespace

}  // namespace kernix::build
