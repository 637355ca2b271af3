// SPDX-License-Identifier: Apache-2.0
#include "common/os/store_list.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix {

std::string StoreList::Text() const { return read.empty() ? written : StrCat(written, ":", absl::StrJoin(read, ":")); }

absl::StatusOr<StoreList> ParseStoreList(std::string_view origin, std::string_view text) {
  StoreList stores;
  for (const absl::string_view path : absl::StrSplit(ToAbsl(text), ':')) {
    if (path.substr(0, 1) != "/") {
      return absl::InvalidArgumentError(
          StrCat(origin, " must be an absolute path, such as /scratch/kernix, or several with \":\" between them, of ",
                 "which the first is written; it is \"", text, "\""));
    }
    std::string normal = NormalizePath(ToStd(path));
    stores.written.empty() ? (void)(stores.written = std::move(normal)) : stores.read.push_back(std::move(normal));
  }
  return stores;
}

}  // namespace kernix
