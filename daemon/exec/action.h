// SPDX-License-Identifier: Apache-2.0
//
// One command with everything it needs: the unit that an executor runs. The same idea as an Action of the Remote
// Execution API, so that a remote executor can run it too.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/exec/input_file.h"
#include "daemon/exec/input_tree.h"

namespace kernix::exec {

// In argv and environment this stands for the absolute path of the action's root. Use it only where a relative path
// will not do, since the root is another one each time.
inline constexpr std::string_view kRootPlaceholder = "{kernix-action-root}";

struct Action {
  std::string step;               // for people: "compile", "link"
  std::vector<std::string> argv;  // argv[0]: path of a tool, through one of `links`, or a placeholder
  // The whole of it, but for TMPDIR: that is the action's root unless it is set here.
  std::map<std::string, std::string> environment;
  std::vector<InputFile> inputs;                          // their modification time is the same for all and for ever
  std::shared_ptr<const std::vector<MountedTree>> trees;  // none of `inputs` lies in one. Null: there are none
  // Relative paths to bring back. The folders that they lie in exist when the command starts. One that is not made is
  // an error only if the command succeeded.
  std::vector<std::string> outputs;
  Digest salt;  // of the tools, and of all else that the result depends on and the input root does not hold

  // How it is run here. What follows is no part of its digest (see action_digest.h).
  std::vector<InputLink> links;                    // to tools
  std::vector<std::string> local_words;            // behind those of argv; what is made does not depend on them
  std::map<std::string, std::string> local_paths;  // by placeholders that stand for them in argv
  // The tool hands its words, and the root's path between double quotes, to a shell. Then the action is refused when
  // that would read anything in them (see shell_words.h).
  bool tool_uses_shell = false;
  std::chrono::milliseconds timeout{0};  // 0: none
  uint64_t memory_estimate_bytes = 0;    // for the memory budget of the pool
  int jobs = 1;                          // how many jobs of the pool it is worth: the threads that it keeps busy
};

// The words that the tool is called with here, but for the root.
std::vector<std::string> LocalCommand(const Action& action);

struct ActionResult {
  int exit_code = 0;
  // Of the command, stdout and stderr as they came. The root's path is taken out: what lies in it is shown relative.
  std::string output;
  std::map<std::string, Content> outputs;  // by path
  std::chrono::milliseconds wall{0};
};

// Told what happens to one action. Called from executor threads (the inline executor: from the caller's), one call at a
// time for one action, and never after its ActionDone.
class ActionObserver {
 public:
  virtual ~ActionObserver() = default;

  // It waits behind `actions_ahead` others; again whenever that number changes. Not called when it starts at once.
  virtual void OnQueued(int actions_ahead) = 0;

  // Its inputs are staged and its command starts now.
  virtual void OnStarted(const Action& action) = 0;

  // Pieces of ActionResult::output as they come.
  virtual void OnOutput(std::string_view text) = 0;
};

}  // namespace kernix::exec
