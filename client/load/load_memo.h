// SPDX-License-Identifier: Apache-2.0
//
// The loads that this process has done. A repeated load asks no daemon and costs little more than checking the files
// that it depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/lru.h"
#include "common/os/file_identity.h"
#include "common/os/fork_safety.h"
#include "kernix/client.h"
#include "kernix/load.h"

namespace kernix {

// Everything that determines the result of a load, except the texts of its sources and files: the other arguments, the
// client's options, the environment variables that a load reads, the working folder, and CacheRemovals(). Loads with
// equal keys and equal sources are the same. Compute the key when a load begins.
std::string MemoKey(const ClientOptions& client, Language language, const std::string& name,
                    const LoadOptions& options);

// A module and its slot in the memo. A repeated load has the same slot; 0 means that the module was not remembered.
struct LoadedModule {
  std::shared_ptr<Module> module;
  uint64_t slot = 0;
};

// Thread-safe. Exists until the process ends, and works in a forked child.
class LoadMemo {
 public:
  static LoadMemo& OfProcess();

  // A program that writes its kernels, such as a tuning run, would fill the process with their texts. What was used
  // longest ago is forgotten: the same load then asks kernixd, and makes another module.
  static constexpr size_t kMostLoads = 4096;

  explicit LoadMemo(Env& env) : env_(env) {}

  // The module of an earlier equal load. Null if there is none, or if a file that it depends on has changed.
  LoadedModule Find(const std::string& key, const std::vector<Source>& sources);

  // `inputs` is their state at the time of the load.
  LoadedModule Remember(std::string key, std::vector<Source> sources, std::shared_ptr<Module> module,
                        std::vector<WatchedFile> inputs);

 private:
  struct Entry {
    std::vector<Source> sources;
    LoadedModule loaded;
    std::vector<WatchedFile> inputs;
  };
  using EntryPtr = std::shared_ptr<const Entry>;

  // An entry's place: the key of a load, with a hash of its sources. A program may load thousands of texts by one key.
  using Place = std::pair<std::string, size_t>;
  static Place PlaceOf(std::string key, const std::vector<Source>& sources);

  EntryPtr FindEntry(const std::string& key, const std::vector<Source>& sources);

  Env& env_;
  ForkSafeMutex mutex_;
  Lru<Place, std::vector<EntryPtr>> entries_ ABSL_GUARDED_BY(mutex_){kMostLoads};  // texts are compared as well
  uint64_t slots_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t removals_ ABSL_GUARDED_BY(mutex_) = 0;  // CacheRemovals() at the last Remember()
};

// The two halves of Load(): FindLoaded() returns a module that this process already has, or null; the other performs
// the load.
LoadedModule FindLoaded(const Client& client, Language language, const std::string& name,
                        const std::vector<Source>& sources, const LoadOptions& options);
absl::StatusOr<LoadedModule> LoadAnew(Client& client, Language language, const std::string& name,
                                      const std::vector<Source>& sources, const LoadOptions& options);

}  // namespace kernix
