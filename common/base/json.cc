// SPDX-License-Identifier: Apache-2.0
#include "common/base/json.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix {
namespace {

std::string JsonOf(const Character& character) {
  constexpr uint32_t kReplacement = 0xFFFD;
  if (character.bytes == "\"" || character.bytes == "\\") return StrCat("\\", character.bytes);
  if (character.bytes == "\n") return "\\n";
  if (character.printable) return std::string(character.bytes);
  return absl::StrFormat("\\u%04x", character.well_formed ? character.code : kReplacement);
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    json += JsonOf(first);
    text.remove_prefix(first.bytes.size());
  }
  return json + "\"";
}

std::string JsonStrings(const std::vector<std::string>& texts) {
  std::vector<std::string> elements;
  for (const std::string& text : texts) elements.push_back(JsonString(text));
  return JsonArray(elements);
}

std::string JsonArray(const std::vector<std::string>& elements) {
  return StrCat("[", absl::StrJoin(elements, ", "), "]");
}

JsonObject& JsonObject::Text(std::string_view name, std::string_view value) { return Json(name, JsonString(value)); }
JsonObject& JsonObject::Number(std::string_view name, int64_t value) { return Json(name, std::to_string(value)); }
JsonObject& JsonObject::Number(std::string_view name, uint64_t value) { return Json(name, std::to_string(value)); }
JsonObject& JsonObject::Boolean(std::string_view name, bool value) { return Json(name, value ? "true" : "false"); }

JsonObject& JsonObject::Json(std::string_view name, std::string_view value) {
  StrAppend(&fields_, fields_.empty() ? "" : ", ", JsonString(name), ": ", value);
  return *this;
}

}  // namespace kernix
