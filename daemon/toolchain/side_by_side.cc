// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "common/base/mutex.h"

namespace kernix::toolchain {
namespace {

// At least two, because a task may only wait for a process.
size_t Threads() {
  constexpr size_t kMost = 8;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 2, kMost);
}

class Crew {
 public:
  explicit Crew(const std::vector<std::function<void()>>& tasks) : tasks_(tasks) {}

  void Run() {
    std::vector<std::thread> helpers = Helpers(std::min(tasks_.size(), Threads()) - 1, [this] { Work(); });
    Work();
    End(helpers);
  }

 private:
  // Fewer, if there are no more to be had: the others do all.
  template <typename Function>
  static std::vector<std::thread> Helpers(size_t count, Function function) {
    std::vector<std::thread> helpers;
    try {
      while (helpers.size() < count) helpers.emplace_back(function);
    } catch (const std::system_error&) {
    }
    return helpers;
  }

  void End(std::vector<std::thread>& helpers) {
    for (std::thread& helper : helpers) helper.join();
    const MutexLock lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

  void Work() {
    for (size_t next = next_++; next < tasks_.size(); next = next_++) {
      try {
        tasks_[next]();
      } catch (...) {
        const MutexLock lock(mutex_);
        thrown_ = std::current_exception();
      }
    }
  }

  const std::vector<std::function<void()>>& tasks_;
  std::atomic<size_t> next_{0};
  Mutex mutex_;
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void RunSideBySide(const std::vector<std::function<void()>>& tasks) { Crew(tasks).Run(); }

}  // namespace kernix::toolchain
