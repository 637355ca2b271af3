// SPDX-License-Identifier: Apache-2.0
//
// Between the thread that speaks gRPC for a load and the one that asked for it. The first never runs the application's
// code, so that it can always get out of the way of a fork(); the second runs the callbacks, and no gRPC.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct WarningEvent {
  std::string text;
};
struct BlobWanted {
  Digest digest;
};
using LoadNews = std::variant<WarningEvent, v1::Progress, v1::Output, BlobWanted>;

// Each method belongs to one of the two threads; those of the gRPC thread are called inside a ForkGate::Section only.
class LoadMailbox {
 public:
  // --- The gRPC thread -----------------------------------------------------------------------------------------------
  void Push(LoadNews news);
  // Asks for a header's content and waits for it, or for the provider's error. Nullopt when Wake() is called first.
  std::optional<absl::StatusOr<std::string>> FetchBlob(const Digest& digest);
  // Makes a FetchBlob() that waits, or the next one, give up. From any thread.
  void Wake();
  void ClearWake();
  // The last thing it says.
  void Finish(absl::StatusOr<v1::LoadResult> result);

  // --- The loading thread --------------------------------------------------------------------------------------------
  // The next news; nullopt when there was none for `patience`, or when all is over.
  std::optional<LoadNews> Next(std::chrono::milliseconds patience);
  void GiveBlob(const Digest& digest, absl::StatusOr<std::string> content);
  bool finished() const;
  void AwaitFinish();
  absl::StatusOr<v1::LoadResult> TakeResult();  // once, when it is finished

  // Fired by the loading thread when the caller wants no more.
  Cancellation& cancellation() { return cancellation_; }

 private:
  Cancellation cancellation_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<LoadNews> news_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::pair<Digest, absl::StatusOr<std::string>>> blob_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::StatusOr<v1::LoadResult>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix
