// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/blob_names.h"

#include <array>
#include <cstdint>
#include <random>
#include <string_view>

#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::remote {
namespace {

std::string Prefix(const std::string& instance) { return instance.empty() ? "" : StrCat(instance, "/"); }

std::string Place(const exec::BlobDigest& digest, bool zstd) {
  return StrCat(zstd ? "compressed-blobs/zstd/" : "blobs/", digest.hash.Hex(), "/", digest.size);
}

// A UUID of version 4.
std::string RandomUuid() {
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
  const uint64_t high = (random() & ~uint64_t{0xF000}) | 0x4000;
  const uint64_t low = (random() & ~(uint64_t{3} << 62)) | (uint64_t{1} << 63);
  const auto hex = [](uint64_t value, int shift, uint64_t mask, absl::PadSpec width) {
    return absl::StrCat(absl::Hex((value >> shift) & mask, width));
  };
  return StrCat(hex(high, 32, 0xFFFFFFFF, absl::kZeroPad8), "-", hex(high, 16, 0xFFFF, absl::kZeroPad4), "-",
                hex(high, 0, 0xFFFF, absl::kZeroPad4), "-", hex(low, 48, 0xFFFF, absl::kZeroPad4), "-",
                hex(low, 0, 0xFFFFFFFFFFFF, absl::kZeroPad12));
}

}  // namespace

std::string DownloadName(const std::string& instance, const exec::BlobDigest& digest, bool zstd) {
  return StrCat(Prefix(instance), Place(digest, zstd));
}

std::string UploadName(const std::string& instance, const exec::BlobDigest& digest, bool zstd) {
  return StrCat(Prefix(instance), "uploads/", RandomUuid(), "/", Place(digest, zstd));
}

std::string Describe(const exec::BlobDigest& digest) {
  return StrCat("blob ", digest.hash.Hex().substr(0, 12), "... (", digest.size, " bytes)");
}

std::string AskedToSend(const exec::BlobDigest& digest) { return StrCat("send ", Describe(digest)); }

absl::Status WrongBytes(const UpstreamOptions& options, const exec::BlobDigest& digest) {
  return MakeError(v1::ErrorDetail::INTERNAL,
                   StrCat("the engine at ", options.address, " sent other bytes than ", Describe(digest),
                          " has. They are not used. Its storage, or what lies between, is damaged."));
}

absl::Status LeftOut(const UpstreamOptions& options, const exec::BlobDigest& digest) {
  return MakeError(v1::ErrorDetail::INTERNAL, StrCat("the engine at ", options.address, " left out ", Describe(digest),
                                                     " of what it was asked for, without an error"));
}

}  // namespace kernix::remote
