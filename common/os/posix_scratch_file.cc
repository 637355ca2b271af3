// SPDX-License-Identifier: Apache-2.0
#include "common/os/posix_scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/strings.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"

namespace kernix::posix {
namespace {

// A mapping of a whole file that is yet to be written. Its pages beyond the file's end must not be touched.
class Mapping {
 public:
  explicit Mapping(size_t bytes) : bytes_(bytes) {}
  ~Mapping() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool Map(int fd) {
    data_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0);
    return data_ != MAP_FAILED;
  }
  const char* at(size_t offset) const { return static_cast<const char*>(data_) + offset; }
  size_t size() const { return bytes_; }

 private:
  const size_t bytes_;
  void* data_ = MAP_FAILED;
};

class PosixScratchFile : public ScratchFile {
 public:
  PosixScratchFile(std::string folder, size_t capacity) : folder_(std::move(folder)), mapping_(capacity) {}

  absl::Status Open() {
    std::string name = StrCat(folder_, "/scratch-XXXXXX");
    fd_.reset(mkostemp(name.data(), O_CLOEXEC));
    if (!fd_.ok()) return Failed("create a file in");
    if (unlink(name.c_str()) != 0) return Failed("remove a file's name from");
    return mapping_.Map(fd_.get()) ? absl::OkStatus() : Failed("map a file of");
  }

  absl::StatusOr<std::string_view> Write(uint64_t offset, std::string_view bytes) override {
    if (offset > mapping_.size() || bytes.size() > mapping_.size() - offset) {
      return absl::InternalError(StrCat("no room in a file of ", folder_));
    }
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t put =
          pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return Failed("write to a file in");
      done += static_cast<size_t>(put);
    }
    return std::string_view(mapping_.at(offset), bytes.size());
  }

  void Free(uint64_t offset, uint64_t size) override {
    (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size));
  }

 private:
  absl::Status Failed(const char* action) const { return ErrnoStatus(errno, action, folder_); }

  const std::string folder_;
  UniqueFd fd_;
  Mapping mapping_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFile>> MakeScratchFile(const std::string& folder, uint64_t capacity) {
  auto file = std::make_unique<PosixScratchFile>(folder, capacity);
  const absl::Status opened = file->Open();
  if (!opened.ok()) return opened;
  return file;
}

}  // namespace kernix::posix
