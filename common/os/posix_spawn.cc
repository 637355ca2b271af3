// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

// A second name that glibc exports for clone(2). ThreadSanitizer's wrapper of clone(2) would take the call for a fork.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);  // NOLINT

namespace kernix::posix {
namespace {

// Seconds between SIGXCPU, which names the problem, and SIGKILL.
constexpr uint64_t kCpuGrace = 5;

enum class Step { kPrepare, kChangeDirectory, kExecute };

// Everything that the child needs, prepared before the child exists. Child and parent share memory until the child
// calls execve(), and the parent's thread sleeps until then. So the child can return `error`.
struct ChildPlan {
  char* const* argv;
  char* const* environment;
  const char* working_directory;  // null: the parent's
  int input_fd;
  int output_fd;
  rlim_t descriptor_limit;
  struct rlimit file_limit;
  struct rlimit memory_limit;
  struct rlimit cpu_limit;
  int niceness;
  pid_t parent;
  Step failed_step = Step::kPrepare;
  int error = 0;
};

// posix_spawn() cannot set a parent-death signal, and fork() would copy the page tables of a large process. So this
// code does what posix_spawn() does internally, and sets the signal as well: it blocks all signals and gives the child
// its own stack. The child makes only bare system calls, because another thread may hold any lock, and because
// sanitizers attribute calls of their wrappers to the parent.
#define KERNIX_CHILD_CODE ABSL_ATTRIBUTE_NO_SANITIZE_THREAD ABSL_ATTRIBUTE_NO_SANITIZE_ADDRESS

KERNIX_CHILD_CODE bool ResetSignals() {
  constexpr size_t kKernelMaskBytes = _NSIG / 8;
  const unsigned long zeros[8] = {};  // as the kernel's sigaction: SIG_DFL, no flags; as its mask: nothing blocked
  // Do this before unblocking signals: a handler of the parent must not run in the memory that both processes share.
  for (int number = 1; number < _NSIG; ++number) syscall(SYS_rt_sigaction, number, zeros, nullptr, kKernelMaskBytes);
  return syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, nullptr, kKernelMaskBytes) == 0;
}

KERNIX_CHILD_CODE void CloseDescriptorsFrom(unsigned first, rlim_t limit) {
  if (syscall(SYS_close_range, first, UINT_MAX, 0) == 0) return;
  // For kernels before 5.9. All descriptors of kernix have O_CLOEXEC; this closes those of libraries.
  for (unsigned fd = first; fd < limit; ++fd) syscall(SYS_close, fd);
}

// A resource without a limit keeps the parent's limit.
KERNIX_CHILD_CODE bool SetLimit(int resource, const struct rlimit& limit) {
  return limit.rlim_cur == RLIM_INFINITY || syscall(SYS_prlimit64, 0, resource, &limit, nullptr) == 0;
}

// Core files are disabled, because a crashed compiler leaves one as large as its memory.
KERNIX_CHILD_CODE bool SetLimits(const ChildPlan& plan) {
  const struct rlimit no_core = {0, 0};
  return SetLimit(RLIMIT_CORE, no_core) && SetLimit(RLIMIT_FSIZE, plan.file_limit) &&
         SetLimit(RLIMIT_AS, plan.memory_limit) && SetLimit(RLIMIT_CPU, plan.cpu_limit);
}

KERNIX_CHILD_CODE bool Prepare(const ChildPlan& plan) {
  if (syscall(SYS_setpgid, 0, 0) != 0 || syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return false;
  // The parent may have died before prctl().
  if (syscall(SYS_getppid) != plan.parent) syscall(SYS_exit_group, 1);
  if (syscall(SYS_dup3, plan.input_fd, STDIN_FILENO, 0) < 0 ||
      syscall(SYS_dup3, plan.output_fd, STDOUT_FILENO, 0) < 0 ||
      syscall(SYS_dup3, plan.output_fd, STDERR_FILENO, 0) < 0) {
    return false;
  }
  if (!SetLimits(plan)) return false;
  if (syscall(SYS_setpriority, PRIO_PROCESS, 0, plan.niceness) != 0) return false;
  CloseDescriptorsFrom(STDERR_FILENO + 1, plan.descriptor_limit);
  return ResetSignals();
}

KERNIX_CHILD_CODE int RunChild(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  if (Prepare(plan)) {
    plan.failed_step = Step::kChangeDirectory;
    if (plan.working_directory == nullptr || syscall(SYS_chdir, plan.working_directory) == 0) {
      plan.failed_step = Step::kExecute;
      syscall(SYS_execve, plan.argv[0], plan.argv, plan.environment);
    }
  }
  plan.error = errno;
  syscall(SYS_exit_group, 127);
  return 127;
}

// Blocks every signal of the calling thread during its lifetime.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t saved_;
};

// Returns when the child has called execve() or ended. Returns -1 and sets errno if no child could be created.
pid_t CloneAndWaitForExec(ChildPlan& plan) {
  constexpr size_t kStackBytes = 65536;
  struct alignas(16) Stack {
    std::byte bytes[kStackBytes];
  };
  const std::unique_ptr<Stack> stack(new Stack);
  const BlockedSignals blocked;
  return __clone(&RunChild, stack->bytes + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
}

std::vector<std::string> EnvironmentTexts(const ProcessSpec& spec) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : spec.environment) texts.push_back(StrCat(name, "=", value));
  return texts;
}

