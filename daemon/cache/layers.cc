// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/layers.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/file_identity.h"
#include "common/os/private_directory.h"
#include "daemon/cache/index.h"
#include "daemon/cache/store_folder.h"

namespace kernix::cache {
namespace {

class LayeredActions final : public ActionCache {
 public:
  LayeredActions(std::shared_ptr<ActionCache> own, std::vector<std::shared_ptr<ActionCache>> others)
      : own_(std::move(own)), others_(std::move(others)) {}

  absl::StatusOr<std::optional<Entry>> Find(const Digest& key) override {
    KERNIX_ASSIGN_OR_RETURN(std::optional<Entry> entry, own_->Find(key));
    for (size_t i = 0; !entry && i < others_.size(); ++i) {
      entry = others_[i]->Find(key).value_or(std::nullopt);
    }
    return entry;
  }
  absl::StatusOr<Dropped> Put(const Entry& entry, const Tag& tag) override { return own_->Put(entry, tag); }
  absl::StatusOr<Dropped> Remove(const Digest& key, const std::optional<Digest>& artifact) override {
    return own_->Remove(key, artifact);
  }

 private:
  const std::shared_ptr<ActionCache> own_;
  const std::vector<std::shared_ptr<ActionCache>> others_;
};

class LayeredBlobs final : public BlobStore {
 public:
  LayeredBlobs(Env& env, std::shared_ptr<BlobStore> own, std::vector<std::shared_ptr<BlobStore>> others)
      : env_(env), own_(std::move(own)), others_(std::move(others)) {}

  std::string PathOf(const Digest& digest) const override {
    const std::string own = own_->PathOf(digest);
    if (env_.Stat(own, /*follow=*/false).ok()) return own;
    for (const auto& other : others_) {
      if (std::string path = other->PathOf(digest); env_.Stat(path, /*follow=*/false).ok()) return path;
    }
    return own;
  }
  absl::StatusOr<bool> IsSound(const Digest& digest, uint64_t size) override {
    absl::StatusOr<bool> sound = own_->IsSound(digest, size);
    for (size_t i = 0; sound.ok() && !*sound && i < others_.size(); ++i) sound = others_[i]->IsSound(digest, size);
    return sound;
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const Digest& digest) override {
    auto blob = own_->Open(digest);
    for (size_t i = 0; absl::IsNotFound(blob.status()) && i < others_.size(); ++i) blob = others_[i]->Open(digest);
    return blob;
  }
  absl::Status Put(const Digest& digest, std::string_view content, Durability durability) override {
    return own_->Put(digest, content, durability);
  }
  absl::Status Remove(const Digest& digest) override { return own_->Remove(digest); }
  absl::Status RemoveAllBut(const absl::flat_hash_set<Digest>& keep) override { return own_->RemoveAllBut(keep); }

 private:
  Env& env_;
  const std::shared_ptr<BlobStore> own_;
  const std::vector<std::shared_ptr<BlobStore>> others_;
};

absl::Status Unreadable(const std::string& directory, const absl::Status& why) {
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("the store ", directory, ", which is only read, cannot be used (", why.message(),
                          "): leave it out of KERNIX_CACHE_DIR or store_directory, or make it readable, for example "
                          "with `chmod -R go+rX ",
                          directory, "` where it was made"));
}

absl::Status CopyFilesOfIndex(Env& env, const StorePaths& from, const std::string& to) {
  for (const char* suffix : {"", "-wal"}) {
    const absl::StatusOr<std::string> content = env.ReadFile(from.index + suffix);
    const bool has_no_log = *suffix != '\0' && absl::IsNotFound(content.status());
    if (has_no_log) {
      env.RemoveFile(to + suffix).IgnoreError();  // of an earlier try
      return absl::OkStatus();
    }
    KERNIX_RETURN_IF_ERROR(content.status());
    KERNIX_RETURN_IF_ERROR(env.WriteFile(to + suffix, *content, 0600));
  }
  return absl::OkStatus();
}

// A kernixd that has the store open may write both files meanwhile.
absl::Status CopyIndex(Env& env, const StorePaths& from, const std::string& to) {
  constexpr int kMostTries = 10;
  const auto states = [&] { return std::pair(StateOf(env, from.index), StateOf(env, from.index + "-wal")); };
  for (int i = 0; i < kMostTries; ++i) {
    const auto before = states();
    KERNIX_RETURN_IF_ERROR(CopyFilesOfIndex(env, from, to));
    if (states() == before) return absl::OkStatus();
  }
  return absl::UnavailableError("somebody writes to it all the time");
}

}  // namespace

absl::StatusOr<Layer> OpenLayer(Env& env, const std::string& directory, const std::string& scratch) {
  const StorePaths paths(directory);
  absl::Status status = GuardedRealPath(env, directory, {::geteuid()}).status();
  if (status.ok()) status = CheckGuardedDirectory(env, paths.blobs, ::geteuid());
  if (status.ok()) status = GuardedRealPath(env, paths.index, {::geteuid()}).status();
  if (status.ok()) status = CopyIndex(env, paths, scratch);
  if (!status.ok()) return Unreadable(directory, status);
  absl::StatusOr<std::shared_ptr<Index>> index = Index::Open(scratch);
  if (!index.ok()) return Unreadable(directory, index.status());
  return Layer{*std::move(index), std::make_shared<BlobFolder>(env, paths.blobs)};
}

void AddLayers(Env& env, CacheParts& parts, std::vector<Layer> layers) {
  if (layers.empty()) return;
  std::vector<std::shared_ptr<ActionCache>> actions;
  std::vector<std::shared_ptr<BlobStore>> blobs;
  for (Layer& layer : layers) {
    actions.push_back(std::move(layer.actions));
    blobs.push_back(std::move(layer.blobs));
  }
  parts.actions = std::make_shared<LayeredActions>(std::move(parts.actions), std::move(actions));
  parts.blobs = std::make_shared<LayeredBlobs>(env, std::move(parts.blobs), std::move(blobs));
}

}  // namespace kernix::cache
