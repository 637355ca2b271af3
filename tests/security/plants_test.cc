// SPDX-License-Identifier: Apache-2.0
//
// What a member plants: a file where a tool of the service looks for its own parts, or a name that hides another one.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/elf_image.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/wire/artifact_texts.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kPrograms[] = "14 what tools run";
constexpr char kKept[] = "15 what is kept for others";
constexpr char kReads[] = "4 diagnostics and includes";

// A library that makes the canary while the loader prepares it, whatever it lacks: an indirect function is resolved
// before the program's own names are.
constexpr char kLibrary[] = R"(
__attribute__((optimize("O1"))) static void* Resolve(void) {
  static const char canary[] = "{canary}";
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(85L), "D"(canary), "S"(0600L) : "rcx", "r11", "memory");
  return (void*)Resolve;
}
void planted(void) __attribute__((ifunc("Resolve")));
void (*keep)(void) = planted;
)";

// A kernel that begins with `text` and includes nothing else.
Kernel BeginningWith(const std::string& text, const std::string& nvcc) {
  Kernel kernel = CudaKernel(nvcc, text);
  kernel.request.mutable_options()->set_optimization_level(3);  // as most kernels are
  v1::Source& source = *kernel.request.mutable_source(0);
  const std::string all = source.text(), other = "\n#include \"brainevent/common.h\"\n";
  source.set_text(absl::StrReplaceAll(all.substr(text.size()), {{other, "\n"}}).insert(0, text));
  return kernel;
}

class PlantsTest : public SecurityTest {
 protected:
  // The bytes of a library of that name.
  std::string Library(const std::string& name) const {
    WriteAs(0, "library.c", Fill(kLibrary), 0644);
    const std::string path = Path("planted.so");
    const ProgramOutcome made = RunAs(0, {"/usr/bin/gcc", "-shared", "-fPIC", "-nostdlib", StrCat("-Wl,-soname,", name),
                                          "-o", path, Path("library.c")});
    EXPECT_EQ(made.exit_code, 0) << made.output;
    return Env::Posix().ReadFile(path).value_or("");
  }

  // Whether the loader runs that library at all: otherwise no attack with it would mean anything.
  void ExpectThatItRuns() {
    WriteAs(0, "libc.so.6", Library("libc.so.6"), 0755);
    RunAs(0, {"/bin/true"}, {{"LD_LIBRARY_PATH", root()}});
    EXPECT_NE(Canaries(), "") << "the planted library does nothing, even where the loader finds it";
  }

  // The unit that kernixd generates of a kernel that includes nothing.
  std::string GeneratedUnit() {
    const Kernel kernel = BeginningWith("__device__ float Uses(float x) { return sqrtf(x); }", nvcc());
    const server::LoadOutcome outcome = Load(member(), kernel);
    const std::string artifact = outcome.result ? member().Fetch(outcome.result->artifact_digest()).value_or("") : "";
    const absl::StatusOr<ElfImage> image = ElfImage::Parse(artifact);
    EXPECT_TRUE(image.ok()) << Answer(outcome);
    return image.ok() ? ReadTexts(*image)->unit(0).text() : "";
  }

  // What is loaded from the folder of a build, if a label decides a name there.
  Kernel WithSecondSource(Kernel kernel, const std::string& label, const std::string& text, bool force) const {
    v1::Source& source = *kernel.request.add_source();
    source.set_label(label);
    source.set_text(text);
    kernel.request.set_force_rebuild(force);
    return kernel;
  }
};

TEST_F(PlantsTest, NoSourceIsAPartOfATool) {
  Serve("", /*with_nvcc=*/true);
  ExpectThatItRuns();
  const std::vector<std::string> names = {
      "libisl.so.23",   "libmpfr.so.6", "libmpc.so.3", "libgmp.so.10", "libzstd.so.1",  "libz.so.1",
      "libstdc++.so.6", "libc.so.6",    "libm.so.6",   "libdl.so.2",   "libgcc_s.so.1", "libopcodes-2.40-system.so"};
  for (const std::string& name : names) {
    Attack(kPrograms, "g++ " + name, WithSecondSource(CppKernel(), name, Library(name), true), Must::kBeHarmless);
    if (nvcc().empty()) continue;
    for (const bool force : {true, false}) {
      const Kernel kernel = WithSecondSource(CudaKernel(nvcc()), name, Library(name), force);
      Attack(kPrograms, StrCat("nvcc ", name, force ? ", forced" : ""), kernel, Must::kBeHarmless);
    }
  }
  const std::string script = Fill("#!/bin/sh\n/usr/bin/touch {canary}\n");
  for (const char* name : {"as", "ld", "cc1plus", "collect2", "specs", "nvcc.profile", "cicc", "sh", "gcc", "g++"}) {
    Attack(kPrograms, StrCat("g++ ", name), WithSecondSource(CppKernel(), name, script, true), Must::kBeHarmless);
    if (nvcc().empty()) continue;
    Attack(kPrograms, StrCat("nvcc ", name), WithSecondSource(CudaKernel(nvcc()), name, script, true),
           Must::kBeHarmless);
  }
  Twin(kPrograms, "a source with such a name",
       WithSecondSource(CppKernel(), "libisl.so.23", "static int of_second_source;", true));
}

