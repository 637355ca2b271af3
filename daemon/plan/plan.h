// SPDX-License-Identifier: Apache-2.0
//
// How a request is built: a graph of steps, each one action. Making a plan reads and writes no file of the request and
// runs no command.
//
// The input root of every compile step:
//   kernix-unit/         the translation unit, perhaps with its prologue; `#line` puts the user's labels into
//                        diagnostics. With several units, each has a folder in it, "0-a.cu", "1-b.cpp", ...
//   kernix-source/       another copy of the sources, from which the compiler reads the lines that it shows
//   kernix/              our kernel headers, searched first: a user's folder "brainevent" cannot replace ours; a link
//   kernix/compat/       kernel headers whose names other packages may use, too; searched last
//   kernix-macros/       for a CUDA unit with -D or -U: a cuda_runtime.h that defines these macros, found first
//   kernix-slim/         in nvcc's phases, perhaps: a stand-in for the toolkit's cuda_runtime.h (slim_phases.h)
//   kernix-preamble/     in nvcc's phases, perhaps: the macros of a kept preamble (split_pass.h)
//   kernix-compiled/     perhaps: a preamble that is compiled already (split_compile.h)
//   toolchain/           links to folders of the toolchain (tool_paths.h): commands name no path of this machine
//   inc/0, inc/1, ...    the request's include roots, searched in this order (see input_root.h for headers above a
//                        root): links to trees that all steps and later builds share
// Diagnostics name a user's header as "inc/<root>/<path>".
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/paths.h"
#include "daemon/exec/action.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/plan/include_roots.h"
#include "daemon/request/request.h"

