// SPDX-License-Identifier: Apache-2.0
//
// Decides which tools a request may be built with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/toolchain.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::server {

// A toolchain of a shared daemon.
struct RegisteredToolchain {
  std::string name;
  v1::ToolchainPaths paths;
  std::string origin = {};  // in the config file, for messages: "/etc/kernix/kernixd.toml:7: "
};

// Whether both register the same tools under the same names, in the same order.
bool SameToolchains(const std::vector<RegisteredToolchain>& a, const std::vector<RegisteredToolchain>& b);

// A private daemon uses the tools that its user's client names. A shared daemon runs only registered tools: it
// compares the tools that a client names by content, and never runs them. Thread-safe.
class ToolchainPolicy {
 public:
  // `has_description`: a described toolchain serves requests without tools, if no registered one does.
  ToolchainPolicy(Env& env, bool shared, std::vector<RegisteredToolchain> registered, bool has_description = false);

  // The paths to build with: `asked` (also for the described toolchain), or those of the registered toolchain whose
  // tools have the same content as those named in `asked`. A tool that `asked` leaves
  // open matches any. NOT_REGISTERED_TOOLCHAIN, with the available toolchains, if none matches.
  absl::StatusOr<v1::ToolchainPaths> Choose(const v1::ToolchainPaths& asked, v1::Language language);

  // The result of Choose(), if names alone decide it, without reading a file.
  std::optional<v1::ToolchainPaths> ChooseByName(const v1::ToolchainPaths& asked, v1::Language language) const;

  std::vector<RegisteredToolchain> Registered() const;

  // Registers these instead. Requests that have chosen already are not affected.
  void Replace(std::vector<RegisteredToolchain> registered);

 private:
  struct OpenTool;
  // Members can name any number of files. Each of them reads at most as much as a registered tool has.
  static constexpr size_t kMostDigests = 1024;

  bool SameContent(const std::string& registered, const std::string& asked);
  absl::StatusOr<OpenTool> Open(const std::string& path) const;
  absl::StatusOr<Digest> DigestOf(const OpenTool& tool);
  absl::Status NoneFits(const std::vector<RegisteredToolchain>& registered, const v1::ToolchainPaths& asked,
                        v1::Language language) const;
  bool IsDescribed(const v1::ToolchainPaths& asked, v1::Language language) const {
    return has_description_ && toolchain::LacksTools(asked, language);
  }

  Env& env_;
  const bool shared_;
  const bool has_description_;
  mutable Mutex mutex_;
  std::vector<RegisteredToolchain> registered_ ABSL_GUARDED_BY(mutex_);
  SharedLru<FileIdentity, Digest> digests_{kMostDigests};
};

}  // namespace kernix::server
