// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_memo.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/hash/hash.h"
#include "client/connection/daemon_client.h"
#include "client/tools/environment.h"

namespace kernix {

void LoadInputs::Add(const std::vector<std::string>& files, const std::set<std::string>& searched) {
  files_.insert(files.begin(), files.end());
  searched_.insert(searched.begin(), searched.end());
}

std::vector<std::string> LoadInputs::Paths() const {
  std::vector<std::string> paths(files_.begin(), files_.end());
  paths.insert(paths.end(), searched_.begin(), searched_.end());
  return paths;
}

std::optional<std::vector<WatchedFile>> LoadInputs::Look() const {
  std::vector<WatchedFile> inputs;
  for (const std::string& path : files_) {
    inputs.push_back(StateOf(env_, path));
    if (!inputs.back().identity) return std::nullopt;
  }
  for (const std::string& path : searched_) inputs.push_back(StateOf(env_, path));
  const bool young = std::any_of(inputs.begin(), inputs.end(), [&](const WatchedFile& input) {
    return input.identity && !input.identity->SettledAt(begun_unix_ms_);
  });
  return young ? std::nullopt : std::optional(std::move(inputs));
}

namespace {

// Concatenates texts and numbers so that different sequences never give the same result.
class Fields {
 public:
  void Add(uint64_t number) { text_.append(reinterpret_cast<const char*>(&number), sizeof(number)); }
  void Add(std::string_view text) {
    Add(text.size());
    text_ += text;
  }
  void Add(const std::vector<std::string>& texts) {
    Add(texts.size());
    for (const std::string& text : texts) Add(text);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void AddFunctions(const std::optional<std::vector<Function>>& functions, Fields& fields) {
  fields.Add(functions ? functions->size() + 1 : 0);
  if (!functions) return;
  for (const Function& function : *functions) {
    fields.Add(function.name);
    fields.Add(function.tokens);
  }
}

void AddOptions(const LoadOptions& options, Fields& fields) {
  for (const bool flag :
       {options.separate, options.debug, options.keep, options.use_fast_math, options.allow_cuda_graph}) {
    fields.Add(static_cast<uint64_t>(flag));
  }
  fields.Add(static_cast<uint64_t>(options.optimization_level));
  fields.Add(options.compute_capability);
  fields.Add(options.instance);
  AddFunctions(options.functions, fields);
  for (const auto* texts : {&options.compile_flags, &options.link_flags, &options.include_paths,
                            &options.last_include_paths, &options.bundles}) {
    fields.Add(*texts);
  }
}

void AddClient(const ClientOptions& client, Fields& fields) {
  for (const std::string* text : {&client.address, &client.store_directory, &client.kernixd}) fields.Add(*text);
  fields.Add(client.site_packages);
}

bool SameSources(const std::vector<Source>& a, const std::vector<Source>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Source& one, const Source& other) {
    return one.text == other.text && one.label == other.label && one.path == other.path;
  });
}

}  // namespace

std::string MemoKey(const ClientOptions& client, Language language, const std::string& name,
                    const LoadOptions& options) {
  Fields fields;
  fields.Add(CacheRemovals());
  AddClient(client, fields);
  fields.Add(AbsolutePath("."));  // to which folders in flags and in the environment may be relative
  fields.Add(options.environment ? VariablesOfLoads(*options.environment) : VariablesOfLoads());
  fields.Add(static_cast<uint64_t>(language));
  fields.Add(name);
  AddOptions(options, fields);
  return fields.Take();
}

LoadMemo::MapKey LoadMemo::MapKeyOf(std::string key, const std::vector<Source>& sources) {
  size_t hash = 0;
  for (const Source& source : sources) hash = absl::HashOf(hash, source.text, source.label, source.path);
  return {std::move(key), hash};
}

LoadMemo::EntryPtr LoadMemo::FindEntry(const std::string& key, const std::vector<Source>& sources) {
  const MapKey map_key = MapKeyOf(key, sources);
  const MutexLock lock(mutex_);
  const std::vector<EntryPtr>* const found = entries_.Find(map_key);
  if (found == nullptr) return nullptr;
  for (const EntryPtr& entry : *found) {
    if (SameSources(entry->sources, sources)) return entry;
  }
  return nullptr;
}

LoadedModule LoadMemo::Find(const std::string& key, const std::vector<Source>& sources) {
  const EntryPtr entry = FindEntry(key, sources);
  return entry != nullptr && Unchanged(env_, entry->inputs) ? entry->loaded : LoadedModule();
}

LoadedModule LoadMemo::Remember(std::string key, std::vector<Source> sources, std::shared_ptr<Module> module,
                                std::vector<WatchedFile> inputs) {
  const MapKey map_key = MapKeyOf(std::move(key), sources);
  Entry entry{.sources = std::move(sources), .loaded = {.module = std::move(module)}, .inputs = std::move(inputs)};
  const uint64_t removals = CacheRemovals();
  const MutexLock lock(mutex_);
  if (std::exchange(removals_, removals) != removals) entries_.Clear();  // no key finds them any more
  if (!entries_.Contains(map_key)) entries_.Put(map_key, {});
  std::vector<EntryPtr>& alike = *entries_.Find(map_key);
  auto same = std::find_if(alike.begin(), alike.end(),
                           [&](const EntryPtr& other) { return SameSources(other->sources, entry.sources); });
  entry.loaded.slot = same == alike.end() ? ++slots_ : (*same)->loaded.slot;
  if (same == alike.end()) same = alike.insert(same, nullptr);
  *same = std::make_shared<const Entry>(std::move(entry));
  return (*same)->loaded;
}

}  // namespace kernix
