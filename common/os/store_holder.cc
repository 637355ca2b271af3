// SPDX-License-Identifier: Apache-2.0
#include "common/os/store_holder.h"

#include <unistd.h>

#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/os/places.h"

namespace kernix {
namespace {

constexpr char kSocketPrefix[] = "at ";

std::string HolderFile(const std::string& store_directory) {
  return JoinPath(JoinPath(store_directory, kPrivateFolder), kHolderFile);
}

std::vector<std::string> Lines(Env& env, const std::string& store_directory) {
  return absl::StrSplit(env.ReadFile(HolderFile(store_directory)).value_or(""), '\n', absl::SkipEmpty());
}

}  // namespace

absl::Status NoteStoreHolder(Env& env, const std::string& store_directory, const std::string& socket) {
  const std::string line = socket.empty() ? "" : StrCat(kSocketPrefix, socket, "\n");
  return env.WriteFile(HolderFile(store_directory), StrCat("process ", getpid(), "\n", line), 0600);
}

std::string DescribeStoreHolder(Env& env, const std::string& store_directory) {
  return absl::StrJoin(Lines(env, store_directory), ", ");
}

std::string SocketOfStoreHolder(Env& env, const std::string& store_directory) {
  for (const std::string& line : Lines(env, store_directory)) {
    absl::string_view path = line;
    if (absl::ConsumePrefix(&path, kSocketPrefix) && path.substr(0, 1) == "/") return std::string(path);
  }
  return "";
}

}  // namespace kernix
