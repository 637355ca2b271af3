// SPDX-License-Identifier: Apache-2.0
//
// A load's request to the daemon: its policy (its own option, else $KERNIX_POLICY), and its contents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/headers/header_scan.h"
#include "client/headers/header_table.h"
#include "client/load/diagnostics.h"
#include "client/tools/environment.h"
#include "common/base/paths.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Users' spelling: "build", "cached".
extern const std::vector<std::string> kPolicyNames;

// The policy of this name. INVALID_REQUEST lists the names; `where` names its source: "policy".
absl::StatusOr<LoadPolicy> PolicyNamed(std::string_view name, std::string_view where);

// The policy of a load with these options. INVALID_REQUEST if the variable has another value, or if the load both must
// not and must compile.
absl::StatusOr<LoadPolicy> PolicyOf(const LoadOptions& options, const GetEnv& get_env);

struct RequestToSend {
  v1::LoadRequest request;
  // Why the request names no compiler. If there is none, kernixd may have the result all the same (see LacksTools());
  // if the environment names one that is not there, only a bundle serves. OK: the request names one.
  absl::Status no_tools;
};

struct PreparedLoad : RequestToSend {
  HeaderScan headers;
  PathNames names;                    // for the daemon's output
  std::vector<LoadWarning> warnings;  // for the user
  // For another machine that repeats the load: see v1::RecordedLoad.
  bool architecture_of_machine = false;
  std::string host_compiler;
};

// A load's inputs from its process.
struct LoadSurroundings {
  Env& env;
  const GetEnv& get_env;
  const std::vector<std::string>& site_packages;
  PrivateFolder header_folder;  // see HeaderTable
};

// Checks the arguments as far as that is possible without a compiler, and finds the toolchain, the GPU and the headers.
// Returns INVALID_REQUEST errors. A compiler that is not found is no error yet: see RequestToSend::no_tools.
absl::StatusOr<PreparedLoad> PrepareLoad(const LoadSurroundings& surroundings, v1::Language language,
                                         const std::string& name, const std::vector<Source>& sources,
                                         const LoadOptions& options);

// The request of a recorded load, without the texts of its sources, with the toolchain that this machine's environment
// chooses. An architecture that was the GPU's becomes that of the GPU here, if there is one.
absl::StatusOr<RequestToSend> RequestHere(const LoadSurroundings& surroundings, const v1::RecordedLoad& load);

// `no_tools` (see RequestToSend) if kernixd has no use for the request: the environment names a compiler that is not
// there.
absl::Status WrongTools(const absl::Status& no_tools);

// `answer`; or, if kernixd has refused the request because it names no compiler, the reason for that. If the request is
// only for what is cached, the error is that it is not.
absl::Status WithoutTools(const absl::Status& answer, const RequestToSend& sent);

}  // namespace kernix
