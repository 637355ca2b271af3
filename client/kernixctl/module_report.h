// SPDX-License-Identifier: Apache-2.0
//
// The output of `compile` for a loaded module, and kernels' resources, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernix/inspection.h"
#include "kernix/module.h"

namespace kernix::ctl {

// A row for each kernel and architecture, below a line of titles. "?" stands for unknown values.
std::string KernelTable(const std::vector<KernelResources>& kernels);

// A JSON array with an object for each of them; null stands for unknown values.
std::string KernelsJson(const std::vector<KernelResources>& kernels);

// A module and its source files.
struct CompiledFiles {
  std::vector<std::string> files;  // at least one
  const Module& module;
  std::string path;  // where the user finds its library
};

// "add.cu: add (built in 12 ms: new source) -> path".
std::string SummaryLine(const CompiledFiles& compiled);

// One JSON object. For a CUDA module, it includes the resources of each kernel if they can be read.
std::string SummaryJson(const CompiledFiles& compiled);

// The values of `--print`.
extern const std::vector<std::string> kPrintable;

// Whether `--print` with this value requires that the module was loaded with LoadOptions::keep; that it is CUDA.
bool NeedsKeep(const std::string& printable);
bool NeedsCuda(const std::string& printable);

// `printable` is one of kPrintable. The result ends with a line feed.
absl::StatusOr<std::string> TextToPrint(const Module& module, const std::string& printable);

}  // namespace kernix::ctl
