// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/batch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/progress_line.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

class Batch {
 public:
  Batch(const std::vector<BatchItem>& items, bool verbose)
      : items_(items),
        codes_(items.size()),
        line_(StrCat(items.size(), " modules"), std::cerr, !verbose && isatty(STDERR_FILENO) == 1) {}

  int Run(size_t at_once) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < std::min(at_once, items_.size()); ++i) threads.emplace_back([this] { WorkOff(); });
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    Report();
    const auto failed = std::find_if(codes_.begin(), codes_.end(), [](int code) { return code != kOk; });
    return Interrupted() ? kInterrupted : failed == codes_.end() ? kOk : *failed;
  }

 private:
  // Until no item is left.
  void WorkOff() {
    while (const std::optional<size_t> index = Next()) {
      const BatchItem& item = items_[*index];
      const absl::StatusOr<BatchResult> result = item.run(Callbacks(*index));
      const MutexLock lock(mutex_);
      line_.Erase();
      codes_[*index] = result.ok() ? Delivered(*result) : Failed(item, result.status());
      under_way_.erase(*index);
      ShowState();
    }
  }

  std::optional<size_t> Next() {
    const MutexLock lock(mutex_);
    if (next_ == items_.size() || Stopped()) return std::nullopt;
    return next_++;
  }

  LoadCallbacks Callbacks(size_t index) {
    LoadCallbacks callbacks;
    callbacks.output = [this](std::string_view text) {
      const MutexLock lock(mutex_);
      line_.Erase();
      std::cerr << text;
    };
    callbacks.warning = [this](std::string_view text) {
      const MutexLock lock(mutex_);
      line_.Erase();
      PrintWarning(text);
    };
    callbacks.progress = [this, index](std::string_view text) {
      const MutexLock lock(mutex_);
      under_way_[index] = text;
      ShowState();
    };
    callbacks.cancelled = [this] {
      const MutexLock lock(mutex_);
      line_.Poll();
      return Stopped();
    };
    return callbacks;
  }

  bool Stopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return no_daemon_ || Interrupted(); }

  int Delivered(const BatchResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::cout << result.line << std::endl;
    ++counts_[result.counts_as];
    return kOk;
  }

  int Failed(const BatchItem& item, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const ErrorKind kind = KindOf(status);
    if (kind == v1::ErrorDetail::CANCELLED) return kInterrupted;
    if (no_daemon_) return kNoDaemon;  // said once
    std::cerr << "kernixctl: " << item.label << ":\n";
    const int code = Fail(status);
    no_daemon_ = code == kNoDaemon;
    ++counts_[kind == v1::ErrorDetail::NOT_CACHED ? kMissing : kFailed];
    return code;
  }

  // Of those under way, what the first one does.
  void ShowState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t done = 0;
    for (const auto& [what, count] : counts_) done += count;
    std::string state = StrCat(Bar(done, items_.size()), " ", done, " done");
    for (const char* bad : {kFailed, kMissing}) {
      if (counts_.contains(bad)) StrAppend(&state, ", ", counts_.at(bad), " ", bad);
    }
    if (!under_way_.empty()) StrAppend(&state, ", one: ", under_way_.begin()->second);
    line_.SetState(state);
  }

  // "12 modules: 8 built, 3 from the cache, 1 failed, in 34.2 s".
  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string parts;
    size_t done = 0;
    for (const auto& [what, count] : counts_) {
      StrAppend(&parts, count, " ", what, ", ");
      done += count;
    }
    if (done < items_.size()) StrAppend(&parts, items_.size() - done, " not built, ");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
    line_.Erase();
    std::cerr << "kernixctl: " << items_.size() << (items_.size() == 1 ? " module: " : " modules: ") << parts
              << absl::StrFormat("in %.1f s", took.count()) << "\n";
  }

  static constexpr char kFailed[] = "failed";
  static constexpr char kMissing[] = "missing";

  const std::vector<BatchItem>& items_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool no_daemon_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> codes_ ABSL_GUARDED_BY(mutex_);  // exit codes, by item
  std::map<std::string, size_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<size_t, std::string> under_way_ ABSL_GUARDED_BY(mutex_);  // the progress of items, by their place
  ProgressLine line_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string InWords(Origin origin) {
  constexpr const char* kWords[] = {"built",          "built for others, too",
                                    "from the cache", "from another node",
                                    "from a bundle",  "from a file"};  // by Origin
  static_assert(std::size(kWords) == static_cast<size_t>(Origin::kFile) + 1);
  return kWords[static_cast<size_t>(origin)];
}

int RunBatch(const std::vector<BatchItem>& items, size_t at_once, bool verbose) {
  if (at_once == kOneForEachProcessor) at_once = std::clamp(std::thread::hardware_concurrency(), 1u, kLoadsAtOnce);
  return Batch(items, verbose).Run(at_once);
}

Option AtOnce(uint32_t& at_once) {
  constexpr int64_t kMostAtOnce = 256;
  return {"-j,--at-once",
          &at_once,
          StrCat("Have this many modules under way at a time (default: ",
                 at_once == kOneForEachProcessor ? "one for each processor" : StrCat(at_once),
                 "; the daemon limits how many compilers run)"),
          {.least = 1, .most = kMostAtOnce}};
}

}  // namespace kernix::ctl
