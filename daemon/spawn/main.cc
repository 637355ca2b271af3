// SPDX-License-Identifier: Apache-2.0
//
// kernix-spawn: runs tools for kernixd, each enclosed (common/os/spawn_message.h). kernixd starts it with a socket as
// its standard input, and it ends with that. It starts a zygote for each enclosure: a process that has entered the
// enclosure, and from which the jobs in it are forked. So the enclosure is made once.
//
// With --cgroup, each job has a cgroup below that of this process (cgroup.h). If that cannot be, kernix-spawn says so,
// and works without.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/os/spawn_message.h"
#include "common/os/unique_fd.h"
#include "daemon/spawn/cgroup.h"
#include "daemon/spawn/job.h"
#include "daemon/spawn/restrictions.h"
#include "daemon/spawn/wall.h"

namespace kernix::spawn {
namespace {

// Not thread-safe.
class Zygotes {
 public:
  // `proc`: a descriptor of /proc. `cgroup`: from PrepareCgroup(), or -1.
  Zygotes(int proc, int cgroup) : proc_(proc), cgroup_(cgroup) {}

  // Hands a job to the zygote of its enclosure, and starts that if need be. If there is none to be had, the job ends
  // with the reason.
  void Run(const Enclosure& enclosure, const UniqueFd& connection, const UniqueFd& output);

 private:
  struct Zygote {
    Enclosure enclosure;
    UniqueFd channel;  // when it closes, the zygote ends after its jobs
  };

  // The least recently used ones end.
  static constexpr size_t kMost = 16;

  std::list<Zygote>::iterator Find(const Enclosure& enclosure);
  UniqueFd Start(const Enclosure& enclosure);

