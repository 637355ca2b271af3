// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/handler_probe.h"

#include "common/base/error.h"
#include "common/base/strings.h"
#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

namespace abi = kernix_ffi_abi;

absl::Status ProbeError(std::string_view what) {
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat(what, ": it cannot be given to XLA. Load it again with force_rebuild=True."));
}

}  // namespace

absl::StatusOr<uint32_t> ProbeHandler(Handler handler) {
  constexpr int kUnset = -1;
  abi::Metadata metadata = {
      .struct_size = sizeof(abi::Metadata),
      .api_version = {sizeof(abi::ApiVersion), nullptr, kUnset, kUnset},
      .traits = 0,
  };
  abi::MetadataExtension extension = {
      .base = {sizeof(abi::MetadataExtension), abi::kExtensionMetadata, nullptr},
      .metadata = &metadata,
  };
  // Like the oldest runtimes: without an API table, so the handler cannot even create an error.
  abi::CallFrame frame = {};
  frame.struct_size = sizeof(frame);
  frame.extension_start = &extension.base;
  const void* error = handler(reinterpret_cast<XLA_FFI_CallFrame*>(&frame));
  if (error != nullptr) return ProbeError("the handler answered XLA's metadata query with an error");
  const abi::ApiVersion& version = metadata.api_version;
  if (version.major_version != abi::kApiMajor || version.minor_version != abi::kApiMinor) {
    return ProbeError(version.major_version == kUnset
                          ? std::string("the handler did not answer XLA's metadata query")
                          : StrCat("the handler uses XLA FFI API ", version.major_version, ".", version.minor_version,
                                   ", not ", abi::kApiMajor, ".", abi::kApiMinor));
  }
  return metadata.traits;
}

}  // namespace kernix
