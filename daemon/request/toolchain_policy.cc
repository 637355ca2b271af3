// SPDX-License-Identifier: Apache-2.0
#include "daemon/request/toolchain_policy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

// Whether each tool that `language` needs is registered and the `same` as the one asked for.
template <typename Same>
bool Fits(const v1::ToolchainPaths& registered, const v1::ToolchainPaths& asked, v1::Language language, Same same) {
  const std::vector<std::string> ours = toolchain::ProgramsOf(registered, language);
  const std::vector<std::string> theirs = toolchain::ProgramsOf(asked, language);
  return !toolchain::LacksTools(registered, language) && std::equal(ours.begin(), ours.end(), theirs.begin(), same);
}

}  // namespace

bool SameToolchains(const std::vector<RegisteredToolchain>& a, const std::vector<RegisteredToolchain>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RegisteredToolchain& one, const RegisteredToolchain& other) {
                      return one.name == other.name && one.paths.SerializeAsString() == other.paths.SerializeAsString();
                    });
}

ToolchainPolicy::ToolchainPolicy(Env& env, bool shared, std::vector<RegisteredToolchain> registered,
                                 bool has_description)
    : env_(env),
      shared_(shared),
      has_description_(has_description),
      registered_(std::move(registered)),
      digests_(env) {}

std::vector<RegisteredToolchain> ToolchainPolicy::Registered() const {
  const MutexLock lock(mutex_);
  return registered_;
}

void ToolchainPolicy::Replace(std::vector<RegisteredToolchain> registered) {
  const MutexLock lock(mutex_);
  registered_ = std::move(registered);
}

absl::StatusOr<v1::ToolchainPaths> ToolchainPolicy::Choose(const v1::ToolchainPaths& asked, v1::Language language) {
  if (!shared_) return asked;
  const std::vector<RegisteredToolchain> registered = Registered();
  const auto same = [this](const std::string& ours, const std::string& theirs) { return SameContent(ours, theirs); };
  for (const RegisteredToolchain& candidate : registered) {
    if (Fits(candidate.paths, asked, language, same)) return candidate.paths;
  }
  // A member decides no variable of the service's compilers.
  if (IsDescribed(asked, language)) return toolchain::WithoutVariables(asked);
  return NoneFits(registered, asked, language);
}

std::optional<v1::ToolchainPaths> ToolchainPolicy::ChooseByName(const v1::ToolchainPaths& asked,
                                                                v1::Language language) const {
  if (!shared_) return asked;
  const MutexLock lock(mutex_);
  // Of another name, the first could still have the same content, and Choose() would take it.
  if (registered_.empty()) {
    return IsDescribed(asked, language) ? std::optional(toolchain::WithoutVariables(asked)) : std::nullopt;
  }
  const v1::ToolchainPaths& first = registered_.front().paths;
  const auto same = [](const std::string& ours, const std::string& theirs) { return theirs.empty() || theirs == ours; };
  return Fits(first, asked, language, same) ? std::optional(first) : std::nullopt;
}

bool ToolchainPolicy::SameContent(const std::string& registered, const std::string& asked) {
  if (asked.empty() || asked == registered) return true;
  // Compares sizes first: a client may name a file of any length, and only one of the same length need be read.
  const absl::StatusOr<FileInfo> ours = env_.Stat(registered);
  const absl::StatusOr<FileInfo> theirs = env_.Stat(asked);
  if (!ours.ok() || !theirs.ok() || theirs->type != FileType::kRegular || ours->size != theirs->size) return false;
  const absl::StatusOr<Digest> our_digest = digests_.Get(registered);
  const absl::StatusOr<Digest> their_digest = digests_.Get(asked);
  return our_digest.ok() && their_digest.ok() && *our_digest == *their_digest;
}

absl::Status ToolchainPolicy::NoneFits(const std::vector<RegisteredToolchain>& registered,
                                       const v1::ToolchainPaths& asked, v1::Language language) const {
  std::vector<std::string> programs = toolchain::ProgramsOf(asked, language);
  std::reverse(programs.begin(), programs.end());
  std::erase(programs, "");
  const std::string tools = absl::StrJoin(programs, " with ");
  std::string names = absl::StrJoin(registered, ", ", [](std::string* out, const RegisteredToolchain& toolchain) {
    StrAppend(out, toolchain.name, " (", toolchain.paths.host_compiler(),
              toolchain.paths.nvcc().empty() ? "" : StrCat(" and ", toolchain.paths.nvcc()), ")");
  });
  if (names.empty() && has_description_) names = "none, and a description for clients without compilers";
  return MakeError(v1::ErrorDetail::NOT_REGISTERED_TOOLCHAIN,
                   StrCat("this shared kernixd has no toolchain like ", tools.empty() ? "the one asked for" : tools,
                          "; its administrator registered ", names));
}

}  // namespace kernix::server
