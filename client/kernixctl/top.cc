// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/top.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

constexpr char kSelected[] = "\x1b[7m";
constexpr char kPlain[] = "\x1b[0m";

constexpr const char* kOrders[] = {"time", "name", "user"};

std::string Percent(uint64_t part, uint64_t whole) { return whole == 0 ? "-" : StrCat(100 * part / whole, " %"); }

std::vector<std::string> Head(const TopData& data) {
  const v1::GetCacheStatsResponse& stats = data.stats;
  const std::string limit = stats.limit_bytes() == 0 ? "" : " of " + FormatBytes(stats.limit_bytes());
  return {StrCat("kernixd ", data.info.version, ", running for ",
                 FormatDuration(std::chrono::milliseconds(data.info.uptime_ms)), ", ", data.info.address),
          StrCat("jobs: ", data.info.running_jobs, " running, ", data.info.queued_jobs,
                 " queued   loads: ", data.status.load_size(), ", and ", data.status.hidden_loads(), " of other users"),
          StrCat("hits ", stats.hits(), " (", Percent(stats.hits(), stats.hits() + stats.misses()), ")   misses ",
                 stats.misses(), "   builds ", stats.builds(), "   failed ", stats.failures(), "   cache ",
                 FormatBytes(stats.bytes()), limit),
          ""};
}

bool Matches(const v1::RunningLoad& load, const std::string& filter) {
  return load.name().find(filter) != std::string::npos || DescribeUser(load.owner()).find(filter) != std::string::npos;
}

// Of printable text: the first `width` characters.
std::string Cut(const std::string& text, size_t width) {
  std::string cut;
  for (std::string_view rest = text; !rest.empty() && width > 0; --width) {
    const std::string_view bytes = FirstCharacter(rest).bytes;
    cut += bytes;
    rest.remove_prefix(bytes.size());
  }
  return cut;
}

std::vector<std::string> LoadLines(const std::vector<v1::RunningLoad>& loads) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "USER", "FOR", "STATE", "SOURCES"}};
  for (const v1::RunningLoad& load : loads) {
    rows.push_back({load.name(), DescribeUser(load.owner()),
                    FormatDuration(std::chrono::milliseconds(load.elapsed_ms())), ProgressText(load.progress()),
                    absl::StrJoin(load.source(), ", ")});
  }
  return absl::StrSplit(FormatTable(std::move(rows)), '\n', absl::SkipEmpty());
}

}  // namespace

TopKey TopView::Press(const std::string& key) {
  if (key == kEndKey) return TopKey::kQuit;
  if (types_filter_) {
    if (key == "\n" || key == "\r" || key == "\x1b") {
      types_filter_ = false;
    } else if (key == "\x7f" || key == "\b") {
      if (!filter_.empty()) filter_.pop_back();
    } else if (Printable(key) == key) {
      filter_ += key;
    }
    return TopKey::kNone;
  }
  if (key == "q") return TopKey::kQuit;
  if (key == "c") return TopKey::kCancel;
  if (key == "s") order_ = static_cast<TopOrder>((static_cast<size_t>(order_) + 1) % std::size(kOrders));
  if (key == "/") types_filter_ = true, filter_.clear();
  if (key == "\x1b[A" || key == "k") step_ = -1;
  if (key == "\x1b[B" || key == "j") step_ = 1;
  return TopKey::kNone;
}

std::vector<v1::RunningLoad> TopView::Shown(const v1::GetStatusResponse& status) const {
  std::vector<v1::RunningLoad> loads;
  std::copy_if(status.load().begin(), status.load().end(), std::back_inserter(loads),
               [this](const v1::RunningLoad& load) { return Matches(load, filter_); });
  std::stable_sort(loads.begin(), loads.end(), [this](const v1::RunningLoad& a, const v1::RunningLoad& b) {
    if (order_ == TopOrder::kName) return a.name() < b.name();
    if (order_ == TopOrder::kUser) return DescribeUser(a.owner()) < DescribeUser(b.owner());
    return a.elapsed_ms() > b.elapsed_ms();
  });
  return loads;
}

// If the selected load has ended, none is selected, so that no key acts on another one.
void TopView::KeepSelection(const std::vector<v1::RunningLoad>& loads) {
  const int step = std::exchange(step_, 0);
  const auto at = std::find_if(loads.begin(), loads.end(), [this](const auto& load) { return load.id() == selected_; });
  const bool is_there = at != loads.end();
  selected_.reset();
  if (loads.empty() || (!is_there && step == 0)) return;
  const auto last = static_cast<int64_t>(loads.size()) - 1;
  selected_ = loads[is_there ? std::clamp<int64_t>(at - loads.begin() + step, 0, last) : 0].id();
}

std::string TopView::KeysLine() const {
  const std::string filter = types_filter_ || !filter_.empty() ? StrCat(": ", filter_) : "";
  return StrCat("q quit   s sort: ", kOrders[static_cast<size_t>(order_)], "   j k select   c cancel   / filter",
                filter);
}

std::vector<std::string> TopView::Draw(const TopData& data, size_t width, size_t height, const std::string& message) {
  const std::vector<v1::RunningLoad> loads = Shown(data.status);
  if (has_keys_) KeepSelection(loads);
  std::vector<std::string> lines = Head(data);
  const std::vector<std::string> rows = LoadLines(loads);
  for (size_t i = 0; i < rows.size() && lines.size() + 1 < height; ++i) {
    const bool selected = i > 0 && has_keys_ && loads[i - 1].id() == selected_;
    lines.push_back(selected ? StrCat(kSelected, Cut(rows[i], width), kPlain) : rows[i]);
  }
  if (!has_keys_) return lines;
  while (lines.size() + 1 < height) lines.emplace_back();
  lines.push_back(message.empty() ? KeysLine() : message);
  for (std::string& line : lines) {
    if (!line.starts_with(kSelected)) line = Cut(line, width);
  }
  if (lines.size() > height) lines.resize(height);
  return lines;
}

namespace {

constexpr char kDetails[] =
    R"(Shows the running loads, the queue and the cache, as `kernixctl status` does, once a second. Without a
terminal, or with TERM=dumb, prints them once. Users see their own loads; administrators see all.
Keys: q ends it; s sorts by time, name or user; / shows only loads with a text in their name or user; the
arrows, or j and k, select a load; c cancels it. Never starts a daemon: exit code 3 means that none is running.

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
