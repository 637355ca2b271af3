// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/own_process.h"

#include <fcntl.h>
#include <grpc/support/log.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"
#include "common/wire/kernixd_exit.h"

namespace kernix::server {

bool Detach(int report) {
  struct stat info {};
  if (fstat(report, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  fcntl(report, F_SETFD, FD_CLOEXEC);
  const pid_t child = fork();
  if (child != 0) _exit(child > 0 ? kExitOk : kExitFailure);
  setsid();
  return true;
}

void ReportEnd(int report, int exit_code) {
  const auto code = static_cast<uint8_t>(exit_code);
  (void)send(report, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
}
namespace {

// A limit that kernixd or a compiler may meet: to what it is raised, and how large is not worth a word.
struct Limit {
  __rlimit_resource resource;
  const char* name;
  rlim_t wanted;
  rlim_t enough;
};

constexpr Limit kLimits[] = {
    {RLIMIT_AS, "bytes of address space of each process", RLIM_INFINITY, RLIM_INFINITY},
    {RLIMIT_DATA, "bytes of data of each process", RLIM_INFINITY, RLIM_INFINITY},
    {RLIMIT_STACK, "bytes of stack", 8 << 20, 8 << 20},
    {RLIMIT_FSIZE, "bytes of each file", RLIM_INFINITY, RLIM_INFINITY},
    {RLIMIT_CPU, "seconds of processor time of each process", RLIM_INFINITY, RLIM_INFINITY},
    {RLIMIT_NPROC, "processes of the user", RLIM_INFINITY, 1024},
    {RLIMIT_NOFILE, "open files", 1024, 1024},
};

using Words = std::vector<std::string>;

void RaiseLimit(const Limit& limit, Words& left) {
  rlimit now{};
  if (getrlimit(limit.resource, &now) != 0) return;
  const rlim_t wanted = std::min(now.rlim_max, limit.wanted);
  if (now.rlim_cur < wanted) {
    now.rlim_cur = wanted;
    setrlimit(limit.resource, &now);
  }
  if (now.rlim_max < limit.enough) left.push_back(StrCat("at most ", uint64_t{now.rlim_max}, " ", limit.name));
}

// The kernel leaves out what the cgroup does not have.
void TakeAllProcessors(Words& left) {
  std::array<unsigned char, 1024> all{};
  all.fill(0xff);
  if (sched_setaffinity(0, all.size(), reinterpret_cast<const cpu_set_t*>(all.data())) == 0) return;
  std::array<cpu_set_t, 8> mine{};
  if (sched_getaffinity(0, sizeof mine, mine.data()) != 0) return;
  left.push_back(StrCat("at most ", CPU_COUNT_S(sizeof mine, mine.data()), " processors"));
}

void TakeUsualPriority(Words& left) {
  const sched_param none{};
  if (sched_getscheduler(0) != SCHED_OTHER && sched_setscheduler(0, SCHED_OTHER, &none) != 0) {
    left.push_back("a scheduling policy that is not the usual one");
  }
  setpriority(PRIO_PROCESS, 0, 0);
  const int niceness = getpriority(PRIO_PROCESS, 0);
  if (niceness > 0) left.push_back(StrCat("a niceness of ", niceness));
}

// As linux/ioprio.h has them; glibc has no function.
void TakeUsualDiskPriority(Words& left) {
  constexpr int kProcess = 1;
  constexpr int kNone = 0;
  constexpr int kClassShift = 13;
  syscall(SYS_ioprio_set, kProcess, 0, kNone);
  constexpr int kIdle = 3;
  if (syscall(SYS_ioprio_get, kProcess, 0) >> kClassShift == kIdle) left.push_back("the disk only while it is idle");
}

void BeAsDispensableAsOthers(Words& left) {
  const std::unique_ptr<FILE, decltype(&fclose)> file(fopen("/proc/self/oom_score_adj", "r+"), fclose);
  int adjustment = 0;
  if (file == nullptr || fscanf(file.get(), "%d", &adjustment) != 1 || adjustment == 0) return;
  rewind(file.get());
  const bool is_set = fputs("0", file.get()) >= 0 && fflush(file.get()) == 0;
  if (!is_set) left.push_back(StrCat("an oom_score_adj of ", adjustment));
}

}  // namespace

Words ShedInherited() {
  Words left;
  TakeAllProcessors(left);
  TakeUsualPriority(left);
  TakeUsualDiskPriority(left);
  BeAsDispensableAsOthers(left);
  constexpr int kDefaultPolicy = 0;
  syscall(SYS_set_mempolicy, kDefaultPolicy, nullptr, 0);
  for (const Limit& limit : kLimits) RaiseLimit(limit, left);
  umask(S_IWGRP | S_IWOTH);
  return left;
}

// By default, there are up to eight arenas for each processor, and a little that is in use keeps whole pages of each.
// Allocating is not what kernixd's threads do all day.
void LimitArenas() { mallopt(M_ARENA_MAX, 1); }

void ReturnMemory() { malloc_trim(/*pad=*/0); }

namespace {

void WriteLine(gpr_log_func_args* line) {
  const LogLevel level = line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug;
  LogOf("grpc", level, "grpc", {{"where", StrCat(Basename(line->file), ":", line->line)}, {"message", line->message}});
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(WriteLine); }

absl::Status LogFile::Open() {
  const MutexLock lock(mutex_);
  return OpenLocked();
}

absl::Status LogFile::Step() {
  const MutexLock lock(mutex_);
  return StepLocked();
}

void LogFile::Wrote(size_t bytes) {
  const MutexLock lock(mutex_);
  written_ += bytes;
  if (written_ >= limit_ / 4) StepLocked().IgnoreError();
}

absl::Status LogFile::OpenLocked() {
  const UniqueFd file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoStatus(errno, "open the log file", path_);
  if (dup2(file.get(), descriptor_) < 0) return ErrnoStatus(errno, "write to the log file", path_);
  return absl::OkStatus();
}

absl::Status LogFile::StepLocked() {
  written_ = 0;
  struct stat info {};
  if (stat(path_.c_str(), &info) != 0) return OpenLocked();  // somebody has removed it
  if (static_cast<uint64_t>(info.st_size) <= limit_) return absl::OkStatus();
  if (rename(path_.c_str(), StrCat(path_, ".1").c_str()) != 0) return ErrnoStatus(errno, "rename", path_);
  return OpenLocked();
}

namespace {

constexpr std::pair<int, std::string_view> kSignals[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}};

}  // namespace

absl::StatusOr<StopSignals> StopSignals::Take() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit that was inherited: a write beyond it says so
  sigset_t signals;
  sigemptyset(&signals);
  for (const auto& [number, name] : kSignals) sigaddset(&signals, number);
  const int blocked = pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (blocked != 0) return ErrnoStatus(blocked, "block", "signals");
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.ok()) return ErrnoStatus(errno, "make", "a signalfd");
  return StopSignals(std::move(fd));
}

std::optional<std::string> StopSignals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  for (const auto& [number, name] : kSignals) {
    if (info.ssi_signo == static_cast<uint32_t>(number)) return std::string(name);
  }
  return std::nullopt;
}

StopRequest::StopRequest() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void StopRequest::Set(std::string_view reason, Duration drain_timeout) {
  const MutexLock lock(mutex_);
  if (reason_) return;
  reason_ = StopReason{.text = std::string(reason), .drain_timeout = drain_timeout};
  eventfd_write(fd_.get(), 1);
}

std::optional<StopReason> StopRequest::Get() const {
  const MutexLock lock(mutex_);
  return reason_;
}

}  // namespace kernix::server
