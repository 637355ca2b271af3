// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_inputs.h"

#include <algorithm>
#include <string_view>

#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

std::optional<FileIdentity> Identity(Env& env, const std::string& path) {
  const absl::StatusOr<FileIdentity> identity = IdentityOf(env, path);
  return identity.ok() ? std::optional(*identity) : std::nullopt;
}

// The path of `folder` below the first of `roots` that contains it: "/sub", or "".
std::optional<std::string_view> BelowFirst(const std::vector<std::string>& roots, std::string_view folder) {
  for (const std::string& root : roots) {
    if (folder.starts_with(root) && (folder.size() == root.size() || folder[root.size()] == '/')) {
      return folder.substr(root.size());
    }
  }
  return std::nullopt;
}

}  // namespace

bool Unchanged(Env& env, const std::vector<LoadInput>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const LoadInput& input) { return Identity(env, input.path) == input.identity; });
}

LoadInputs::LoadInputs(Env& env, const std::vector<std::string>& include_paths)
    : env_(env), begun_unix_ms_(env.UnixMillis()), possible_(include_paths.begin(), include_paths.end()) {}

// A header that appears in an earlier folder would hide one that was found. Its appearance changes the times of its
// folder, so the folders that could contain it count, too.
void LoadInputs::Add(const std::vector<std::string>& folders, const std::vector<std::string>& files) {
  found_.insert(folders.begin(), folders.end());
  found_.insert(files.begin(), files.end());
  std::set<std::string> places;  // a set, because most of thousands of headers share their folders
  for (const std::string& file : files) places.insert(Dirname(file));
  for (const std::string& place : places) {
    const std::optional<std::string_view> below = BelowFirst(folders, place);
    if (!below) continue;
    for (const std::string& folder : folders) possible_.insert(StrCat(folder, *below));
  }
}

std::optional<std::vector<LoadInput>> LoadInputs::Look() const {
  std::vector<LoadInput> inputs;
  for (const std::string& path : found_) inputs.push_back({path, Identity(env_, path)});
  const bool gone = std::any_of(inputs.begin(), inputs.end(), [](const LoadInput& input) { return !input.identity; });
  for (const std::string& path : possible_) {
    if (!found_.contains(path)) inputs.push_back({path, Identity(env_, path)});
  }
  const bool young = std::any_of(inputs.begin(), inputs.end(), [&](const LoadInput& input) {
    return input.identity && !input.identity->SettledAt(begun_unix_ms_);
  });
  return gone || young ? std::nullopt : std::optional(std::move(inputs));
}

}  // namespace kernix
