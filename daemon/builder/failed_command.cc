// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/failed_command.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "daemon/exec/root_path.h"
#include "daemon/language/write/kernel_headers.h"
#include "daemon/plan/plan.h"

namespace kernix::build {
namespace {

constexpr size_t kMostBytes = 32 << 20;

void AddFile(v1::FailedCommand& command, std::string path, std::string content) {
  v1::FailedCommand::File* file = command.add_file();
  file->set_path(std::move(path));
  file->set_content(std::move(content));
}

// The inputs, and the tree of kernel headers. nullopt if there are too many bytes.
std::optional<v1::FailedCommand> FilesOf(const exec::Action& action) {
  v1::FailedCommand command;
  size_t bytes = 0;
  for (const exec::InputFile& input : action.inputs) {
    if (input.content == nullptr) return std::nullopt;
    bytes += input.content->size();
    if (bytes > kMostBytes) return std::nullopt;
    AddFile(command, input.path, std::string(*input.content));
  }
  if (action.trees == nullptr) return command;
  for (const language::GeneratedFile& header : language::KernelHeaders()) {
    AddFile(command, JoinPath(kKernelHeaders, header.path), header.text);
  }
  return command;
}

}  // namespace

absl::Status WithFailedCommand(const absl::Status& error, const exec::Action& action) {
  std::optional<v1::FailedCommand> command = FilesOf(action);
  if (!command) return error;
  for (const std::string& word : exec::LocalCommand(action)) command->add_word(exec::ExpandRoot(word, "."));
  for (const auto& [name, value] : exec::LocalEnvironment(action)) {
    (*command->mutable_environment())[name] = exec::ExpandRoot(value, ".");
  }
  for (const exec::InputLink& link : action.links) {
    v1::FailedCommand::Link* added = command->add_link();
    added->set_path(link.path);
    added->set_target(link.target);
  }
  std::set<std::string> folders;
  for (const std::string& output : action.outputs) folders.insert(Dirname(output));
  for (const std::string& folder : folders) command->add_folder(folder);
  v1::ErrorDetail detail = GetErrorDetail(error);
  *detail.mutable_failed_command() = *std::move(command);
  return MakeError(std::move(detail));
}

}  // namespace kernix::build
