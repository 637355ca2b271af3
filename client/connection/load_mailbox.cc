// SPDX-License-Identifier: Apache-2.0
#include "client/connection/load_mailbox.h"

#include <utility>

namespace kernix {

void LoadMailbox::Push(LoadNews news) {
  MutexLock lock(mutex_);
  news_.push_back(std::move(news));
  changed_.NotifyAll();
}

std::optional<absl::StatusOr<std::string>> LoadMailbox::FetchBlob(const Digest& digest) {
  MutexLock lock(mutex_);
  blob_.reset();
  news_.push_back(BlobWanted{digest});
  changed_.NotifyAll();
  // The answer to an earlier, interrupted attempt may arrive first.
  while (!woken_ && (!blob_ || blob_->first != digest)) changed_.Wait(mutex_);
  if (woken_) return std::nullopt;
  return std::exchange(blob_, std::nullopt)->second;
}

void LoadMailbox::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

void LoadMailbox::ClearWake() {
  MutexLock lock(mutex_);
  woken_ = false;
}

void LoadMailbox::Finish(absl::StatusOr<v1::LoadResult> result) {
  MutexLock lock(mutex_);
  result_ = std::move(result);
  changed_.NotifyAll();
}

std::optional<LoadNews> LoadMailbox::Next(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mutex_);
  while (news_.empty() && !result_) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  if (news_.empty()) return std::nullopt;
  LoadNews news = std::move(news_.front());
  news_.pop_front();
  return news;
}

void LoadMailbox::GiveBlob(const Digest& digest, absl::StatusOr<std::string> content) {
  MutexLock lock(mutex_);
  blob_.emplace(digest, std::move(content));
  changed_.NotifyAll();
}

bool LoadMailbox::finished() const {
  MutexLock lock(mutex_);
  return result_.has_value() && news_.empty();
}

void LoadMailbox::AwaitFinish() {
  MutexLock lock(mutex_);
  while (!result_) changed_.Wait(mutex_);
}

absl::StatusOr<v1::LoadResult> LoadMailbox::TakeResult() {
  MutexLock lock(mutex_);
  return *std::move(result_);
}

}  // namespace kernix
