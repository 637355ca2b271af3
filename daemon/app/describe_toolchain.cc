// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/describe_toolchain.h"

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/kernixd_exit.h"
#include "daemon/toolchain/description.h"
#include "daemon/toolchain/toolchain.h"

namespace kernix::server {
namespace {

// What it describes, for people.
absl::StatusOr<std::string> Describe(Env& env, const DescriptionTask& task) {
  toolchain::ToolchainRegistry registry(env, "--host-compiler");
  const v1::Language language = task.paths.nvcc().empty() ? v1::LANGUAGE_CPP : v1::LANGUAGE_CUDA;
  KERNIX_ASSIGN_OR_RETURN(const toolchain::ToolchainPtr tools, registry.Resolve(task.paths, language));
  KERNIX_ASSIGN_OR_RETURN(const std::string text, toolchain::DescribeToolchain(env, registry.digests(), *tools));
  KERNIX_RETURN_IF_ERROR(env.WriteFileDurably(task.output, text, 0644));
  return toolchain::DescribeTools(*tools);
}

}  // namespace

int DescribeTools(Env& env, const DescriptionTask& task) {
  const absl::StatusOr<std::string> described = Describe(env, task);
  if (!described.ok()) {
    std::fprintf(stderr, "kernixd: %s\n", GetErrorDetail(described.status()).message().c_str());
    return kExitFailure;
  }
  std::printf("kernixd: %s describes %s\n", task.output.c_str(), described->c_str());
  return kExitOk;
}

}  // namespace kernix::server
