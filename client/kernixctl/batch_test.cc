// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/batch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "common/os/unique_fd.h"
#include "tests/support/await.h"

namespace kernix::ctl {
namespace {

using ::testing::HasSubstr;

// Standard error is a terminal during its lifetime.
class Terminal {
 public:
  Terminal() : saved_(dup(STDERR_FILENO)) {
    int parent = -1;
    int child = -1;
    EXPECT_EQ(openpty(&parent, &child, nullptr, nullptr, nullptr), 0);
    parent_ = UniqueFd(parent);
    dup2(child, STDERR_FILENO);
    close(child);
    fcntl(parent, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() { dup2(saved_.get(), STDERR_FILENO); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // What it shows, since the start.
  const std::string& Shown() {
    std::array<char, 4096> piece;
    for (ssize_t size = 0; (size = read(parent_.get(), piece.data(), piece.size())) > 0;) {
      shown_.append(piece.data(), static_cast<size_t>(size));
    }
    return shown_;
  }

 private:
  const UniqueFd saved_;
  UniqueFd parent_;
  std::string shown_;
};

// The last progress of what goes on may be older than the end of another.
TEST(BatchTest, ALineSaysWhatOneModuleDoesAlsoAfterTheEndOfAnother) {
  Terminal terminal;
  std::atomic<bool> has_begun = false;
  const BatchItem slow{.label = "slow.cpp", .run = [&](const LoadCallbacks& callbacks) -> absl::StatusOr<BatchResult> {
                         callbacks.progress("compile (0/2)");
                         has_begun = true;
                         Await("the line", [&] {
                           callbacks.cancelled();  // draws, as it does during a load
                           return terminal.Shown().find("1 done") != std::string::npos;
                         });
                         return BatchResult{};
                       }};
  const BatchItem quick{.label = "quick.cpp", .run = [&](const LoadCallbacks&) -> absl::StatusOr<BatchResult> {
                          Await("the other one", [&] { return has_begun.load(); });
                          return BatchResult{};
                        }};
  RunBatch({slow, quick}, 2, /*verbose=*/false);
  EXPECT_THAT(terminal.Shown(), HasSubstr("2 modules: [##########----------] 1 done, one: compile (0/2), "));
}

}  // namespace
}  // namespace kernix::ctl
