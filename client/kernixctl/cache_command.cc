// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/command.h"

namespace kernix::ctl {
namespace {

constexpr char kFooter[] = R"(Examples:
  kernixctl cache stats
  kernixctl cache list --name vector_add
  kernixctl cache show 5d0c2f
  kernixctl cache purge --older-than 30d)";

}  // namespace

void AddCache(CLI::App& app, const GlobalOptions& options, Subcommand& chosen) {
  CLI::App* cache = app.add_subcommand("cache", "The cache of compiled kernels");
  cache->require_subcommand(1);
  cache->footer(kFooter);
  AddCacheStats(*cache, options, chosen);
  AddCacheList(*cache, options, chosen);
  AddCacheShow(*cache, options, chosen);
  AddCachePurge(*cache, options, chosen);
}

}  // namespace kernix::ctl
