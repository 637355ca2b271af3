// SPDX-License-Identifier: Apache-2.0
//
// A compile by nvcc as the steps that nvcc itself would run: for each architecture preprocess, cicc, ptxas; for the
// host preprocess, cudafe++; then fatbinary and the host compiler. Steps that do not need each other run side by side,
// and none needs a shell.
//
// One thing differs from a whole call: the module id, a part of the names of device symbols with internal linkage.
// cudafe++ would make it, and every cicc would wait for it; here, it is a digest of the unit's path.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/plan/plan.h"

namespace kernix::build {

struct Phases {
  std::vector<Step> preprocess;  // of each pass: the host's, and that of each architecture
  size_t host_pass = 0;          // its place there
  std::vector<Step> compile;     // what comes after that, in nvcc's order, except for the last step:
  Step host_compile;             // the host compiler's, which reads what the others have made
  std::string host_text;         // the input that it compiles: what cudafe++ has made
  // Outputs that together list what the compile reads. nvcc's own list also has what `#line` directives name.
  std::vector<std::string> dependencies;
  std::vector<std::string> preprocessed;  // the outputs with preprocessed texts
  // The translation unit, and the word with which nvcc makes preprocessing search the toolkit's headers; empty: it does
  // so in another way.
  std::string unit;
  std::string toolkit_headers;
  bool shows_unused = false;  // makes debug information or line tables, or keeps functions that nobody calls
};

// Makes the action that asks nvcc what it would run for `compile`. It prints that.
exec::Action DryRunOf(const Step& compile);

using Command = std::vector<std::string>;

struct DryRun {
  // In nvcc's order, as the words that nvcc's shell would make of them, without what nvcc does itself (the dependency
  // file).
  std::vector<Command> commands;
  std::string path;  // the PATH of that shell, which begins with nvcc's own folders
};

// The output of a dry run. nullopt if a line is not understood: a release may print anything.
std::optional<DryRun> ReadDryRun(std::string_view output);

// Where nvcc's programs are, except for cicc. nvcc itself finds them on PATH.
enum class ProgramFolder { kBesideNvcc, kBesideHostCompiler };

// The phases of `compile`, a kCudaCompile, whose last word is the unit. `dry_run` is the
// output of DryRunOf(compile). nullopt if it is not understood: releases of nvcc differ, and no phase may be guessed.
std::optional<Phases> PhasesOf(const Step& compile, std::string_view dry_run,
                               ProgramFolder programs = ProgramFolder::kBesideNvcc);

}  // namespace kernix::build
