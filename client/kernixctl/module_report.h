// SPDX-License-Identifier: Apache-2.0
//
// What `compile` prints of a module that it has loaded.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/module.h"

namespace kernix::ctl {

// A module and what it came from.
struct CompiledFiles {
  std::vector<std::string> files;  // at least one
  const Module& module;
  std::string path;  // where its library lies for the user
};

// "add.cu: add (built in 12 ms) -> path".
std::string SummaryLine(const CompiledFiles& compiled);

// One JSON object. With what was kept, also what each kernel needs.
absl::StatusOr<std::string> SummaryJson(const CompiledFiles& compiled);

// What `--print WHAT` stands for.
extern const std::vector<std::string> kPrintable;

// Whether the module must have been loaded with LoadOptions::keep for it.
bool NeedsKeep(const std::string& printable);

// `printable` is one of kPrintable. With a line end.
absl::StatusOr<std::string> TextToPrint(const Module& module, const std::string& printable);

}  // namespace kernix::ctl
