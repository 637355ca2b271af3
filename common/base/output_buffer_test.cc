// SPDX-License-Identifier: Apache-2.0
#include "common/base/output_buffer.h"

#include <gtest/gtest.h>

namespace kernix {
namespace {

TEST(OutputBufferTest, KeepsAllThatFits) {
  OutputBuffer buffer(10);
  buffer.Append("01234");
  buffer.Append("");
  buffer.Append("56789");
  EXPECT_EQ(buffer.Text(), "0123456789");
}

TEST(OutputBufferTest, DropsTheMiddleAndSaysSo) {
  OutputBuffer buffer(10);
  buffer.Append("0123456789a");
  EXPECT_EQ(buffer.Text(), "01234\n[... 1 bytes of output left out ...]\n6789a");
}

TEST(OutputBufferTest, HowItArrivesDoesNotMatter) {
  OutputBuffer whole(11);
  OutputBuffer pieces(11);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  whole.Append(text);
  for (char c : text) pieces.Append({&c, 1});
  EXPECT_EQ(whole.Text(), pieces.Text());
  EXPECT_EQ(whole.Text(), "abcde\n[... 989 bytes of output left out ...]\n" + text.substr(994));
}

TEST(OutputBufferTest, NothingIsKeptWithALimitOfNothing) {
  OutputBuffer buffer(0);
  buffer.Append("abc");
  EXPECT_EQ(buffer.Text(), "\n[... 3 bytes of output left out ...]\n");
}

}  // namespace
}  // namespace kernix
