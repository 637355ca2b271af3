// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a build went, for people: DaemonClient::Trace().
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kernix/v1/kernix.pb.h"

namespace kernix {

// "run", "reused", "upstream", "remote" or "kernixd". A value that a newer kernixd has added is "run".
std::string_view HowName(v1::TracedStep::How how);

// For chrome://tracing and Perfetto: one JSON object in the Trace Event Format, on one line. Each step has its own row,
// with an event "queue" for its wait; all of kernixd's own work has one row. Times count from the build's beginning.
// `title` names the build.
std::string ChromeTrace(const v1::BuildTrace& trace, std::string_view title);

// For a terminal: a line for each step, with a bar on one time axis, then what the signs mean and the sums. Plain
// ASCII, except for names. The lines of steps have at most `width` characters, if that is 60 or more.
std::string DrawTrace(const v1::BuildTrace& trace, size_t width = 80);

}  // namespace kernix
