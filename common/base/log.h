// SPDX-License-Identifier: Apache-2.0
//
// Structured log lines on stderr: one line per event, `time level event key=value ...` (logfmt).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/strings.h"

namespace kernix {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One key=value pair. Values with spaces, quotes, control characters or '=' are quoted and escaped, so an event is
// always one line. Of a longer value, the log shows the first 4096 bytes and the length.
struct LogField {
  template <typename T>
  LogField(std::string_view k, const T& v) : key(k), value(StrCat(v)) {}
  std::string key;
  std::string value;
};

// Drops lines below `level`. The level is process-wide; the default is kInfo.
void SetLogLevel(LogLevel level);

// Parses a level name: "debug", "info", "warning" or "error". Returns false for any other name.
bool ParseLogLevel(std::string_view name, LogLevel& level);

// Writes one line. Never waits: a line for which stderr has no room is lost, and the next one says so. Thread-safe.
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// The same for what others can cause as often as they like. `account` is the name of the user who asks, or that of the
// event if it may be anybody. Each account has so many bytes a minute; then a line "lines_left_out" says how many more
// lines there were.
void LogOf(std::string_view account, LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

// Writes these lines for whoever has fallen silent. Call it from time to time, and with `all` at the end, whether or
// not the minute is over.
void LogLeftOut(bool all = false);

// The text of a line without its time, for tests.
std::string FormatLogLine(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

}  // namespace kernix
