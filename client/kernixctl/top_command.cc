// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl top`: the running loads, in a terminal.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/str_join.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/top_view.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Shows the running loads, the queue and the cache, as `kernixctl status` does, once a second. Without a
terminal, or with TERM=dumb, prints them once. Users see their own loads; administrators see all. Keys: q ends it; s sorts by time, name
or user; / shows only loads with a text in their name or user; the arrows, or j and k, select a load; c cancels it. Never
starts a daemon: exit code 3 means that none is running.

Examples:
  kernixctl top
  kernixctl --address unix:/run/kernix/kernixd.sock top)";

constexpr int kPeriodMs = 1000;

absl::StatusOr<TopData> Ask(DaemonClient& client) {
  TopData data;
  KERNIX_ASSIGN_OR_RETURN(data.info, client.Info(/*start=*/false));
  KERNIX_ASSIGN_OR_RETURN(data.stats, client.Stats(/*start=*/false));
  KERNIX_ASSIGN_OR_RETURN(data.status, client.Ask<v1::GetStatusResponse>("GetStatus", v1::GetStatusRequest()));
  return data;
}

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

// Keys come one by one and are not shown; the screen before comes back at the end, also at that by a signal.
class Terminal {
 public:
  Terminal() {
    tcgetattr(STDIN_FILENO, &before_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, LeaveBySignal);
    termios own = before_;
    own.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &own);
    std::cout << kEnter;
  }
  ~Terminal() {
    std::cout << std::flush;
    Leave();
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Show(const std::vector<std::string>& lines) {
    std::cout << "\x1b[H" << absl::StrJoin(lines, "\x1b[K\n") << "\x1b[K\x1b[J" << std::flush;
  }

  // The next key, or "" if none comes within `ms`.
  std::string Key(int ms) {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (typed_.empty() && poll(&input, 1, ms) > 0) {
      char bytes[64];
      const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
      typed_ = count <= 0 ? kEndKey : std::string(bytes, static_cast<size_t>(count));
    }
    const std::string key = typed_.substr(0, typed_.starts_with("\x1b[") ? 3 : 1);
    typed_.erase(0, key.size());
    return key;
  }

 private:
  static void Leave() {
    (void)!write(STDOUT_FILENO, kLeave.data(), kLeave.size());
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  static void LeaveBySignal(int number) {
    Leave();
    _exit(128 + number);
  }

  static inline termios before_{};
  std::string typed_;
};

std::string Cancel(DaemonClient& client, const TopView& view) {
  if (!view.selected()) return "no load is selected";
  v1::CancelLoadRequest request;
  request.set_id(*view.selected());
  const auto response = client.Ask<v1::CancelLoadResponse>("CancelLoad", request);
  return response.ok() ? "cancelled" : Printable(GetErrorDetail(response.status()).message());
}

int Watch(DaemonClient& client, TopData data) {
  Terminal terminal;
  TopView view(/*keys=*/true);
  std::string message;
  while (true) {
    winsize size{};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    // A serial line does not know its size.
    terminal.Show(view.Draw(data, size.ws_col == 0 ? 80 : size.ws_col, size.ws_row == 0 ? 24 : size.ws_row, message));
    message.clear();
    const TopKey key = view.Press(terminal.Key(kPeriodMs));
    if (key == TopKey::kQuit) return kOk;
    if (key == TopKey::kCancel) message = Cancel(client, view);
    absl::StatusOr<TopData> next = Ask(client);
    if (next.ok()) {
      data = *std::move(next);
    } else {
      message = Printable(GetErrorDetail(next.status()).message());
    }
  }
}

// Whether there is a screen: one that moves its cursor.
bool HasScreen() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && ProcessGetEnv("TERM") != "dumb"; }

int Run(DaemonClient& client) {
  absl::StatusOr<TopData> data = Ask(client);
  if (!data.ok()) return Fail(data.status());
  if (HasScreen()) return Watch(client, *std::move(data));
  constexpr size_t kWidth = 1000;
  const size_t height = 6 + static_cast<size_t>(data->status.load_size());
  std::cout << absl::StrJoin(TopView(/*keys=*/false).Draw(*data, kWidth, height, ""), "\n") << "\n";
  return kOk;
}

}  // namespace

Command TopCommand(const ClientOptions& options) {
  return {.name = "top", .summary = "Watch the running loads in a terminal", .details = kDetails, .run = [&options] {
            return WithClient(options, Run);
          }};
}

}  // namespace kernix::ctl
