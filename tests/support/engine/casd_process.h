// SPDX-License-Identifier: Apache-2.0
//
// For tests: buildbox-casd, a real engine of the Remote Execution API, on a private folder and a Unix socket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/engine/child_process.h"
#include "tests/support/temp_folder.h"

namespace kernix::testing {

class CasdProcess {
 public:
  // Returns when it answers. `arguments`: more of them.
  explicit CasdProcess(std::vector<std::string> arguments = {});
  ~CasdProcess();

  std::string address() const { return "unix://" + socket(); }
  std::string socket() const { return folder_.File("s"); }
  // A folder for whatever belongs to this engine.
  const TempFolder& folder() const { return folder_; }

  void Kill();
  // What it had before is there again.
  void Start();
  std::string Log() const { return process_->Log(); }

 private:
  const TempFolder folder_;
  const std::vector<std::string> arguments_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace kernix::testing
