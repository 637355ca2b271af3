// SPDX-License-Identifier: Apache-2.0
//
// One command with everything it needs: the unit that an executor runs. It follows the Action of the Remote Execution
// API, so that a remote executor can run it too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/exec/blob.h"
#include "daemon/exec/input_tree.h"

namespace kernix::exec {

// In argv and environment, this stands for the absolute path of the action's root. The root differs from run to run, so
// use the placeholder only where a relative path does not work.
inline constexpr std::string_view kRootPlaceholder = "{kernix-action-root}";

// What kind of work an action is. Decides where it may run.
enum class Work {
  kOther,          // a question that kernixd asks a tool
  kHostCompile,    // the host compiler takes part: C++ units, preprocessing, whole calls of nvcc
  kDeviceCompile,  // nvcc's own programs: cudafe++, cicc, ptxas, fatbinary
  kLink,
};

// Where actions may run: on this machine, or on the workers of an engine.
enum class Placement {
  kLocal,
  kRemote,        // on workers alone: without them, the step fails
  kPreferRemote,  // on workers; here, if the engine fails
  kOverflow,      // here; on workers, if the step would wait here for too long
};

inline constexpr std::string_view kPlacementNames[] = {"local", "remote", "prefer-remote", "overflow"};

constexpr std::string_view PlacementName(Placement placement) {
  return kPlacementNames[static_cast<size_t>(placement)];
}

inline std::optional<Placement> FindPlacement(std::string_view name) {
  const auto* const found = std::find(std::begin(kPlacementNames), std::end(kPlacementNames), name);
  if (found == std::end(kPlacementNames)) return std::nullopt;
  return static_cast<Placement>(found - std::begin(kPlacementNames));
}

// For each kind of work. Steps of Work::kOther always run here.
struct Placements {
  Placement host_compiles = Placement::kLocal;
  Placement device_compiles = Placement::kLocal;
  Placement links = Placement::kLocal;

  Placement Of(Work work) const {
    switch (work) {
      case Work::kOther:
        break;
      case Work::kHostCompile:
        return host_compiles;
      case Work::kDeviceCompile:
        return device_compiles;
      case Work::kLink:
        return links;
    }
    return Placement::kLocal;
  }
  bool Has(Placement placement) const {
    return host_compiles == placement || device_compiles == placement || links == placement;
  }
  bool AllLocal() const { return *this == Placements(); }
  bool operator==(const Placements&) const = default;
};

struct Action {
  std::string step;               // for people: "compile", "link"
  std::vector<std::string> argv;  // argv[0]: the path of a tool, through one of `links`, or a placeholder
  // The complete environment, except for TMPDIR, which is the action's root unless it is set here.
  std::map<std::string, std::string> environment;
  std::vector<InputFile> inputs;                          // all are staged with the same, constant modification time
  std::shared_ptr<const std::vector<MountedTree>> trees;  // none of `inputs` lies in one; null: no trees
  // Relative paths of the files to bring back. Their folders exist when the command starts. A missing output is an
  // error only if the command succeeded.
  std::vector<std::string> outputs;
  Digest salt;  // digest of the tools and of everything else outside the input root that affects the result

  // How the action runs on this machine. The digest does not cover the fields below (see action_digest.h).
  Work work = Work::kOther;
  bool needs_worker = false;                       // it can run nowhere else, whatever kind of work it is
  std::vector<InputLink> links;                    // to tools
  std::map<std::string, std::string> local_paths;  // values of the placeholders in argv and environment
  // The tool passes its arguments, and the root's path in double quotes, to a shell. The executor refuses the action if
  // the shell would interpret any of them (see shell_words.h).
  bool tool_uses_shell = false;
  std::chrono::milliseconds timeout{0};  // 0: no limit
  uint64_t memory_estimate_bytes = 0;    // counts against the pool's memory budget
  // Of a user's actions that wait, those of lower rank start first, and among equals in order of submission.
  uint64_t rank = 0;
  uint64_t batch_rank = 0;  // the same for a user who asks for it in a batch only
};

// The command line and the environment for this machine, with kRootPlaceholder not yet replaced.
std::vector<std::string> LocalCommand(const Action& action);
std::map<std::string, std::string> LocalEnvironment(const Action& action);

// The path on this machine of the tool that the command starts, not through a link.
std::string ToolPath(const Action& action);

struct ActionResult {
  int exit_code = 0;
  // stdout and stderr of the command, interleaved as they arrived. The root's path is removed, so files in it appear
  // with relative paths.
  std::string output;
  std::map<std::string, Content> outputs;  // by path
  std::chrono::milliseconds wall{0};
  std::chrono::microseconds processor{0};  // 0: not known
  uint64_t peak_memory_bytes = 0;          // resident, of the command's largest process; 0: not known
  bool ran_on_worker = false;              // of an engine, now or for an earlier request
  bool ran_earlier = false;                // there, for an earlier request
  bool is_reused = false;                  // no command has run for it: another action of the same effect has made it
};

// Receives the events of actions: OnQueued() from a thread of the executor's, the others from the caller's. Never
// concurrently for one action, and never after Run() has returned. By default, `next` receives them, if there is one.
class ActionObserver {
 public:
  explicit ActionObserver(ActionObserver* next = nullptr) : next_(next) {}
  virtual ~ActionObserver() = default;

  // The action waits behind `actions_ahead` others. Called again when that number has changed, but not for every
  // change. Not called if the action starts at once.
  virtual void OnQueued(const Action& action, int actions_ahead) {
    if (next_ != nullptr) next_->OnQueued(action, actions_ahead);
  }

  // The inputs are staged and the command is about to start.
  virtual void OnStarted(const Action& action) {
    if (next_ != nullptr) next_->OnStarted(action);
  }

  // Pieces of ActionResult::output as they arrive.
  virtual void OnOutput(std::string_view text) {
    if (next_ != nullptr) next_->OnOutput(text);
  }

  // For the observer of a plan alone, whose steps may run side by side.
  virtual void OnStepDone(int /*steps_done*/) {}

 private:
  ActionObserver* const next_;
};

}  // namespace kernix::exec
