// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/build_claims.h"

#include <vector>

#include "common/base/status_macros.h"
#include "daemon/remote/shared_result.pb.h"
#include "daemon/remote/shared_results.h"

namespace kernix::remote {
namespace {

constexpr char kClaimFile[] = "claim";
constexpr uint64_t kMostBytes = 4096;

internal::Claim::State ToProto(ClaimState state) {
  switch (state) {
    case ClaimState::kBuilding:
      break;
    case ClaimState::kBuilt:
      return internal::Claim::BUILT;
    case ClaimState::kFailed:
      return internal::Claim::FAILED;
    case ClaimState::kLeft:
      return internal::Claim::LEFT;
  }
  return internal::Claim::BUILDING;
}

ClaimState FromProto(internal::Claim::State state) {
  switch (state) {
    case internal::Claim::BUILT:
      return ClaimState::kBuilt;
    case internal::Claim::FAILED:
      return ClaimState::kFailed;
    case internal::Claim::LEFT:
      return ClaimState::kLeft;
    default:
      return ClaimState::kBuilding;
  }
}

}  // namespace

absl::StatusOr<std::optional<BuildClaim>> BuildClaims::Read(const Digest& key, const Limits& limits) {
  KERNIX_ASSIGN_OR_RETURN(const auto files,
                          upstream_.FindResult(MakeAddress(kClaimFile, key).action, {kClaimFile}, limits));
  if (!files || files->size() != 1) return std::nullopt;
  exec::Content content = files->front().content;
  if (content == nullptr) {
    const auto contents = upstream_.Read({files->front().digest}, kMostBytes, limits);
    if (absl::IsNotFound(contents.status())) return std::nullopt;
    if (!contents.ok()) return contents.status();
    content = contents->front();
  }
  internal::Claim claim;
  if (!claim.ParseFromArray(content->data(), static_cast<int>(content->size()))) return std::nullopt;
  return BuildClaim{claim.node(), claim.beat(), FromProto(claim.state())};
}

absl::Status BuildClaims::Write(const Digest& key, uint64_t beat, ClaimState state, const Limits& limits) {
  internal::Claim claim;
  claim.set_node(node_);
  claim.set_beat(beat);
  claim.set_state(ToProto(state));
  ResultAddress address = MakeAddress(kClaimFile, key);
  const Blob content = BlobOf(claim.SerializeAsString());
  address.blobs.push_back(content);
  KERNIX_RETURN_IF_ERROR(upstream_.Write(address.blobs, limits));
  return upstream_.PutResult(address.action, {{kClaimFile, content.digest}}, limits);
}

}  // namespace kernix::remote
