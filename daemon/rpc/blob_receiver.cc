// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/blob_receiver.h"

#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

absl::Status Invalid(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

}  // namespace

BlobReceiver::BlobReceiver(const std::vector<Digest>& digests, uint64_t bytes)
    : expected_(digests.begin(), digests.end()), announced_bytes_(bytes) {}

absl::Status BlobReceiver::Add(const v1::Blob& blob) {
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(blob.digest()));
  if (!expected_.contains(digest)) return Invalid(StrCat("upload of ", digest.Hex(), ", which was not requested"));
  if (in_blob_ && digest != current_) {
    return Invalid(StrCat("upload of ", digest.Hex(), " begins before that of ", current_.Hex(), " is complete"));
  }
  KERNIX_RETURN_IF_ERROR(Append(digest, blob));
  return blob.last() ? FinishCurrent() : absl::OkStatus();
}

absl::Status BlobReceiver::Append(const Digest& digest, const v1::Blob& blob) {
  received_bytes_ += blob.chunk().size();
  if (received_bytes_ > announced_bytes_) {
    return Invalid(StrCat("the uploaded headers have more than the ", announced_bytes_,
                          " bytes that their request states: did a file change meanwhile?"));
  }
  current_ = digest;
  in_blob_ = true;
  content_ += blob.chunk();
  return absl::OkStatus();
}

absl::Status BlobReceiver::FinishCurrent() {
  in_blob_ = false;
  std::string content = std::exchange(content_, {});
  if (DigestOf(content) != current_) {
    return Invalid(
        StrCat("the upload of ", current_.Hex(), " does not have that digest: did the file change meanwhile?"));
  }
  contents_[current_] = exec::MakeContent(std::move(content));
  expected_.erase(current_);
  return absl::OkStatus();
}

}  // namespace kernix::server
