// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/output_buffer.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

using Clock = std::chrono::steady_clock;

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  bool is_dead = false;
};

using Table = std::vector<Process>;

// "12 (name) S 1 12 ...": the name may contain any characters.
std::optional<Process> ParseStat(pid_t pid, std::string_view text) {
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos) return std::nullopt;
  char state = 0;
  Process process{.pid = pid};
  const std::string rest(text.substr(close + 1));
  if (std::sscanf(rest.c_str(), " %c %d %d", &state, &process.parent, &process.group) != 3) return std::nullopt;
  process.is_dead = state == 'Z' || state == 'X';
  return process;
}

std::optional<Process> ReadProcess(int proc, std::string_view name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  const UniqueFd stat(openat(proc, (std::string(name) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!stat.ok()) return std::nullopt;  // it has ended
  std::array<char, 512> text;
  const ssize_t count = read(stat.get(), text.data(), text.size());
  if (count <= 0) return std::nullopt;
  return ParseStat(pid, std::string_view(text.data(), static_cast<size_t>(count)));
}

Table ReadTable() {
  Table table;
  DIR* const proc = opendir("/proc");
  if (proc == nullptr) return table;
  while (const dirent* entry = readdir(proc)) {
    if (const std::optional<Process> process = ReadProcess(dirfd(proc), entry->d_name)) table.push_back(*process);
  }
  closedir(proc);
  return table;
}

Table FamilyIn(const Table& table, pid_t leader) {
  std::multimap<pid_t, const Process*> children;
  std::set<pid_t> found;  // /proc is not read atomically: a process id may appear twice, even as its own ancestor
  Table family;
  for (const Process& process : table) {
    children.emplace(process.parent, &process);
    const bool in_group = process.pid == leader || process.group == leader;
    if (in_group && found.insert(process.pid).second) family.push_back(process);
  }
  for (size_t i = 0; i < family.size(); ++i) {
    const auto [begin, end] = children.equal_range(family[i].pid);
    for (auto child = begin; child != end; ++child) {
      if (found.insert(child->second->pid).second) family.push_back(*child->second);
    }
  }
  return family;
}

// All callers of CountFamily() share it.
class SharedTable {
 public:
  int CountFamily(pid_t leader) {
    const MutexLock lock(mutex_);
    if (Clock::now() >= outdated_) Refresh();
    const Table family = FamilyIn(table_, leader);
    return static_cast<int>(std::count_if(family.begin(), family.end(), [](const Process& p) { return !p.is_dead; }));
  }

 private:
  void Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr Clock::duration kAge = std::chrono::milliseconds(200);
    constexpr int kShare = 50;
    const Clock::time_point begin = Clock::now();
    table_ = ReadTable();
    const Clock::time_point end = Clock::now();
    outdated_ = end + std::max(kAge, kShare * (end - begin));
  }

  Mutex mutex_;
  Table table_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point outdated_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<pid_t> Family(pid_t leader) {
  std::vector<pid_t> pids;
  for (const Process& process : FamilyIn(ReadTable(), leader)) pids.push_back(process.pid);
  return pids;
}

int CountFamily(pid_t leader) {
  static SharedTable& table = *new SharedTable;
  return table.CountFamily(leader);
}

namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "create", "a pipe");
  Pipe pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
  // Only our end is non-blocking: a compiler with a non-blocking stdout loses output.
  if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus(errno, "set up", "a pipe");
  return pipe;
}

