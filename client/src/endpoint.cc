// SPDX-License-Identifier: Apache-2.0
#include "client/src/endpoint.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "client/src/config_file.h"
#include "client/src/unix_socket.h"
#include "daemon/base/error.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"

namespace kernix {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

absl::Status Invalid(const std::string& message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

absl::StatusOr<std::string> SocketOfAddress(std::string_view address, const std::string& origin) {
  std::string_view path = address;
  if (path.starts_with(kUnixScheme)) path.remove_prefix(kUnixScheme.size());
  if (path.starts_with("//")) path.remove_prefix(2);
  if (!path.starts_with('/')) {
    return Invalid(StrCat(origin, ": \"", address,
                          "\" is no address that this kernix can use: it takes a Unix socket, ",
                          "\"unix:/path\" or \"/path\""));
  }
  return NormalizePath(path);
}

absl::StatusOr<Endpoint> NamedEndpoint(const std::string& address, const std::string& origin) {
  Endpoint endpoint{.kind = EndpointKind::kNamed, .origin = origin};
  KERNIX_ASSIGN_OR_RETURN(endpoint.socket, SocketOfAddress(address, origin));
  return endpoint;
}

// Whoever may not write to the socket is not among its users, and one that is neither root's nor the service user's is
// no service: both go on as if there were none.
bool ServiceIsForUs(const ClientEnvironment& environment) {
  const absl::StatusOr<FileInfo> info = environment.env->Stat(environment.service_socket);
  return info.ok() && IsTrustedUser(info->uid, environment.uid) &&
         access(environment.service_socket.c_str(), R_OK | W_OK) == 0;
}

absl::StatusOr<std::string> StoreDirectory(const ClientEnvironment& environment, const ClientOptions& options) {
  if (options.store_directory.empty()) {
    return DefaultStoreDirectory(*environment.env, environment.get_env, environment.uid);
  }
  if (options.store_directory.starts_with('/')) return NormalizePath(options.store_directory);
  return Invalid(StrCat("the store \"", options.store_directory, "\" must be an absolute path"));
}

// Whether the reason why we got no runtime directory is that somebody else has it.
bool RuntimeDirectoryIsTaken(const ClientEnvironment& environment) {
  const std::string runtime = environment.get_env("XDG_RUNTIME_DIR").value_or("");
  for (const std::string& path : {JoinPath(runtime, "kernix"), StrCat("/tmp/kernix-", environment.uid)}) {
    const absl::StatusOr<FileInfo> info = environment.env->Stat(path, /*follow=*/false);
    if (info.ok() && info->uid != environment.uid) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Endpoint> OwnEndpoint(const ClientEnvironment& environment, const ClientOptions& options) {
  Endpoint endpoint{.kind = EndpointKind::kOwn, .origin = "this user's own daemon"};
  KERNIX_ASSIGN_OR_RETURN(endpoint.store_directory, StoreDirectory(environment, options));
  absl::StatusOr<DaemonPlace> place =
      PlaceForStore(*environment.env, environment.get_env, environment.uid, endpoint.store_directory);
  if (!place.ok()) {
    endpoint.unusable = place.status();
    if (absl::IsPermissionDenied(place.status()) && RuntimeDirectoryIsTaken(environment)) {
      return RefusedError(ToStd(place.status().message()));
    }
    return endpoint;
  }
  endpoint.place = *std::move(place);
  endpoint.socket = endpoint.place.socket;
  return endpoint;
}

absl::StatusOr<Endpoint> ResolveEndpoint(const ClientEnvironment& environment, const ClientOptions& options) {
  if (!options.address.empty() && !options.store_directory.empty()) {
    return Invalid("an address and a store were both given: a daemon that is named has its own store");
  }
  if (!options.address.empty()) return NamedEndpoint(options.address, "address");
  if (!options.store_directory.empty()) return OwnEndpoint(environment, options);
  if (const std::optional<std::string> address = environment.get_env("KERNIX_ADDRESS")) {
    return NamedEndpoint(*address, "$KERNIX_ADDRESS");
  }
  KERNIX_ASSIGN_OR_RETURN(const ConfigFile config, ReadConfigFile(environment));
  if (!config.address.empty()) return NamedEndpoint(config.address, config.path);
  if (!environment.get_env("KERNIX_CACHE_DIR") && ServiceIsForUs(environment)) {
    return Endpoint{
        .kind = EndpointKind::kService, .socket = environment.service_socket, .origin = "the machine's service"};
  }
  return OwnEndpoint(environment, options);
}

}  // namespace kernix