// What stands in the environment and the working folder of each process of the service's, as long as it lives.
class ToolWatch {
 public:
  explicit ToolWatch(pid_t daemon) : daemon_(std::to_string(daemon)) {
    thread_ = std::thread([this] {
      while (!done_) Look();
    });
  }
  ~ToolWatch() { Stop(); }
  ToolWatch(const ToolWatch&) = delete;
  ToolWatch& operator=(const ToolWatch&) = delete;

  void Stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }

  bool has_seen_nvcc() const { return has_seen_nvcc_; }

  // Valid after Stop(). By "program NAME=value" and "program: entry of its working folder".
  const std::set<std::string>& variables() const { return variables_; }
  const std::set<std::string>& entries() const { return entries_; }
  const std::set<std::string>& programs() const { return programs_; }

 private:
  void Look() {
    const std::vector<std::string> names = Env::Posix().ListDirectory("/proc").value();
    for (const std::string& name : names) {
      struct stat info = {};
      const std::string process = StrCat("/proc/", name);
      if (std::isdigit(static_cast<unsigned char>(name[0])) == 0 || name == daemon_) continue;
      if (stat(process.c_str(), &info) == 0 && info.st_uid == TheUsers().service) LookAt(process);
    }
  }

  void LookAt(const std::string& process) {
    std::string program = Env::Posix().ReadFile(process + "/comm").value_or("?\n");
    program.pop_back();
    if (program.starts_with("kernix")) return;  // kernix-spawn, or one that has not become a tool yet
    programs_.insert(program);
    if (program == "nvcc") has_seen_nvcc_ = true;
    const std::string environment = Env::Posix().ReadFile(process + "/environ").value_or("");
    for (const absl::string_view variable : absl::StrSplit(environment, '\0', absl::SkipEmpty())) {
      variables_.insert(StrCat(program, " ", variable));
    }
    const auto entries = Env::Posix().ListDirectory(process + "/cwd");
    if (!entries.ok()) return;
    for (const std::string& entry : *entries) entries_.insert(StrCat(program, ": ", entry));
  }

  const std::string daemon_;
  std::set<std::string> variables_;
  std::set<std::string> entries_;
  std::set<std::string> programs_;
  std::atomic<bool> done_ = false;
  std::atomic<bool> has_seen_nvcc_ = false;
  std::thread thread_;
};

// What a value of a variable that names folders must not have; "" for a good one. Ours lie behind "toolchain/", where
// no request names anything.
std::string BadFolder(const std::string& variable) {
  const size_t equals = variable.find('=');
  const std::string name = variable.substr(0, equals);
  const bool names_folders = name.ends_with("PATH") || name.ends_with("_PREFIX") || name.ends_with("_ROOT");
  if (!names_folders || equals == std::string::npos) return "";
  const std::vector<std::string> folders = absl::StrSplit(variable.substr(equals + 1), ':');
  for (const std::string& folder : folders) {
    if (!folder.starts_with("/") && !folder.starts_with("toolchain/")) return StrCat(variable, " has \"", folder, "\"");
  }
  return "";
}

