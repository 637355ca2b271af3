// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/sharing.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

remote::UpstreamOptions UpstreamOptionsOf(const UpstreamSettings& settings) {
  return {.address = settings.address,
          .instance = settings.instance,
          .ca_file = settings.ca_file,
          .certificate_file = settings.certificate_file,
          .key_file = settings.key_file,
          .token_file = settings.token_file,
          .timeout = settings.timeout};
}

absl::StatusOr<remote::SharingTrust> TrustOf(Env& env, const ServerOptions& options) {
  const UpstreamSettings& settings = options.upstream;
  remote::SharingTrust trust;
  const std::vector<std::string> keys = absl::StrSplit(settings.trusted_keys, ',', absl::SkipWhitespace());
  for (const std::string& key : keys) {
    KERNIX_RETURN_IF_ERROR(
        Annotate(trust.trusted.Add(key), StrCat(options.PlaceOf("upstream.trusted_keys"), "upstream.trusted_keys")));
  }
  if (settings.signing_key_file.empty()) return trust;
  absl::StatusOr<remote::SigningKey> key = remote::SigningKey::Read(env, settings.signing_key_file);
  KERNIX_RETURN_IF_ERROR(
      Annotate(key.status(), StrCat(options.PlaceOf("upstream.signing_key_file"), "upstream.signing_key_file")));
  trust.signs_with = *std::move(key);
  return trust;
}

build::UpstreamCacheOptions CacheOptionsOf(const ServerOptions& options) {
  build::UpstreamCacheOptions result;
  result.address = options.upstream.address;
  result.read = options.upstream.read;
  result.write = options.upstream.write;
  result.build_once = options.upstream.build_once;
  if (options.max_output_bytes > 0) result.max_result_bytes = kFilesOfALoad * options.max_output_bytes;
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sharing>> Sharing::Open(Env& env, const ServerOptions& options) {
  if (options.upstream.address.empty()) return nullptr;
  KERNIX_ASSIGN_OR_RETURN(remote::SharingTrust trust, TrustOf(env, options));
  KERNIX_ASSIGN_OR_RETURN(auto upstream, remote::Upstream::Open(env, UpstreamOptionsOf(options.upstream)));
  return std::unique_ptr<Sharing>(new Sharing(std::move(upstream), std::move(trust), CacheOptionsOf(options)));
}

// Containers of several machines may have the same names and process numbers.
std::string Sharing::NameOfThisProcess() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

void Sharing::Start(Env& env, toolchain::FileDigests& digests) {
  cache_.emplace(env, digests, results_, claims_, options_);
}

void Sharing::Register(MetricsRegistry& registry) const {
  upstream_->Register(registry);
  results_.Register(registry);
  cache_->Register(registry);
}

}  // namespace kernix::server
