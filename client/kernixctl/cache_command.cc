// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/command.h"

namespace kernix::ctl {
namespace {

constexpr char kFooter[] = R"(Examples:
  kernixctl cache stats
  kernixctl cache list --name vector_add
  kernixctl cache purge --older-than 30d)";

}  // namespace

void AddCache(CLI::App& app, const GlobalOptions& options, Action& action) {
  CLI::App* cache = app.add_subcommand("cache", "The cache of compiled kernels");
  cache->require_subcommand(1);
  cache->footer(kFooter);
  AddCacheStats(*cache, options, action);
  AddCacheList(*cache, options, action);
  AddCachePurge(*cache, options, action);
}

}  // namespace kernix::ctl
