// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index_row.h"

#include <utility>

#include "common/base/status_macros.h"
#include "daemon/cache/index_row.pb.h"

namespace kernix::cache {
namespace {

absl::Status DecodeDetail(std::string_view bytes, Entry& entry) {
  internal::EntryDetail detail;
  if (!detail.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("index: an entry's detail cannot be read");
  }
  entry.language = static_cast<Language>(detail.language());
  entry.architectures.assign(detail.architecture().begin(), detail.architecture().end());
  for (const internal::EntryDetail::Function& function : detail.function()) {
    entry.functions.push_back({function.name(),
                               {function.token().begin(), function.token().end()},
                               function.handler_symbol(),
                               {function.parameter_name().begin(), function.parameter_name().end()},
                               function.is_global()});
  }
  entry.required_symbol_versions.assign(detail.required_symbol_version().begin(),
                                        detail.required_symbol_version().end());
  entry.build_options.assign(detail.build_option().begin(), detail.build_option().end());
  entry.toolchain = detail.toolchain();
  entry.origin = detail.origin();
  return absl::OkStatus();
}

}  // namespace

std::string EncodeDetail(const Entry& entry) {
  internal::EntryDetail detail;
  detail.set_language(static_cast<int32_t>(entry.language));
  for (const std::string& architecture : entry.architectures) detail.add_architecture(architecture);
  for (const Function& function : entry.functions) {
    internal::EntryDetail::Function* added = detail.add_function();
    added->set_name(function.name);
    for (const std::string& token : function.tokens) added->add_token(token);
    added->set_handler_symbol(function.handler_symbol);
    for (const std::string& name : function.parameter_names) added->add_parameter_name(name);
    added->set_is_global(function.is_global);
  }
  for (const std::string& version : entry.required_symbol_versions) detail.add_required_symbol_version(version);
  for (const std::string& option : entry.build_options) detail.add_build_option(option);
  detail.set_toolchain(entry.toolchain);
  detail.set_origin(entry.origin);
  return detail.SerializeAsString();
}

std::string EncodeInputs(const Entry& entry) {
  internal::BuildInputs inputs;
  for (const BuildInput& input : entry.inputs) {
    internal::BuildInputs::Input* added = inputs.add_input();
    added->set_kind(static_cast<int32_t>(input.kind));
    added->set_name(input.name);
    added->set_value(input.value);
  }
  return inputs.SerializeAsString();
}

std::string EncodeHeaders(const Entry& entry) {
  internal::HeaderSet set;
  for (const ToolchainHeader& header : entry.toolchain_headers) {
    internal::HeaderSet::Header* added = set.add_header();
    added->set_path(header.path);
    added->set_digest(header.digest.Raw());
  }
  return set.SerializeAsString();
}

absl::StatusOr<Entry> DecodeRow(const Statement& row) {
  Entry entry;
  KERNIX_ASSIGN_OR_RETURN(entry.key, Digest::FromRaw(row.Blob(0)));
  KERNIX_ASSIGN_OR_RETURN(entry.artifact, Digest::FromRaw(row.Blob(1)));
  entry.size = static_cast<uint64_t>(row.Int(2));
  entry.created_unix_ms = row.Int(3);
  KERNIX_RETURN_IF_ERROR(DecodeDetail(row.Blob(4), entry));
  return entry;
}

absl::Status DecodeHeaders(std::string_view bytes, Entry& entry) {
  internal::HeaderSet set;
  if (!set.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("index: a set of headers cannot be read");
  }
  entry.toolchain_headers.reserve(set.header_size());
  for (internal::HeaderSet::Header& header : *set.mutable_header()) {
    KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromRaw(header.digest()));
    entry.toolchain_headers.push_back({std::move(*header.mutable_path()), digest});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BuildInput>> DecodeInputs(std::string_view bytes) {
  internal::BuildInputs decoded;
  if (!decoded.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("index: the inputs of a build cannot be read");
  }
  std::vector<BuildInput> inputs;
  inputs.reserve(decoded.input_size());
  for (internal::BuildInputs::Input& input : *decoded.mutable_input()) {
    inputs.push_back(
        {static_cast<InputKind>(input.kind()), std::move(*input.mutable_name()), std::move(*input.mutable_value())});
  }
  return inputs;
}

}  // namespace kernix::cache
