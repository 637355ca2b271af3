// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/batch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "client/kernixctl/compile_module.h"
#include "client/kernixctl/interrupt.h"
#include "client/kernixctl/module_report.h"
#include "client/kernixctl/progress_line.h"
#include "client/load/matching_files.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "kernix/load.h"

namespace kernix::ctl {
namespace {

constexpr char kAnnotation[] = "@BE";

bool ExportsSomething(const std::string& file) {
  const absl::StatusOr<std::string> text = Env::Posix().ReadFile(file);
  return !text.ok() || text->find(kAnnotation) != std::string::npos;  // the load says why a file cannot be read
}

absl::StatusOr<std::vector<std::string>> SourcesIn(const std::string& folder) {
  KERNIX_ASSIGN_OR_RETURN(std::vector<std::string> files,
                          MatchingFiles(folder, {"**/*.cu", "**/*.cpp", "**/*.cc", "**/*.cxx"}));
  std::erase_if(files, [](const std::string& file) { return !ExportsSomething(file); });
  if (!files.empty()) return files;
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("no source below ", folder, " has a `// @BE` line, which would export a function"));
}

// Leaves out what a load of C++ refuses.
void WithoutCuda(LoadOptions& options) {
  options.compute_capability.clear();
  options.keep = false;
}

class Batch {
 public:
  Batch(Client& client, const CompileFlags& flags)
      : client_(client),
        flags_(flags),
        codes_(flags.files.size()),
        line_(StrCat(flags.files.size(), " modules"), std::cerr, !flags.verbose && isatty(STDERR_FILENO) == 1) {}

  int Run(size_t at_once) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < std::min(at_once, flags_.files.size()); ++i) threads.emplace_back([this] { WorkOff(); });
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    Report();
    const auto failed = std::find_if(codes_.begin(), codes_.end(), [](int code) { return code != kOk; });
    return Interrupted() ? kInterrupted : failed == codes_.end() ? kOk : *failed;
  }

 private:
  // Until no file is left.
  void WorkOff() {
    while (const std::optional<size_t> index = Next()) {
      const std::string& file = flags_.files[*index];
      const Language language = IsCuda({file}) ? Language::kCuda : Language::kCpp;
      const auto module = LoadFiles(client_, language, NameOf({file}, flags_), {file}, OptionsFor(language));
      const MutexLock lock(mutex_);
      line_.Erase();
      codes_[*index] = module.ok() ? Delivered(file, **module) : Failed(file, module.status());
      ShowState("");
    }
  }

  std::optional<size_t> Next() {
    const MutexLock lock(mutex_);
    if (next_ == flags_.files.size() || Stopped()) return std::nullopt;
    return next_++;
  }

  LoadOptions OptionsFor(Language language) {
    LoadOptions options = LoadOptionsFrom(flags_);
    options.batch = true;
    if (language == Language::kCpp) WithoutCuda(options);
    options.callbacks.output = [this](std::string_view text) {
      const MutexLock lock(mutex_);
      line_.Erase();
      std::cerr << text;
    };
    options.callbacks.warning = [this](std::string_view text) {
      const MutexLock lock(mutex_);
      line_.Erase();
      PrintWarning(text);
    };
    options.callbacks.progress = [this](std::string_view text) {
      const MutexLock lock(mutex_);
      ShowState(text);
    };
    options.callbacks.cancelled = [this] {
      const MutexLock lock(mutex_);
      line_.Poll();
      return Stopped();
    };
    return options;
  }

  static const char* Origin(const Module& module) {
    if (module.from_upstream()) return "from another node";
    if (module.cache_hit()) return "from the cache";
    return module.joined() ? "built for others, too" : "built";
  }

  bool Stopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return no_daemon_ || Interrupted(); }

  int Delivered(const std::string& file, const Module& module) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const CompiledFiles compiled{{file}, module, module.path()};
    std::cout << (flags_.json ? SummaryJson(compiled) : SummaryLine(compiled)) << std::endl;
    ++counts_[Origin(module)];
    return kOk;
  }

  int Failed(const std::string& file, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (GetErrorDetail(status).kind() == v1::ErrorDetail::CANCELLED) return kInterrupted;
    if (no_daemon_) return kNoDaemon;  // said once
    std::cerr << "kernixctl: " << file << ":\n";
    const int code = Fail(status);
    no_daemon_ = code == kNoDaemon;
    ++counts_["failed"];
    return code;
  }

  void ShowState(std::string_view of_one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t done = 0;
    for (const auto& [what, count] : counts_) done += count;
    const size_t failed = counts_.contains("failed") ? counts_.at("failed") : 0;
    line_.SetState(StrCat(done, " done", failed > 0 ? StrCat(", ", failed, " failed") : "",
                          of_one.empty() ? "" : StrCat(", one: ", of_one)));
  }

  // "12 modules: 8 built, 3 from the cache, 1 failed, in 34.2 s".
  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string parts;
    size_t done = 0;
    for (const auto& [what, count] : counts_) {
      StrAppend(&parts, count, " ", what, ", ");
      done += count;
    }
    if (done < flags_.files.size()) StrAppend(&parts, flags_.files.size() - done, " not built, ");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
    line_.Erase();
    std::cerr << "kernixctl: " << flags_.files.size() << (flags_.files.size() == 1 ? " module: " : " modules: ")
              << parts << absl::StrFormat("in %.1f s", took.count()) << "\n";
  }

  Client& client_;
  const CompileFlags& flags_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool no_daemon_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> codes_ ABSL_GUARDED_BY(mutex_);  // exit codes, by file
  std::map<std::string, size_t> counts_ ABSL_GUARDED_BY(mutex_);
  ProgressLine line_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesBelow(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    KERNIX_ASSIGN_OR_RETURN(const std::vector<std::string> found, SourcesIn(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

int BuildAll(Client& client, const CompileFlags& flags, size_t at_once) { return Batch(client, flags).Run(at_once); }

}  // namespace kernix::ctl
