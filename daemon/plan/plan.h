// SPDX-License-Identifier: Apache-2.0
//
// How a request is built: a graph of steps, each one action. No file of the request is read or written, and nothing
// runs here.
//
// The input root of every compile step:
//   kernix-unit/         the translation unit; `#line` gives the user's labels to what is said about it. Of several
//                        units each has a folder in it, "0-a.cu", "1-b.cpp", ...
//   <label>              the sources once more, where the compiler looks for the lines that it shows
//   kernix/              our kernel headers, searched first: nobody's folder "brainevent" can stand in for ours
//   kernix/compat/       those of them that may be anybody's name, searched last
//   kernix-macros/       of a CUDA unit with -D or -U: a cuda_runtime.h that says the same, and is found first
//   toolchain/           links to folders of the toolchain (tool_places.h): commands name no place of this machine
//   inc/0, inc/1, ...    the request's include roots, searched in this order (see input_root.h for headers above a
//                        root): links to trees that all steps share, and later builds too
// Diagnostics name a header of the user as "inc/<root>/<path>".
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/exec/action.h"
#include "daemon/plan/header_trees.h"
#include "daemon/plan/include_roots.h"
#include "daemon/request/request.h"

namespace kernix::build {

// What a command prints, as an output.
struct Printed {
  std::string path;     // empty: it is none
  std::string without;  // lines that hold this are left out, since they differ from run to run; empty: none
};

enum class Tool { kHostCompiler, kNvcc, kOther };

struct Step {
  Tool tool = Tool::kOther;
  exec::Action action;                         // its `inputs` lack what other steps make
  std::vector<std::string> inputs_from_steps;  // paths that earlier steps list among their outputs
  Printed printed;
};

// Outputs of the steps, by path, that are looked at when all are done.
struct PlanFiles {
  std::string artifact;
  // In Makefile syntax, one of each unit: which files the compiler has read, and which the assembler. The latter are
  // none when it does not tell.
  std::vector<std::string> dependencies;
  std::vector<std::string> assembler_dependencies;
  std::vector<exec::InputLink> links;  // that `dependencies` may name files by
};

struct Plan {
  std::vector<Step> steps;  // in an order that respects their needs
  PlanFiles files;
  std::vector<exec::Content> unit_texts;                  // what is compiled for each unit
  IncludeRootsPtr roots;                                  // that `trees` are made of
  std::shared_ptr<std::vector<exec::MountedTree>> trees;  // that its steps share, empty until StagePlan()
  uint64_t max_output_bytes = 0;  // of what all steps make, which is in memory until the last one ends; 0: any
};

using HeaderContents = absl::flat_hash_map<Digest, exec::Content>;

// A header of the request as diagnostics name it; normalised, its place in the input root.
std::string HeaderName(const BuildRequest& request, const HeaderRef& header);

struct PlanLimits {
  std::chrono::milliseconds step_timeout{0};  // 0: none
  int max_jobs = 1;                           // that one action may be worth
  uint64_t max_memory_bytes = 0;              // that one action should need; 0: any
};

// The steps, with inputs that are known by their digests: contents of headers and staged flag files are not looked at.
absl::StatusOr<Plan> MakePlan(const BuildRequest& request, IncludeRootsMemo& roots, const PlanLimits& limits);

// Adds the contents. `contents` has every header of `request`, and every one of its flag files that is staged. `trees`
// makes the include roots, which all units share. INVALID_REQUEST when a header has not the size that the request says.
absl::Status StagePlan(const BuildRequest& request, HeaderContents contents, HeaderTrees& trees, Plan& plan);

}  // namespace kernix::build
