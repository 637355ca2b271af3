// SPDX-License-Identifier: Apache-2.0
//
// Sources that make a tool read, or show, a file which only the service may read, or that ask whether it is there.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kQuotes[] = "4 diagnostics and includes";
constexpr char kQuestions[] = "5 __has_include";

// {path}, {climb}: the file, absolute and from the folder of a build.
struct ReadAttack {
  std::string what;
  std::string text;
  std::vector<std::string> flags;
};

const std::string& Climb() {
  static const std::string climb = [] {
    std::string text = "..";
    for (int i = 0; i < 15; ++i) text += "/..";
    return text;
  }();
  return climb;
}

class ReadsTest : public SecurityTest {
 protected:
  static std::string FillPath(const std::string& text, const std::string& path) {
    return absl::StrReplaceAll(text, {{"{path}", path}, {"{climb}", Climb() + path}});
  }

  Kernel About(const ReadAttack& attack, const std::string& path, bool clang) const {
    Kernel kernel = CppKernel(FillPath(attack.text, path), attack.flags);
    if (clang) kernel.request.mutable_toolchain()->set_host_compiler(this->clang());
    kernel.request.set_verbose(true);
    kernel.request.set_force_rebuild(true);  // otherwise the output compares the load with the one before
    return kernel;
  }

  // What somebody sees who does not know the path.
  static std::string Normal(const server::LoadOutcome& outcome, const std::string& path) {
    std::string answer = outcome.result ? "loaded\n" : "failed\n";
    if (outcome.failure) StrAppend(&answer, outcome.failure->message(), "\n", outcome.failure->compiler_output());
    for (const v1::Output& output : outcome.outputs) answer += output.text();
    answer = absl::StrReplaceAll(answer, {{path, "PATH"}});
    return std::regex_replace(answer, std::regex("/tmp/cc[A-Za-z0-9]+|unit-[0-9a-f]{6}\\.s|`?(file|none)\\.txt'?"),
                              "FILE");
  }

  // The file that is there: not a word of it. And the same answer for one that is not, except where only Landlock keeps
  // the compiler (see SECURITY.md).
  void TryBoth(const std::string& row, const ReadAttack& attack, bool clang) {
    const std::string what = StrCat(clang ? "clang++: " : "", attack.what);
    const std::string there = Path("secret/file.txt");
    const std::string missing = Path("secret/none.txt");
    const server::LoadOutcome shown = Load(member(), About(attack, there, clang));
    const server::LoadOutcome hidden = Load(member(), About(attack, missing, clang));
    std::string evidence = SecretIn(Answer(shown) + ArtifactOf(shown));
    const bool alike = Normal(shown, there) == Normal(hidden, missing);
    if (evidence.empty() && !alike && Lacks().empty()) {
      evidence = StrCat("tells whether a file is there: \n  [", Normal(shown, there), "]\n  and of a missing one\n  [",
                        Normal(hidden, missing), "]");
    }
    Judge(row, what, evidence);
  }

  void TryAll(const std::string& row, const std::vector<ReadAttack>& attacks) {
    for (const ReadAttack& attack : attacks) {
      TryBoth(row, attack, false);
      if (!clang().empty()) TryBoth(row, attack, true);
    }
  }

  std::string ArtifactOf(const server::LoadOutcome& outcome) {
    return outcome.result ? member().Fetch(outcome.result->artifact_digest()).value_or("") : "";
  }
};

TEST_F(ReadsTest, DiagnosticsShowOnlyTextsOfTheRequest) {
  Serve();
  TryAll(kQuotes, {
                      {"#line and an error", "#line 1 \"{path}\"\nint broken = ;"},
                      {"# and an error", "# 1 \"{path}\"\nint broken = ;"},
                      {"#line with a macro", "#define FILE_NAME \"{path}\"\n#line 1 FILE_NAME\nint broken = ;"},
                      {"%:line", "%:line 1 \"{path}\"\nint broken = ;"},
                      {"trigraph #line", "?\?=line 1 \"{path}\"\nint broken = ;", {"-std=c++11"}},
                      {"spliced #line", "#li\\\nne 1 \"{path}\"\nint broken = ;"},
                      {"#line that climbs", "#line 1 \"{climb}\"\nint broken = ;"},
                      {"#line and a warning of what loads", "#line 1 \"{path}\"\nstatic int unused;", {"-Wall"}},
                      {"#line and #warning", "#line 3 \"{path}\"\n#warning look"},
                      {"#line and #pragma message", "#line 3 \"{path}\"\n#pragma message(\"look\")"},
                  });
  Kernel twin = CppKernel("#line 40 \"mine.cpp\"\nstatic int unused;", {"-Wall"});
  twin.request.set_verbose(true);
  Twin(kQuotes, "#line with a name, and a warning", twin);
}

