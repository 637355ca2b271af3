// SPDX-License-Identifier: Apache-2.0
#include "daemon/request/toolchain_policy.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
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

// A regular file that is open, and what it was then.
struct ToolchainPolicy::OpenTool {
  std::unique_ptr<ReadableFile> file;
  FileIdentity identity;
};

bool SameToolchains(const std::vector<RegisteredToolchain>& a, const std::vector<RegisteredToolchain>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RegisteredToolchain& one, const RegisteredToolchain& other) {
                      return one.name == other.name && one.paths.SerializeAsString() == other.paths.SerializeAsString();
                    });
}

ToolchainPolicy::ToolchainPolicy(Env& env, bool shared, std::vector<RegisteredToolchain> registered,
                                 bool has_description)
    : env_(env), shared_(shared), has_description_(has_description), registered_(std::move(registered)) {}

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

// A member can exchange and change the file at any time. So all is said of the one file that is open, and no more of it
// is read than the registered one has.
bool ToolchainPolicy::SameContent(const std::string& registered, const std::string& asked) {
  if (asked.empty() || asked == registered) return true;
  const absl::StatusOr<OpenTool> ours = Open(registered);
  const absl::StatusOr<OpenTool> theirs = Open(asked);
  if (!ours.ok() || !theirs.ok() || theirs->identity.size != ours->identity.size) return false;
  if (theirs->identity == ours->identity) return true;
  const absl::StatusOr<Digest> our_digest = DigestOf(*ours);
  const absl::StatusOr<Digest> their_digest = DigestOf(*theirs);
  return our_digest.ok() && their_digest.ok() && *our_digest == *their_digest;
}

absl::StatusOr<Digest> ToolchainPolicy::DigestOf(const OpenTool& tool) {
  const FileIdentity& identity = tool.identity;
  if (const std::optional<Digest> known = digests_.Find(identity)) return *known;
  const int64_t read_unix_ms = env_.UnixMillis();
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(*tool.file, identity.size));
  if (identity.SettledAt(read_unix_ms)) digests_.Put(identity, digest);
  return digest;
}

absl::StatusOr<ToolchainPolicy::OpenTool> ToolchainPolicy::Open(const std::string& path) const {
  KERNIX_ASSIGN_OR_RETURN(const std::string real, env_.RealPath(path));
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, env_.OpenFile(real));
  KERNIX_ASSIGN_OR_RETURN(const FileInfo info, file->Stat());
  return OpenTool{std::move(file), FileIdentity::Of(info)};
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
