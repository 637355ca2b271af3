// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/stores.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_join.h"
#include "client/connection/endpoint.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/private_directory.h"

namespace kernix::ctl {
namespace {

std::string LackOf(const std::string& named) {
  if (access(named.c_str(), W_OK) == 0) {
    return StrCat(named,
                  " could not be written when kernixd started: `kernixctl shutdown`, and the next load writes it");
  }
  return StrCat(named, " cannot be written (", std::strerror(errno),
                "), so it is only read; builds go to a store that lives as long as the runtime folder. To keep them, "
                "name a store of your own before it in KERNIX_CACHE_DIR");
}

}  // namespace

std::string OtherStores::Text() const { return absl::StrJoin(read, ", "); }

OtherStores OtherStoresOf(const ClientOptions& options, const DaemonInfo& info) {
  const absl::StatusOr<Endpoint> endpoint = ResolveEndpoint(ClientEnvironment(), options);
  if (!endpoint.ok() || endpoint->kind != EndpointKind::kOwn || info.shared) return {};
  OtherStores stores{.read = endpoint->read_stores, .lack = ""};
  const std::string& named = endpoint->store_directory;
  const auto real_path = [](const std::string& store) { return CanonicalPath(Env::Posix(), store); };
  if (real_path(named) != real_path(info.store_directory)) {
    stores.read.insert(stores.read.begin(), named);
    stores.lack = LackOf(named);
  }
  return stores;
}

}  // namespace kernix::ctl
