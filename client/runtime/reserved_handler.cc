// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/reserved_handler.h"

#include <string>

#include "common/base/strings.h"
#include "kernel/brainevent/internal/ffi_abi.h"

namespace kernix {
namespace {

namespace abi = kernix_ffi_abi;

constexpr char kMessage[] =
    "no kernel is loaded under the name of this kernix target: the load that announced it to XLA failed or has not "
    "finished yet. Load it again.";

// Whether the runtime asks for metadata, which is answered then.
bool AnswersMetadata(const abi::CallFrame& frame, uint32_t traits) {
  const abi::ExtensionBase* extension = frame.extension_start;
  if (extension == nullptr || extension->type != abi::kExtensionMetadata) return false;
  abi::Metadata* metadata = reinterpret_cast<const abi::MetadataExtension*>(extension)->metadata;
  metadata->api_version.major_version = abi::kApiMajor;
  metadata->api_version.minor_version = abi::kApiMinor;
  metadata->traits = traits;
  return true;
}

XLA_FFI_Error* Refusal(const abi::CallFrame& frame, const char* message) {
  abi::ErrorCreateArgs error = {sizeof(error), nullptr, message, abi::kFailedPrecondition};
  return reinterpret_cast<XLA_FFI_Error*>(frame.api->error_create(&error));
}

template <uint32_t kTraits>
XLA_FFI_Error* Reserved(XLA_FFI_CallFrame* opaque) {
  const auto& frame = *reinterpret_cast<const abi::CallFrame*>(opaque);
  return AnswersMetadata(frame, kTraits) ? nullptr : Refusal(frame, kMessage);
}

}  // namespace

Handler ReservedHandler(uint32_t traits) {
  return (traits & abi::kCommandBufferCompatible) != 0 ? Reserved<abi::kCommandBufferCompatible> : Reserved<0>;
}

XLA_FFI_Error* CudaFunctionOnCpu(XLA_FFI_CallFrame* opaque, const char* target) {
  const auto& frame = *reinterpret_cast<const abi::CallFrame*>(opaque);
  if (AnswersMetadata(frame, abi::kCommandBufferCompatible)) return nullptr;
  const std::string message =
      StrCat(target,
             " is CUDA code, which runs on a GPU, but JAX makes the call on the CPU: put its arrays on a GPU. If "
             "jax.devices() shows none, JAX's CUDA plugin is missing, or there is no GPU here.");
  return Refusal(frame, message.c_str());
}

}  // namespace kernix
