// SPDX-License-Identifier: Apache-2.0
//
// Converts an Entry to and from the index's columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/cache/entry.h"
#include "daemon/cache/sqlite.h"

namespace kernix::cache {

// The blob columns. The same content gives the same bytes.
std::string EncodeDetail(const Entry& entry);
std::string EncodeHeaders(const Entry& entry);
std::string EncodeInputs(const Entry& entry);

// The columns that DecodeRow() reads, for a SELECT from `entry`.
inline constexpr std::string_view kEntryColumns = "entry.key, artifact, size, created_unix_ms, detail";
inline constexpr int kEntryColumnCount = 5;

// The current row of such a SELECT, without the toolchain headers. kDataLoss if it is malformed.
absl::StatusOr<Entry> DecodeRow(const Statement& row);

// Adds the toolchain headers from the bytes of EncodeHeaders(). kDataLoss if they are malformed.
absl::Status DecodeHeaders(std::string_view bytes, Entry& entry);

// From the bytes of EncodeInputs(). kDataLoss if they are malformed.
absl::StatusOr<std::vector<BuildInput>> DecodeInputs(std::string_view bytes);

}  // namespace kernix::cache
