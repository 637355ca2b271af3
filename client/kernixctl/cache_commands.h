// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl cache stats`: the work of each tier of a daemon's cache (its store, the upstream, builds) since the
// daemon's start, from its metrics in Prometheus' text format. A missing sample is 0.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace kernix::ctl {

// Tables for people, with a title.
std::string TiersText(std::string_view metrics);
// Two fields of a JSON object: "tiers" and, if there is an upstream, "engine".
std::map<std::string, std::string> TiersJson(std::string_view metrics);

}  // namespace kernix::ctl
