// SPDX-License-Identifier: Apache-2.0
#include "common/base/json.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(JsonTest, WritesEveryKindOfValue) {
  EXPECT_EQ(JsonString("a\"b\\c\nd\x01"), "\"a\\\"b\\\\c\\nd\\u0001\"");
  EXPECT_EQ(JsonObject().Text("a", "x").Number("b", uint64_t{3}).Boolean("c", true).Json("d", "[]").Str(),
            R"({"a": "x", "b": 3, "c": true, "d": []})");
  EXPECT_EQ(JsonArray({}), "[]");
  EXPECT_EQ(JsonArray({"1", "2"}), "[1, 2]");
}

TEST(JsonTest, TextOfOthersDoesNotActOnTheTerminal) {
  EXPECT_EQ(JsonString("\x1b\u202E\xC2\x9B\x7f\u00e9"), "\"\\u001b\\u202e\\u009b\\u007f\u00e9\"");
  EXPECT_EQ(JsonString("\x9B"), "\"\\ufffd\"") << "no text at all";
}

}  // namespace
}  // namespace kernix