// Becomes readable when the process has ended. Not open on kernels before 5.3.
UniqueFd OpenProcess(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

// Milliseconds for poll(2).
int PollTimeoutUntil(MonotonicTime time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

void AwaitEnd(const UniqueFd& process, MonotonicTime deadline) {
  if (!process.ok()) return;
  pollfd fd = {process.get(), POLLIN, 0};
  while (poll(&fd, 1, PollTimeoutUntil(deadline)) < 0 && errno == EINTR) {
  }
}

// Sends a signal to the family of `leader`, a child that was not reaped. A process that has ended since /proc was read
// may have left its number to a stranger. So it is opened first, and signalled only if the number is still one of the
// family.
std::vector<UniqueFd> OpenAndSignal(pid_t leader, int signal) {
  std::map<pid_t, UniqueFd> opened;
  for (const pid_t member : Family(leader)) opened.emplace(member, OpenProcess(member));
  std::vector<UniqueFd> signalled;
  for (const pid_t member : Family(leader)) {
    auto process = opened.extract(member);
    if (process.empty()) continue;
    const int fd = process.mapped().get();
    fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) : kill(member, signal);
    signalled.push_back(std::move(process.mapped()));
  }
  return signalled;
}

// A killed process ends late if it hangs in the kernel, for instance in a file system that does not answer.
constexpr std::chrono::seconds kPatienceWithTheDying(5);

// A running child, until Reap() is called. Its process id stays reserved until then, so a signal cannot hit another
// process.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid), exit_fd_(OpenProcess(pid)) {}
  ~Child() {
    if (!reaped_) {
      KillGroup();
      Reap();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Readable when the child has ended; negative on kernels before 5.3, where the caller must poll.
  int exit_fd() const { return exit_fd_.get(); }

  bool HasExited() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }

  pid_t pid() const { return pid_; }

  void KillGroup() const { kill(-pid_, SIGKILL); }

  // Call this while the child runs. It also kills descendants in process groups of their own, which cannot be found
  // later. Waits until they have ended, and so given back their memory and the space of the files that they held open.
  void KillFamily() const {
    OpenAndSignal(pid_, SIGSTOP);  // so that they start no more
    const std::vector<UniqueFd> killed = OpenAndSignal(pid_, SIGKILL);
    KillGroup();
    const MonotonicTime deadline = Clock::now() + kPatienceWithTheDying;
    for (const UniqueFd& process : killed) AwaitEnd(process, deadline);
  }

  // Waits for the end and returns the results of wait4(2).
  ProcessResult Reap() {
    int status = 0;
    struct rusage usage = {};
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    ProcessResult result;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    result.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    return result;
  }

 private:
  pid_t pid_;
  UniqueFd exit_fd_;
  bool reaped_ = false;
};

// Watches one child until it has ended, was cancelled, timed out, or has too many processes.
class Watch {
 public:
  enum class End { kExited, kCancelled, kTimedOut, kTooMany };

  Watch(Child& child, UniqueFd output, int cancel_fd, std::optional<MonotonicTime> deadline, int max_processes,
        OutputBuffer& buffer, const OutputCallback& on_output)
      : child_(child),
        output_(std::move(output)),
        cancel_fd_(cancel_fd),
        deadline_(deadline),
        max_processes_(max_processes),
        buffer_(buffer),
        on_output_(on_output) {}

  // The child's exit ends the watch, not the closing of the pipe: a program that it left behind may hold the pipe open.
  // Such leftovers are killed with the group.
  End Run() {
    const End end = WaitForEnd();
    if (end == End::kExited) {
      child_.KillGroup();
    } else {
      child_.KillFamily();
    }
    DrainOutput();
    return end;
  }

 private:
  End WaitForEnd() {
    while (true) {
      pollfd fds[] = {{output_.get(), POLLIN, 0}, {cancel_fd_, POLLIN, 0}, {child_.exit_fd(), POLLIN, 0}};
      const int ready = poll(fds, std::size(fds), PollTimeout());
      if (ready > 0 && fds[0].revents != 0) ReadSome();
      if (ready > 0 && fds[1].revents != 0) return End::kCancelled;
      if (child_.HasExited()) return End::kExited;
      if (deadline_ && Clock::now() >= *deadline_) return End::kTimedOut;
      if (AreTooMany()) return End::kTooMany;
    }
  }

  // Counts the processes if a count is due.
  bool AreTooMany() {
    if (max_processes_ == 0 || Clock::now() < next_count_) return false;
    next_count_ = Clock::now() + kCountAgain;
    return CountFamily(child_.pid()) > max_processes_;
  }

  // Milliseconds until an action may be due that no descriptor announces.
  int PollTimeout() const {
    constexpr std::chrono::milliseconds kAskAgain(20);
    const MonotonicTime now = Clock::now();
    MonotonicTime next = deadline_.value_or(MonotonicTime::max());
    if (max_processes_ > 0) next = std::min(next, next_count_);
    if (child_.exit_fd() < 0) next = std::min(next, now + kAskAgain);
    return next == MonotonicTime::max() ? -1 : PollTimeoutUntil(next);
  }

  // Reads once. Returns false if no data is available, now or ever again.
  bool ReadSome() {
    if (!output_.ok()) return false;
    char data[16 * 1024];
    const ssize_t got = read(output_.get(), data, sizeof(data));
    if (got > 0) {
      const std::string_view text(data, static_cast<size_t>(got));
      buffer_.Append(text);
      if (on_output_) on_output_(text);
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) output_.reset();
    return got < 0 && errno == EINTR;
  }

  // Reads what the pipe contains now, at most a pipe's capacity: a dying leftover may still write.
  void DrainOutput() {
    for (int reads = 0; reads < 128 && ReadSome(); ++reads) {
    }
  }

  Child& child_;
  UniqueFd output_;
  const int cancel_fd_;
  const std::optional<MonotonicTime> deadline_;
  static constexpr std::chrono::milliseconds kCountAgain{200};
  const int max_processes_;
  MonotonicTime next_count_ = Clock::now() + kCountAgain;
  OutputBuffer& buffer_;
  const OutputCallback& on_output_;
};

absl::Status Cancelled(const ProcessSpec& spec) { return absl::CancelledError(StrCat(spec.argv[0], " was cancelled")); }

std::optional<MonotonicTime> Deadline(const ProcessSpec& spec, MonotonicTime start) {
  if (spec.timeout.count() <= 0) return std::nullopt;
  return start + spec.timeout;
}

}  // namespace

absl::StatusOr<ProcessResult> PosixEnv::RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                                   Cancellation* cancellation) {
  const UniqueFd cancelled(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));  // becomes readable when `cancellation` fires
  if (!cancelled.ok()) return ErrnoStatus(errno, "create", "an eventfd");
  const ScopedOnCancel on_cancel(cancellation, [fd = cancelled.get()] { eventfd_write(fd, 1); });
  KERNIX_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  const MonotonicTime start = Clock::now();
  KERNIX_ASSIGN_OR_RETURN(const pid_t pid, Spawn(spec, pipe.write_end.get()));
  Child child(pid);
  pipe.write_end.reset();

  OutputBuffer buffer(spec.max_output_bytes);
  Watch watch(child, std::move(pipe.read_end), cancelled.get(), Deadline(spec, start), spec.max_processes, buffer,
              on_output);
  const Watch::End end = watch.Run();
  ProcessResult result = child.Reap();
  if (end == Watch::End::kCancelled) return Cancelled(spec);
  result.timed_out = end == Watch::End::kTimedOut;
  result.too_many_processes = end == Watch::End::kTooMany;
  result.output = buffer.Text();
  result.wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  return result;
}

}  // namespace kernix::posix
