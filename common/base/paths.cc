// SPDX-License-Identifier: Apache-2.0
#include "common/base/paths.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace kernix {

std::optional<std::string> ProcessGetEnv(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string JoinPath(std::string_view a, std::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  while (b.front() == '/' && b.size() > 1) b.remove_prefix(1);
  return a.back() == '/' ? StrCat(a, b) : StrCat(a, "/", b);
}

std::string Basename(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "/") return "/";
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string Dirname(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string NormalizePath(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string> parts;
  for (absl::string_view piece : absl::StrSplit(ToAbsl(path), '/', absl::SkipEmpty())) {
    std::string part(piece);
    if (part == ".") continue;
    if (part != ".." || (!absolute && (parts.empty() || parts.back() == ".."))) {
      parts.push_back(std::move(part));
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  const std::string joined = absl::StrJoin(parts, "/");
  if (absolute) return "/" + joined;
  return joined.empty() ? "." : joined;
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace kernix
