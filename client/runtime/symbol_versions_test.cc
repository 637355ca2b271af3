// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/symbol_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const RuntimeVersions& Debian() {
  static const auto* versions = new RuntimeVersions{
      .libc_version = "2.36",
      .libraries = {{"GLIBC_2.2.5", "/lib/libc.so.6"},
                    {"GLIBC_ABI_DT_RELR", "/lib/libc.so.6"},
                    {"GLIBCXX_3.4.9", "/lib/libstdc++.so.6"},
                    {"GLIBCXX_3.4.30", "/lib/libstdc++.so.6"},
                    {"CXXABI_1.3.13", "/lib/libstdc++.so.6"}},
  };
  return *versions;
}

TEST(SymbolVersionsTest, KnowsThoseOfThisProcess) {
  const RuntimeVersions versions = LoadedRuntimeVersions();
  EXPECT_FALSE(versions.libc_version.empty());
  EXPECT_TRUE(versions.libraries.contains("GLIBC_2.2.5"));
  EXPECT_TRUE(versions.libraries.contains("GLIBCXX_3.4.21"));
  EXPECT_TRUE(versions.libraries.contains("CXXABI_1.3"));
}

TEST(SymbolVersionsTest, OldEnoughPasses) {
  EXPECT_TRUE(CheckSymbolVersions({"GLIBC_2.34", "GLIBC_2.36", "GLIBC_ABI_DT_RELR", "GLIBCXX_3.4.30"}, Debian()).ok());
  EXPECT_TRUE(CheckSymbolVersions({}, Debian()).ok());
}

TEST(SymbolVersionsTest, EachMissingOneIsNamedWithWhatThereIs) {
  const absl::Status status = CheckSymbolVersions({"GLIBC_2.38", "GLIBCXX_3.4.30", "GLIBCXX_3.4.32"}, Debian());
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::LOAD);
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("GLIBC_2.38 where this process has GLIBC_2.36"),
                    HasSubstr("GLIBCXX_3.4.32 where this process has GLIBCXX_3.4.30 (/lib/libstdc++.so.6)"),
                    Not(HasSubstr("GLIBCXX_3.4.30 where"))));
}

TEST(SymbolVersionsTest, NumbersAreComparedAsNumbers) {
  EXPECT_TRUE(CheckSymbolVersions({"GLIBC_2.4"}, Debian()).ok());
  EXPECT_FALSE(CheckSymbolVersions({"GLIBC_2.100"}, Debian()).ok());
}

TEST(SymbolVersionsTest, AFamilyThatIsNotLoadedIsTheLoadersBusiness) {
  EXPECT_TRUE(CheckSymbolVersions({"GOMP_5.0", "OMP_1.0"}, Debian()).ok());
}

}  // namespace
}  // namespace kernix
