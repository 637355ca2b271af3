// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/result_address.h"

#include <memory>
#include <utility>

#include "daemon/exec/remote_execution.h"

namespace kernix::remote {

namespace reapi = exec::reapi;

Blob BlobOf(std::string bytes) {
  const exec::BlobDigest digest = exec::BlobDigestOf(bytes);
  return {digest, exec::MakeContent(std::move(bytes))};
}

ResultAddress MakeAddress(std::string_view what, const Digest& salt) {
  reapi::Command command;
  command.add_arguments("kernixd");
  command.add_arguments(std::string(what));
  Blob command_blob = BlobOf(command.SerializeAsString());
  Blob empty_folder = BlobOf(reapi::Directory().SerializeAsString());
  reapi::Action action;
  *action.mutable_command_digest() = exec::ToReapi(command_blob.digest);
  *action.mutable_input_root_digest() = exec::ToReapi(empty_folder.digest);
  action.set_salt(salt.Raw());
  Blob action_blob = BlobOf(action.SerializeAsString());
  const exec::BlobDigest digest = action_blob.digest;
  return {digest, {std::move(command_blob), std::move(empty_folder), std::move(action_blob)}};
}

}  // namespace kernix::remote
