// SPDX-License-Identifier: Apache-2.0
//
// Structured log lines on stderr: one line per event, `time level event key=value ...` (logfmt). And how much others
// may have a program write to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
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

// Writes the counts of those who have fallen silent. Call it from time to time, and with `all` at the end, whether or
// not the minute is over.
void LogLeftOut(bool all = false);

// The same as an entry of systemd's journal, which Log() writes instead if stderr leads there: MESSAGE, PRIORITY, and
// each field behind KERNIX_.
std::string JournalEntry(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

// systemd's journal, which keeps the fields of a log line apart (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
class Journal {
 public:
  explicit Journal(std::string socket_path);

  // The journal that stderr leads to, as $JOURNAL_STREAM says. Null if it leads elsewhere.
  static const Journal* OfStderr();

  // Adds a field, in upper case behind `prefix`: ("KERNIX_", "user", "ada") becomes KERNIX_USER=ada.
  static void Add(std::string& entry, std::string_view prefix, std::string_view name, std::string_view value);

  // False if the journal does not take the entry now. Never waits.
  bool Send(const std::string& entry) const;

 private:
  const std::string socket_path_;
  const int socket_;
};

// The text of a line without its time, for tests.
std::string FormatLogLine(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

// Called with the bytes of each line that has been written, in the order of the lines.
using LogWatcher = std::function<void(size_t bytes)>;

// For whoever keeps the log small; null: nobody. Once this has returned, no call of the last watcher goes on. A watcher
// must not log.
void SetLogWatcher(LogWatcher watcher);

// How much others may have a program write to its log.
//
// So many bytes in each window of time for each account. Further lines are counted, and the count is logged when the
// window is over. Thread-safe.
class LogBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;

  LogBudget(uint64_t bytes, std::chrono::seconds window) : bytes_(bytes), window_(window) {}

  struct Answer {
    bool write = false;
    uint64_t left_out = 0;  // lines since the last time that this was told: tell it now
  };
  // Whether a line of `bytes` may be written for `account`.
  Answer Ask(std::string_view account, uint64_t bytes, Time now);

  // The accounts of whose lines some were left out, in windows that are over by `now`, and how many. Forgets all
  // accounts of such windows.
  std::vector<std::pair<std::string, uint64_t>> Settle(Time now);

 private:
  struct Account {
    Time end;
    uint64_t bytes = 0;
    uint64_t left_out = 0;
  };

  const uint64_t bytes_;
  const std::chrono::seconds window_;
  Mutex mutex_;
  std::map<std::string, Account, std::less<>> accounts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
