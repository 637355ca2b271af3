// SPDX-License-Identifier: Apache-2.0
//
// Links objects with stubs of the libraries that the compiler names by itself (libstdc++, libc, ...).
//
// A small kernel needs a few names of these libraries. The GNU linker enters all of the some ten thousand that they
// have, which takes five sixths of its time. A stub (link_stub.h) has only the names that an earlier link has
// found there.
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
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// Objects that need no name besides those that an earlier link has seen are linked with stubs: archives among the
// libraries, which are linked as they are, then give nothing that the earlier link had not got. All others are linked
// with the libraries first, and then once more with stubs. If that gives a library that imports the same, it is the
// result, so that the same objects give the same bytes whatever was linked before; and later links use its names.
// Thread-safe.
class Linker {
 public:
  // `runner` runs the commands, and must outlive the linker.
  explicit Linker(StepRunner& runner) : runner_(runner) {}

  // As StepRunner::Submit(), for a step that `is_plain_link`. If a link with stubs fails, the step's own
  // command runs, whose output and errors are what users see.
  void Submit(const Step& step, StepRunner::Run run);

  // The registry must not be read after the linker is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  class Link;

  // What a link has found in libraries.
  struct Found {
    std::vector<std::string> names;      // that the objects need, sorted
    std::vector<std::string> libraries;  // that the result needs, in order
    std::vector<ElfImage::Import> imports;
  };
  using FoundPtr = std::shared_ptr<const Found>;

  // What a link of the same tools and words has found that needs all `names`; null: nothing.
  FoundPtr Find(const Digest& link, const std::vector<std::string>& names);
  void Keep(const Digest& link, FoundPtr found);

  StepRunner& runner_;
  MetricCounter with_stubs_;
  MetricCounter whole_;

  Mutex mutex_;
  absl::flat_hash_map<Digest, std::vector<FoundPtr>> found_ ABSL_GUARDED_BY(mutex_);  // the newest ones last
};

}  // namespace kernix::build
