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
#include "common/base/user_id.h"
#include "daemon/builder/learning.h"
#include "daemon/builder/step_runner.h"
#include "daemon/plan/plan.h"

namespace kernix::build {

// What the result of a link imports, and from which libraries.
struct Imported {
  std::vector<std::string> libraries;     // in order
  std::vector<ElfImage::Import> imports;  // sorted

  bool operator==(const Imported&) const = default;
};

// Objects that need no name besides those that an earlier link has seen are linked with stubs: archives among the
// libraries, which are linked as they are, then give nothing that the earlier link had not got. All others are linked
// with the libraries first, and then once more with stubs. If that gives a library that imports the same, it is the
// result, so that the same objects give the same bytes whatever was linked before; and later links use its names.
// Thread-safe.
class Linker {
 public:
  // `runner` runs the commands. Both must outlive the linker.
  Linker(StepRunner& runner, Learning& learning) : runner_(runner), learning_(learning) {}

  // As StepRunner::Submit(), for a step that `is_plain_link`. If a link with stubs fails, the step's own
  // command runs, whose output and errors are what users see.
  void Submit(const Step& step, StepRunner::Run run);

  // Learns, in the background, what a link will find in the libraries that waits for objects of other steps: links the
  // objects that are there already. Most kernels need no names besides those of the handlers' part, so that not even
  // the first one waits for the libraries.
  void LearnAhead(const Step& step, UserId user);

  // The registry must not be read after the linker is destroyed.
  void Register(MetricsRegistry& registry) const;

 private:
  class Link;
  class Ahead;

  // What a link has found in libraries.
  struct Found {
    std::vector<std::string> names;  // that the objects need, sorted
    Imported imported;
  };
  using FoundPtr = std::shared_ptr<const Found>;

  // What a link of the same tools and words has found that needs all `names`; null: nothing.
  FoundPtr Find(const Digest& link, const std::vector<std::string>& names);
  void Keep(const Digest& link, Found found);

  StepRunner& runner_;
  Learning& learning_;
  MetricCounter with_stubs_;
  MetricCounter whole_;

  Mutex mutex_;
  absl::flat_hash_map<Digest, std::vector<FoundPtr>> found_ ABSL_GUARDED_BY(mutex_);  // the newest ones last
};

}  // namespace kernix::build
