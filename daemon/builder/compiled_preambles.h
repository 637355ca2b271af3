// SPDX-License-Identifier: Apache-2.0
//
// The preambles that kernixd has compiled (daemon/plan/split_compile.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/identity.h"
#include "common/base/lru.h"
#include "common/base/metrics.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/step_cache.h"
#include "daemon/exec/input_tree.h"
#include "daemon/plan/shortcuts.h"
#include "daemon/plan/split_compile.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::build {

// Kept on disk while this kernixd runs: a precompiled header of 3 to 80 MB each, by the digest of its content. The step
// cache has the digest for a preamble, valid while the preamble's headers have the same content. Thread-safe.
class CompiledPreambles {
 public:
  static constexpr uint64_t kMostBytes = 512ull << 20;  // on the disk

  // How one unit is compiled.
  struct Prepared {
    std::shared_ptr<const FasterAction> faster;    // null: the preamble is not compiled
    std::shared_ptr<const SplitCompile> to_learn;  // null: nothing
    BuildStart start;
  };

  // All must outlive the object.
  CompiledPreambles(StepCache& cache, Learning& learning, const Shortcuts& disabled)
      : cache_(cache),
        learning_(learning),
        is_disabled_(disabled.contains(Shortcut::kCompiledPreambles)),
        trees_(kMostBytes) {}

  // `split`: nothing if the compile cannot be split. `dependencies`: its output that lists the files that were read.
  Prepared Prepare(std::optional<SplitCompile> split, const std::string& dependencies,
                   const toolchain::Toolchain& toolchain, UserId user);

  // Learns a missing preamble when it comes a second time: making one takes about as long as the compile that it saves.
  // `object`: the output of the whole compile.
  void Teach(const Prepared& prepared, exec::Content object, toolchain::ToolchainPtr toolchain, UserId user);

  void Register(MetricsRegistry& registry) const { compiles_.Register(registry); }

 private:
  struct Lesson;

  void Learn(const Lesson& lesson);
  // Makes the header, of the preamble alone.
  absl::StatusOr<exec::Content> Compile(const Lesson& lesson, exec::ActionResult& read);

  exec::InputTreePtr Find(const Step& preamble, const toolchain::Toolchain& toolchain, std::vector<std::string>& files);

  // A unit of the user's has had another object with the compiled preamble, or none.
  void NoteMisfit(const Digest& preamble, UserId user);

  StepCache& cache_;
  Learning& learning_;
  const bool is_disabled_;
  CounterFamily compiles_{"kernix_compiled_preambles_total",
                          "Compiles by the host compiler: with a compiled preamble, or without one, and why.",
                          "how",
                          {"compiled", "not_known_yet", "none"}};
  exec::KeptTrees trees_;  // with the precompiled headers
  SharedLru<std::pair<Digest, UserId>, int> misfits_{1024};
};

}  // namespace kernix::build
