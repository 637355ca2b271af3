// SPDX-License-Identifier: Apache-2.0
//
// Links objects without reading what they do not need of the libraries that the compiler names by itself (libstdc++,
// libc, ...).
//
// A small kernel needs a few names of these libraries. The GNU linker enters all of the some ten thousand that they
// have, which takes five sixths of its time. So it gets stubs (link_stub.h) of the libraries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/base/digest.h"
#include "common/base/elf_image.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// What the result of a link imports, and from which libraries.
struct Imported {
  std::vector<std::string> libraries;     // in order
  std::vector<ElfImage::Import> imports;  // sorted

  bool operator==(const Imported&) const = default;
};

// C++ is linked with small libraries (small_libraries.h): which names are needed, the objects tell. What CUDA's
// archives need is not known before the link, which reads them with the libraries, except libstdc++, of which they need
// nothing. Then it is done once more, with stubs of what the first one imports. If that imports the same, it is the
// result, so that the same objects give the same bytes whatever was linked before; and later objects that need no other
// name are linked with these stubs at once: the archives then give nothing that the earlier link had not got.
// Thread-safe.
class Linker {
 public:
  // `runner` runs the commands. Both must outlive the linker.
  Linker(Env& env, StepRunner& runner) : env_(env), runner_(runner) {}

  // As StepRunner::Submit(), for a step that `is_plain_link`. If a link with stubs fails, or imports what it should
  // not, the step's own command runs, whose output and errors are what users see. Without shortcuts, that command runs
  // in any case; if it imports what the link with stubs does, that one's result is taken: it is the same bytes.
  void Submit(const Step& step, StepRunner::Run run);

  // The registry must not be read after the linker is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  class Link;

  // What a link has found in libraries.
  struct Found {
    std::vector<std::string> names;  // that the objects need, sorted
    Imported imported;
  };
  using FoundPtr = std::shared_ptr<const Found>;

  // What a link of the same tools and words has found that needs all `names`; null: nothing.
  FoundPtr Find(const Digest& link, const std::vector<std::string>& names);
  void Keep(const Digest& link, Found found);

  Env& env_;
  StepRunner& runner_;
  MetricCounter with_stubs_;
  MetricCounter whole_;

  Mutex mutex_;
  absl::flat_hash_map<Digest, std::vector<FoundPtr>> found_ ABSL_GUARDED_BY(mutex_);  // the newest ones last
};

}  // namespace kernix::build
