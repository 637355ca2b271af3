// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernix::ctl {

// `metrics`, in Prometheus' text format, as OpenMetrics 1.0: a counter's family has no "_total", and a line ends the
// text.
std::string ToOpenMetrics(std::string_view metrics);

}  // namespace kernix::ctl
