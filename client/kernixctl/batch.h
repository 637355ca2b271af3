// SPDX-License-Identifier: Apache-2.0
//
// Many loads, each of a module of its own, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/command.h"
#include "kernix/load.h"

namespace kernix::ctl {

// The daemon decides how many compilers run; this many loads keep it busy.
inline constexpr uint32_t kLoadsAtOnce = 32;

struct BatchResult {
  std::string line;       // for stdout
  std::string counts_as;  // in the report: "built"
};

struct BatchItem {
  std::string label;  // the subject of its errors: a file, a module
  // Does the load, with these callbacks. Called from any thread, once.
  std::function<absl::StatusOr<BatchResult>(const LoadCallbacks& callbacks)> run;
};

// Where a module comes from, as reports count it.
std::string InWords(Origin origin);

// Runs all items, `at_once` (or kOneForEachProcessor) at a time, and prints each result or error at once; at the end, a
// report on stderr. A terminal shows one progress line for all, unless `verbose`. Ctrl-C cancels what is left. Returns
// kOk, or the exit code of the first item that failed.
int RunBatch(const std::vector<BatchItem>& items, size_t at_once, bool verbose);

// What `at_once` is if nobody gives it: as many as kernixd, which learns from each build for later ones, can run.
inline constexpr uint32_t kOneForEachProcessor = 0;

// -j, whose default is what `at_once` holds.
Option AtOnce(uint32_t& at_once);

}  // namespace kernix::ctl
