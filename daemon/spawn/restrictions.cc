// SPDX-License-Identifier: Apache-2.0
#include "daemon/spawn/restrictions.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "common/os/unique_fd.h"
#include "daemon/spawn/wall.h"

namespace kernix::spawn {
namespace {

// What compilers, linkers, assemblers and shells of several distributions call. There is no socket among them, no
// mount, no namespace, no ptrace, and nothing but signals that reaches another process by its number. (getpeername:
// bash takes its input for a network connection, and reads its start-up files, if it cannot ask.)
constexpr char kAllowed[] =
    "access alarm arch_prctl brk capget chdir clock_getres clock_gettime clock_nanosleep close close_range "
    "copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve "
    "execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fcntl fdatasync flock "
    "fork fstat fstatfs fsync ftruncate futex futex_waitv getcpu getcwd getdents getdents64 getegid geteuid getgid "
    "getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid "
    "getrlimit getrusage getsid gettid gettimeofday getuid ioctl kill lgetxattr getxattr link linkat lseek lstat "
    "madvise membarrier memfd_create mincore mkdir mkdirat mlock mmap mprotect mremap msync munlock munmap nanosleep "
    "newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 poll ppoll prctl pread64 preadv "
    "preadv2 pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 "
    "restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend "
    "rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr "
    "sched_getparam sched_getscheduler sched_yield select sendfile set_robust_list set_tid_address setitimer setgid "
    "setpgid setregid setresgid setresuid setreuid setuid setrlimit setsid sigaltstack splice stat statfs statx "
    "symlink symlinkat sync_file_range sysinfo tgkill time timer_create timer_delete timer_getoverrun timer_gettime "
    "timer_settime timerfd_create timerfd_settime times tkill umask uname unlink unlinkat vfork wait4 waitid write "
    "writev";

// What changes a file's mode and times: of any file of the user's, since Landlock does not hold it back. A wall does.
// Without one, tools are told that it is done: linkers make their output executable, and no tool needs that.
constexpr char kOfFiles[] = "chmod fchmod fchmodat fchmodat2 futimesat utime utimensat utimes";

// What a tool may do to itself alone: their first argument, or with setpriority the second, must be 0.
constexpr struct {
  const char* name;
  unsigned argument;
} kOfItself[] = {{"prlimit64", 0}, {"sched_setaffinity", 0}, {"setpriority", 1}};

// New threads and processes, but no new namespaces. clone3() passes its flags in memory, where no filter can see them;
// without it, programs use clone().
constexpr uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                 CLONE_NEWPID | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */;

void RequireNoError(int result, const std::string& what) {
  errno = -result;
  Require(result == 0, what);
}

// --- Landlock: as in linux/landlock.h, whose older versions lack the newer fields and flags -------------------------

struct LandlockRules {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scoped = 0;
};

struct [[gnu::packed]] LandlockPath {
  uint64_t allowed = 0;
  int32_t folder = -1;
};

constexpr uint64_t kExecute = 1 << 0;
constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadFolder = 1 << 3;
constexpr uint64_t kTruncate = 1 << 14;  // since version 3
constexpr uint64_t kRead = kExecute | kReadFile | kReadFolder;
constexpr uint64_t kTcp = 3;                 // binding, connecting; since version 4
constexpr uint64_t kIoctl = 1 << 15;         // since version 5
constexpr uint64_t kAbstractAndSignals = 3;  // since version 6

int LandlockVersion() {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */));
}

// All rights that `version` knows.
LandlockRules AllRights(int version) {
  constexpr uint64_t kRightsOfVersion1 = (1 << 13) - 1;
  constexpr uint64_t kRefer = 1 << 13;  // since version 2
  LandlockRules rules{.files = kRightsOfVersion1};
  if (version >= 2) rules.files |= kRefer;
  if (version >= 3) rules.files |= kTruncate;
  if (version >= 4) rules.network = kTcp;
  if (version >= 5) rules.files |= kIoctl;
  if (version >= 6) rules.scoped = kAbstractAndSignals;
  return rules;
}

