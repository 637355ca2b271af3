// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/command.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] = R"(Examples:
  kernixctl cache stats
  kernixctl cache list --name vector_add
  kernixctl cache show 5d0c2f
  kernixctl cache purge --older-than 30d)";

}  // namespace

Command CacheCommand(const GlobalOptions& options) {
  return {.name = "cache",
          .summary = "The cache of compiled kernels",
          .details = kDetails,
          .subcommands = {CacheStatsCommand(options), CacheListCommand(options), CacheShowCommand(options),
                          CachePurgeCommand(options)}};
}

}  // namespace kernix::ctl
