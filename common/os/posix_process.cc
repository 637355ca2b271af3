// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/output_buffer.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/posix_env.h"
#include "common/os/posix_error.h"
#include "common/os/spawner.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

using Clock = std::chrono::steady_clock;
using spawn::JobEnd;

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

// A killed process ends late if it hangs in the kernel, for instance in a file system that does not answer.
constexpr std::chrono::seconds kPatienceWithTheDying(5);

// Watches one job until it has ended, was cancelled, or timed out.
class Watch {
 public:
  enum class Why { kEnded, kCancelled, kTimedOut };

  Watch(UniqueFd job, UniqueFd output, int cancel_fd, std::optional<MonotonicTime> deadline, OutputBuffer& buffer,
        const OutputCallback& on_output)
      : job_(std::move(job)),
        output_(std::move(output)),
        cancel_fd_(cancel_fd),
        deadline_(deadline),
        buffer_(buffer),
        on_output_(on_output) {}

  // All of the job's processes have ended by then, unless one hangs in the kernel.
  Why Run() {
    const Why why = WaitForEnd();
    if (why != Why::kEnded) {
      shutdown(job_.get(), SHUT_WR);
      deadline_ = Clock::now() + kPatienceWithTheDying;
      cancel_fd_ = -1;
      WaitForEnd();
    }
    DrainOutput();
    return why;
  }

  // What the job has told about its end; nothing if it was ended itself.
  std::optional<JobEnd> TakeEnd() {
    std::string message;
    JobEnd end;
    if (is_readable_ && spawn::ReceiveMessage(job_.get(), message) && Decode(message, end)) return end;
    return std::nullopt;
  }

 private:
  Why WaitForEnd() {
    while (true) {
      pollfd fds[] = {{output_.get(), POLLIN, 0}, {cancel_fd_, POLLIN, 0}, {job_.get(), POLLIN, 0}};
      const int ready = poll(fds, std::size(fds), PollTimeout());
      if (ready > 0 && fds[0].revents != 0) ReadSome();
      if (ready > 0 && fds[1].revents != 0) return Why::kCancelled;
      is_readable_ = ready > 0 && fds[2].revents != 0;
      if (is_readable_) return Why::kEnded;
      if (deadline_ && Clock::now() >= *deadline_) return Why::kTimedOut;
    }
  }

  // In milliseconds.
  int PollTimeout() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
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

  // Reads what the pipe contains now, at most a pipe's capacity: a process that hangs may still write.
  void DrainOutput() {
    for (int reads = 0; reads < 128 && ReadSome(); ++reads) {
    }
  }

  const UniqueFd job_;
  UniqueFd output_;
  int cancel_fd_;
  std::optional<MonotonicTime> deadline_;
  OutputBuffer& buffer_;
  const OutputCallback& on_output_;
  bool is_readable_ = false;  // job_
};

spawn::Command CommandOf(const ProcessSpec& spec) {
  spawn::Command command{.argv = spec.argv,
                         .environment = {},
                         .working_directory = spec.working_directory,
                         .folders = spec.folders,
                         .writable = spec.writable,
                         .max_file_bytes = spec.max_file_bytes,
                         .max_folder_bytes = spec.max_folder_bytes,
                         .max_address_space_bytes = spec.max_address_space_bytes,
                         .max_cpu_seconds = static_cast<uint64_t>(spec.max_cpu_time.count()),
                         .max_processes = spec.max_processes,
                         .niceness = spec.niceness};
  for (const auto& [name, value] : spec.environment) command.environment.push_back(StrCat(name, "=", value));
  return command;
}

ProcessResult::Excess ExcessOf(JobEnd::Kind kind) {
  switch (kind) {
    case JobEnd::Kind::kTooMany:
      return ProcessResult::Excess::kProcesses;
    case JobEnd::Kind::kTooLarge:
      return ProcessResult::Excess::kBytesOfFiles;
    case JobEnd::Kind::kTooMuchMemory:
      return ProcessResult::Excess::kMemory;
    default:
      return ProcessResult::Excess::kNone;
  }
}

