// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/driver_functions.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "tests/support/testing_load.h"

namespace kernix::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kStubLibrary = 34;  // CUDA_ERROR_STUB_LIBRARY

std::set<std::string_view> NamesIn(std::string_view object) {
  std::set<std::string_view> names;
  AddDriverFunctions(object, names);
  return names;
}

TEST(DriverFunctionsTest, NamesAreThoseThatLookLikeTheDrivers) {
  constexpr char kTable[] =
      "\0cuInit\0my_cuMemAlloc_v2\0cudaMalloc\0cu\0cuInit now\0cumulus\0cuMine\0cuLaunchKernel_ptsz";
  EXPECT_THAT(NamesIn({kTable, sizeof kTable}), ElementsAre("cuInit", "cuLaunchKernel_ptsz", "cuMemAlloc_v2"));
  EXPECT_TRUE(IsDriverFunction("cuTensorMapEncodeTiled"));
  EXPECT_FALSE(IsDriverFunction("cuMemory"));
  EXPECT_FALSE(IsDriverFunction("cuMem x"));
}

// An object may be full of such names.
TEST(DriverFunctionsTest, ManyNamesTakeLittleMemory) {
  std::string object;
  for (int i = 0; i < 100'000; ++i) StrAppend(&object, "cuMemAlloc_", i, std::string_view("\0", 1));
  EXPECT_LT(NamesIn(object).size(), 10'000u);
}

class DriverLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    KERNIX_NEED_PROGRAM(compiler, "g++");
    KERNIX_NEED_NVCC(nvcc);
    request_ = CudaRequest(compiler, nvcc);
  }

  // Builds the kernel with `code`, whose value() is what follows is about, and returns what that gives here.
  int ValueOf(const std::string& code) {
    v1::LoadRequest request = request_;
    request.mutable_source(0)->mutable_text()->append(
        StrCat("\n#include <cuda.h>\nextern \"C\" CUresult cuStreamSynchronize_ptsz(CUstream);\n", code,
               "\nextern \"C\" int value_of_kernel() { return value(); }\n"));
    const auto built = t_.Load(request);
    EXPECT_THAT(built, IsOk());
    if (!built.ok()) return -1;
    artifact_ = t_.Artifact(*built);
    void* library = dlopen(t_.cache->BlobPath(Digest::FromRaw(built->artifact_digest()).value()).c_str(), RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return -1;
    return reinterpret_cast<int (*)()>(dlsym(library, "value_of_kernel"))();
  }

  bool HasDriver() const { return dlopen("libcuda.so.1", RTLD_LAZY) != nullptr; }

  TestBuilder t_{TestBuilder::On::kInlineExecutor};
  v1::LoadRequest request_;
  std::string artifact_;
};

TEST_F(DriverLinkTest, OpensWithoutADriverAndSaysSoWhenCalled) {
  if (HasDriver()) GTEST_SKIP() << "this machine has a driver";
  constexpr char kEncode[] =
      "int value() { CUtensorMap map; cuuint64_t n[2] = {8, 8}; cuuint32_t one[2] = {1, 1};\n"
      "return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, &map, n, n, one, one,\n"
      "  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,\n"
      "  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); }";
  EXPECT_EQ(ValueOf("int value() { return cuInit(0); }"), kStubLibrary);
  EXPECT_NE(artifact_.find("kernix_find_driver_function"), std::string::npos);
  EXPECT_EQ(ValueOf(kEncode), kStubLibrary);
  EXPECT_EQ(ValueOf("int value() { auto* f = &cuMemAlloc; CUdeviceptr p; return f(&p, 4); }"), kStubLibrary);
  EXPECT_EQ(ValueOf("int value() { return cuStreamSynchronize_ptsz(nullptr); }"), kStubLibrary);
  for (const char* flag : {"-lcuda", "-L/usr/local/cuda/lib64/stubs", "-Wl,--gc-sections"}) {
    request_.mutable_options()->add_link_flags(flag);
    EXPECT_EQ(ValueOf("int value() { return cuInit(0); }"), kStubLibrary) << flag;
  }
  request_.set_force_rebuild(true);
  EXPECT_EQ(ValueOf("int value() { return cuInit(0); }"), kStubLibrary);
}

TEST_F(DriverLinkTest, OnesOwnFunctionOfThatNameIsUsed) {
  EXPECT_EQ(ValueOf("CUresult cuInit(unsigned) { return CUresult(7); }\nint value() { return cuInit(0); }"), 7);
}

TEST_F(DriverLinkTest, ANameThatTheDriverDoesNotHaveIsMissing) {
  request_.mutable_source(0)->mutable_text()->append("extern \"C\" int cuMine();\nint call() { return cuMine(); }\n");
  EXPECT_THAT(std::string(t_.Load(request_).status().message()), HasSubstr("undefined reference to `cuMine'"));
}

TEST_F(DriverLinkTest, AKernelWithoutTheDriverHasNothingOfIt) {
  EXPECT_EQ(ValueOf("int value() { return 5; }"), 5);
  EXPECT_EQ(artifact_.find("kernix_find_driver_function"), std::string::npos);
}

}  // namespace
}  // namespace kernix::build
