// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <endian.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace kernix {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

constexpr std::string_view kLevelNames[] = {"debug", "info", "warning", "error"};  // by LogLevel
constexpr std::string_view kPriorities[] = {"7", "6", "4", "3"};                   // of syslog

bool NeedsQuotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \"=\\") != std::string_view::npos || Printable(value) != value;
}

void AppendQuoted(std::string& line, std::string_view value) {
  std::string escaped =
      absl::StrReplaceAll(ToAbsl(value), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"\t", "\\t"}});
  StrAppend(&line, "\"", Printable(escaped), "\"");
}

// A value may quote a request of any length.
constexpr size_t kLongestValue = 4096;

void AppendValue(std::string& line, std::string_view value) {
  const std::string_view shown = value.substr(0, kLongestValue);
  NeedsQuotes(shown) ? AppendQuoted(line, shown) : StrAppend(&line, shown);
  if (value.size() > kLongestValue) StrAppend(&line, "...(", value.size(), " bytes)");
}

// Of a user who loads hundreds of kernels a minute, no line is missing.
constexpr uint64_t kBytesOfAccount = 256 << 10;

LogBudget& Budget() {
  static LogBudget& budget = *new LogBudget(kBytesOfAccount, std::chrono::minutes(1));  // threads log until the end
  return budget;
}

// About what the line takes; formatting it would cost more than most that it decides.
uint64_t BytesOf(std::initializer_list<LogField> fields) {
  uint64_t bytes = 48;  // the time, the level, the event
  for (const LogField& field : fields) bytes += field.key.size() + std::min(field.value.size(), kLongestValue) + 2;
  return bytes;
}

std::string Timed(std::string line) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ ", absl::Now(), absl::UTCTimeZone()) + std::move(line);
}

// The threads that answer clients log, too: none of them may wait for the reader of stderr.
class LogOutput {
 public:
  void Write(const std::string& line) {
    const MutexLock lock(mutex_);
    if (lost_ > 0) {
      const std::string tale = Timed(FormatLogLine(LogLevel::kWarning, "lines_lost", {{"lines", lost_}}));
      if (WriteNow(StrCat(is_cut_ ? "\n" : "", tale))) lost_ = 0;
    }
    if (lost_ > 0 || !WriteNow(line)) ++lost_;
  }

  void SetWatcher(LogWatcher watcher) {
    const MutexLock lock(mutex_);
    watcher_ = std::move(watcher);
  }

 private:
  // False: there was no room for all of it. What poll(2) finds room for in a pipe is at least PIPE_BUF.
  bool WriteNow(std::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t size = text.size();
    while (!text.empty()) {
      pollfd fd = {STDERR_FILENO, POLLOUT, 0};
      if (poll(&fd, 1, /*timeout=*/0) == 0) {
        is_cut_ = is_cut_ || text.size() < size;
        return false;
      }
      const ssize_t written = write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
      if (written <= 0) return true;  // if stderr is gone, there is nowhere to report it
      text.remove_prefix(static_cast<size_t>(written));
    }
    is_cut_ = false;
    if (watcher_) watcher_(size);
    return true;
  }

  Mutex mutex_;
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_cut_ ABSL_GUARDED_BY(mutex_) = false;  // what was written last ends within a line
  LogWatcher watcher_ ABSL_GUARDED_BY(mutex_);
};

LogOutput& Output() {
  static LogOutput& output = *new LogOutput;  // threads log until the end
  return output;
}

void TellLeftOut(std::string_view account, uint64_t lines) {
  Log(LogLevel::kInfo, "lines_left_out", {{"of", account}, {"lines", lines}});
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }

bool ParseLogLevel(std::string_view name, LogLevel& level) {
  const auto found = std::find(std::begin(kLevelNames), std::end(kLevelNames), name);
  if (found == std::end(kLevelNames)) return false;
  level = static_cast<LogLevel>(found - kLevelNames);
  return true;
}

