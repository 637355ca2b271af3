// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/one_entry.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr size_t kKeyDigits = 64;
// In the message about an ambiguous key.
constexpr size_t kShownDigits = 12;
constexpr size_t kMostShown = 5;

bool IsKey(const std::string& text) {
  return !text.empty() && text.size() <= kKeyDigits &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

int RefuseNone(const std::string& key) {
  return Fail(absl::NotFoundError(
      StrCat("no entry of yours has a key that begins with ", key, "; `kernixctl cache list` shows the keys")));
}

int RefuseSeveral(const std::string& key, const EntryTags& found) {
  std::map<std::string, std::string> names;
  for (const CacheEntryDetail& entry : found) names.emplace(entry.entry.key, entry.entry.name);
  std::vector<std::string> shown;
  for (const auto& [each, name] : names) {
    if (shown.size() < kMostShown)
      shown.push_back(StrCat(each.substr(0, std::max(kShownDigits, key.size() + 1)), " (", name, ")"));
  }
  return RefuseUsage(StrCat(names.size(), " entries have a key that begins with ", key, ": ",
                            absl::StrJoin(shown, ", "), names.size() > shown.size() ? ", ..." : "",
                            "; give more digits"));
}

}  // namespace

int WithEntry(const GlobalOptions& options, const std::string& key,
              const std::function<int(Client&, const EntryTags&)>& use) {
  const std::string digits = absl::AsciiStrToLower(key);
  if (!IsKey(digits)) {
    return RefuseUsage(
        StrCat("\"", key, "\" is not the beginning of a key: a key has ", kKeyDigits, " hexadecimal digits"));
  }
  return WithClient(options, [&](Client& client) -> int {
    const absl::StatusOr<EntryTags> found = client.Show(digits);
    if (!found.ok()) return Fail(found.status());
    if (found->empty()) return RefuseNone(digits);
    const bool several = std::any_of(found->begin(), found->end(), [&](const CacheEntryDetail& other) {
      return other.entry.key != found->front().entry.key;
    });
    if (several) return RefuseSeveral(digits, *found);
    return use(client, *found);
  });
}

}  // namespace kernix::ctl
