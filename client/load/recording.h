// SPDX-License-Identifier: Apache-2.0
//
// Loads as files of a folder, and how they are repeated. The loads of a command, for `kernixctl record`: each process
// of the command notes a load in a folder as soon as it has succeeded. A file's name is a digest of its content, so
// processes share the folder without a lock, nothing is there twice, and the notes of a killed process stay. The
// history of a program (history.h) is such a folder, too.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "client/load/load_request.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "kernix/load.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Names the folder. It must exist.
inline constexpr char kRecordVariable[] = "KERNIX_RECORD";

// How the files of loads and texts end.
inline constexpr std::string_view kLoadSuffix = ".load";
inline constexpr std::string_view kTextSuffix = ".text";

// The content of a folder, and of a manifest.
struct Recording {
  std::map<Digest, std::string> texts;  // of sources and headers
  std::vector<v1::RecordedLoad> loads;
};

// The load as another machine can repeat it, without the texts. Its `key` is empty.
v1::RecordedLoad RecordOf(const PreparedLoad& load);

// Adds a load whose artifact has this key to `folder`. Thread-safe, also between processes.
absl::Status NoteLoad(Env& env, const std::string& folder, const PreparedLoad& load, const std::string& key);

// The same, for a file of the caller's choice, unless it is there.
absl::Status NoteLoadAs(Env& env, const std::string& path, const PreparedLoad& load, const std::string& key);

// The load of a file, without its texts.
absl::StatusOr<v1::RecordedLoad> ParseLoad(Env& env, const std::string& path);

// Adds the load of a file, with its texts, to `recording`. An error if the file or one of the texts is not whole.
absl::Status ReadLoad(Env& env, const std::string& path, Recording& recording);

// The loads of a folder, by module name and then by key, whatever the order in which they ended.
absl::StatusOr<Recording> ReadRecording(Env& env, const std::string& folder);

// A folder for the loads of whoever has its environment. Removed with this object.
class RecordingFolder {
 public:
  static absl::StatusOr<RecordingFolder> Make();
  RecordingFolder(RecordingFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  RecordingFolder& operator=(RecordingFolder&&) = delete;
  ~RecordingFolder();

  // This process's environment, with kRecordVariable and, unless it is empty, `more` ("NAME=value").
  std::vector<std::string> Environment(const std::string& more = "") const;

  absl::StatusOr<Recording> Read() const { return ReadRecording(Env::Posix(), path_); }

 private:
  explicit RecordingFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// The digests of the texts that a load consists of. INVALID_REQUEST if one of them is no digest.
absl::StatusOr<std::vector<Digest>> TextsOf(const v1::RecordedLoad& load);

// Has the daemon build or find what a load of `recording` asks for, as it would be on this machine (see RequestHere()).
// Opens nothing. Of the options, only callbacks, environment and policy count. `recording` must hold the load's texts.
absl::StatusOr<v1::LoadResult> LoadRecorded(DaemonClient& daemon, const Recording& recording,
                                            const v1::RecordedLoad& load, const LoadOptions& options);

}  // namespace kernix
