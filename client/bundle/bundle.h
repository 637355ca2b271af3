// SPDX-License-Identifier: Apache-2.0
//
// A bundle: a folder, or a zip file, of kernels that were compiled elsewhere.
//
//   kernix-bundle   the version of the format
//   KEY.kernel      for each BundleKey(): a statement about each artifact, signed or not: what was asked for, what was
//                   built
//   DIGEST.so       the artifacts
//
// A bundle is code, as a Python wheel is: whoever can write it decides what its users run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/bundle/gpu_targets.h"
#include "common/base/digest.h"
#include "common/os/env.h"
#include "common/wire/statement.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

struct BundledKernel {
  v1::RecordedLoad load;  // what was asked for
  v1::LoadResult result;  // what was built, without what holds for one machine or one load
  GpuTargets targets;     // of CUDA code
};

// Contents by name.
using BundleFiles = std::map<std::string, std::string>;

// `result`, without what holds for one machine or one load.
v1::LoadResult WithoutCircumstances(v1::LoadResult result);

// Adds a kernel to the files of a bundle. `signs_with`: null for a statement without a signature.
void AddKernel(const BundledKernel& kernel, std::string artifact, const SigningKey* signs_with, BundleFiles& files);

// Adds the files of another bundle. Kernels of one key stand side by side.
void AddBundle(const BundleFiles& others, BundleFiles& files);

// Writes a bundle, and replaces the one that is there; a zip file if `path` ends with ".zip". Equal files make equal
// bundles. INVALID_REQUEST if there is something else at `path`.
absl::Status WriteBundle(Env& env, std::string path, BundleFiles files);

class Bundle {
 public:
  // kNotFound if there is nothing at `path`. LOAD errors: it is no bundle, or of a format that this kernix does not
  // have (kUnimplemented). A zip file is unpacked beside the user's store, once.
  static absl::StatusOr<Bundle> Open(Env& env, std::string path);

  const std::string& path() const { return path_; }

  // The kernels of a key: several if they are for different GPUs. `trusted` as in DecodeStatement(): kernels that are
  // not signed are left out. LOAD error: a file is damaged.
  absl::StatusOr<std::vector<BundledKernel>> Find(const Digest& key, const TrustedKeys& trusted) const;

  // All kernels, by module name.
  absl::StatusOr<std::vector<BundledKernel>> All(const TrustedKeys& trusted) const;

  // What is compared of an artifact before it is opened. Its content takes half a millisecond for each megabyte, as
  // long as the rest of a load. Without it, a bundle is checked as a store is, and as Python checks the libraries of a
  // wheel.
  enum class Compare { kSize, kContent };

  // The path of a kernel's artifact. LOAD error: it is damaged.
  absl::StatusOr<std::string> Artifact(const v1::LoadResult& result, Compare compare) const;

  // The names of the files with statements and artifacts; and the files, as they are.
  absl::StatusOr<std::vector<std::string>> Names() const;
  absl::StatusOr<BundleFiles> Files() const;

 private:
  Bundle(Env& env, std::string path, std::string folder)
      : env_(&env), path_(std::move(path)), folder_(std::move(folder)) {}
  absl::StatusOr<std::vector<BundledKernel>> ReadKernels(const std::string& name, const TrustedKeys& trusted) const;
  absl::Status Damaged(const std::string& name, std::string_view how) const;

  Env* env_;
  std::string path_;    // as it was asked for
  std::string folder_;  // where its files are
};

// How a bundle knows a load: by everything that decides its artifact, except the compilers and the architectures. A
// machine without compilers can compute it. Covers texts, headers, flags, options and functions, but not the module's
// name. Include roots without a header that the sources reach do not count, because they differ from machine to
// machine. `load` has digests, and no texts.
Digest BundleKey(v1::RecordedLoad load);

// The parts in which two loads differ, for people: "source k.cu", "header inc/x.h", "compile flags". Not empty if their
// BundleKey()s differ.
std::vector<std::string> DifferencesOf(const v1::RecordedLoad& a, const v1::RecordedLoad& b);

// Writes contents by name as a bundle in one file: a zip whose entries are stored as they are. Equal contents make
// equal files.
absl::Status WriteZip(const std::string& path, const std::map<std::string, std::string>& contents);

// Reads what WriteZip(), or another program, has written. DATA_LOSS: it is no zip, or damaged, or has folders.
absl::StatusOr<std::map<std::string, std::string>> ReadZip(const std::string& path);

}  // namespace kernix
