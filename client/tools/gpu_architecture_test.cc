// SPDX-License-Identifier: Apache-2.0
//
// Runs against a driver made for the test: real shared libraries with the functions of NVML and CUDA that kernix calls.
#include "client/tools/gpu_architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using testing::CompileLibrary;
using ::testing::HasSubstr;
using testing::ScratchFolder;

struct FakeGpu {
  int major, minor;
  std::string uuid;
};

std::string NvmlSource(const std::vector<FakeGpu>& gpus) {
  std::string rows;
  for (const FakeGpu& gpu : gpus) rows += StrCat("{", gpu.major, ",", gpu.minor, ",\"", gpu.uuid, "\"},");
  return StrCat("#include <cstring>\nstruct Gpu { int major, minor; const char* uuid; };\nstatic Gpu gpus[] = {", rows,
                "{0,0,\"\"}};\nextern \"C\" {\n",
                "int nvmlInit_v2() { return 0; }\nint nvmlShutdown() { return 0; }\n"
                "int nvmlDeviceGetCount_v2(unsigned* n) { *n = ",
                gpus.size(),
                "; return 0; }\n"
                "int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** d) { *d = &gpus[i]; return 0; }\n"
                "int nvmlDeviceGetUUID(void* d, char* s, unsigned n) { std::strncpy(s, static_cast<Gpu*>(d)->uuid, n); "
                "return 0; }\n"
                "int nvmlDeviceGetCudaComputeCapability(void* d, int* a, int* b) {\n"
                "  *a = static_cast<Gpu*>(d)->major; *b = static_cast<Gpu*>(d)->minor; return 0; }\n}\n");
}

std::string CudaSource(int init_result, int major, int minor) {
  return StrCat("extern \"C\" {\nint cuInit(unsigned) { return ", init_result,
                "; }\nint cuDeviceGet(int* d, int) { *d = 0; return 0; }\n"
                "int cuDriverGetVersion(int* v) { *v = 12040; return 0; }\n"
                "int cuDeviceGetAttribute(int* v, int a, int) { *v = a == 75 ? ",
                major, " : ", minor, "; return 0; }\n}\n");
}

class GpuArchitectureTest : public ::testing::Test {
 protected:
  GpuArchitectureTest() {
    system_.device_files = {folder_.Write("nvidiactl", "")};
    system_.nvml = folder_ / "libnvidia-ml.so.1";
    system_.cuda = folder_ / "libcuda.so.1";
  }
  void HasNvml(const std::vector<FakeGpu>& gpus) { CompileLibrary(NvmlSource(gpus), system_.nvml); }
  void HasCuda(int init_result, int major, int minor) {
    CompileLibrary(CudaSource(init_result, major, minor), system_.cuda);
  }
  absl::StatusOr<std::string> Detect() { return DetectGpuArchitecture(Env::Posix(), system_); }
  absl::StatusOr<std::string> DetectWith(const std::string& visible) {
    system_.visible_devices = visible;
    return Detect();
  }

  ScratchFolder folder_;
  GpuSystem system_;
};

TEST_F(GpuArchitectureTest, WithoutADriverNothingIsOpened) {
  HasNvml({{9, 0, "GPU-a"}});
  system_.device_files = {folder_ / "none"};
  const auto architecture = Detect();
  EXPECT_EQ(KindOf(architecture.status()), v1::ErrorDetail::TOOLCHAIN);
  EXPECT_THAT(architecture.status().ToString(), AllOf(HasSubstr("driver"), HasSubstr("compute_capability=\"sm_90\"")));
}

TEST_F(GpuArchitectureTest, AsksTheManagementLibrary) {
  HasNvml({{9, 0, "GPU-a"}, {9, 0, "GPU-b"}});
  EXPECT_EQ(*Detect(), "sm_90");
  EXPECT_EQ(*DetectWith("1,0"), "sm_90");
  EXPECT_EQ(*DetectWith("MIG-1234"), "sm_90");
}

TEST_F(GpuArchitectureTest, TwoDigitMajorVersions) {
  HasNvml({{12, 1, "GPU-a"}});
  EXPECT_EQ(*Detect(), "sm_121");
}

TEST_F(GpuArchitectureTest, VisibleDevicesMayHideAll) {
  HasNvml({{9, 0, "GPU-a"}});
  for (const char* hidden : {"", "-1", "none", "3", "GPU-b"}) {
    const auto architecture = DetectWith(hidden);
    EXPECT_EQ(KindOf(architecture.status()), v1::ErrorDetail::TOOLCHAIN) << hidden;
    EXPECT_THAT(architecture.status().ToString(), HasSubstr(StrCat("CUDA_VISIBLE_DEVICES=\"", hidden, "\"")));
  }
}

TEST_F(GpuArchitectureTest, DifferentGpusAreToldApart) {
  HasNvml({{7, 5, "GPU-aaa"}, {9, 0, "GPU-bbb"}});
  HasCuda(0, 9, 0);
  EXPECT_EQ(*Detect(), "sm_90");              // only CUDA knows its own order
  EXPECT_EQ(*DetectWith("GPU-aa"), "sm_75");  // the UUID identifies it
  EXPECT_EQ(*DetectWith("MIG-x"), "sm_90");
  system_.device_order = "PCI_BUS_ID";  // the management library's order
  EXPECT_EQ(*DetectWith("0"), "sm_75");
  EXPECT_EQ(*DetectWith("1"), "sm_90");
}

TEST_F(GpuArchitectureTest, FallsBackToCuda) {
  HasCuda(0, 8, 6);
  EXPECT_EQ(*Detect(), "sm_86");
}

TEST_F(GpuArchitectureTest, DriversTellTheirVersion) {
  EXPECT_EQ(CudaDriverVersion(Env::Posix(), system_), 0);
  HasCuda(0, 8, 6);
  EXPECT_EQ(CudaDriverVersion(Env::Posix(), system_), 12040);
  system_.device_files = {folder_ / "none"};
  EXPECT_EQ(CudaDriverVersion(Env::Posix(), system_), 0);
}

TEST_F(GpuArchitectureTest, ABrokenDriverIsNamed) {
  HasCuda(100, 0, 0);
  EXPECT_THAT(Detect().status().ToString(), AllOf(HasSubstr("cuInit"), HasSubstr("100")));
}

TEST_F(GpuArchitectureTest, NoLibraryIsNamed) {
  EXPECT_THAT(Detect().status().ToString(), AllOf(HasSubstr("libnvidia-ml.so.1"), HasSubstr("libcuda.so.1")));
}

}  // namespace
}  // namespace kernix
