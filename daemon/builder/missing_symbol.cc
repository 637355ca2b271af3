// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/missing_symbol.h"

#include "absl/strings/ascii.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

struct KnownLibrary {
  std::string_view prefix;  // of the names of its functions
  std::string_view name;
  std::string_view flag;
};

// The first row that matches counts.
constexpr KnownLibrary kLibraries[] = {
    {"cublasLt", "cuBLASLt", "-lcublasLt"}, {"cublas", "cuBLAS", "-lcublas"}, {"cusparse", "cuSPARSE", "-lcusparse"},
    {"cusolver", "cuSOLVER", "-lcusolver"}, {"cufft", "cuFFT", "-lcufft"},    {"curand", "cuRAND", "-lcurand"},
    {"cudnn", "cuDNN", "-lcudnn"},          {"nccl", "NCCL", "-lnccl"},       {"nvml", "NVML", "-lnvidia-ml"},
    {"nvrtc", "NVRTC", "-lnvrtc"},          {"cblas_", "BLAS", "-lopenblas"}, {"LAPACKE_", "LAPACKE", "-llapacke"},
    {"fftwf_", "FFTW", "-lfftw3f"},         {"fftw_", "FFTW", "-lfftw3"},
};

constexpr std::string_view kOpenMp[] = {"omp_", "GOMP_", "__kmpc_"};

// "missing" of "undefined reference to `missing'" and of "undefined symbol: missing"; empty for a C++ name, which none
// of the libraries has.
std::string_view SymbolIn(std::string_view error) {
  for (const std::string_view phrase : {"undefined reference to `", "undefined symbol: "}) {
    const size_t at = error.find(phrase);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = error.substr(at + phrase.size());
    const std::string_view name = rest.substr(0, rest.find_first_of("' \n"));
    return name.find_first_of("(:<") == std::string_view::npos ? name : "";
  }
  return "";
}

// cuLaunchKernel, but not cudaLaunchKernel.
bool IsOfCudaDriver(std::string_view symbol) {
  return symbol.size() > 2 && symbol.starts_with("cu") && absl::ascii_isupper(static_cast<unsigned char>(symbol[2]));
}

}  // namespace

std::string AdviceForMissingSymbol(std::string_view error) {
  const std::string_view symbol = SymbolIn(error);
  for (const std::string_view prefix : kOpenMp) {
    if (symbol.starts_with(prefix)) return "It is part of OpenMP: compile with -fopenmp (CUDA: -Xcompiler=-fopenmp)";
  }
  const auto advice = [](std::string_view name, std::string_view flag) {
    return StrCat("It is part of ", name, ": pass ", flag, " in extra_ldflags");
  };
  for (const KnownLibrary& library : kLibraries) {
    if (symbol.starts_with(library.prefix)) return advice(library.name, library.flag);
  }
  return IsOfCudaDriver(symbol) ? advice("the CUDA driver", "-lcuda") : "";
}

}  // namespace kernix::build
