// SPDX-License-Identifier: Apache-2.0
//
// Stand-ins for the runtime header, with a real toolkit: which one a kernel takes, and that nvcc then makes the same.

#include <filesystem>
#include <map>
#include <set>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "daemon/language/read/runtime_names.h"
#include "tests/support/kernel_runner.h"
#include "tests/support/runtime_parts.h"

namespace kernix::language {
namespace {

using testing::HasSubstr;

std::string ReadText(const std::string& path) { return Env::Posix().ReadFile(path).value_or(""); }

std::string Canonical(std::string_view path) { return std::filesystem::weakly_canonical(path).string(); }

// The files that a preprocessed text was made from.
std::set<std::string> FilesOf(std::string_view preprocessed) {
  std::set<std::string> files;
  for (size_t at = 0; at < preprocessed.size();) {
    const size_t end = std::min(preprocessed.find('\n', at), preprocessed.size());
    const std::string_view line = preprocessed.substr(at, end - at);
    at = end + 1;
    const size_t begin = line.find('"');
    const size_t close = line.rfind('"');
    if (line.starts_with("# ") && begin != close && line[begin + 1] != '<') {
      files.emplace(line.substr(begin + 1, close - begin - 1));
    }
  }
  return files;
}

// A toolkit with its names, as a daemon would keep them.
class Toolkit {
 public:
  explicit Toolkit(std::string nvcc) : nvcc_(std::move(nvcc)), root_(Canonical(nvcc_ + "/../..")) {
    probe_ = workshop_.Write("probe.cu", kRuntimeProbe);
  }

  // The folder of the stand-in with `parts`.
  std::string Folder(RuntimeParts parts) {
    const std::string name = StrCat("slim_", parts.bits());
    workshop_.Write(StrCat(name, "/cuda_runtime.h"), SlimRuntimeHeader(parts));
    return StrCat(workshop_.path(), "/", name);
  }

  // The preprocessor's output for the passes of host and device; `folder` has the stand-in, or is empty.
  std::vector<std::string> Preprocess(const std::string& unit, const std::string& folder, bool with_macros) {
    std::vector<std::string> texts;
    for (const bool device : {false, true}) {
      std::vector<std::string> argv = Command("-E", unit, folder);
      if (!device) Append(argv, {"-Xcompiler", "-U__CUDA_ARCH__"});
      if (with_macros) Append(argv, {"-Xcompiler", kRuntimeTextFlag});
      texts.push_back(Run(argv));
    }
    return texts;
  }

  // What nvcc makes: PTX, or machine code.
  std::string Compile(const std::string& what, const std::string& unit, const std::string& folder) {
    return Run(Command(what, unit, folder));
  }

  const RuntimeNames& Names(RuntimeParts parts) {
    const auto known = names_.find(parts.bits());
    if (known != names_.end()) return known->second;
    if (whole_.empty()) whole_ = Preprocess(probe_, "", true);
    const std::vector<std::string> slim = Preprocess(probe_, Folder(parts), true);
    for (const std::string& text : slim) {
      for (const std::string& file : FilesOf(text)) slim_files_[parts.bits()].insert(Canonical(file));
    }
    const auto names = RuntimeNames::Read({{whole_[0], slim[0]}, {whole_[1], slim[1]}}, parts, {});
    EXPECT_THAT(names, IsOk());
    return names_.emplace(parts.bits(), names.ok() ? *names : RuntimeNames()).first->second;
  }

  // The decision for a kernel, as the steps of a build make it.
  RuntimeChoice Decide(const std::string& source) {
    unit_ = workshop_.Write("unit.cu", Generate("k.cu", source, v1::LANGUAGE_CUDA));
    RuntimeChoice choice = ChooseRuntime(Names({}), {{{source}}, {}, {}});
    RuntimeParts parts = choice.parts;
    for (int round = 0; round < 4; ++round) {
      choice = DecideWith(parts);
      if (choice.full || choice.parts.empty()) break;
      parts = parts | choice.parts;
    }
    choice.parts = parts;
    return choice;
  }

  const std::string& unit() const { return unit_; }

 private:
  static void Append(std::vector<std::string>& argv, const std::vector<std::string>& more) {
    argv.insert(argv.end(), more.begin(), more.end());
  }

