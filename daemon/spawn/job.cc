// SPDX-License-Identifier: Apache-2.0
#include "daemon/spawn/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/os/env.h"
#include "common/os/unique_fd.h"
#include "daemon/spawn/cgroup.h"
#include "daemon/spawn/wall.h"

namespace kernix::spawn {
namespace {

// --- The processes below this one ------------------------------------------------------------------------------------

// As /proc shows them. This process must be the one that orphans below it come to (PR_SET_CHILD_SUBREAPER, or process 1
// of its namespace). `proc`: a descriptor of /proc.

std::string ReadAll(int folder, const std::string& path) {
  const UniqueFd file(openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  for (ssize_t got = 0; file.ok() && (got = read(file.get(), part, sizeof(part))) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

std::vector<std::string> Threads(int proc, const std::string& process) {
  std::vector<std::string> threads;
  const int fd = openat(proc, (process + "/task").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = fd < 0 ? nullptr : fdopendir(fd);
  if (folder == nullptr) return threads;  // it has ended
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') threads.emplace_back(entry->d_name);
  }
  closedir(folder);
  return threads;
}

// By the numbers that the processes have in the namespace of `proc`. About `most` of them, if there are more.
std::vector<std::string> Descendants(int proc, size_t most = SIZE_MAX) {
  std::vector<std::string> found = {"self"};
  for (size_t i = 0; i < found.size() && found.size() <= most; ++i) {
    const std::string process = found[i];
    for (const std::string& thread : Threads(proc, process)) {
      std::istringstream children(ReadAll(proc, process + "/task/" + thread + "/children"));
      for (std::string child; children >> child;) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

// A process that has ended since /proc was read may have left its number to a stranger. So all are opened first, and
// signalled only if the number is still one of ours.
void Signal(int proc, int signal) {
  struct Opened {
    std::string process;
    UniqueFd fd;
  };
  std::vector<Opened> opened;
  for (const std::string& process : Descendants(proc)) {
    opened.push_back({process, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, std::stoi(process), 0)))});
  }
  const std::vector<std::string> still = Descendants(proc);
  for (const Opened& one : opened) {
    if (std::find(still.begin(), still.end(), one.process) == still.end()) continue;
    if (one.fd.ok()) {
      syscall(SYS_pidfd_send_signal, one.fd.get(), signal, nullptr, 0);
    } else if (errno == ENOSYS) {  // before Linux 5.3
      kill(std::stoi(one.process), signal);
    }
  }
}

bool HasChildren() {
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Returns whether there are others.
bool Collect() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return HasChildren();
}

// Whether there are more, zombies included, than `most`.
bool HasMoreDescendants(int proc, size_t most) { return Descendants(proc, most + 1).size() > most; }

// Kills them all and collects them, those that they start meanwhile, too. `is_first`: this is process 1 of its
// namespace.
void KillDescendants(int proc, bool is_first) {
  if (is_first) {
    kill(-1, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    return;
  }
  for (timespec wait = {0, 500'000}; Collect(); wait.tv_nsec = std::min(2 * wait.tv_nsec, 50'000'000L)) {
    Signal(proc, SIGSTOP);  // so that they start no more
    Signal(proc, SIGKILL);
    nanosleep(&wait, nullptr);
  }
}

// --- The job ---------------------------------------------------------------------------------------------------------

// Seconds between SIGXCPU, which names the problem, and SIGKILL.
constexpr uint64_t kCpuGrace = 5;

// A resource without a limit keeps that of this process, which no limit can exceed.
void SetLimit(__rlimit_resource resource, uint64_t wanted, uint64_t grace = 0) {
  struct rlimit own = {};
  if (wanted == 0 || getrlimit(resource, &own) != 0) return;
  const struct rlimit limit = {std::min<rlim_t>(wanted, own.rlim_max), std::min<rlim_t>(wanted + grace, own.rlim_max)};
  Require(setrlimit(resource, &limit) == 0, "set a limit");
}

void SetLimits(const Command& command) {
  const struct rlimit no_core = {0, 0};  // a crashed compiler would leave a file as large as its memory
  Require(setrlimit(RLIMIT_CORE, &no_core) == 0, "set a limit");
  SetLimit(RLIMIT_FSIZE, command.max_file_bytes);
  SetLimit(RLIMIT_AS, command.max_address_space_bytes);
  SetLimit(RLIMIT_CPU, command.max_cpu_seconds, kCpuGrace);
  constexpr int kMost = 19;
  const int niceness = std::min(getpriority(PRIO_PROCESS, 0) + command.niceness, kMost);
  Require(setpriority(PRIO_PROCESS, 0, niceness) == 0, "set the priority");
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void SetStandardFiles(int output) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Require(null.ok(), "open /dev/null");
  Require(dup2(null.get(), STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0,
          "set the standard files");
}

// The one folder that a job may write: its command's, or else an empty one for temporary files, which goes with the
// job.
class WritableFolder {
 public:
  WritableFolder(const Enclosure& enclosure, const Command& command) {
    if (!command.writable.empty()) {
      path_ = enclosure.scratch + "/" + command.writable;
    } else if (enclosure.rung == Rung::kWall) {
      path_ = kTemporaryFolder;
    } else if (enclosure.rung == Rung::kLandlock) {
      Make();
    }
  }
  WritableFolder(const WritableFolder&) = delete;
  WritableFolder& operator=(const WritableFolder&) = delete;
  ~WritableFolder() {
    if (is_made_) Env::Posix().RemoveTree(path_).IgnoreError();
  }

  // Empty if nothing keeps the job from writing anywhere, or if no folder can be made.
  const std::string& path() const { return path_; }

 private:
  void Make() {
    for (const char* place : {"/tmp", "/var/tmp", "/dev/shm"}) {
      std::string path = std::string(place) + "/kernix-XXXXXX";
      if (mkdtemp(path.data()) == nullptr) continue;
      path_ = path;
      is_made_ = true;
      return;
    }
  }

  std::string path_;
  bool is_made_ = false;
};

// The child that becomes the tool. What goes wrong, it writes to `trouble`, which execve() closes.
class Tool {
 public:
  Tool(const JobParts& parts, const Command& command, const std::string& writable, int output, int trouble)
      : parts_(parts), command_(command), writable_(writable), output_(output), trouble_(trouble) {}

  [[noreturn]] void Run() {
    try {
      Prepare();
      const std::string folder = command_.working_directory.empty() ? "/" : command_.working_directory;
      if (chdir(folder.c_str()) != 0) Fail(JobEnd::Kind::kNotEntered);
      Restrict();
      execve(argv_.front(), argv_.data(), environment_.data());
      Fail(JobEnd::Kind::kNotStarted);
    } catch (const std::exception& error) {
      Fail(JobEnd::Kind::kNotBuilt, error.what());
    }
  }

 private:
  void Prepare() {
    Require(setpgid(0, 0) == 0, "make a process group");
    Require(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, "end with the job");
    SetStandardFiles(output_);
    SetLimits(command_);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  void Restrict() {
    if (parts_.enclosure.rung == Rung::kNone) return;
    DropPrivileges();
    if (parts_.enclosure.rung == Rung::kLandlock || HasLandlock()) {
      RestrictFiles(parts_.enclosure, command_, writable_);
    }
    parts_.filter->Apply();
  }

  [[noreturn]] void Fail(JobEnd::Kind kind, std::string problem = "") {
    const std::string message = Encode(JobEnd{.kind = kind, .error_number = errno, .problem = std::move(problem)});
    static_cast<void>(!write(trouble_, message.data(), message.size()));
    _exit(127);
  }

  const JobParts& parts_;
  const Command& command_;
  const std::string& writable_;
  const int output_;
  const int trouble_;
  const std::vector<char*> argv_ = Pointers(command_.argv);
  const std::vector<char*> environment_ = Pointers(command_.environment);
};

// A process's end, as a descriptor that becomes readable.
UniqueFd WatchChildren() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  signal(SIGCHLD, SIG_DFL);
  UniqueFd watch(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  Require(watch.ok(), "watch processes");
  return watch;
}

// Starts the tool. If it could not be started, says why.
pid_t Start(const JobParts& parts, const Command& command, const JobCgroup& cgroup, const std::string& writable,
            int output, JobEnd& end) {
  int trouble[2];
  Require(pipe2(trouble, O_CLOEXEC) == 0, "make a pipe");
  const UniqueFd read_end(trouble[0]);
  UniqueFd write_end(trouble[1]);
  const pid_t tool = cgroup.Fork();
  if (tool == 0) Tool(parts, command, writable, output, write_end.get()).Run();
  Require(tool > 0, "start a process");
  write_end.reset();
  char message[PIPE_BUF];
  const ssize_t size = read(read_end.get(), message, sizeof(message));
  if (size > 0 && !Decode({message, static_cast<size_t>(size)}, end)) end.kind = JobEnd::Kind::kNotBuilt;
  return tool;
}

uint64_t Microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

// The bytes of the files in `folder`, or the most that there can be if it hides some. Follows no links.
uint64_t BytesIn(const std::string& folder) {
  constexpr uint64_t kLeast = 4096;  // that a name takes
  constexpr uint64_t kBlock = 512;
  char* const paths[] = {const_cast<char*>(folder.c_str()), nullptr};
  const std::unique_ptr<FTS, int (*)(FTS*)> walk(fts_open(paths, FTS_PHYSICAL, nullptr), fts_close);
  uint64_t bytes = 0;
  while (const FTSENT* const entry = walk == nullptr ? nullptr : fts_read(walk.get())) {
    const bool is_hidden = entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR;
    if (is_hidden && entry->fts_errno != ENOENT) return UINT64_MAX;
    if (is_hidden || entry->fts_info == FTS_DP || entry->fts_info == FTS_NS) continue;
    const struct stat& info = *entry->fts_statp;
    const auto room = static_cast<uint64_t>(info.st_blocks) * kBlock;
    bytes += kLeast + (S_ISREG(info.st_mode) ? std::max(static_cast<uint64_t>(info.st_size), room) : 0);
  }
  return bytes;
}

// Watches the tool until it has ended, has too many processes or too large files, or nobody waits for it.
class Watch {
 public:
  Watch(const JobParts& parts, const Command& command, const std::string& writable, const UniqueFd& connection,
        const UniqueFd& children, pid_t tool, uint64_t most_bytes)
      : parts_(parts),
        command_(command),
        writable_(writable),
        connection_(connection),
        children_(children),
        tool_(tool),
        counts_(command.max_processes > 0 || command.max_folder_bytes > 0),
        most_bytes_(most_bytes) {}

  JobEnd Run() {
    JobEnd end;
    while (!HasEnded()) {
      pollfd fds[] = {{children_.get(), POLLIN, 0}, {connection_.get(), POLLIN | POLLRDHUP, 0}};
      const int ready = poll(fds, std::size(fds), counts_ ? kCountAgain : -1);
      if (ready > 0 && fds[1].revents != 0) break;  // it was cancelled
      end.kind = Count();
      if (end.kind != JobEnd::Kind::kEnded) break;
    }
    KillTool();
    struct rusage usage = {};
    while (wait4(tool_, &end.status, 0, &usage) < 0 && errno == EINTR) {
    }
    end.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    end.processor_us = Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime);
    return end;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kCountAgain = 200;  // milliseconds

  // Also collects orphans of the tool's.
  bool HasEnded() {
    struct signalfd_siginfo signals;
    while (read(children_.get(), &signals, sizeof(signals)) > 0) {
    }
    for (siginfo_t info = {}; waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
         info = {}) {
      if (info.si_pid == tool_) return true;
      waitpid(info.si_pid, nullptr, 0);
    }
    return false;
  }

  // Counts processes and bytes if a count is due. kEnded: they are not too many.
  JobEnd::Kind Count() {
    if (!counts_ || Clock::now() < next_count_) return JobEnd::Kind::kEnded;
    next_count_ = Clock::now() + std::chrono::milliseconds(kCountAgain);
    const auto most = static_cast<size_t>(command_.max_processes);
    if (most > 0 && HasMoreDescendants(parts_.proc, most)) return JobEnd::Kind::kTooMany;
    const uint64_t bytes = command_.max_folder_bytes == 0 ? 0 : BytesIn(writable_);
    return bytes > most_bytes_ ? JobEnd::Kind::kTooLarge : JobEnd::Kind::kEnded;
  }

  // And its group, which it may have left. It keeps its number until it is collected.
  void KillTool() const {
    kill(-tool_, SIGKILL);
    kill(tool_, SIGKILL);
  }

  const JobParts& parts_;
  const Command& command_;
  const std::string& writable_;
  const UniqueFd& connection_;
  const UniqueFd& children_;
  const pid_t tool_;
  const bool counts_;
  const uint64_t most_bytes_;
  Clock::time_point next_count_ = Clock::now() + std::chrono::milliseconds(kCountAgain);
};

JobEnd Do(const JobParts& parts, Command& command, const UniqueFd& connection, const UniqueFd& output) {
  const bool is_wall = parts.enclosure.rung == Rung::kWall;
  const WritableFolder writable(parts.enclosure, command);
  if (command.writable.empty() && !writable.path().empty()) command.environment.push_back("TMPDIR=" + writable.path());
  Require(is_wall || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "collect orphans");
  if (is_wall) EnterJob(parts.enclosure, command);
  const UniqueFd children = WatchChildren();
  JobEnd end;
  const uint64_t most_bytes = command.max_folder_bytes == 0 ? 0 : BytesIn(writable.path()) + command.max_folder_bytes;
  const JobCgroup cgroup(parts.cgroup, command);
  const pid_t tool = Start(parts, command, cgroup, writable.path(), output.get(), end);
  if (end.kind == JobEnd::Kind::kEnded) {
    end = Watch(parts, command, writable.path(), connection, children, tool, most_bytes).Run();
  }
  cgroup.Kill();
  KillDescendants(parts.proc, is_wall);
  const bool was_killed = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL;
  if (end.kind == JobEnd::Kind::kEnded && was_killed && cgroup.RanOutOfMemory()) {
    end.kind = JobEnd::Kind::kTooMuchMemory;
  }
  return end;
}

}  // namespace

void RunJob(const JobParts& parts, const UniqueFd& connection, UniqueFd output) {
  Command command;
  std::string message;
  if (!ReceiveMessage(connection.get(), message) || !Decode(message, command)) return;
  JobEnd end{.kind = JobEnd::Kind::kNotBuilt};
  try {
    end = Do(parts, command, connection, output);
  } catch (const std::exception& error) {
    end.problem = error.what();
  }
  output.reset();
  SendMessage(connection.get(), Encode(end));
}

}  // namespace kernix::spawn
