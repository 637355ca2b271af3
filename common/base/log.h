// SPDX-License-Identifier: Apache-2.0
//
// Structured log lines: one line an event, `time level event key=value ...` (logfmt), on stderr.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/strings.h"

namespace kernix {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One key=value pair. Values with spaces, quotes, control characters or '=' are quoted and escaped, so that a line is
// always one line. Of a long one, the first 4096 bytes are written, and its length.
struct LogField {
  template <typename T>
  LogField(std::string_view k, const T& v) : key(k), value(StrCat(v)) {}
  std::string key;
  std::string value;
};

// Lines below `level` are dropped. Process-wide; default kInfo.
void SetLogLevel(LogLevel level);

// The level that a name stands for: "debug", "info", "warning", "error". False when it is none.
bool ParseLogLevel(std::string_view name, LogLevel& level);

// Writes one line with a single write(2). Thread-safe.
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// The text of a line without its time: for tests.
std::string FormatLogLine(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

}  // namespace kernix
