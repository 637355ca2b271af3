// SPDX-License-Identifier: Apache-2.0
#include "client/src/path_names.h"

#include <charconv>

#include "absl/strings/ascii.h"

namespace kernix {
namespace {

constexpr std::string_view kRootPrefix = "inc/";

// A name of a place begins a word: after a space, a quote (also the UTF-8 ones that GCC prints), a bracket.
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
  if (!rest.starts_with(kRootPrefix)) return false;
  size_t index = 0;
  const char* number = rest.data() + kRootPrefix.size();
  const auto [end, error] = std::from_chars(number, rest.data() + rest.size(), index);
  if (error != std::errc() || index >= roots_.size() || end == rest.data() + rest.size() || *end != '/') return false;
  length = end - rest.data();
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