absl::StatusOr<ProcessResult> ResultOf(const JobEnd& end, const ProcessSpec& spec) {
  switch (end.kind) {
    case JobEnd::Kind::kNotEntered:
      return ErrnoStatus(end.error_number, "enter the working directory", spec.working_directory);
    case JobEnd::Kind::kNotStarted:
      return ErrnoStatus(end.error_number, "run", spec.argv[0]);
    case JobEnd::Kind::kNotBuilt:
      return absl::UnavailableError(StrCat("cannot enclose ", spec.argv[0], ": ", end.problem));
    case JobEnd::Kind::kEnded:
    case JobEnd::Kind::kTooMany:
    case JobEnd::Kind::kTooLarge:
    case JobEnd::Kind::kTooMuchMemory:
      break;
  }
  ProcessResult result;
  result.signal = WIFSIGNALED(end.status) ? WTERMSIG(end.status) : 0;
  result.exit_code = WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
  result.max_rss_bytes = end.max_rss_bytes;
  result.processor = std::chrono::microseconds(end.processor_us);
  result.excess = ExcessOf(end.kind);
  return result;
}

absl::StatusOr<ProcessResult> RunOnce(const ProcessSpec& spec, int cancel_fd, const OutputCallback& on_output) {
  KERNIX_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  const MonotonicTime start = Clock::now();
  KERNIX_ASSIGN_OR_RETURN(UniqueFd job, spawn::Spawner::Get().Submit(spec.enclosure, pipe.write_end.get()));
  pipe.write_end.reset();
  spawn::SendMessage(job.get(), Encode(CommandOf(spec)));  // if that fails, the job ends without a word
  OutputBuffer buffer(spec.max_output_bytes);
  const auto deadline = spec.timeout.count() > 0 ? std::optional(start + spec.timeout) : std::nullopt;
  Watch watch(std::move(job), std::move(pipe.read_end), cancel_fd, deadline, buffer, on_output);
  const Watch::Why why = watch.Run();
  if (why == Watch::Why::kCancelled) return absl::CancelledError(StrCat(spec.argv[0], " was cancelled"));
  std::optional<JobEnd> end = watch.TakeEnd();
  if (!end && why == Watch::Why::kTimedOut) end = JobEnd{.status = SIGKILL};  // it hangs in the kernel
  if (!end) return absl::AbortedError(StrCat("kernix-spawn ended while it ran ", spec.argv[0]));
  KERNIX_ASSIGN_OR_RETURN(ProcessResult result, ResultOf(*end, spec));
  result.timed_out = why == Watch::Why::kTimedOut;
  result.output = buffer.Text();
  result.wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  return result;
}

// Waits for the cancellation for `pause` at most.
void AwaitCancelled(const UniqueFd& cancelled, std::chrono::milliseconds pause) {
  pollfd fd = {cancelled.get(), POLLIN, 0};
  poll(&fd, 1, static_cast<int>(pause.count()));
}

}  // namespace

absl::StatusOr<ProcessResult> PosixEnv::RunProcess(const ProcessSpec& spec, const OutputCallback& on_output,
                                                   Cancellation* cancellation) {
  if (spec.argv.empty()) return absl::InvalidArgumentError("a process without a program");
  const UniqueFd cancelled(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));  // becomes readable when `cancellation` fires
  if (!cancelled.ok()) return ErrnoStatus(errno, "create", "an eventfd");
  const ScopedOnCancel on_cancel(cancellation, [fd = cancelled.get()] { eventfd_write(fd, 1); });
  bool has_output = false;
  const auto note = [&](std::string_view text) {
    has_output = true;
    if (on_output) on_output(text);
  };
  absl::StatusOr<ProcessResult> result = RunOnce(spec, cancelled.get(), note);
  // kernix-spawn has died, and starts again. While it dies, it still seems to take jobs. What has been shown cannot be
  // taken back.
  for (int tries = 0; absl::IsAborted(result.status()) && !has_output && tries < 3; ++tries) {
    AwaitCancelled(cancelled, std::chrono::milliseconds(50));
    result = RunOnce(spec, cancelled.get(), note);
  }
  return result;
}

}  // namespace kernix::posix