TEST_F(PlantsTest, EachToolLooksInFoldersOfTheToolchainOnly) {
  Serve("", /*with_nvcc=*/true);
  ToolWatch watch(daemon().pid());
  constexpr char kLabel[] = "planted.cpp";
  int number = 0;
  const auto load = [&](Kernel kernel, bool force) {
    const std::string text = StrCat("static int of_second_source_", ++number, ";");
    kernel.request.mutable_toolchain()->add_variable("LD_LIBRARY_PATH=" + root());
    kernel.request.mutable_toolchain()->add_variable("COMPILER_PATH=" + root());
    Load(member(), WithSecondSource(std::move(kernel), kLabel, text, force));
  };
  for (const bool force : {false, true, true}) {  // a busy machine may hide one from who watches
    load(CppKernel("#include <map>\n#include <regex>"), force);
    if (!nvcc().empty()) load(CudaKernel(nvcc(), "#include <map>\n#include <regex>"), force);
  }
  // Of nvcc itself there is but a short question for each set of flags.
  for (int more = 0; !nvcc().empty() && !watch.has_seen_nvcc() && more < 30; ++more) {
    load(CudaKernel(nvcc(), "", {StrCat("-maxrregcount=", 64 + more)}), false);
  }
  load(CppKernel("int broken = ;"), false);
  Connect(0)->AwaitEndOfLearning();
  watch.Stop();
  EXPECT_TRUE(watch.programs().contains("cc1plus")) << "no tool was seen";
  EXPECT_TRUE(nvcc().empty() || watch.programs().contains("nvcc")) << "no call of nvcc was seen";
  std::string bad, of_request;
  for (const std::string& variable : watch.variables()) {
    if (variable.ends_with("PATH=" + root())) StrAppend(&of_request, variable, "\n");
    const std::string why = BadFolder(variable.substr(variable.find(' ') + 1));
    if (!why.empty()) StrAppend(&bad, variable.substr(0, variable.find(' ')), ": ", why, "\n");
  }
  Judge(kPrograms, "folders that the working folder decides", bad);
  Judge(kPrograms, "folders that a request names", of_request);
  std::string named;
  for (const std::string& entry : watch.entries()) {
    if (entry.ends_with(kLabel)) StrAppend(&named, entry, "\n");
  }
  Judge(kPrograms, "a label in a working folder", named);
}

// A unit that reads in one way where all of it is preprocessed, and in another way where only what follows its first
// `#include`s is. `#line` and the marker behind <iso646.h> then make the longer text end as the shorter one does, so
// that the plant seems to be a part of the `#include`s' text.
struct Planting {
  std::string head;      // the `#include`s, if the unit has some of its own
  std::string question;  // directives behind which only a whole pass reads on
  // A #line that names the line before the one that follows the `#include`s, and what stands on the latter.
  std::string line_before;
  std::string again;
};

// Two of different numbers differ. {label}: what kernixd calls the member's source.
std::string TextOf(const Planting& planting, const std::string& label, int number) {
  const std::string text =
      StrCat(planting.head, planting.question,
             "\nstatic const char planted[] __attribute__((used)) = \"topsecretword planted\";\n", planting.line_before,
             "\n#include <iso646.h>\n", planting.again, "#endif\n#line 50 \"{label}\"\n__device__ float Tried", number,
             "(float x) { return sqrtf(x); }");
  return absl::StrReplaceAll(text, {{"{label}", label}});
}

// There is a file with the macros of the `#include`s only where these are left out.
constexpr char kAsksForMacros[] = "#define ASKS __has_inc##lude\n#if !ASKS(\"../kernix-preamble/macros.h\")";

// Only there has nothing counted before. The unit must not seem to have counted in the end.
constexpr char kCounts[] =
    "#if __COUN\\\nTER__ == 0\n#define ALONE\n#endif\n# 9 \"{label}\" 3\n#undef __COUN\\\nTER__\n# 9 "
    "\"{label}\"\n#define __COUN\\\nTER__ 0\n#ifndef ALONE";

