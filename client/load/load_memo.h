// SPDX-License-Identifier: Apache-2.0
//
// The loads that this process has done. Loading the same thing again asks no daemon, and costs little more than a look
// at the files that it was made from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/load/load_inputs.h"
#include "common/os/fork_safety.h"
#include "kernix/client.h"
#include "kernix/load.h"

namespace kernix {

// All that decides what a load comes to, but for the texts of its sources and for files: the other arguments, the
// client's options, the variables of the environment that a load reads, the working folder, and CacheRemovals(). Loads
// with equal keys and equal sources are the same. Taken when a load begins.
std::string LoadKey(const ClientOptions& client, Language language, const std::string& name,
                    const LoadOptions& options);

// A module, and where the memo has it: the same again has the same slot. 0: it was not remembered.
struct LoadedModule {
  std::shared_ptr<Module> module;
  uint64_t slot = 0;
};

// Thread-safe. Lives as long as the process, and works in a forked child.
class LoadMemo {
 public:
  static LoadMemo& OfProcess();

  explicit LoadMemo(Env& env) : env_(env) {}

  // The module of an earlier load of the same; null when there is none, or when a file that it depended on has changed.
  LoadedModule Find(const std::string& key, const std::vector<Source>& sources);

  // `inputs` as they were when the load was done.
  LoadedModule Remember(std::string key, std::vector<Source> sources, std::shared_ptr<Module> module,
                        std::vector<LoadInput> inputs);

 private:
  struct Entry {
    std::vector<Source> sources;
    LoadedModule loaded;
    std::vector<LoadInput> inputs;
  };
  using EntryPtr = std::shared_ptr<const Entry>;

  EntryPtr Lookup(const std::string& key, const std::vector<Source>& sources);

  Env& env_;
  ForkSafeMutex mutex_;
  // By key. Texts are compared, not hashed: long ones are most of what there is.
  absl::flat_hash_map<std::string, std::vector<EntryPtr>> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t slots_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t removals_ ABSL_GUARDED_BY(mutex_) = 0;  // CacheRemovals() at the last Remember()
};

// The two halves of Load(): what this process has, or null; and the load that does without.
LoadedModule FindLoaded(const Client& client, Language language, const std::string& name,
                        const std::vector<Source>& sources, const LoadOptions& options);
absl::StatusOr<LoadedModule> LoadAnew(Client& client, Language language, const std::string& name,
                                      const std::vector<Source>& sources, const LoadOptions& options);

}  // namespace kernix
