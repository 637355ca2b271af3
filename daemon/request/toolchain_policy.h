// SPDX-License-Identifier: Apache-2.0
//
// Which tools a request may be built with.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/env.h"
#include "daemon/toolchain/file_digests.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// One toolchain of a shared daemon.
struct RegisteredToolchain {
  std::string name;
  v1::ToolchainPaths paths;
};

// A daemon of one user takes the tools that its user's client names. A shared one runs registered tools only: what a
// client names is compared by content, and never run. Thread-safe.
class ToolchainPolicy {
 public:
  ToolchainPolicy(Env& env, bool shared, std::vector<RegisteredToolchain> registered);

  // The paths to build with: `asked`, or those of the registered toolchain whose host compiler (and nvcc, for CUDA)
  // has the content of the ones named in `asked`. A tool that `asked` leaves open may be any. NOT_REGISTERED_TOOLCHAIN,
  // saying what there is, when none fits.
  absl::StatusOr<v1::ToolchainPaths> Choose(const v1::ToolchainPaths& asked, v1::Language language);

 private:
  bool Fits(const v1::ToolchainPaths& registered, const v1::ToolchainPaths& asked, v1::Language language);
  bool SameContent(const std::string& registered, const std::string& asked);
  absl::Status NoneFits(const v1::ToolchainPaths& asked, v1::Language language) const;

  Env& env_;
  const bool shared_;
  const std::vector<RegisteredToolchain> registered_;
  toolchain::FileDigests digests_;
};

}  // namespace kernix::server
