// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/utf8.h"

#include <cstdint>

namespace kernix {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How long a sequence is that starts with `lead`; 0 when none does.
size_t SequenceLength(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// The second byte alone can make a sequence overlong, a surrogate, or too large.
bool SecondByteFits(uint8_t lead, uint8_t second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second < 0xA0;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second < 0x90;
    default:
      return true;
  }
}

// The length of the well-formed sequence at the start of `text`; 0 when there is none.
size_t ValidSequence(std::string_view text) {
  const uint8_t lead = static_cast<uint8_t>(text[0]);
  const size_t length = SequenceLength(lead);
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80 || (i == 1 && !SecondByteFits(lead, byte))) return 0;
  }
  return length;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = ValidSequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ToValidUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = ValidSequence(text);
    result.append(length == 0 ? kReplacement : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

size_t CompleteUtf8Prefix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const uint8_t byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    return SequenceLength(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace kernix
