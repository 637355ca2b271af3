// SPDX-License-Identifier: Apache-2.0
//
// One build, from its first lookup in the cache to the end of its flight.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/builder/builder.h"
#include "daemon/builder/flight.h"
#include "daemon/builder/plan_runner.h"

namespace kernix::build {

// Runs in one thread; its steps have threads of their own.
class Build {
 public:
  // `parts` must outlive it. The plan and the start in `load` are this build's.
  Build(BuilderParts& parts, std::shared_ptr<PlannedLoad> load, FlightPtr flight)
      : parts_(parts), load_(std::move(load)), flight_(std::move(flight)) {}

  // `contents`: of the headers that the flight has fetched. Whatever happens, the flight ends.
  void Run(HeaderContents contents);

  // Ends the flight of a build that does not run.
  void End(absl::StatusOr<v1::LoadResult> result);

 private:
  absl::StatusOr<v1::LoadResult> Make(HeaderContents contents);
  // Asks, and waits for another node that builds it.
  std::optional<remote::SharedResult> AskUpstream();
  absl::StatusOr<v1::LoadResult> KeepFromUpstream(const remote::SharedResult& found);
  // Stages and runs the plan of this build's load, or of one like it.
  absl::StatusOr<PlanEnd> RunSteps(PlannedLoad& load);
  absl::Status Stage(PlannedLoad& load);
  absl::StatusOr<v1::LoadResult> Conclude(const PlanEnd& end);
  // Runs the compiler on the sources without their handlers. Nothing if it finds no error. `otherwise`: the error known
  // so far.
  std::optional<absl::Status> AskAboutSources(const absl::Status& otherwise);
  absl::StatusOr<v1::LoadResult> Keep(const PlanEnd& end);
  // `dependency_files`: the lists of files that the tools have read.
  absl::StatusOr<v1::LoadResult> Store(const std::vector<std::string>& dependency_files, const std::string& artifact,
                                       const std::vector<std::string>& symbol_versions);
  // Makes the first lookup of the result a known one.
  void Remember(const cache::Entry& entry, std::vector<WatchedFile> headers, uint64_t cache_changes);
  void NoteFailure(const absl::Status& status);
  void CountFailure(const absl::Status& status);

  BuilderParts& parts_;
  const std::shared_ptr<PlannedLoad> load_;
  const FlightPtr flight_;
};

}  // namespace kernix::build
