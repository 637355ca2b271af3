// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/reserved_handler.h"

#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

namespace abi = kernix_ffi_abi;

constexpr char kMessage[] =
    "no kernel is loaded under the name of this kernix target: the load that announced it to XLA failed or has not "
    "finished yet. Load it again.";

template <uint32_t kTraits>
XLA_FFI_Error* Reserved(XLA_FFI_CallFrame* opaque) {
  const auto* frame = reinterpret_cast<const abi::CallFrame*>(opaque);
  const abi::ExtensionBase* extension = frame->extension_start;
  if (extension != nullptr && extension->type == abi::kExtensionMetadata) {
    abi::Metadata* metadata = reinterpret_cast<const abi::MetadataExtension*>(extension)->metadata;
    metadata->api_version.major_version = abi::kApiMajor;
    metadata->api_version.minor_version = abi::kApiMinor;
    metadata->traits = kTraits;
    return nullptr;
  }
  abi::ErrorCreateArgs error = {sizeof(error), nullptr, kMessage, abi::kFailedPrecondition};
  return reinterpret_cast<XLA_FFI_Error*>(frame->api->error_create(&error));
}

}  // namespace

Handler ReservedHandler(uint32_t traits) {
  return (traits & abi::kCommandBufferCompatible) != 0 ? Reserved<abi::kCommandBufferCompatible> : Reserved<0>;
}

}  // namespace kernix
