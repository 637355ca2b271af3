// SPDX-License-Identifier: Apache-2.0
//
// For tests: buildbox-casd, a real engine of the Remote Execution API, on a private folder and a Unix socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/engine/child_process.h"
#include "tests/support/temp_folder.h"

namespace kernix::testing {

// Whether this machine lets bubblewrap make the sandbox that an action runs in. Some containers do not.
bool SandboxWorks();

class CasdProcess {
 public:
  // Returns when it answers.
  CasdProcess() : CasdProcess(false, {}) {}

  // One that runs actions: each in a sandbox that has its input root, this machine's tools in their places, and the
  // shared() folder as /shared. `folders`: more tools.
  static std::unique_ptr<CasdProcess> Executing(std::vector<std::string> folders = {}) {
    return std::unique_ptr<CasdProcess>(new CasdProcess(true, std::move(folders)));
  }
  // One that runs actions in a sandbox without any tool: no compiler, no shell, no library.
  static std::unique_ptr<CasdProcess> WithoutTools() {
    return std::unique_ptr<CasdProcess>(new CasdProcess(true, {}, /*has_tools=*/false));
  }
  ~CasdProcess();

  std::string address() const { return "unix://" + socket(); }
  std::string socket() const { return folder_.File("s"); }
  std::string shared() const { return folder_.File("shared"); }

  // Ends it at once; or in order, with what it runs.
  void Kill();
  void Stop();
  // What it had before is there again.
  void Start();
  // Starts again, in order, and has nothing.
  void LoseEverything();
  std::string Log() const { return process_->Log(); }

 private:
  CasdProcess(bool executes, std::vector<std::string> folders, bool has_tools = true)
      : executes_(executes), has_tools_(has_tools), folders_(std::move(folders)) {
    Start();
  }

  const TempFolder folder_;
  const bool executes_;
  const bool has_tools_;
  const std::vector<std::string> folders_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace kernix::testing

// Skips the test, with the reason, where no action can run.
#define KERNIX_NEED_SANDBOX() \
  if (!::kernix::testing::SandboxWorks()) GTEST_SKIP() << "bubblewrap cannot make a sandbox on this machine"
