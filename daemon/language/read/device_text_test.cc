// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/device_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace kernix::language {
namespace {

using ::testing::Optional;

TEST(DeviceTextTest, WhiteSpaceAndLinesDoNotShow) {
  constexpr char kText[] = "# 1 \"k.cu\"\n# 1 \"a.h\" 1 3\nint  a;\n# 9 \"k.cu\" 2\n\n\nvoid f ( int x ) { x+=a; }\n";
  const std::string expected =
      "# 1 \"k.cu\"\n\n# 1 \"a.h\" 1 3\nint a ;\n# 1 \"k.cu\" 2\nvoid f ( int x ) {\nx += a ;\n}\n";
  EXPECT_THAT(CanonicalDeviceText(kText), Optional(expected));
  EXPECT_THAT(CanonicalDeviceText(expected), Optional(expected)) << "it is its own form";
  constexpr char kMoved[] =
      "# 1 \"k.cu\"\n# 1 \"a.h\" 1 3\n\nint\na;\n# 700 \"k.cu\" 2\nvoid f(int x)\n{\n# 1234567 \"k.cu\"\n x += a; }";
  EXPECT_THAT(CanonicalDeviceText(kMoved), Optional(expected));
}

TEST(DeviceTextTest, EachTokenStaysWhatItIs) {
  const auto expect = [](const std::string& text, const std::string& expected) {
    EXPECT_THAT(CanonicalDeviceText(text), Optional(expected + "\n"));
  };
  expect("a+ +b", "a + + b");
  expect("a++ +b", "a ++ + b");
  expect("x<y<z> >::t", "x < y < z > > :: t");
  expect("x<y<z>>::t", "x < y < z >> :: t");
  expect("u8\"a\" \"b\"_s L'c' R\"(d\n  # 1)\"", "u8\"a\" \"b\"_s L'c' R\"(d\n  # 1)\"");
  expect("1'000.5e+3f", "1'000.5e+3f");
  expect("p->*q .*r a<=>b a/ *c", "p ->* q .* r a <=> b a / * c");
  expect("; # pragma", "; # pragma");  // in the middle of a line: no directive
}

TEST(DeviceTextTest, DirectivesKeepTheirLines) {
  EXPECT_THAT(CanonicalDeviceText("int a;\n# 3 \"k.cu\"\n#pragma  unroll 4\n# 3 \"k.cu\"\nint b;"),
              Optional(std::string("int a ;\n# 1 \"k.cu\"\n\n# pragma unroll 4\nint b ;\n")));
}

TEST(DeviceTextTest, AUnitThatAsksForLinesHasNone) {
  EXPECT_FALSE(CanonicalDeviceText("int a = __builtin_LINE();").has_value());
  EXPECT_TRUE(CanonicalDeviceText("const char* a = \"__builtin_LINE\";").has_value());
}

}  // namespace
}  // namespace kernix::language