TEST_F(ReadsTest, AnErrorOfTheRequestsOwnTextsIsStillShownWithItsLine) {
  Serve();
  const server::LoadOutcome broken = Load(member(), CppKernel("int broken = oh_dear;"));
  const bool shown = Answer(broken).find("int broken = oh_dear;") != std::string::npos;
  JudgeTwin(kQuotes, "an error of the source's own", shown ? "" : "its line is not shown: " + Answer(broken));
}

TEST_F(ReadsTest, ALabelNamesNoFile) {
  Serve();
  for (const std::string& label : {Climb() + Path("secret/file.txt"), std::string("a/../../b.cpp"), std::string(".."),
                                   std::string("folder/kernel.cpp")}) {
    Kernel kernel = CppKernel("int broken = ;");
    kernel.request.mutable_source(0)->set_label(label);
    Attack(kQuotes, "label " + label, kernel, Must::kBeRefused);
  }
  Kernel twin = CppKernel();
  twin.request.mutable_source(0)->set_label("a kernel (2)..cpp");
  Twin(kQuotes, "a label with dots and spaces", twin);
}

TEST_F(ReadsTest, NoSpellingOfAnIncludeReads) {
  Serve();
  const std::string raw = "#define HIDE R\"(\n#include \"{path}\"\n#define MORE )\"";
  TryAll(kQuotes,
         {
             {"#include", "#include \"{path}\""},
             {"#include <>", "#include <{path}>"},
             {"#include that climbs", "#include \"{climb}\""},
             {"#include <> that climbs", "#include <{climb}>"},
             {"a macro", "#define NAME \"{path}\"\n#include NAME"},
             {"a macro that climbs", "#define NAME \"{climb}\"\n#include NAME"},
             {"a macro that makes a string", "#define TEXT(x) #x\n#define NAME(x) TEXT(x)\n#include NAME({path})"},
             {"a macro with <>", "#define NAME <{path}>\n#include NAME"},
             {"a macro of a macro", "#define ONE(x) x\n#define NAME ONE(\"{path}\")\n#include NAME"},
             {"trigraph #include", "?\?=include \"{path}\"", {"-std=c++11"}},
             {"%:include", "%:include \"{path}\""},
             {"spliced", "#inc\\\nlude \"{path}\""},
             {"trigraph splice", "#inc?\?/\nlude \"{path}\"", {"-std=c++11"}},
             {"comments between", "/**/#/**/include/**/\"{path}\""},
             {"#include_next", "#include_next <{path}>"},
             {"#import", "#import \"{path}\""},
             {"#include_next by a macro", "#define NAME <{path}>\n#include_next NAME"},
             {"what looks like a raw string, in C++98", raw, {"-std=gnu++98"}},
             {"#pragma GCC dependency", "#pragma GCC dependency \"{path}\""},
             {"_Pragma GCC dependency", "_Pragma(\"GCC dependency \\\"{path}\\\"\")"},
             {"#embed", "const int x[] = {\n#embed \"{path}\"\n};"},
             {"#embed by a macro", "#define NAME \"{path}\"\nconst int x[] = {\n#embed NAME\n};"},
             {"_Pragma with blanks", "_Pragma(\" GCC  dependency \\\"{path}\\\"\")"},
             {"a macro, in colour", "#define NAME \"{path}\"\n#include NAME", {"-fdiagnostics-color=always"}},
             {"a linemarker that leaves", "# 1 \"x\" 2\n#define NAME \"{path}\"\n#include NAME\nint broken = ;"},
             {"the doubled slash", "#define NAME \"/{path}\"\n#include NAME"},
             {"/proc/self/root", "#define NAME \"/proc/self/root{path}\"\n#include NAME"},
         });
  Twin(kQuotes, "a macro that names a standard header", CppKernel("#define NAME <cstdint>\n#include NAME"));
  Kernel header = CppKernel("#define NAME \"mine.h\"\n%:include NAME");
  AddHeader(header, "mine.h", "#pragma once\n");
  Twin(kQuotes, "a macro that names a header of the request", header);
}

TEST_F(ReadsTest, NoHeaderOfTheRequestReads) {
  Serve();
  for (const std::string& text :
       {std::string("#include \"{path}\""), std::string("#include \"{climb}\""),
        std::string("#define NAME \"{path}\"\n#include NAME"), std::string("#line 1 \"{path}\"\nint broken = ;"),
        std::string("asm(\"\\056include \\\"{path}\\\"\");")}) {
    Kernel kernel = CppKernel("#include \"mine.h\"");
    AddHeader(kernel, "mine.h", FillPath(text, Path("secret/file.txt")));
    Attack(kQuotes, "in a header: " + text, kernel, Must::kBeHarmless);
  }
}

