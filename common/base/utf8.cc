// SPDX-License-Identifier: Apache-2.0
#include "common/base/utf8.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace kernix {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The length of a sequence that starts with `lead`, or 0 if no sequence does.
size_t SequenceLength(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// The second byte alone decides whether a sequence is overlong, a surrogate, or too large.
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

// The length of the well-formed sequence at the start of `text`, or 0 if there is none.
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

uint32_t CodeOf(std::string_view sequence) {
  const uint8_t lead = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return lead;
  uint32_t code = lead & (0xFF >> (sequence.size() + 1));
  for (const char byte : sequence.substr(1)) code = code << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  return code;
}

bool ActsOnTerminal(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) { return code >= first && code <= last; };
  return code < 0x20 || within(0x7F, 0x9F) || code == 0x061C || within(0x200E, 0x200F) || within(0x2028, 0x202E) ||
         within(0x2066, 0x2069);
}

void AppendEscape(std::string& text, const Character& character) {
  if (character.well_formed && character.code > 0x7F) {
    absl::StrAppendFormat(&text, "\\u%04x", character.code);
  } else {
    absl::StrAppendFormat(&text, "\\x%02x", character.code);
  }
}

std::string Escaped(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    if (first.printable || kept.find(first.bytes) != std::string_view::npos) {
      result += first.bytes;
    } else {
      AppendEscape(result, first);
    }
    text.remove_prefix(first.bytes.size());
  }
  return result;
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

Character FirstCharacter(std::string_view text) {
  const size_t length = ValidSequence(text);
  if (length == 0) return {.bytes = text.substr(0, 1), .code = static_cast<uint8_t>(text[0])};
  const uint32_t code = CodeOf(text.substr(0, length));
  return {.bytes = text.substr(0, length), .code = code, .well_formed = true, .printable = !ActsOnTerminal(code)};
}

std::string Printable(std::string_view text) { return Escaped(text, ""); }

std::string PrintableLines(std::string_view text) { return Escaped(text, "\n\t"); }

}  // namespace kernix
