// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failure_advice.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "absl/strings/ascii.h"
#include "common/base/strings.h"
#include "common/base/undefined_symbol.h"

namespace kernix::build {
namespace {

struct KnownLibrary {
  std::string_view prefix;  // of its functions, such as cublasCreate_v2, and of its headers if it has a wheel
  std::string_view name;
  std::string_view flag;
  std::string_view wheel = {};  // which has its headers, too
};

// The first row that matches counts.
constexpr KnownLibrary kLibraries[] = {
    {"cublasLt", "cuBLASLt", "-lcublasLt", "nvidia-cublas"},
    {"cublas", "cuBLAS", "-lcublas", "nvidia-cublas"},
    {"cusparse", "cuSPARSE", "-lcusparse", "nvidia-cusparse"},
    {"cusolver", "cuSOLVER", "-lcusolver", "nvidia-cusolver"},
    {"cufft", "cuFFT", "-lcufft", "nvidia-cufft"},
    {"curand", "cuRAND", "-lcurand", "nvidia-curand"},
    {"cudnn", "cuDNN", "-lcudnn"},
    {"nccl", "NCCL", "-lnccl"},
    {"nvml", "NVML", "-lnvidia-ml"},
    {"nvrtc", "NVRTC", "-lnvrtc", "nvidia-cuda-nvrtc"},
    {"cblas_", "BLAS", "-lopenblas"},
    {"LAPACKE_", "LAPACKE", "-llapacke"},
    {"fftwf_", "FFTW", "-lfftw3f"},
    {"fftw_", "FFTW", "-lfftw3"},
};

// Whole names: these words begin other people's functions, too.
constexpr std::string_view kZlib[] = {"deflate", "deflateInit_", "deflateInit2_", "deflateReset", "deflateEnd",
                                      "inflate", "inflateInit_", "inflateInit2_", "inflateReset", "inflateEnd"};

constexpr std::string_view kOpenMp[] = {"omp_", "GOMP_", "__kmpc_"};

// What follows the first of `phrases` that `error` has, up to a quote or a space; empty if it has none.
std::string_view NameAfter(std::string_view error, std::initializer_list<std::string_view> phrases) {
  for (const std::string_view phrase : phrases) {
    const size_t at = error.find(phrase);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = error.substr(at + phrase.size());
    return rest.substr(0, rest.find_first_of("' \n"));
  }
  return "";
}

// Whether `symbol` is a name of the library whose names begin with `prefix`: for "cu", cuLaunchKernel, but neither
// cudaLaunchKernel nor cu_mine.
bool BeginsWith(std::string_view symbol, std::string_view prefix) {
  if (!symbol.starts_with(prefix) || symbol.size() == prefix.size()) return false;
  return prefix.ends_with('_') || absl::ascii_isupper(static_cast<unsigned char>(symbol[prefix.size()]));
}

bool IsCxxName(std::string_view symbol) { return symbol.find_first_of("(:<") != std::string_view::npos; }

template <typename Matches>
const KnownLibrary* Find(const Matches& matches) {
  const auto* const found = std::find_if(std::begin(kLibraries), std::end(kLibraries), matches);
  return found == std::end(kLibraries) ? nullptr : found;
}

std::string AdviceForSymbol(std::string_view symbol) {
  if (IsCxxName(symbol)) return std::string(kDefineOrNameLibrary);  // none of the known libraries has such names
  for (const std::string_view prefix : kOpenMp) {
    if (symbol.starts_with(prefix)) return "It is part of OpenMP: compile with -fopenmp (CUDA: -Xcompiler=-fopenmp)";
  }
  const auto advice = [](std::string_view name, std::string_view flag) {
    return StrCat("It is part of ", name, ": pass ", flag, " in extra_ldflags");
  };
  if (const auto* library = Find([&](const KnownLibrary& each) { return BeginsWith(symbol, each.prefix); })) {
    return advice(library->name, library->flag);
  }
  if (std::find(std::begin(kZlib), std::end(kZlib), symbol) != std::end(kZlib)) return advice("zlib", "-lz");
  return BeginsWith(symbol, "cu") ? advice("the CUDA driver", "-lcuda") : std::string(kDefineOrNameLibrary);
}

std::string AdviceForInstalling(const KnownLibrary* library) {
  if (library == nullptr || library->wheel.empty()) return "";
  return StrCat("It is part of ", library->name,
                ", which CUDA loads find: install the whole CUDA toolkit, or the wheel ", library->wheel);
}

bool Has(std::string_view error, std::string_view words) { return error.find(words) != std::string_view::npos; }

// The number after the last `before` in `error` up to `end`; empty if there is none.
std::string_view Number(std::string_view error, std::string_view before, size_t end) {
  const size_t at = error.rfind(before, end);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = error.substr(at + before.size());
  return rest.substr(0, rest.find_first_not_of("0123456789"));
}

// The dimensions of the BE::In or BE::Out that `error` says is called with wrong indices, if its type has them: in
// "BE::In<float, 2>" (GCC, Clang) or "kRank=2" (nvcc).
std::string_view RankOfIndexed(std::string_view error) {
  if (Has(error, "BE::internal::Indexed<") && Has(error, "operator()")) {
    return Number(error, "kRank=", std::string_view::npos);
  }
  const bool is_call = Has(error, "no match for call to ") || Has(error, "call to object of type ");
  if (!is_call || !(Has(error, "BE::In<") || Has(error, "BE::Out<"))) return "";
  return Number(error, ", ", std::min(error.find(">)"), error.find(">'")));
}

}  // namespace

std::string AdviceForFailure(std::string_view error) {
  if (const std::string_view rank = RankOfIndexed(error); !rank.empty()) {
    return StrCat("It takes as many indices as it has dimensions: ", rank);
  }
  const std::string_view symbol = NameAfter(error, {"undefined reference to `", "undefined symbol: "});
  if (!symbol.empty()) return AdviceForSymbol(symbol);
  const std::string_view header = NameAfter(error, {"fatal error: '", "fatal error: "});  // Clang, GCC
  if (!header.empty()) {
    return AdviceForInstalling(Find([&](const KnownLibrary& each) { return header.starts_with(each.prefix); }));
  }
  std::string_view flag = NameAfter(error, {"cannot find ", "unable to find library "});  // ld, lld
  if (flag.ends_with(":")) flag.remove_suffix(1);
  return AdviceForInstalling(Find([&](const KnownLibrary& each) { return flag == each.flag; }));
}

}  // namespace kernix::build
