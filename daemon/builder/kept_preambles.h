// SPDX-License-Identifier: Apache-2.0
//
// The preambles that kernixd keeps (daemon/plan/split_pass.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/base/metrics.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/plan_runner.h"
#include "daemon/builder/step_cache.h"
#include "daemon/plan/nvcc_phases.h"
#include "daemon/plan/shortcuts.h"
#include "daemon/plan/split_pass.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// The preprocessing of one compile, pass by pass.
struct Preprocessing {
  struct Pass {
    Step whole;
    std::optional<PreamblePass> split;
    exec::Content text;  // of its preamble, which is kept; null: it is not
    std::vector<std::string> files;
    Step rest;                             // if `text`: runs instead of the whole pass
    std::optional<PreambleForm> to_learn;  // has come before, and is not kept
  };
  std::vector<Pass> passes;
  UserId user;            // for whom the compile runs
  Digest included_names;  // represents what the unit includes
  BuildStart start;       // before any of it ran

  bool uses_kept() const;
  std::vector<Step> steps() const;  // with what is kept
};

// Kept in the step cache: a preamble is valid while its headers have the same content. Thread-safe.
class KeptPreambles {
 public:
  // All must outlive the object.
  KeptPreambles(StepCache& cache, Learning& learning, const Shortcuts& disabled)
      : cache_(cache), learning_(learning), is_disabled_(disabled.contains(Shortcut::kPreambles)) {}

  // Kept texts are in `outputs` (null: in memory). A text for which there is no room is not used.
  Preprocessing Prepare(const Phases& phases, const toolchain::Toolchain& toolchain, UserId user,
                        const HeldOutputsPtr& outputs);

  // Makes the outputs of steps() those of whole passes. False if that is not certain, or if there is no room for them.
  bool Join(const Preprocessing& preprocessing, const HeldOutputsPtr& outputs, PlanEnd& end);

  // Counts a compile's passes.
  void CountPasses(const Preprocessing& preprocessing);
  void CountMisfit() { does_not_fit_.Add(); }

  // Learns missing preambles that came before from the outputs of their passes.
  void Teach(const Preprocessing& preprocessing, const PlanOutputs& outputs, toolchain::ToolchainPtr toolchain);

  void Register(MetricsRegistry& registry) const;

 private:
  struct Lesson;

  void Learn(const Lesson& lesson);
  absl::Status LearnPreamble(const Lesson& lesson, exec::ActionResult& made, std::vector<std::string>& files);

  // Makes the pass use its kept preamble, if there is one.
  void UseKept(const toolchain::Toolchain& toolchain, const Preprocessing& preprocessing, const HeldOutputsPtr& outputs,
               Preprocessing::Pass& pass);

  void NoteMisfit(const std::vector<PreambleForm>& forms, UserId user, const Digest& included_names);

  StepCache& cache_;
  Learning& learning_;
  const bool is_disabled_;
  CounterFamily passes_{"kernix_preambles_total",
                        "Passes of nvcc's preprocessor: with a kept preamble, or without one, and why.",
                        "how",
                        {"kept", "not_known_yet", "none"}};
  MetricCounter does_not_fit_;
  SharedLru<Digest, bool> misfits_{1024};  // users' units of #includes whose text does not join with the preamble's
};

}  // namespace kernix::build
