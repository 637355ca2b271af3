// SPDX-License-Identifier: Apache-2.0
//
// The entry that a command's KEY means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/kernixctl/command.h"

namespace kernix::ctl {

// What --help says about KEY.
inline constexpr char kKeyHelp[] =
    R"(KEY is the beginning of an entry's key, as `kernixctl cache list` shows it: enough digits to tell it from all
other entries that you may see. Never starts a daemon: exit code 3 means that none is running.)";

// One entry; an element for each of its tags.
using EntryTags = std::vector<CacheEntryDetail>;

// Calls `use` with the only entry whose key begins with `key`, and returns its exit code. If there is none, or there
// are several, says so on stderr, and returns the matching exit code.
int WithEntry(const GlobalOptions& options, const std::string& key,
              const std::function<int(Client&, const EntryTags&)>& use);

}  // namespace kernix::ctl