  std::vector<std::string> Command(const std::string& what, const std::string& unit, const std::string& folder) {
    std::vector<std::string> argv = {nvcc_, what, "-arch=sm_90", "-std=c++17", unit, "-o", Output()};
    Append(argv, {StrCat("-I", workshop_.path(), "/include")});
    if (!folder.empty()) argv.push_back(StrCat("-I", folder));
    return argv;
  }

  std::string Output() const { return StrCat(workshop_.path(), "/out"); }

  std::string Run(const std::vector<std::string>& argv) {
    const Outcome outcome = RunProgram(argv, workshop_.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return ReadText(Output());
  }

  RuntimeChoice DecideWith(RuntimeParts parts) {
    const RuntimeNames& names = Names(parts);
    const std::vector<std::string> outputs = Preprocess(unit_, Folder(parts), false);
    const auto kind_of = [&](std::string_view file) { return KindOf(Canonical(file), parts); };
    std::map<std::string, std::string> headers;
    for (const std::string& output : outputs) {
      for (const std::string& file : FilesOf(output)) {
        if (kind_of(file)) headers[file] = ReadText(file);
      }
    }
    std::vector<UnitText> written;
    for (const auto& [file, text] : headers) written.push_back({text, *kind_of(file)});
    return ChooseRuntime(names, {written, {outputs[0], outputs[1]}, kind_of});
  }

  std::optional<UnitText::Kind> KindOf(const std::string& file, RuntimeParts parts) {
    if (file.find("/slim_") != std::string::npos || slim_files_[parts.bits()].contains(file)) return std::nullopt;
    if (file.find("/<handler of ") != std::string::npos) return UnitText::Kind::kKernix;
    if (file.find("/<") != std::string::npos) return std::nullopt;
    if (file.starts_with(Canonical(workshop_.path() + "/include"))) return UnitText::Kind::kKernix;
    if (file.starts_with(root_)) return UnitText::Kind::kToolkit;
    return file.starts_with("/usr/") ? UnitText::Kind::kLibrary : UnitText::Kind::kUser;
  }

  std::string nvcc_;
  std::string root_;
  std::string probe_;
  std::string unit_;
  std::vector<std::string> whole_;  // the probe with the whole header, preprocessed
  Workshop workshop_;
  std::map<uint32_t, RuntimeNames> names_;
  std::map<uint32_t, std::set<std::string>> slim_files_;
};

std::string Kernel(const std::string& statements) {
  return StrCat("// @BE run\n__global__ void run(const float* x, float* y) {\n  const int i = threadIdx.x;\n  ",
                statements, "\n}\n");
}

class SlimRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string& nvcc = *new std::string(FindNvcc().value_or(""));
    if (nvcc.empty()) GTEST_SKIP() << "no nvcc";
    static Toolkit& toolkit = *new Toolkit(nvcc);
    toolkit_ = &toolkit;
  }

  // The first guess for a source.
  std::string Guess(const std::string& source) {
    return Said(ChooseRuntime(toolkit_->Names({}), {{{source}}, {}, {}}));
  }

  // Expects `parts`, and the same PTX and machine code as with the whole header.
  void ExpectSame(const std::string& source, const std::string& parts) {
    const RuntimeChoice choice = toolkit_->Decide(source);
    EXPECT_EQ(Said(choice), parts) << source;
    const std::string folder = toolkit_->Folder(choice.parts);
    for (const char* what : {"-ptx", "-cubin"}) {
      const std::string full = toolkit_->Compile(what, toolkit_->unit(), "");
      EXPECT_EQ(toolkit_->Compile(what, toolkit_->unit(), folder), full) << what << source;
      EXPECT_THAT(full, HasSubstr("run"));
    }
  }