size_t SizeOfRules(int version) {
  if (version >= 6) return sizeof(LandlockRules);
  return version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

class Landlock {
 public:
  Landlock() : version_(LandlockVersion()), all_(AllRights(version_)) {
    rules_ = UniqueFd(static_cast<int>(syscall(SYS_landlock_create_ruleset, &all_, SizeOfRules(version_), 0)));
    Require(rules_.ok(), "make rules of Landlock");
  }

  // What `path` leads to, and all below it. A path that leads nowhere is left out.
  void Allow(const std::string& path, uint64_t rights) {
    const UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!file.ok()) return;
    struct stat info = {};
    Require(fstat(file.get(), &info) == 0, "look at " + path);
    constexpr uint64_t kRightsOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctl;
    if (!S_ISDIR(info.st_mode)) rights &= kRightsOfFiles;
    const LandlockPath rule{.allowed = rights & all_.files, .folder = file.get()};
    Require(syscall(SYS_landlock_add_rule, rules_.get(), 1 /* LANDLOCK_RULE_PATH_BENEATH */, &rule, 0) == 0,
            "allow " + path);
  }

  void Apply() { Require(syscall(SYS_landlock_restrict_self, rules_.get(), 0) == 0, "apply rules of Landlock"); }

 private:
  const int version_;
  const LandlockRules all_;
  UniqueFd rules_;
};

}  // namespace

SystemCallFilter::SystemCallFilter(Rung rung) {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), seccomp_release);
  errno = ENOMEM;
  Require(filter != nullptr, "make a filter of system calls");
  const auto answer = [&](const char* names_of_calls, uint32_t action) {
    std::istringstream names(names_of_calls);
    for (std::string name; names >> name;) {
      const int number = seccomp_syscall_resolve_name(name.c_str());
      if (number < 0) continue;  // unknown to this library, or to this processor
      RequireNoError(seccomp_rule_add(filter.get(), action, number, 0), name);
    }
  };
  answer(kAllowed, SCMP_ACT_ALLOW);
  answer(kOfFiles, rung == Rung::kWall ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(0));
  for (const auto& [name, argument] : kOfItself) {
    const scmp_arg_cmp is_itself = {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = 0, .datum_b = 0};
    RequireNoError(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name), 1, is_itself),
                   name);
  }
  const scmp_arg_cmp without_namespaces = {.arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = kNamespaces, .datum_b = 0};
  RequireNoError(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, without_namespaces), "clone");
  RequireNoError(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "sort the filter");
  const UniqueFd memory(static_cast<int>(memfd_create("filter", MFD_CLOEXEC)));
  Require(memory.ok(), "make a filter of system calls");
  RequireNoError(seccomp_export_bpf(filter.get(), memory.get()), "make a filter of system calls");
  program_.resize(static_cast<size_t>(lseek(memory.get(), 0, SEEK_END)));
  Require(pread(memory.get(), program_.data(), program_.size(), 0) == static_cast<ssize_t>(program_.size()),
          "read the filter of system calls");
}

void SystemCallFilter::Apply() const {
  const struct sock_fprog program = {static_cast<unsigned short>(program_.size() / sizeof(struct sock_filter)),
                                     reinterpret_cast<struct sock_filter*>(const_cast<char*>(program_.data()))};
  Require(prctl(PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, &program) == 0, "apply a filter of system calls");
}

void DropPrivileges() {
  Require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "give up new privileges");
  // A process without CAP_SETPCAP has no capability to lose.
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    prctl(PR_CAPBSET_DROP, capability);
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  Require(syscall(SYS_capset, &header, none) == 0, "give up capabilities");
}

bool HasLandlock() { return LandlockVersion() > 0; }

void RestrictFiles(const Enclosure& enclosure, const Command& command, const std::string& writable) {
  Landlock landlock;
  for (const std::string& path : SystemFiles()) landlock.Allow(path, kRead);
  for (const std::string& path : SystemDevices()) landlock.Allow(path, kReadFile | kWriteFile | kTruncate);
  for (const std::string& path : enclosure.readable) landlock.Allow(path, kRead);
  for (const std::string& name : command.folders) landlock.Allow(enclosure.scratch + "/" + name, kRead);
  if (!writable.empty()) landlock.Allow(writable, UINT64_MAX);
  landlock.Apply();
}

}  // namespace kernix::spawn
