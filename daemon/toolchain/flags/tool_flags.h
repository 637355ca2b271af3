// SPDX-License-Identifier: Apache-2.0
//
// The checks of the flags of each tool: the host compiler and nvcc. Internal to CheckFlags().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/flags/flag_table.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "daemon/toolchain/flags/flags.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::toolchain {

// Shared parts of the checks for the different kinds of flags. Internal to CheckFlags().
struct FlagContext {
  Env& env;
  const Toolchain& toolchain;
  const LanguageTraits& language;
  const FlagPolicy policy;
  HostFacts& facts;
  CheckedFlags& result;

  bool shared() const { return policy == FlagPolicy::kShared; }
  bool nvcc() const { return language.needs_nvcc; }
};

inline constexpr std::string_view kValueMissing = "its value is missing";
inline constexpr std::string_view kNamesUnseenFile = "it names a file, whose content kernix cannot take into account";
inline constexpr std::string_view kCudartIsStatic = "cudart is always linked statically";

// INVALID_REQUEST with the flag, and the reason or an alternative.
absl::Status RefuseFlag(std::string_view flag, std::string_view why);

// Refuses a word that is not a flag and a flag that its table allows nobody; on a shared daemon, also one that the
// table allows in private daemons only. `text`: the flag's name in the error.
absl::Status CheckUser(const FlagContext& context, const flags::Flag& flag, std::string_view text);

// Refuses a flag that names a file by its path. Keys of steps do not cover sources that the step need not read.
absl::Status CheckNamesNoFile(const flags::Flag& flag, std::string_view text);

// Refuses a word of `flag` that a shell would interpret, or that a tool would take for a file of further flags.
absl::Status CheckWord(std::string_view flag, std::string_view word);
// The same for a word that only the host compiler gets: without nvcc, no shell sees it.
absl::Status CheckHostWord(const FlagContext& context, std::string_view flag, std::string_view word);

// The digest of the file that `flag` names or implies.
absl::StatusOr<Digest> DigestOfFile(const FlagContext& context, std::string_view flag, const std::string& path);

// Checks flags of g++ or clang++ and adds the accepted ones to `passed`.
absl::Status CheckHostFlag(FlagContext& context, const flags::Flag& flag, std::vector<std::string>& passed);
absl::Status CheckHostFlags(FlagContext& context, const std::vector<std::string>& flags,
                            std::vector<std::string>& passed);

// Checks nvcc's flags for compiling. Fills in the result's `nvcc`, `host` and the fields that depend on the flags.
absl::Status CheckNvccFlags(FlagContext& context, const std::vector<std::string>& flags);

// Checks flags of the link. Fills in the result's `link` and `files`.
absl::Status CheckLinkFlags(FlagContext& context, const std::vector<std::string>& flags);

}  // namespace kernix::toolchain
