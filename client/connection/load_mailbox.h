// SPDX-License-Identifier: Apache-2.0
//
// Connects the thread that speaks gRPC for a load with the thread that requested the load. The first never runs the
// application's code, so that it can always make way for a fork(). The second runs the callbacks, and no gRPC.
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

// Each method belongs to one of the two threads. The gRPC thread calls its methods only inside a ForkGate::Section.
class LoadMailbox {
 public:
  // --- The gRPC thread -----------------------------------------------------------------------------------------------
  void Push(LoadNews news);
  // Requests a header's content and waits for it, or for the provider's error. Returns nullopt if Wake() is called
  // first.
  std::optional<absl::StatusOr<std::string>> FetchBlob(const Digest& digest);
  // Makes a waiting FetchBlob(), or the next one, give up. Any thread may call it.
  void Wake();
  void ClearWake();
  // Ends the load. The gRPC thread calls nothing else afterwards.
  void Finish(absl::StatusOr<v1::LoadResult> result);

  // --- The loading thread --------------------------------------------------------------------------------------------
  // Returns the next news, or nullopt if there was none for `patience` or the load has ended.
  std::optional<LoadNews> Next(std::chrono::milliseconds patience);
  void GiveBlob(const Digest& digest, absl::StatusOr<std::string> content);
  bool finished() const;
  void AwaitFinish();
  absl::StatusOr<v1::LoadResult> TakeResult();  // call once, after the load has ended

  // The loading thread cancels it if the caller no longer wants the result.
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
