// SPDX-License-Identifier: Apache-2.0
//
// Small texts that take a compiler without end: time, memory, disk, words. Each job that a limit stops is told so: a
// RESOURCE error with the limit's setting, no compile error.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "tests/security/security_fixture.h"

namespace kernix::security {
namespace {

constexpr char kRow[] = "17 enclosures";

constexpr char kLimits[] =
    "job_timeout = \"2s\"\nmax_output_bytes = \"64 MiB\"\nmax_process_memory_bytes = \"1 GiB\"\n";

constexpr char kTime[] = "job_timeout", kMemory[] = "max_process_memory_bytes", kSize[] = "max_output_bytes";

struct Trick {
  std::string what;
  std::string text;
  std::vector<std::string> limits;  // one of these stops it; empty: the compiler refuses it
  std::vector<std::string> flags = {};
};

// `first` doubled again and again, by macros.
std::string Doubled(const std::string& first, int times) {
  std::string text = StrCat("#define D0 ", first, "\n");
  for (int i = 1; i <= times; ++i) StrAppend(&text, "#define D", i, " D", i - 1, " D", i - 1, "\n");
  return StrCat(text, "D", times, "\n");
}

class TricksTest : public SecurityTest {
 protected:
  // "" or why the answer does not tell which limit stopped the job.
  static std::string Untold(const Trick& trick, const server::LoadOutcome& outcome) {
    if (outcome.result) return "it loaded";
    if (!outcome.failure) return StrCat("no answer: ", outcome.status.error_message());
    const bool is_refused = outcome.failure->kind() == v1::ErrorDetail::COMPILATION;
    if (trick.limits.empty()) return is_refused ? "" : "not refused by the compiler: " + outcome.failure->message();
    const std::string& message = outcome.failure->message();
    const bool names_limit = std::any_of(trick.limits.begin(), trick.limits.end(), [&](const std::string& limit) {
      return message.find(limit) != std::string::npos;
    });
    if (outcome.failure->kind() == v1::ErrorDetail::RESOURCE && names_limit) return "";
    return StrCat("not told as ", absl::StrJoin(trick.limits, " or "), ": ", message);
  }

  void Try(const Trick& trick, const Kernel& kernel) {
    const server::LoadOutcome outcome = Load(member(), kernel);
    std::string evidence = SecretIn(Answer(outcome)) + Canaries();
    if (evidence.empty()) evidence = Untold(trick, outcome);
    Judge(kRow, trick.what, evidence);
  }
};

TEST_F(TricksTest, NoTextTakesACompilerWithoutEnd) {
  Serve(kLimits);
  // A pipe, which gives it nothing to read. In a wall, it has no such name.
  const std::vector<std::string> own_output =
      Lacks().empty() ? std::vector<std::string>{} : std::vector<std::string>{kTime};
  const std::vector<Trick> tricks = {
      {"templates",
       "template <long N, long M> struct T { static const long v = T<N - 1, 2 * M>::v + T<N - 1, 2 * M + 1>::v; };\n"
       "template <long M> struct T<0, M> { static const long v = M; };\nlong v = T<40, 0>::v;",
       {kTime, kMemory}},
      {"constant expressions",
       "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i; return s; }\n"
       "constexpr long x = f(1L << 40);",
       {kTime, kMemory},
       {"-fconstexpr-loop-limit=2147483647", "-fconstexpr-ops-limit=9223372036854775807"}},
      {"macros", Doubled("int;", 40), {kTime, kMemory}},
      {"warnings", Doubled("_Pragma(\"GCC warning \\\"look\\\"\")", 40), {kTime, kMemory}},
      {"repetition in the assembler", "asm(\".rept 1000000000\\n nop\\n .endr\");", {kTime, kMemory, kSize}},
      {"an object as large as the disk", "asm(\".data\\n .fill 1 << 36, 1, 1\\n .text\");", {kTime, kMemory, kSize}},
      {"an array as large as the disk", "char data[1L << 36] = {1};", {kTime, kMemory, kSize}},
      {"#include of a device", "#include \"/dev/zero\"", {kTime, kMemory}},
      {".incbin of a device", "asm(\".incbin \\\"/dev/zero\\\"\");", {}},
      {".include of a device", "asm(\".include \\\"/dev/urandom\\\"\");", {kTime, kMemory}},
      {"#include of its own output", "#include \"/proc/self/fd/1\"", own_output},
      {"#embed of a device", "const int x[] = {\n#embed </dev/zero> limit(1000000000000)\n};", {}},
  };
  for (const Trick& trick : tricks) Try(trick, CppKernel(trick.text, trick.flags));
  Kernel itself = CppKernel("#include \"itself.h\"");
  AddHeader(itself, "itself.h", "#if __INCLUDE_LEVEL__ < 150\n#include \"itself.h\"\n#include \"itself.h\"\n#endif\n");
  Try({"a header that includes itself twice", "", {kTime, kMemory}}, itself);
  Twin(kRow, "a kernel after all of them", CppKernel());
}

TEST_F(TricksTest, NoKernelTakesTheDeviceCompilersWithoutEnd) {
  Serve(kLimits, /*with_nvcc=*/true);
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc: `make setup` installs one";
  const Trick trick = {
      "functions that are inlined without end",
      "template <int N> __device__ __forceinline__ float f(float x) { return f<N - 1>(x) + f<N - 1>(x * x + N); }\n"
      "template <> __device__ __forceinline__ float f<0>(float x) { return x * x; }\n"
      "__global__ void busy(float* x) { *x = f<26>(*x); }",
      {kTime, kMemory, kSize}};
  Try(trick, CudaKernel(nvcc(), trick.text));
  Twin(kRow, "a kernel that ends", CppKernel());
}

}  // namespace
}  // namespace kernix::security
