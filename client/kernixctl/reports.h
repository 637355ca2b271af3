// SPDX-License-Identifier: Apache-2.0
//
// What commands print with --json, for `kernixctl web`, too.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>

#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "kernix/client.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::ctl {

// As the daemon lists entries: an element for each tag.
using CacheEntries = google::protobuf::RepeatedPtrField<v1::CacheEntry>;

// 64 hexadecimal digits.
std::string KeyOf(const v1::CacheEntry& entry);

// ", reads /opt/kernix, /site/kernix"; empty: it reads no other store.
std::string StoresRead(const DaemonInfo& info);

// Why kernixd does not write the store that was named, and what to do; empty: it does.
std::string LackOfStore(const DaemonInfo& info);

// `kernixctl status --json`. Never starts a daemon.
absl::StatusOr<std::string> StatusJson(DaemonClient& client);

// "queued, 3 jobs ahead", "ptxas, 4 of 9 steps done".
std::string ProgressText(const v1::Progress& progress);

// `kernixctl cache stats --json`.
absl::StatusOr<std::string> CacheStatsJson(DaemonClient& client, bool start = true);

// `kernixctl cache list --json`.
std::string EntriesJson(const CacheEntries& entries);

// `kernixctl cache show --json`, of the tags of one entry.
std::string EntryJson(const CacheEntries& tags);

// `kernixctl metrics`. Never starts a daemon.
absl::StatusOr<std::string> Metrics(DaemonClient& client);

}  // namespace kernix::ctl
