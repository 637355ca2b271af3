// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/progress_line.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr std::chrono::seconds kSilence{1};
constexpr char kEraseLine[] = "\r\x1b[K";

volatile sig_atomic_t interrupted = 0;

void NoteInterrupt(int) { interrupted = 1; }

}  // namespace

ProgressLine::ProgressLine(std::string name, std::ostream& out, bool terminal, Clock now)
    : name_(std::move(name)), out_(out), terminal_(terminal), now_(std::move(now)), start_(now_()) {}

void ProgressLine::SetState(std::string_view state) { state_ = state; }

void ProgressLine::Poll() {
  if (!terminal_) return;
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(now_() - start_);
  if (passed < kSilence) return;
  std::string line = StrCat("kernixctl: ", name_, ": ", state_, ", ", passed.count(), " s");
  if (line == drawn_) return;
  out_ << kEraseLine << line << std::flush;
  drawn_ = std::move(line);
}

void ProgressLine::Erase() {
  if (!drawn_.empty()) out_ << kEraseLine << std::flush;
  drawn_.clear();
}

std::string Bar(size_t done, size_t total) {
  constexpr size_t kWidth = 20;
  const size_t full = kWidth * done / std::max<size_t>(total, 1);
  return StrCat("[", std::string(full, '#'), std::string(kWidth - full, '-'), "]");
}

void CatchInterrupt() {
  struct sigaction action {};
  action.sa_handler = NoteInterrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace kernix::ctl
