// SPDX-License-Identifier: Apache-2.0
//
// This process's memory of its loads, and the files and folders that each depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/lru.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "common/os/fork_safety.h"
#include "kernix/client.h"
#include "kernix/load.h"

namespace kernix {

// The files and folders that one load depends on, besides its source texts. Create it before the load begins. Not
// thread-safe.
class LoadInputs {
 public:
  explicit LoadInputs(Env& env) : env_(env), begun_unix_ms_(env.UnixMillis()) {}

  // `files`: the headers, objects and libraries that the load can reach. `searched`: the folders that were searched for
  // them; they need not exist. A file that appears in such a folder changes the folder's times. It may hide a found
  // file, or be a missing one. All paths are absolute.
  void Add(const std::vector<std::string>& files, const std::set<std::string>& searched);

  // All of them.
  std::vector<std::string> Paths() const;

  // The current state of all of them. Returns nullopt if a file is gone, or if that state might not show a change since
  // the load began.
  std::optional<std::vector<WatchedFile>> Look() const;

 private:
  Env& env_;
  const int64_t begun_unix_ms_;
  std::set<std::string> files_;
  std::set<std::string> searched_;
};

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
  // A program that generates its kernels, such as a tuning run, would fill the process with their texts. The memo
  // forgets the least recently used load: the same load then asks kernixd, and makes another module.
  static constexpr size_t kMostLoads = 4096;

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

  // The key of a load, with a hash of its sources. A program may load thousands of texts by one key.
  using MapKey = std::pair<std::string, size_t>;
  static MapKey MapKeyOf(std::string key, const std::vector<Source>& sources);

  EntryPtr FindEntry(const std::string& key, const std::vector<Source>& sources);

  Env& env_ = Env::Posix();
  ForkSafeMutex mutex_;
  Lru<MapKey, std::vector<EntryPtr>> entries_ ABSL_GUARDED_BY(mutex_){kMostLoads};  // texts are compared as well
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
