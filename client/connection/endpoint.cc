// SPDX-License-Identifier: Apache-2.0
#include "client/connection/endpoint.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/folders.h"
#include "common/os/posix_error.h"
#include "common/os/private_directory.h"
#include "common/os/unix_socket.h"

namespace kernix {
namespace {

absl::Status Invalid(const std::string& message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

constexpr std::string_view kUnixScheme = "unix:";

absl::StatusOr<std::string> SocketOfAddress(std::string_view address, const std::string& origin) {
  std::string_view path = address;
  if (path.starts_with(kUnixScheme)) path.remove_prefix(kUnixScheme.size());
  if (path.starts_with("//")) path.remove_prefix(2);
  if (!path.starts_with('/')) {
    return Invalid(StrCat(origin, ": \"", address,
                          "\" is not an address that this kernix can use: it accepts a Unix socket, ",
                          "\"unix:/path\" or \"/path\""));
  }
  return NormalizePath(path);
}

absl::StatusOr<Endpoint> NamedEndpoint(const std::string& address, const std::string& origin) {
  Endpoint endpoint{.kind = EndpointKind::kNamed, .origin = origin};
  KERNIX_ASSIGN_OR_RETURN(endpoint.socket, SocketOfAddress(address, origin));
  return endpoint;
}

// A user who may not write to the socket is not one of the service's users, and continues as if there were no service.
bool ServiceIsForUs(const ClientEnvironment& environment) {
  return access(environment.service_socket.c_str(), R_OK | W_OK) == 0;
}

// The reason not to use the service's socket, if it belongs to neither root, nor the service's user, nor this user.
// Empty: it may be used.
std::string StrangersService(const ClientEnvironment& environment) {
  const absl::StatusOr<FileInfo> info = environment.env->Stat(environment.service_socket);
  if (!info.ok() || IsTrustedUser(info->uid, environment.uid)) return "";
  return StrCat(
      "will not use ", environment.service_socket, ", the place of the machine's service: it belongs to ",
      DescribeUser(info->uid), ", whose kernels would run as ", DescribeUser(environment.uid),
      "; using this user's own kernixd instead. Have that socket removed, or set KERNIX_ADDRESS to the kernixd "
      "that you want.");
}

// For a user who is not in the group of the service at `socket`. Empty: there is no service, or no group may use it.
// `instead`: what serves that user.
std::string HowToJoin(const ClientEnvironment& environment, const std::string& socket, std::string_view instead) {
  constexpr mode_t kGroupMayUse = 0060;
  const absl::StatusOr<FileInfo> info = environment.env->Stat(socket);
  if (!info.ok() || (info->mode & kGroupMayUse) != kGroupMayUse) return "";
  if (!IsTrustedUser(info->uid, environment.uid)) return "";
  if (info->gid == 0) return "";  // nobody should become a member of that
  struct group entry {};
  struct group* found = nullptr;
  char names[4096];
  const bool known = getgrgid_r(info->gid, &entry, names, sizeof names, &found) == 0 && found != nullptr;
  const std::string group = known ? found->gr_name : StrCat(info->gid);
  const std::string user = LookUpUser(environment.uid).name;
  return StrCat("this machine has a kernixd for the members of the group ", group, " (", socket,
                "), which share what they compile; you are not in it", instead, ". To join: sudo usermod -aG ", group,
                " ", user.empty() ? "USER" : user, ", then log in again.");
}

absl::StatusOr<Endpoint> ServiceOrOwn(const ClientEnvironment& environment, const ClientOptions& options) {
  const bool is_for_us = ServiceIsForUs(environment);
  const std::string warning = is_for_us ? StrangersService(environment) : "";
  if (is_for_us && warning.empty()) {
    return Endpoint{
        .kind = EndpointKind::kService, .socket = environment.service_socket, .origin = "the machine's service"};
  }
  KERNIX_ASSIGN_OR_RETURN(Endpoint own, OwnEndpoint(environment, options));
  if (!is_for_us) {
    own.hint = HowToJoin(environment, environment.service_socket, ", and use a kernixd of your own");
  }
  if (is_for_us) own.warning = own.warning.empty() ? warning : StrCat(warning, "\n", own.warning);
  return own;
}

absl::StatusOr<Endpoint> EndpointAt(decltype(FindRunFolderForStore)& run_folder, const ClientEnvironment& environment,
                                    const ClientOptions& options) {
  Endpoint endpoint{.kind = EndpointKind::kOwn, .origin = "this user's own daemon"};
  KERNIX_ASSIGN_OR_RETURN(StoreList stores, UserStores(*environment.env, environment.get_env, environment.uid,
                                                       "the store", options.store_directory));
  endpoint.store_directory = std::move(stores.written);
  endpoint.read_stores = std::move(stores.read);
  endpoint.warning = std::move(stores.warning);
  absl::StatusOr<RunFolder> folder =
      run_folder(*environment.env, environment.get_env, environment.uid, endpoint.store_directory);
  if (!folder.ok()) {
    endpoint.unusable = folder.status();
    return endpoint;
  }
  endpoint.run_folder = *std::move(folder);
  endpoint.socket = endpoint.run_folder.socket;
  if (endpoint.warning.empty()) endpoint.warning = endpoint.run_folder.warning;
  return endpoint;
}

// `denied`, with what to do about it if only the members of a group may connect.
absl::Status WithHowToJoin(const ClientEnvironment& environment, const Endpoint& endpoint, const absl::Status& denied) {
  if (access(endpoint.socket.c_str(), R_OK | W_OK) == 0) return denied;  // a stranger listens
  const std::string hint = HowToJoin(environment, endpoint.socket, "");
  if (hint.empty()) return denied;
  return MakeError(KindOf(denied), StrCat(denied.message(), ": ", hint), denied.code());
}

// Where the daemon that holds the endpoint's store listens, if not at the endpoint's own socket; else empty.
std::string SocketElsewhere(const ClientEnvironment& environment, const Endpoint& endpoint) {
  if (endpoint.kind != EndpointKind::kOwn) return "";
  std::string socket = SocketOfStoreHolder(*environment.env, endpoint.store_directory);
  return socket == endpoint.socket ? "" : socket;
}

}  // namespace

absl::StatusOr<Endpoint> OwnEndpoint(const ClientEnvironment& environment, const ClientOptions& options) {
  return EndpointAt(FindRunFolderForStore, environment, options);
}

absl::StatusOr<Endpoint> CreateOwnEndpoint(const ClientEnvironment& environment, const ClientOptions& options) {
  return EndpointAt(RunFolderForStore, environment, options);
}

absl::StatusOr<Endpoint> ResolveEndpoint(const ClientEnvironment& environment, const ClientOptions& options) {
  if (!options.address.empty() && !options.store_directory.empty()) {
    return Invalid("both an address and a store were given: the daemon at an address has its own store");
  }
  if (!options.address.empty()) return NamedEndpoint(options.address, "address");
  if (!options.store_directory.empty()) return OwnEndpoint(environment, options);
  if (const std::optional<std::string> address = environment.get_env("KERNIX_ADDRESS")) {
    return NamedEndpoint(*address, "$KERNIX_ADDRESS");
  }
  if (environment.get_env("KERNIX_CACHE_DIR")) return OwnEndpoint(environment, options);
  return ServiceOrOwn(environment, options);
}

std::optional<pid_t> HolderOf(const ClientEnvironment& environment, const Endpoint& endpoint) {
  if (endpoint.kind != EndpointKind::kOwn) return std::nullopt;
  return ProcessOfStoreHolder(*environment.env, endpoint.store_directory);
}

absl::StatusOr<PeerSocket> ConnectTo(const ClientEnvironment& environment, const Endpoint& endpoint) {
  absl::StatusOr<PeerSocket> peer = ConnectUnix(endpoint.socket, environment.uid);
  if (absl::IsPermissionDenied(peer.status())) return WithHowToJoin(environment, endpoint, peer.status());
  if (!absl::IsNotFound(peer.status())) return peer;
  const std::string elsewhere = SocketElsewhere(environment, endpoint);
  if (elsewhere.empty()) return peer;
  absl::StatusOr<PeerSocket> holder = ConnectUnix(elsewhere, environment.uid);
  // The store of an image, for example, may note the socket of its maker.
  const bool is_ours = !absl::IsNotFound(holder.status()) && !absl::IsPermissionDenied(holder.status());
  return is_ours ? std::move(holder) : std::move(peer);
}

namespace {

constexpr char kServiceUser[] = "kernix";

// The error for a socket of another user: kind UNREACHABLE, code kPermissionDenied.
absl::Status RefusedError(std::string_view message) {
  return MakeError(v1::ErrorDetail::UNREACHABLE, message, absl::StatusCode::kPermissionDenied);
}

}  // namespace

bool IsTrustedUser(uid_t owner, uid_t self) {
  static std::atomic<uid_t> service = 0;  // as found before: a user database of the network may be slow
  if (owner == self || owner == 0 || owner == service) return true;
  if (LookUpUser(owner).name != kServiceUser) return false;
  service = owner;
  return true;
}

UniqueFd AboveStandardStreams(UniqueFd fd) {
  // Descriptor 3 is also excluded, because it is a child's inherited socket.
  constexpr int kLowest = 4;
  if (!fd.ok() || fd.get() >= kLowest) return fd;
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kLowest));
}

