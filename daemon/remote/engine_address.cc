// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/engine_address.h"

#include <cstdint>
#include <string_view>

#include "absl/strings/numbers.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::remote {
namespace {

constexpr std::string_view kUnix = "unix://";
constexpr std::string_view kPlain = "grpc://";
constexpr std::string_view kTls = "grpcs://";

absl::Status BadAddress(const std::string& address) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("'", address, "' is not the address of an engine. Write grpc://HOST:PORT, grpcs://HOST:PORT ",
                          "for TLS, or unix:///PATH for a socket of this host."));
}

std::string_view HostOf(std::string_view place) { return place.substr(0, place.rfind(':')); }

bool IsPlace(std::string_view place) {
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || place.find_first_of("/@ \t,") != std::string_view::npos) {
    return false;
  }
  uint32_t port = 0;
  const std::string_view host = HostOf(place);
  const bool is_bare_ipv6 = host.find(':') != std::string_view::npos && host.front() != '[';
  return !is_bare_ipv6 && absl::SimpleAtoi(ToAbsl(place.substr(colon + 1)), &port) && port > 0 && port < 65536;
}

bool IsThisHost(std::string_view host) { return host == "localhost" || host == "[::1]" || host == "127.0.0.1"; }

}  // namespace

absl::StatusOr<EngineAddress> ParseEngineAddress(const std::string& address) {
  const std::string_view text = address;
  if (text.starts_with(kUnix)) {
    if (text.size() < kUnix.size() + 2 || text[kUnix.size()] != '/') return BadAddress(address);
    return EngineAddress{.target = address, .tls = false, .on_this_host = true};
  }
  const bool tls = text.starts_with(kTls);
  if (!tls && !text.starts_with(kPlain)) return BadAddress(address);
  const std::string_view place = text.substr(tls ? kTls.size() : kPlain.size());
  if (!IsPlace(place)) return BadAddress(address);
  return EngineAddress{.target = StrCat("dns:///", place), .tls = tls, .on_this_host = IsThisHost(HostOf(place))};
}

}  // namespace kernix::remote