TEST_F(PlantsTest, APreambleHoldsNothingOfTheUnitThatTaughtIt) {
  Serve("", /*with_nvcc=*/true);
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc: `make setup` installs one";
  const auto other = Connect(TheUsers().other);
  const auto root = Connect(0);
  const std::string unit = GeneratedUnit();
  const std::string line = unit.substr(0, unit.find("twice.cu\"\n")), begin = line.substr(line.rfind("#line 1 "));
  const std::string label = begin.substr(begin.find('"') + 1) + "twice.cu";
  const auto lines = std::count(line.begin(), line.end(), '\n');
  const std::string own = "#include \"brainevent/common.h\"\n";
  const std::string half = own + "#include <cuda_fp16.h>\n", tuple = own + "#include <cuda/std/tuple>\n";
  const std::map<std::string, Planting> plantings = {
      {"a question", {half, kAsksForMacros, "#line 2 \"{label}\"", ""}},
      {"the counter", {tuple, kCounts, "#line 2 \"{label}\"", "# 9 \"{label}\" 3\n# 9 \"{label}\"\n"}},
      {"a question, whatever the label",
       {"", kAsksForMacros, StrCat("#line ", lines, " \"kernix-unit/unit.cu\""), "#line 1 \"{label}\"\n"}},
  };
  int number = 0;
  for (const auto& [what, planting] : plantings) {
    for (int round = 0; round < 3; ++round) {  // the first ones teach what cuda_runtime.h declares
      Load(member(), BeginningWith(TextOf(planting, label, ++number), nvcc()));
      root->AwaitEndOfLearning();
    }
    Kernel victim = BeginningWith(planting.head + "__device__ float Of(float x) { return sqrtf(x); }", nvcc());
    if (planting.head.empty()) victim.request.mutable_source(0)->set_label("of_victim.cu");
    const server::LoadOutcome outcome = Load(*other, victim);
    JudgeTwin(kKept, "another member's kernel with the same #includes", outcome.result ? "" : Answer(outcome));
    const std::string artifact = outcome.result ? other->Fetch(outcome.result->artifact_digest()).value_or("") : "";
    Judge(kKept, StrCat("planted by ", what), SecretIn(artifact));
  }
}

// GCC's list of files does not double a last backslash. So the blank after it seems to be a part of the name, and so
// does the next file, if both stand on one line of the list.
TEST_F(PlantsTest, NoLastBackslashHidesTheNextFile) {
  Serve("", /*with_nvcc=*/true);
  const std::string path = WriteAs(TheUsers().service, "secret/k.h", "const char* kept = \"topsecretword\";\n", 0600);
  const std::string reads = StrCat("#define NAME \"", path, "\"\n#include NAME\n");
  const auto reading = [&](Kernel kernel, const std::string& name, bool force) {
    AddHeader(kernel, name, "#pragma once\n");
    kernel.request.set_force_rebuild(force);
    return kernel;
  };
  for (const int length : {1, 20, 34}) {  // one of them shares its line with the next file
    const std::string name = std::string(length, 'a') + "\\", text = StrCat("#include \"", name, "\"\n", reads);
    const std::string what = StrCat("kept behind a backslash and ", length, " letters");
    for (const bool force : {false, true}) {
      Attack(kReads, what, reading(CppKernel(text), name, force), Must::kBeRefused);
      if (nvcc().empty()) continue;
      Attack(kReads, "nvcc: " + what, reading(CudaKernel(nvcc(), text), name, force), Must::kBeRefused);
    }
  }
  const std::string own = "#include \"a.h\"\n#define NAME \"b c.h\"\n#include NAME";
  Kernel twin = reading(CppKernel(own), "a.h", true);
  AddHeader(twin, "b c.h", "#pragma once\n");
  Twin(kReads, "a header with a blank, by a macro", twin);
}

TEST_F(PlantsTest, NoNameOfAFileHidesAnother) {
  Serve("", /*with_nvcc=*/true);
  const auto hiding = [&](Kernel kernel, const std::string& name) {
    AddHeader(kernel, name, "#pragma once\n");
    return kernel;
  };
  for (const std::string name : {"a\\", "a\\ ", "a ", " a", "b\\/c.h", "a\\b.h", "a\tb.h", "a\nb.h", "b /c.h"}) {
    const std::string text = Fill(StrCat("#include \"", name, "\"\n#define NAME \"{secret}\"\n#include NAME"));
    Attack(kReads, StrCat("header ", name), hiding(CppKernel(text), name), Must::kBeRefused);
    if (nvcc().empty()) continue;
    Attack(kReads, StrCat("nvcc: header ", name), hiding(CudaKernel(nvcc(), text), name), Must::kBeRefused);
  }
  for (const std::string label : {"a\\", "a ", " a", "a\nb"}) {
    Kernel kernel = CppKernel();
    kernel.request.mutable_source(0)->set_label(label);
    Attack(kReads, "label " + label, kernel, Must::kBeRefused);
  }
  if (!nvcc().empty()) {
    const std::string text = Fill("#line 1 \"x\\\\\"\n#define NAME \"{secret}\"\n#include NAME");
    Kernel kernel = CudaKernel(nvcc(), text);
    kernel.request.set_force_rebuild(true);
    Attack(kReads, "nvcc: a #line whose name ends in a backslash", kernel, Must::kBeHarmless);
  }
  Twin(kReads, "a header with a blank in its name", hiding(CppKernel("#include \"a b.h\""), "a b.h"));
}

}  // namespace
}  // namespace kernix::security
