// SPDX-License-Identifier: Apache-2.0
//
// What the checks of the different kinds of flags share. Internal to CheckFlags().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/os/env.h"
#include "daemon/toolchain/flags/flags.h"
#include "daemon/toolchain/host_facts.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

struct FlagContext {
  Env& env;
  const Toolchain& toolchain;
  const v1::Language language;
  const FlagPolicy policy;
  HostFacts& facts;
  CheckedFlags& result;

  bool shared() const { return policy == FlagPolicy::kShared; }
};

inline constexpr std::string_view kNotListed =
    "this kernixd is shared and lets pass only flags that it knows, with a value that they take";

// INVALID_REQUEST: the flag, and why not or what instead.
absl::Status RefuseFlag(std::string_view flag, std::string_view why);

// For a flag that the tables do not have: refused when it names a file, or when the daemon is shared.
absl::Status CheckUnknownFlag(const FlagContext& context, const std::string& flag);

// Refuses a word of `flag` that a shell would read, or that a tool would take for a file of further flags.
absl::Status CheckWord(std::string_view flag, std::string_view word);
// The same for a word that only the host compiler gets: no shell is there to read what a user gives his own g++.
absl::Status CheckHostWord(const FlagContext& context, std::string_view flag, std::string_view word);

// Adds the file that `flag` names, for the key alone. Refused when shared, or when it is not the absolute path of a
// file.
absl::Status AddKeyFile(FlagContext& context, std::string_view flag, const std::string& path);

// Checks flags of g++ or clang++ that compile; what passes is added to `passed`.
absl::Status CheckHostFlags(FlagContext& context, const std::vector<std::string>& flags,
                            std::vector<std::string>& passed);

// Checks flags of nvcc that compile. Fills in the result's `compile` and what follows from the flags.
absl::Status CheckNvccFlags(FlagContext& context, const std::vector<std::string>& flags);

// Checks flags of the link. Fills in the result's `link` and `files`.
absl::Status CheckLinkFlags(FlagContext& context, const std::vector<std::string>& flags);

}  // namespace kernix::toolchain
