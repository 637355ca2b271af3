// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/held_outputs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "daemon/exec/machine_limits.h"

namespace kernix::build {
namespace {

// Address space: only what is written takes room on the disk. So large that a load, whose outputs come and go, has few.
constexpr uint64_t kFileBytes = 1 << 30;
// The unit of space that a file system gives back.
constexpr uint64_t kPageBytes = 4096;
// Whom a plan's own quota knows.
constexpr UserId kThePlan{};

std::string TooLarge(std::string_view whose, uint64_t limit, std::string_view what_else) {
  return StrCat("the outputs of ", whose, " have more than ", limit,
                " bytes together, the limit derived from this kernixd's max_output_bytes: raise it "
                "(--max-output-bytes, KERNIX_MAX_OUTPUT_BYTES), or ",
                what_else);
}

absl::Status LoadTooLarge(uint64_t limit) {
  return MakeError(v1::ErrorDetail::RESOURCE, TooLarge("this load's steps", limit, "put fewer sources into one load"));
}

// As long as other loads of the user have not ended.
absl::Status TooMuchAtOnce(uint64_t limit) {
  return MakeBusyError(TooLarge("the steps of this user's unfinished loads", limit,
                                "wait for some of them, or load fewer kernels at once"),
                       Jittered(std::chrono::seconds(10)));
}

absl::Status NotHeld(const absl::Status& status) {
  return MakeError(v1::ErrorDetail::RESOURCE, StrCat("cannot keep the output of a step: ", status.message()));
}

}  // namespace

// Where outputs lie. A file goes with the last of them. Thread-safe.
class HeldOutputs::Files {
 public:
  // A part of a file that is nobody else's.
  struct Part {
    std::shared_ptr<ScratchFile> file;
    uint64_t offset = 0;
  };

  Files(Env& env, std::string folder) : env_(env), folder_(std::move(folder)) {}

  // Bytes that outputs take at the moment.
  std::atomic<uint64_t>& held() { return held_; }

  absl::StatusOr<Part> Take(uint64_t bytes) {
    const MutexLock lock(mutex_);
    if (file_ == nullptr || bytes > room_) KERNIX_RETURN_IF_ERROR(MakeFile(bytes));
    const Part part{file_, capacity_ - room_};
    room_ -= bytes;
    return part;
  }

 private:
  // Not larger than this process may write.
  absl::Status MakeFile(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t most = exec::FileSizeLimit(env_, 0).value_or(UINT64_MAX);
    if (bytes > most)
      return absl::ResourceExhaustedError(
          StrCat("it has ", bytes, " bytes, kernixd's own limit (ulimit -f) is ", most));
    capacity_ = std::min(std::max(bytes, kFileBytes), most);
    KERNIX_ASSIGN_OR_RETURN(file_, env_.MakeScratchFile(folder_, capacity_));
    room_ = capacity_;
    return absl::OkStatus();
  }

  Env& env_;
  const std::string folder_;
  std::atomic<uint64_t> held_ = 0;
  Mutex mutex_;
  std::shared_ptr<ScratchFile> file_
      ABSL_GUARDED_BY(mutex_);  // takes what still fits into it; null: none has been made
  uint64_t capacity_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t room_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One output.
struct HeldOutputs::Held {
  Held() = default;
  ~Held() {
    if (part.file != nullptr) part.file->Free(part.offset, size);
    if (files != nullptr) files->held() -= size;
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  uint64_t size = 0;  // on the disk
  // A quota goes after its share.
  std::shared_ptr<exec::ByteQuota> of_plan, of_users;
  std::unique_ptr<exec::ByteQuota::Share> share_of_plan, share_of_user;
  std::shared_ptr<Files> files;  // that count it
  Files::Part part;
  std::string_view bytes;
};

HeldOutputs::HeldOutputs(Env& env, const HeldOutputsOptions& options)
    : HeldOutputs(options, std::make_shared<Files>(env, options.scratch_directory)) {}

HeldOutputs::HeldOutputs(HeldOutputsOptions options, std::shared_ptr<Files> files)
    : options_(std::move(options)),
      files_(std::move(files)),
      of_plan_(std::make_shared<exec::ByteQuota>(options_.max_bytes)) {}

HeldOutputs::~HeldOutputs() = default;

std::shared_ptr<HeldOutputs> HeldOutputs::ForPart() const {
  return std::shared_ptr<HeldOutputs>(new HeldOutputs(options_, files_));
}

std::unique_ptr<exec::ByteQuota::Share> HeldOutputs::TakeOfAnAsker(uint64_t bytes) const {
  for (const exec::QueuePosition& position : options_.askers->Positions(0, 0)) {
    if (auto share = options_.of_users->Take(position.user, bytes)) return share;
  }
  return nullptr;
}

absl::StatusOr<exec::Content> HeldOutputs::Hold(const exec::Content& content) {
  if (content->empty()) return content;
  const auto held = std::make_shared<Held>();
  held->size = (content->size() + kPageBytes - 1) / kPageBytes * kPageBytes;
  held->of_plan = of_plan_;
  held->of_users = options_.of_users;
  held->share_of_plan = of_plan_->Take(kThePlan, content->size());
  if (held->share_of_plan == nullptr) {
    return LoadTooLarge(options_.max_bytes);
  }
  held->share_of_user = TakeOfAnAsker(held->size);
  if (held->share_of_user == nullptr) {
    const uint64_t limit = options_.of_users->max_per_user();
    return files_->held() + held->size > limit ? LoadTooLarge(limit) : TooMuchAtOnce(limit);
  }
  held->files = files_;
  files_->held() += held->size;
  absl::StatusOr<Files::Part> part = files_->Take(held->size);
  if (!part.ok()) return NotHeld(part.status());
  held->part = *std::move(part);
  const absl::StatusOr<std::string_view> bytes = held->part.file->Write(held->part.offset, *content);
  if (!bytes.ok()) return NotHeld(bytes.status());
  held->bytes = *bytes;
  return exec::Content(held, &held->bytes);
}

}  // namespace kernix::build
