// SPDX-License-Identifier: Apache-2.0
//
// What commands print with --json, for `kernixctl web`, too.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "kernix/client.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::ctl {

// One entry; an element for each of its tags.
using EntryTags = google::protobuf::RepeatedPtrField<v1::CacheEntry>;

// `kernixctl status --json`. Never starts a daemon.
absl::StatusOr<std::string> StatusJson(DaemonClient& client);

// "queued, 3 jobs ahead", "ptxas, 4 of 9 steps done".
std::string ProgressText(const v1::Progress& progress);

// `kernixctl cache stats --json`.
absl::StatusOr<std::string> CacheStatsJson(DaemonClient& client, bool start = true);

// `kernixctl cache list --json`.
std::string EntriesJson(const std::vector<CacheEntryInfo>& entries);

// `kernixctl cache show --json`.
std::string EntryJson(const EntryTags& tags);

// `kernixctl metrics`. Never starts a daemon.
absl::StatusOr<std::string> Metrics(DaemonClient& client);

}  // namespace kernix::ctl