std::string FormatLogLine(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  std::string line(kLevelNames[static_cast<size_t>(level)]);
  line += ' ';
  AppendValue(line, event);
  for (const LogField& field : fields) {
    StrAppend(&line, " ", field.key, "=");
    AppendValue(line, field.value);
  }
  line += '\n';
  return line;
}

namespace {

bool StderrIs(const char* stream) {
  struct stat status {};
  return stream != nullptr && fstat(STDERR_FILENO, &status) == 0 && StrCat(status.st_dev, ":", status.st_ino) == stream;
}

}  // namespace

Journal::Journal(std::string socket_path)
    : socket_path_(std::move(socket_path)), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

const Journal* Journal::OfStderr() {
  static const Journal* const journal =
      StderrIs(getenv("JOURNAL_STREAM")) ? new Journal("/run/systemd/journal/socket") : nullptr;
  return journal;
}

void Journal::Add(std::string& entry, std::string_view prefix, std::string_view name, std::string_view value) {
  const uint64_t size = htole64(value.size());
  StrAppend(&entry, prefix, absl::AsciiStrToUpper(ToAbsl(name)), "\n",
            std::string_view(reinterpret_cast<const char*>(&size), sizeof(size)), value, "\n");
}

bool Journal::Send(const std::string& entry) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return sendto(socket_, entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), sizeof(address)) >= 0;
}

std::string JournalEntry(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  std::string line = FormatLogLine(level, event, fields);
  line.pop_back();
  std::string entry;
  Journal::Add(entry, "", "MESSAGE", line);
  Journal::Add(entry, "", "PRIORITY", kPriorities[static_cast<size_t>(level)]);
  Journal::Add(entry, "", "SYSLOG_IDENTIFIER", "kernixd");
  Journal::Add(entry, "KERNIX_", "EVENT", event);
  for (const LogField& field : fields) {
    Journal::Add(entry, "KERNIX_", field.key, std::string_view(field.value).substr(0, kLongestValue));
  }
  return entry;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  const Journal* journal = Journal::OfStderr();
  if (journal != nullptr && journal->Send(JournalEntry(level, event, fields))) return;
  Output().Write(Timed(FormatLogLine(level, event, fields)));
}

void SetLogWatcher(LogWatcher watcher) { Output().SetWatcher(std::move(watcher)); }

void LogOf(std::string_view account, LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  const LogBudget::Answer answer = Budget().Ask(account, BytesOf(fields), std::chrono::steady_clock::now());
  if (answer.left_out > 0) TellLeftOut(account, answer.left_out);
  if (answer.write) Log(level, event, fields);
}

void LogLeftOut(bool all) {
  const auto now = all ? LogBudget::Time::max() : std::chrono::steady_clock::now();
  for (const auto& [account, lines] : Budget().Settle(now)) TellLeftOut(account, lines);
}

LogBudget::Answer LogBudget::Ask(std::string_view account, uint64_t bytes, Time now) {
  const MutexLock lock(mutex_);
  auto found = accounts_.find(account);
  if (found == accounts_.end()) found = accounts_.emplace(account, Account{now + window_}).first;
  Account& own = found->second;
  Answer answer;
  if (own.end <= now) {
    answer.left_out = own.left_out;
    own = {now + window_};
  }
  answer.write = own.bytes < bytes_;
  answer.write ? own.bytes += bytes : ++own.left_out;
  return answer;
}

std::vector<std::pair<std::string, uint64_t>> LogBudget::Settle(Time now) {
  std::vector<std::pair<std::string, uint64_t>> left_out;
  const MutexLock lock(mutex_);
  for (const auto& [name, account] : accounts_) {
    if (account.end <= now && account.left_out > 0) left_out.emplace_back(name, account.left_out);
  }
  std::erase_if(accounts_, [now](const auto& entry) { return entry.second.end <= now; });
  return left_out;
}

}  // namespace kernix
