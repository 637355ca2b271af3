// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/grpc_log.h"

#include <grpc/support/log.h>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/strings.h"

namespace kernix::server {
namespace {

void WriteLine(gpr_log_func_args* line) {
  const LogLevel level = line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug;
  LogOf("grpc", level, "grpc", {{"where", StrCat(Basename(line->file), ":", line->line)}, {"message", line->message}});
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(WriteLine); }

}  // namespace kernix::server
