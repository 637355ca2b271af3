// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/format.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/strings.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace kernix::ctl {
namespace {

using std::chrono::milliseconds;

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%d B", bytes) : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatDuration(milliseconds duration) {
  struct Unit {
    int64_t ms;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits = {{{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "min"}, {1'000, "s"}}};
  for (const Unit& unit : kUnits) {
    if (duration.count() >= 2 * unit.ms) return StrCat(duration.count() / unit.ms, " ", unit.name);
  }
  return StrCat(duration.count(), " ms");
}

std::string FormatTime(int64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMillis(unix_ms), absl::UTCTimeZone());
}

absl::StatusOr<milliseconds> ParseAge(std::string_view text) {
  const absl::StatusOr<milliseconds> age = ParseDuration(text);
  if (age.ok() && age->count() > 0) return age;
  return absl::InvalidArgumentError(StrCat("\"", text, "\" is not an age; write it as 90s, 10m, 2h or 7d"));
}

std::string FormatTable(std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Printable(cell);
  }
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) table += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    StrAppend(&table, row.empty() ? "" : row.back(), "\n");
  }
  return table;
}

JsonObject FieldsOf(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& values = *message.GetReflection();
  JsonObject object;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const std::string name(field->name());
    if (field->is_repeated()) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING) object.Text(name, values.GetString(message, field));
    if (field->type() == FieldDescriptor::TYPE_BOOL) object.Boolean(name, values.GetBool(message, field));
    if (field->type() == FieldDescriptor::TYPE_INT64) object.Number(name, int64_t{values.GetInt64(message, field)});
    if (field->type() == FieldDescriptor::TYPE_UINT32) object.Number(name, uint64_t{values.GetUInt32(message, field)});
    if (field->type() == FieldDescriptor::TYPE_UINT64) object.Number(name, uint64_t{values.GetUInt64(message, field)});
  }
  return object;
}

}  // namespace kernix::ctl
