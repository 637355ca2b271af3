// SPDX-License-Identifier: Apache-2.0
#include "client/load/path_names.h"

#include <charconv>

#include "absl/strings/ascii.h"
#include "common/base/strings.h"
#include "common/wire/input_root.h"

namespace kernix {
namespace {

// "inc/"
std::string_view RootPrefix() {
  static const auto& prefix = *new std::string(StrCat(kIncludeRootsFolder, "/"));
  return prefix;
}

// Skips the folders that an include root is nested in because headers climb above it.
std::string_view SkipClimbs(std::string_view rest) {
  static const auto& folder = *new std::string(StrCat("/", kClimbFolder, "/"));
  while (rest.starts_with(folder)) rest.remove_prefix(folder.size() - 1);
  return rest;
}

// A path name begins a word: it follows a space, a quote (also the UTF-8 quotes that GCC prints), or a bracket.
bool BeginsWord(std::string_view text, size_t at) {
  if (at == 0) return true;
  const auto before = static_cast<unsigned char>(text[at - 1]);
  return absl::ascii_isspace(before) || before >= 0x80 ||
         std::string_view("'\"`([<,=").find(text[at - 1]) != std::string_view::npos;
}

}  // namespace

void PathNames::AddSource(std::string label, std::string path) {
  if (label != path) sources_.emplace_back(std::move(label), std::move(path));
}

bool PathNames::RestoreLabel(std::string_view rest, size_t& length, std::string& path) const {
  for (const auto& [label, full] : sources_) {
    if (!rest.starts_with(label) || rest.size() == label.size()) continue;
    const char after = rest[label.size()];
    if (after != ':' && after != '(') continue;
    length = label.size();
    path = full;
    return true;
  }
  return false;
}

bool PathNames::RestoreRoot(std::string_view rest, size_t& length, std::string& path) const {
  if (!rest.starts_with(RootPrefix())) return false;
  size_t index = 0;
  const char* number = rest.data() + RootPrefix().size();
  const auto [end, error] = std::from_chars(number, rest.data() + rest.size(), index);
  if (error != std::errc() || index >= roots_.size() || end == rest.data() + rest.size() || *end != '/') return false;
  const std::string_view after = SkipClimbs(rest.substr(end - rest.data()));
  length = rest.size() - after.size();
  path = roots_[index];
  return true;
}

std::string PathNames::Restore(std::string_view text) const {
  std::string restored;
  restored.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    std::string path;
    const std::string_view rest = text.substr(at);
    if (BeginsWord(text, at) && (RestoreLabel(rest, length, path) || RestoreRoot(rest, length, path))) {
      restored += path;
      at += length;
    } else {
      restored += text[at++];
    }
  }
  return restored;
}

}  // namespace kernix
