// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/first_look.h"

#include <system_error>

#include "common/base/exceptions.h"
#include "common/base/log.h"
#include "daemon/toolchain/file_digests.h"

namespace kernix::server {
namespace {

void Look(toolchain::ToolchainRegistry& registry, const std::string& host_compiler) {
  const absl::Status found = CatchExceptions("the compiler was not looked at", [&] {
    v1::ToolchainPaths paths;
    paths.set_host_compiler(host_compiler);
    return registry.Resolve(paths, v1::LANGUAGE_CPP).status();
  });
  Log(LogLevel::kDebug, "first_look", {{"host_compiler", host_compiler}, {"found", found.ok() ? "true" : "false"}});
}

}  // namespace

FirstLook::FirstLook(toolchain::ToolchainRegistry& registry, const std::string& host_compiler) : registry_(registry) {
  registry.digests().AwaitEarlierResults();
  try {
    thread_ = std::thread([&registry, host_compiler] { Look(registry, host_compiler); });
  } catch (const std::system_error&) {  // the first load looks by itself
  }
}

FirstLook::~FirstLook() {
  registry_.digests().Remember({});  // in case that the store could not be opened
  if (thread_.joinable()) thread_.join();
}

}  // namespace kernix::server