  Toolkit* toolkit_ = nullptr;
};

TEST_F(SlimRuntimeTest, AVectorAddTakesNoPart) { ExpectSame(Kernel("y[i] = x[i] + x[255 - i];"), ""); }

TEST_F(SlimRuntimeTest, OverloadsOfMixedTypesTakeMaths) {
  ExpectSame(Kernel("y[i] = abs(x[i]) + abs(i - 9) + max(x[i], 0.25) + pow(x[i], 2) + sqrtf(x[i]);"), "maths");
}

TEST_F(SlimRuntimeTest, PartsMakeTheSameTogether) {
  ExpectSame(Kernel("__shared__ int sum; atomicAdd(&sum, i); y[i] = __shfl_sync(~0u, x[i], 3) + __ldg(x + sum);"),
             "vectors, atomics, intrinsics, loads");
}

TEST_F(SlimRuntimeTest, NamesThatMacrosMakeAreSeen) {
  ExpectSame(StrCat("#define FLOAT(name) name##f\n", Kernel("y[i] = FLOAT(sqrt)(x[i]);")), "maths");
}

TEST_F(SlimRuntimeTest, HalfTakesWhatItsHeaderUses) {
  const std::string source = StrCat("#include <cuda_fp16.h>\n", Kernel("y[i] = __half2float(__float2half(x[i]));"));
  const RuntimeChoice choice = toolkit_->Decide(source);
  EXPECT_TRUE(choice.full || choice.parts.Has(RuntimePart::kMaths)) << Said(choice);
}

// Edits of the vector add, and what each takes.
TEST_F(SlimRuntimeTest, EditsThatTakeMore) {
  const std::pair<const char*, const char*> kEdits[] = {
      {"y[i] = abs(x[i]);", "maths"},
      {"y[i] = min(i, 7u);", "maths"},
      {"y[i] = max(x[i], 0.5);", "maths"},
      {"y[i] = pow(x[i], 2);", "maths"},
      {"y[i] = __expf(x[i]) * M_PI;", "maths"},
      {"y[i] = __ldg(x + i);", "loads"},
      {"y[i] = __popc(__ballot_sync(~0u, x[i] > 0));", "intrinsics"},
      {"atomicMax(reinterpret_cast<int*>(y), i);", "atomics"},
      {"y[i] = tex1Dfetch<float>(0, i);", "textures"},
      {"const float2 f = make_float2(1, 2); y[i] = f.x;", "vectors"},
      {"y[i] = std::is_same<int, float>::value;", "traits"},
      {"y[i] = std::numeric_limits<float>::max();", "limits, maths"},
      {"\n#ifdef __MATH_FUNCTIONS_H__\n#endif\n", "maths"},
      {"\n#if defined(_GLIBCXX_CMATH)\n#endif\n", "maths"},
  };
  for (const auto& [statement, parts] : kEdits) EXPECT_EQ(Guess(Kernel(statement)), parts) << statement;
  EXPECT_EQ(Guess("cudaLaunchKernelEx(&launch, kernel, x, y);"), "templates");
  EXPECT_EQ(Guess("cudaMemcpyToSymbolAsync(weights, x, 4);"), "templates");
  EXPECT_EQ(Guess("cudaCreateChannelDesc<float>();"), "channels");
}

TEST_F(SlimRuntimeTest, EditsThatTakeTheWholeHeader) {
  for (const char* text :
       {"std::beta(1.0, 2.0);", "#ifdef _GLIBCXX_BITS_SPECFUN_H\n#endif\n", "std::riemann_zeta(2.0);"}) {
    EXPECT_EQ(Guess(text), "full") << text;
  }
}

TEST_F(SlimRuntimeTest, EditsThatTakeNothing) {
  for (const char* text : {"__managed__ float factor;", "__constant__ float w[4]; static __device__ int n;",
                           "printf(\"%d\", i);", "assert(i < 3);", "__syncthreads(); __threadfence();",
                           "const auto f = [](float v) { return v; };", "#ifdef __CUDA_FP16_H__\n#endif\n",
                           "cudaMemsetAsync(a, 0, 4, stream);", "kernel<<<dim3(1), 256, 0, stream>>>(x);",
                           "float4 f = {1, 2, 3, 4}; int sum, value, size, count, begin, n, T;"}) {
    EXPECT_EQ(Guess(text), "") << text;
  }
}

TEST_F(SlimRuntimeTest, MacrosOfFlagsMayChangeTheHeaders) {
  const RuntimeNames& names = toolkit_->Names({});
  EXPECT_FALSE(names.MayChangeHeaders("BLOCK_SIZE"));
  EXPECT_TRUE(names.MayChangeHeaders("sqrtf"));
  EXPECT_TRUE(names.MayChangeHeaders("cudaStream_t"));
}

}  // namespace
}  // namespace kernix::language