  const int proc_;
  const int cgroup_;
  std::list<Zygote> zygotes_;  // most recently used first
};

// As fork(), in new namespaces. The process must have one thread.
pid_t Fork(int namespaces) {
  return static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// Ends a job that has no enclosure to run in.
void Refuse(const UniqueFd& connection, const std::string& problem) {
  std::string command;  // what is left unread would be lost, and the answer with it
  if (!ReceiveMessage(connection.get(), command)) return;
  SendMessage(connection.get(), Encode(JobEnd{.kind = JobEnd::Kind::kNotBuilt, .problem = problem}));
}

// The process of a zygote.
class Process {
 public:
  Process(const Enclosure& enclosure, UniqueFd channel, int proc, int cgroup, uid_t user, gid_t group)
      : enclosure_(enclosure), channel_(std::move(channel)), proc_(proc), cgroup_(cgroup), user_(user), group_(group) {}

  [[noreturn]] void Run() {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    signal(SIGCHLD, SIG_IGN);  // nobody asks how a job's process ends
    std::string problem;
    try {
      Enter();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    while (std::optional<Handed> job = ReceiveJob(channel_.get())) {
      if (problem.empty()) problem = StartJob(*job);
      if (problem.empty()) continue;
      Refuse(job->connection, problem);
      break;  // the next one may have more luck with another zygote
    }
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    _exit(0);
  }

 private:
  void Enter() {
    if (enclosure_.rung == Rung::kWall) EnterWall(enclosure_, user_, group_);
    if (enclosure_.rung != Rung::kNone) filter_ = std::make_unique<SystemCallFilter>(enclosure_.rung);
  }

  // Returns why it could not be started.
  std::string StartJob(Handed& job) {
    const pid_t pid = Fork(enclosure_.rung == Rung::kWall ? JobNamespaces() : 0);
    if (pid < 0) return std::string("cannot start a process: ") + std::generic_category().message(errno);
    if (pid > 0) return "";
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    channel_.reset();
    RunJob({enclosure_, filter_.get(), proc_, cgroup_}, job.connection, std::move(job.output));
    _exit(0);
  }

  const Enclosure& enclosure_;
  UniqueFd channel_;
  const int proc_;
  const int cgroup_;
  const uid_t user_;
  const gid_t group_;
  std::unique_ptr<SystemCallFilter> filter_;
};

// Closes what this process has inherited: channels of other zygotes, the first job. -1 is none.
void KeepOnly(std::initializer_list<int> fds) {
  int first = STDERR_FILENO + 1;
  for (const int fd : std::set<int>(fds)) {
    if (fd < 0) continue;
    close_range(static_cast<unsigned>(first), static_cast<unsigned>(fd - 1), 0);
    first = fd + 1;
  }
  close_range(static_cast<unsigned>(first), UINT_MAX, 0);
}

bool HasEnded(const UniqueFd& channel) {
  pollfd fd = {channel.get(), 0, 0};
  return poll(&fd, 1, 0) > 0;
}

void Zygotes::Run(const Enclosure& enclosure, const UniqueFd& connection, const UniqueFd& output) {
  try {
    const auto zygote = Find(enclosure);
    Require(HandOver(zygote->channel.get(), "job", connection.get(), output.get()), "reach the zygote of a job");
  } catch (const std::exception& error) {
    Refuse(connection, error.what());
  }
}

std::list<Zygotes::Zygote>::iterator Zygotes::Find(const Enclosure& enclosure) {
  zygotes_.remove_if([](const Zygote& zygote) { return HasEnded(zygote.channel); });
  const auto found = std::find_if(zygotes_.begin(), zygotes_.end(),
                                  [&](const Zygote& zygote) { return zygote.enclosure == enclosure; });
  if (found != zygotes_.end()) {
    zygotes_.splice(zygotes_.begin(), zygotes_, found);
    return zygotes_.begin();
  }
  zygotes_.push_front({enclosure, Start(enclosure)});
  if (zygotes_.size() > kMost) zygotes_.pop_back();
  return zygotes_.begin();
}

UniqueFd Zygotes::Start(const Enclosure& enclosure) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "make a channel");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const pid_t pid = Fork(enclosure.rung == Rung::kWall ? ZygoteNamespaces() : 0);
  Require(pid >= 0, "make new namespaces");
  if (pid > 0) return ours;
  KeepOnly({theirs.get(), proc_, cgroup_});
  Process(enclosure, std::move(theirs), proc_, cgroup_, user, group).Run();
}

// Whatever kernixd ignores or blocks, tools begin with the usual handling. The C library keeps two signals to itself,
// but the kernel passes on that they are ignored.
void ResetSignals() {
  constexpr size_t kKernelMaskBytes = _NSIG / 8;
  const unsigned long zeros[8] = {};  // as the kernel's sigaction: SIG_DFL, no flags
  for (int number = 1; number < _NSIG; ++number) {
    syscall(SYS_rt_sigaction, number, zeros, nullptr, kKernelMaskBytes);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool IsSocket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

UniqueFd CgroupOfJobs() {
  try {
    return PrepareCgroup();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernix-spawn: jobs have no cgroup each: %s\n", error.what());
    return {};
  }
}

int Main(bool has_cgroup) {
  if (!IsSocket(STDIN_FILENO)) {
    std::fputs("kernix-spawn: this is a part of kernixd, which starts it\n", stderr);
    return 2;
  }
  ResetSignals();
  const UniqueFd kernixd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd proc(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  close(STDIN_FILENO);
  open("/dev/null", O_RDONLY);
  const UniqueFd cgroup = has_cgroup ? CgroupOfJobs() : UniqueFd();
  Zygotes zygotes(proc.get(), cgroup.get());
  signal(SIGCHLD, SIG_IGN);
  while (std::optional<Handed> job = ReceiveJob(kernixd.get())) {
    Enclosure enclosure;
    if (Decode(job->message, enclosure)) zygotes.Run(enclosure, job->connection, job->output);
  }
  return 0;
}

}  // namespace
}  // namespace kernix::spawn

int main(int argc, char** argv) { return kernix::spawn::Main(argc > 1 && std::string_view(argv[1]) == "--cgroup"); }