absl::StatusOr<PeerSocket> ConnectUnix(const std::string& path, uid_t self) {
  absl::StatusOr<UniqueFd> connected = ConnectTo(path);
  if (absl::IsPermissionDenied(connected.status())) return RefusedError(ToStd(connected.status().message()));
  if (!connected.ok()) return connected.status();
  UniqueFd fd = AboveStandardStreams(*std::move(connected));
  KERNIX_ASSIGN_OR_RETURN(const Peer peer, PeerOf(fd.get()));
  if (IsTrustedUser(peer.uid, self)) return PeerSocket{std::move(fd), path, peer.pid, peer.uid};
  return RefusedError(StrCat("will not use ", path, ": it is served by ", DescribeUser(peer.uid),
                             ", whose kernels would run as ", DescribeUser(self),
                             ". Choose another address, or remove that socket."));
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair() {
  KERNIX_ASSIGN_OR_RETURN(auto ends, ConnectedPair(SOCK_STREAM | SOCK_NONBLOCK));
  UniqueFd first = AboveStandardStreams(std::move(ends.first));
  UniqueFd second = AboveStandardStreams(std::move(ends.second));
  if (first.ok() && second.ok()) return std::make_pair(std::move(first), std::move(second));
  return ErrnoStatus(errno, "make", "a pair of sockets");
}

}  // namespace kernix
