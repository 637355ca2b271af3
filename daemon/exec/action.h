// SPDX-License-Identifier: Apache-2.0
//
// One command with everything it needs: the unit that an executor runs. The same idea as an Action of the Remote Execution API, so
// that a remote executor can run it too.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/cancellation.h"

namespace kernix::exec {

// Bytes that several actions can share.
using Content = std::shared_ptr<const std::string>;

struct InputFile {
  std::string path;  // relative to the action's root
  Content content;
};

// In argv and environment this stands for the absolute path of the action's root. Use it only where a relative path
// will not do, since the root is another one each time.
inline constexpr std::string_view kRootPlaceholder = "{kernix-action-root}";

struct Action {
  std::string step;                    // for people: "compile", "link"
  std::vector<std::string> argv;       // argv[0]: absolute path of a tool
  std::map<std::string, std::string> environment;
  std::vector<InputFile> inputs;
  std::vector<std::string> outputs;    // relative paths to bring back; one that is not made is an error only if the command succeeded
  std::chrono::milliseconds timeout{0};
  uint64_t memory_estimate_bytes = 0;  // for the memory budget of the pool
};

struct ActionResult {
  int exit_code = 0;
  bool timed_out = false;
  std::string output;                          // of the command, root paths removed
  std::map<std::string, Content> outputs;      // by path
  std::chrono::milliseconds wall{0};
};

// Told what happens to one action. Called from executor threads, one call at a time for one action.
class ActionObserver {
 public:
  virtual ~ActionObserver() = default;
  virtual void OnQueued(int actions_ahead) = 0;
  virtual void OnStarted(const Action& action) = 0;
  virtual void OnOutput(std::string_view text) = 0;
};

}  // namespace kernix::exec