TEST_F(ReadsTest, NoDirectiveOfTheAssemblerReads) {
  Serve();
  TryAll(kQuotes,
         {
             {".include", R"(asm(".include \"{path}\"");)"},
             {".incbin", R"(asm(".incbin \"{path}\"");)"},
             {"\\056include", R"(asm("\056include \"{path}\"");)"},
             {"\\x2eincbin", R"(asm("\x2eincbin \"{path}\"");)"},
             {"split strings", R"(asm(".inc" "lude \"{path}\"");)"},
             {"stringized", "#define TEXT(x) #x\n#define ALL(x) TEXT(x)\nasm(ALL(.include \"{path}\"));"},
             {"a macro of the assembler", R"(asm(".macro m w\n.\\w \"{path}\"\n.endm\nm include");)"},
             {"a macro of the assembler, data", R"(asm(".macro m w\n.inc\\w \"{path}\"\n.endm\nm bin");)"},
             {".irp", R"(asm(".irp w,include\n.\\w \"{path}\"\n.endr");)"},
             {".altmacro", R"(asm(".altmacro\n.macro m w\n.&w \"{path}\"\n.endm\nm <incbin>");)"},
             {"in a function", "inline void f() { asm(\"\\056incbin \\\"{path}\\\"\"); }\nvoid (*keep)() = f;"},
             {".file and an error", R"(asm(".file \"{path}\"\n.line 1\nnonsense");)"},
         });
  Twin(kQuotes, "assembler that reads nothing",
       CppKernel(R"(asm(".macro nothing w\n.\\w 8\n.endm\n.pushsection .data\nnothing balign\n.popsection");)"));
}

TEST_F(ReadsTest, NvccShowsAndKeepsNothingElse) {
  Serve("", /*with_nvcc=*/true);
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc: `make setup` installs one";
  const std::string path = Path("secret/file.txt");
  const auto cuda = [&](const std::string& text, const std::vector<std::string>& flags) {
    Kernel kernel = CudaKernel(nvcc(), FillPath(text, path), flags);
    kernel.request.set_verbose(true);
    return kernel;
  };
  Attack(kQuotes, "nvcc: #line and an error", cuda("#line 1 \"{path}\"\nint broken = ;", {}), Must::kBeHarmless);
  Attack(kQuotes, "nvcc: an include by a macro", cuda("#define NAME \"{path}\"\n#include NAME", {}), Must::kBeHarmless);
  // cudafe++ and cicc read what the preprocessor has written once more.
  for (const char* text : {"#define HASH #\nHASH include \"{path}\"", "#define ID(x) x\nID(%:) include \"{path}\"",
                           "#define P(a, b) a##b\nP(%, :) include \"{path}\""}) {
    Attack(kQuotes, StrCat("nvcc: ", text), cuda(text, {}), Must::kBeHarmless);
  }
  Attack(kQuotes, "nvcc: -DHASH=#", cuda("HASH include \"{path}\"", {"-DHASH=#"}), Must::kBeHarmless);
  Twin(kQuotes, "nvcc: strings of parameters", cuda("#define S(x) #x\n__device__ const char* s = S(a b);", {}));
  // The kernel's lines, as PTX shows them, would be the secret's.
  Kernel kept = cuda("#line 1 \"{path}\"", {"-lineinfo", "-source-in-ptx"});
  kept.request.mutable_options()->set_keep(true);
  Attack(kQuotes, "nvcc: #line and -source-in-ptx", kept, Must::kBeHarmless);
  Twin(kQuotes, "nvcc: #line with a name", cuda("#line 7 \"mine.cu\"", {"-lineinfo"}));
}

// Two seconds of work for the compiler each; a member who includes the text is spared them.
std::string SlowText() {
  std::string text =
      "const char* of_the_other = \"topsecretword\";\n#ifndef IS_READ\n"
      "template <int N> constexpr long Work() { long s = N; for (long i = 0; i < 3000000; ++i) s = s * 3 + i % 7; "
      "return s & 1; }\n";
  for (int i = 0; i < 40; ++i) StrAppend(&text, "static_assert(Work<", i, ">() < 2, \"topsecretword\");\n");
  return text + "#endif\n";
}

