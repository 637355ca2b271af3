// SPDX-License-Identifier: Apache-2.0
//
// The part of this process in the history of its program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/connection/daemon_client.h"
#include "client/load/history.h"
#include "client/load/load_request.h"
#include "common/base/paths.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// For one load. It does nothing if the load or the environment says so, if nobody knows the program, or if this user
// cannot have a history.
class OwnHistory {
 public:
  // `variables`: the load's environment, which `get_env` reads. References must outlive this object.
  OwnHistory(DaemonClient& daemon, const std::vector<std::string>& variables, const GetEnv& get_env,
             const LoadOptions& options);

  // `callbacks`, with which the program's other loads are built in the background, once in a process, as soon as a load
  // that its history knows must be built. Not if nobody expects a build.
  LoadCallbacks WithWarmUp(const v1::LoadRequest& request, LoadCallbacks callbacks);

  // Notes the load. Returns a warning if that has failed, but none if this user may not write there.
  std::string Note(const PreparedLoad& load, const std::string& key);

 private:
  void WarmUp() const;

  const DaemonClient& daemon_;
  const std::vector<std::string>& variables_;
  const GetEnv& get_env_;
  std::string program_;
  std::optional<History> history_;
};

}  // namespace kernix