namespace kernix::build {

// Treats what a command prints as an output.
struct Printed {
  std::string path;     // empty: the printed text is not an output
  std::string without;  // drops lines that contain this, because they differ from run to run; empty: drops none
};

enum class StepKind {
  kOther,        // runs as it is
  kCppCompile,   // of a C++ unit by the host compiler
  kCudaCompile,  // of a CUDA unit by nvcc; may run as nvcc's phases (nvcc_phases.h)
  kPreprocess,   // phases of it
  kCudafe,
  kCicc,
  kPtxas,
  kHostCompile,
  kLink,       // of what other steps make, to the artifact
  kPlainLink,  // a link with libraries of the toolchain only, and with nothing that a user names
};

// A step whose result may serve other loads: its action's digest and the files of the toolchain that it reports to have
// read cover all that it depends on.
struct Reuse {
  std::vector<std::string> dependencies;  // the outputs that list these files, in Makefile syntax
  // The input files that the outputs depend on, besides the trees. Tools read the others only to show lines of them.
  // Empty: all inputs.
  std::vector<std::string> inputs = {};
  // One of these, a preprocessed CUDA unit: the key covers only the parts that devices can use; may be empty. The
  // outputs may then name lines of another text of the same code.
  std::string device_unit = {};
  // The key covers all bodies of host functions in the device unit, because things that only they use have an effect,
  // or because the result may serve other users. Then the tool gets exactly the covered text
  // (language/read/device_text.h). Otherwise it gets the unit, and language/read/device_code.h decides which parts the
  // key covers.
  bool host_bodies_count = false;
};

// An action that makes a step's outputs in less time. If it fails or prints anything, the step's own action runs.
struct FasterAction {
  exec::Action action;
  std::string dependencies;        // the output that lists the files that were read,
  std::vector<std::string> files;  // and those that it lacks
};

// The facts about the whole call that nvcc's phases need.
struct NvccCompile {
  std::string dependencies;        // the output that lists the files that were read
  uint64_t host_batch_rank = 0;    // `Action::batch_rank` of the host compile
  bool host_bodies_count = false;  // see Reuse: for users who must not depend on each other's host code
};

struct Step {
  StepKind kind = StepKind::kOther;
  exec::Action action;                         // its `inputs` lack the files that other steps make
  std::vector<std::string> inputs_from_steps;  // paths among the outputs of earlier steps
  Printed printed;
  std::optional<Reuse> reuse = {};                       // none for a link or a kCudaCompile
  std::shared_ptr<const FasterAction> faster = nullptr;  // of a compile for the host, in kFast
  std::string object = {};                               // the output that is a unit's object; empty: none is
  std::optional<NvccCompile> nvcc = {};                  // of a kCudaCompile
};

// A text that a step makes of one unit for one architecture, and that the artifact carries.
struct KeptFile {
  v1::KeptText::Kind kind = v1::KeptText::KIND_UNSPECIFIED;
  size_t unit = 0;
  std::string architecture;
  std::string path;
};

// Paths of step outputs that the builder reads when all steps are done.
struct PlanFiles {
  std::string artifact;
  std::vector<KeptFile> kept;
  // In Makefile syntax: the files that compilers and assemblers have read.
  std::vector<std::string> dependencies;
  std::vector<exec::InputLink> links;  // `dependencies` may name files through these links
};

// What a build reuses from earlier ones. All three give the same machine code, the first two the same bytes.
enum class CompileMode {
  kFast,   // results of steps, and what earlier builds have taught
  kAnew,   // nothing: runs what a new store would run
  kWhole,  // nothing, and each tool does as it does by itself: one call per unit, linked with the whole libraries
};

struct Plan {
  std::vector<Step> steps;  // each step comes after those that it needs
  PlanFiles files;
  std::vector<exec::Content> unit_texts;  // the text to compile for each unit
  IncludeRootsPtr roots;                  // the roots that `trees` are made from
  // Shared by the steps; empty until StagePlan(). The kernel headers come first.
  std::shared_ptr<std::vector<exec::MountedTree>> trees;
  std::shared_ptr<std::vector<exec::MountedTree>> kernel_headers;  // these alone
  toolchain::ToolchainPtr toolchain;
  CompileMode mode = CompileMode::kFast;
  bool in_order = false;  // fails as if its steps ran one after the other
};

// Whether an input is a copy of a source, of which tools only show lines.
inline bool IsSourceCopy(std::string_view path) { return IsBelow(path, language::kSourceFolder); }

// Whether the leading #includes of a unit may need an input: those of units with other functions are the same.
inline bool MayBeOfHead(std::string_view path) {
  return !IsSourceCopy(path) && Basename(path) != language::kHandlersHeader;
}

// The folder of the translation units. Its own, so that `#include "x"` in a unit does not find a user's file by
// accident.
inline constexpr char kUnitFolder[] = "kernix-unit";

// The folder of our kernel headers in the input root.
inline constexpr char kKernelHeaders[] = "kernix";

// The folder of the header that defines the macros of a CUDA unit's flags.
inline constexpr char kMacroFolder[] = "kernix-macros";

// The folders of a stand-in for the toolkit's cuda_runtime.h, and of the unit from which kernixd learns the stand-in's
// missing names.
inline constexpr char kSlimFolder[] = "kernix-slim";
inline constexpr char kProbeFolder[] = "kernix-probe";

// The folder of the text that replaces a preamble (split_pass.h).
inline constexpr char kPreambleFolder[] = "kernix-preamble";

// The name of a request's header in diagnostics; normalised, its path in the input root.
std::string HeaderName(const BuildRequest& request, const HeaderRef& header);

// The workers that may run steps.
struct WorkerTools {
  std::string name;                   // empty: there are none, or they have this machine's tools
  bool only_device_compiles = false;  // all that they run
  std::vector<std::string> shipped_folders = {};

  // Whether they may run steps of the request with tools of their own. Then `name` is part of these steps' salt.
  bool MayUseOthers(const BuildRequest& request) const;
};

struct PlanLimits {
  std::chrono::milliseconds step_timeout{0};  // 0: no limit
  WorkerTools workers = {};
};

// Makes the steps, with known inputs as digests. Does not read the contents of headers and staged flag files.
absl::StatusOr<Plan> MakePlan(const BuildRequest& request, const PlanLimits& limits);

// Adds the contents of the inputs. `contents` must have every header of `request`, and every flag file that is staged.
// `trees` makes the include roots, which all units share. INVALID_REQUEST if a header's size differs from the size in
// the request.
absl::Status StagePlan(const BuildRequest& request, HeaderContents contents, exec::KeptTrees& trees, Plan& plan);

}  // namespace kernix::build