// Where the compiler that runs as the service works, as everybody may see: "" when none does.
std::string FolderOfARunningCompiler() {
  const std::vector<std::string> names = Env::Posix().ListDirectory("/proc").value();
  for (const std::string& name : names) {
    struct stat info = {};
    if (!std::isdigit(static_cast<unsigned char>(name[0])) || stat(StrCat("/proc/", name).c_str(), &info) != 0)
      continue;
    const std::string program = Env::Posix().ReadFile(StrCat("/proc/", name, "/comm")).value_or("");
    if (info.st_uid == TheUsers().service && program == "cc1plus\n") return StrCat("/proc/", name, "/cwd");
  }
  return "";
}

// Polls until somebody compiles.
std::string AwaitCompiler() {
  for (int i = 0; i < 3000; ++i) {
    if (std::string folder = FolderOfARunningCompiler(); !folder.empty()) return folder;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return "";
}

TEST_F(ReadsTest, AnotherUsersSourceThatIsCompiledRightNowIsNotRead) {
  Serve();
  Kernel kernel = CppKernel(SlowText());
  const auto other = Connect(TheUsers().other);
  server::LoadStream compiling(other->stub());
  compiling.Send(kernel.request);
  const std::string folder = AwaitCompiler();
  ASSERT_NE(folder, "");
  // The first one is kept from doing the same work itself.
  for (const std::string& text : {std::string("#define constexpr oops\n#define NAME \"{path}\"\n#include NAME"),
                                  std::string("#line 6 \"{path}\"\nint broken = ;\nint more = ;"),
                                  std::string("asm(\"\\056incbin \\\"{path}\\\"\");"),
                                  std::string("asm(\".macro m w\\n.\\\\w \\\"{path}\\\"\\n.endm\\nm include\");")}) {
    const Kernel reader = CppKernel(FillPath(text, folder + "/kernix-source/adder.cpp"));
    Attack(kQuotes, "another user's source: " + text, reader, Must::kBeHarmless);
  }
  // The compiler's list of files hid the one behind a last backslash.
  const std::string keeps = "#include \"a\\\"\n#define IS_READ\n#define add other_add\n#define NAME \"{path}\"\n";
  Kernel hiding = CppKernel(FillPath(keeps + "#include NAME\n#undef add", folder + "/kernix-source/adder.cpp"));
  AddHeader(hiding, "a\\", "#pragma once\n");
  Attack(kQuotes, "another user's source behind a last backslash", hiding, Must::kBeRefused);
  ASSERT_NE(FolderOfARunningCompiler(), "") << "the other user's compiler has ended too early for this to count";
  compiling.Cancel();
}

TEST_F(ReadsTest, QuestionsAreAboutTheRequestAndTheToolchain) {
  Serve();
  const auto ask = [](const std::string& question) { return StrCat("#if ", question, "\n#error there it is\n#endif"); };
  TryAll(kQuestions, {
                         {"absolute", ask("__has_include(\"{path}\")")},
                         {"absolute <>", ask("__has_include(<{path}>)")},
                         {"climbing", ask("__has_include(\"{climb}\")")},
                         {"climbing <>", ask("__has_include(<{climb}>)")},
                         {"a macro", "#define NAME \"{path}\"\n" + ask("__has_include(NAME)")},
                         {"a macro that climbs", "#define NAME \"{climb}\"\n" + ask("__has_include(NAME)")},
                         {"a string made", "#define TEXT(x) #x\n" + ask("__has_include(TEXT({path}))")},
                         {"a wrapper", "#define HAS(x) __has_include(x)\n" + ask("HAS(\"{path}\")")},
                         {"a wrapper with <>", "#define HAS(x) __has_include(<x>)\n" + ask("HAS({path})")},
                         {"another name", "#define HAS __has_include\n" + ask("HAS(\"{climb}\")")},
                         {"spliced", "#if __has_in\\\nclude(\"{path}\")\n#error there\n#endif"},
                         {"%:if", "%:if __has_include(\"{path}\")\n#error there\n#endif"},
                         {"trigraph #if", "?\?=if __has_include(\"{path}\")\n#error there\n#endif", {"-std=c++17"}},
                         {"#elif", "#if 0\n#elif __has_include(\"{path}\")\n#error there\n#endif"},
                         {"next", ask("__has_include_next(<{path}>)")},
                         {"behind a condition", ask("defined(__x86_64__) && __has_include(\"{path}\")")},
                         {"the parts of a folder", ask("__has_include(\"kernix/../{climb}\")")},
                     });
  Twin(kQuestions, "a wrapper with a plain name",
       CppKernel("#define HAS(x) __has_include(x)\n#if !HAS(<cstdint>)\n#error no\n#endif"));
  Kernel header = CppKernel("#if !__has_include(\"mine.h\") || __has_include(\"yours.h\")\n#error no\n#endif");
  AddHeader(header, "mine.h", "#pragma once\n");
  Twin(kQuestions, "headers of the request", header);
}

}  // namespace
}  // namespace kernix::security
