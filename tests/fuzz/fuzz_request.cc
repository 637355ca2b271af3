// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a LoadRequest: decoded, validated, and, when it passes, made into a key and a translation unit.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "daemon/plan/load_key.h"
#include "daemon/request/request.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/mem_env.h"

namespace {

using namespace kernix;

toolchain::ToolchainPtr MakeToolchain() {
  auto tools = std::make_shared<toolchain::Toolchain>();
  tools->host.path = "/usr/bin/g++";
  tools->host.major_version = 12;
  tools->cuda.emplace();
  tools->cuda->nvcc = "/usr/local/cuda/bin/nvcc";
  tools->cuda->root = "/usr/local/cuda";
  tools->cuda->major_version = 13;
  tools->cuda->architectures = {75, 80, 90, 120};
  return tools;
}

}  // namespace

// Protobuf would print a line for every input that is no message.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const toolchain::ToolchainPtr& tools = *new toolchain::ToolchainPtr(MakeToolchain());
  v1::LoadRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  for (const auto policy : {toolchain::FlagPolicy::kPerUser, toolchain::FlagPolicy::kShared}) {
    MemEnv env;
    const auto valid = build::ValidateRequest(env, request, tools, policy, build::RequestLimits());
    if (!valid.ok()) continue;
    if (valid->units.empty() || (valid->functions.empty() && valid->refusal.ok())) std::abort();
    const auto plan = build::MakePlan(*valid, build::PlanLimits());
    if (plan.ok() && build::LoadKey(*valid, *plan) != build::LoadKey(*valid, *plan)) std::abort();
    for (const build::Unit& unit : valid->units) {
      if (unit.sources.empty() || build::UnitText(*valid, unit).sources.empty()) std::abort();
    }
  }
  return 0;
}
