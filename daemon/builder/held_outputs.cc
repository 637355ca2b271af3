// SPDX-License-Identifier: Apache-2.0
#include "daemon/builder/held_outputs.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::build {
namespace {

// Address space, of which only what is written takes room. Files are larger for a larger output.
constexpr size_t kFileBytes = 64 << 20;

absl::Status TooLarge(std::string_view whose, uint64_t limit, std::string_view what_else) {
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("the outputs of ", whose, " have more than ", limit,
                          " bytes together, the limit derived from this kernixd's max_output_bytes: raise it "
                          "(--max-output-bytes, KERNIX_MAX_OUTPUT_BYTES), or ",
                          what_else));
}

absl::Status NotHeld(const absl::Status& status) {
  const auto kind = absl::IsResourceExhausted(status) ? v1::ErrorDetail::RESOURCE : v1::ErrorDetail::INTERNAL;
  return MakeError(kind, StrCat("cannot set aside what a step has made: ", status.message()));
}

}  // namespace

// Some outputs, and what they count for.
class HeldOutputs::File {
 public:
  File(std::unique_ptr<ScratchFile> file, size_t capacity, std::shared_ptr<exec::ByteQuota> quota)
      : file_(std::move(file)), room_(capacity), quota_(std::move(quota)) {}

  size_t room() const { return room_; }

  absl::StatusOr<std::string_view> Append(std::string_view bytes, std::unique_ptr<exec::ByteQuota::Share> share) {
    shares_.push_back(std::move(share));
    room_ -= bytes.size();
    return file_->Append(bytes);
  }

 private:
  const std::unique_ptr<ScratchFile> file_;
  size_t room_;
  const std::shared_ptr<exec::ByteQuota> quota_;  // outputs may outlive all builders
  std::vector<std::unique_ptr<exec::ByteQuota::Share>> shares_;
};

absl::StatusOr<exec::Content> HeldOutputs::Hold(const exec::Content& content) {
  struct Held {
    std::shared_ptr<File> file;
    std::string_view bytes;
  };
  if (content->empty()) return content;
  const auto held = std::make_shared<Held>();
  const MutexLock lock(mutex_);
  KERNIX_RETURN_IF_ERROR(CheckSize(content->size()));
  std::unique_ptr<exec::ByteQuota::Share> share = options_.of_users->Take(options_.user, content->size());
  if (share == nullptr) {
    return TooLarge("the steps of this user's unfinished loads", options_.of_users->max_per_user(),
                    "load fewer kernels at once");
  }
  const absl::Status room = MakeRoom(content->size());
  if (!room.ok()) return NotHeld(room);
  const absl::StatusOr<std::string_view> added = file_->Append(*content, std::move(share));
  if (!added.ok()) return NotHeld(added.status());
  held->file = file_;
  held->bytes = *added;
  return exec::Content(held, &held->bytes);
}

absl::Status HeldOutputs::CheckSize(size_t more) {
  bytes_ += more;
  if (options_.max_bytes == 0 || bytes_ <= options_.max_bytes) return absl::OkStatus();
  return TooLarge("this load's steps", options_.max_bytes, "put fewer sources into one load");
}

absl::Status HeldOutputs::MakeRoom(size_t bytes) {
  if (file_ != nullptr && bytes <= file_->room()) return absl::OkStatus();
  const size_t capacity = std::max(bytes, kFileBytes);
  KERNIX_ASSIGN_OR_RETURN(std::unique_ptr<ScratchFile> file,
                          options_.env.MakeScratchFile(options_.scratch_directory, capacity));
  file_ = std::make_shared<File>(std::move(file), capacity, options_.of_users);
  return absl::OkStatus();
}

}  // namespace kernix::build