// A copy of `fd` above the three standard descriptors, so that the child's dup2() calls cannot overwrite it.
absl::StatusOr<UniqueFd> CopyAboveStandard(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy.ok()) return ErrnoStatus(errno, "copy", "a descriptor");
  return copy;
}

absl::StatusOr<UniqueFd> OpenNull() {
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.ok()) return ErrnoStatus(errno, "open", "/dev/null");
  return CopyAboveStandard(null.get());
}

rlim_t DescriptorLimit() {
  struct rlimit limit;
  constexpr rlim_t kMost = 65536;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_cur, kMost) : kMost;
}

// `wanted` (0: none); the hard limit is `grace` higher. Neither exceeds the limit of this process, because setrlimit()
// would refuse that.
struct rlimit LimitOf(__rlimit_resource resource, uint64_t wanted, uint64_t grace = 0) {
  struct rlimit own;
  if (wanted == 0 || getrlimit(resource, &own) != 0) return {RLIM_INFINITY, RLIM_INFINITY};
  return {std::min<rlim_t>(wanted, own.rlim_max), std::min<rlim_t>(wanted + grace, own.rlim_max)};
}

int NicenessOf(const ProcessSpec& spec) {
  constexpr int kMost = 19;
  return std::min(getpriority(PRIO_PROCESS, 0) + spec.niceness, kMost);
}

absl::Status StartError(const ChildPlan& plan, const ProcessSpec& spec) {
  if (plan.failed_step == Step::kChangeDirectory) {
    return ErrnoStatus(plan.error, "enter the working directory", spec.working_directory);
  }
  return ErrnoStatus(plan.error, "run", spec.argv[0]);
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const ProcessSpec& spec, int output_fd) {
  if (spec.argv.empty()) return absl::InvalidArgumentError("a process without a program");
  KERNIX_ASSIGN_OR_RETURN(const UniqueFd input, OpenNull());
  KERNIX_ASSIGN_OR_RETURN(const UniqueFd output, CopyAboveStandard(output_fd));
  std::vector<std::string> arguments = spec.argv;
  std::vector<std::string> environment = EnvironmentTexts(spec);
  const std::vector<char*> argv = ToArgv(arguments);
  const std::vector<char*> envp = ToArgv(environment);
  ChildPlan plan{.argv = argv.data(),
                 .environment = envp.data(),
                 .working_directory = spec.working_directory.empty() ? nullptr : spec.working_directory.c_str(),
                 .input_fd = input.get(),
                 .output_fd = output.get(),
                 .descriptor_limit = DescriptorLimit(),
                 .file_limit = LimitOf(RLIMIT_FSIZE, spec.max_file_bytes),
                 .memory_limit = LimitOf(RLIMIT_AS, spec.max_address_space_bytes),
                 .cpu_limit = LimitOf(RLIMIT_CPU, static_cast<uint64_t>(spec.max_cpu_time.count()), kCpuGrace),
                 .niceness = NicenessOf(spec),
                 .parent = getpid()};
  const pid_t pid = CloneAndWaitForExec(plan);
  if (pid < 0) return ErrnoStatus(errno, "start", spec.argv[0]);
  if (plan.error == 0) return pid;
  waitpid(pid, nullptr, 0);
  return StartError(plan, spec);
}

}  // namespace kernix::posix
