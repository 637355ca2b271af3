// SPDX-License-Identifier: Apache-2.0
//
// Compilers of this host: where they are, their identity (by content), and which flags they accept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/lru.h"
#include "common/base/mutex.h"
#include "common/os/env.h"
#include "common/os/file_identity.h"
#include "daemon/toolchain/file_digests.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::toolchain {

class FileDigests;
class RememberedToolchains;
struct DescribedFiles;

enum class HostCompilerKind { kGcc, kClang };

struct HostCompiler {
  HostCompilerKind kind = HostCompilerKind::kGcc;
  // Absolute, with the links of its folder resolved. Its own name stays, because it may be what makes the program act
  // as clang++, or as g++ behind ccache.
  std::string path;
  int major_version = 0;
  std::string version;  // "12.2.0", for people
  // Covers the content of driver, cc1plus, as, ld, collect2 and the libraries that these load, and of specs, crt files,
  // libgcc, libstdc++ and libc.
  Digest identity;
  // GCC: what only links with -flto run, and what only -fsanitize links. They are half of its bytes, and the identity
  // does not cover them: CheckFlags() makes them files of the flags.
  std::vector<std::string> lto_programs;
  std::vector<std::string> sanitizer_files;
  std::vector<std::string> system_include_directories;  // listed by `-v`; headers under these are not the user's
  std::vector<std::string> library_directories;         // where the compiler looks for -lfoo, in order
  // The client's variables that it needs to run; mostly none. The toolchain's identity covers them.
  std::map<std::string, std::string> variables;
  // gcc and clang compile C++, but link no C++ library by themselves, as g++ and clang++ do.
  bool links_cxx = true;
};

// Facts about this host that flags depend on, each found out once. Thread-safe.
class HostFacts {
 public:
  explicit HostFacts(Env& env) : env_(env), digests_(env) {}

  FileDigests& digests() { return digests_; }

  // The meaning of a compiler's `flag` on this processor: "-march=native" -> "-march=znver3", "-mavx2", .... TOOLCHAIN
  // if the compiler does not report it.
  absl::StatusOr<std::vector<std::string>> ExpandNative(const HostCompiler& compiler, const std::string& flag);

 private:
  Env& env_;
  FileDigests digests_;
  Mutex mutex_;
  std::map<std::string, std::vector<std::string>> native_ ABSL_GUARDED_BY(mutex_);
};

struct CudaToolkit {
  std::string nvcc;  // absolute: the program itself, behind links and wrapper scripts
  std::string root;  // the folder above bin/, with links resolved
  int major_version = 0, minor_version = 0;
  std::string version;  // "13.0"
  // A distribution's: nvcc has a folder of its own, and its programs, except for cicc, are among those of all users.
  bool programs_beside_host_compiler = false;
  // Covers the content of nvcc, cudafe++, cicc, ptxas, fatbinary, nvlink, nvcc.profile, link stubs, libdevice, static
  // cudart and cudadevrt, and of the second cicc and libdevice that some releases have (nvvm-next).
  Digest identity;
  std::vector<std::string> include_directories;  // of the toolkit and beside it (pip layouts), absolute
  std::vector<std::string> library_directories;  // the one with libcudart_static.a first
  std::vector<int> architectures;                // the ones that this nvcc can compile for: 75, 80, ..., 120
  // Why this nvcc refuses the host compiler, with advice; empty if it accepts it. CheckFlags() makes it an error.
  std::string host_refusal;
};

struct Toolchain {
  HostCompiler host;
  std::optional<CudaToolkit> cuda;
  Digest identity;  // of all parts: the same tools in another place have the same identity
  // The files from which the identity was made, in their state before they were read. The identity is valid while all
  // are Unchanged().
  std::vector<WatchedFile> files;
  // The complete environment of a compile or link action; it contains nothing from a client but `host.variables`. It
  // has PWD=/proc/self/cwd, so that compilers that record their working folder write the same bytes in every folder.
  std::map<std::string, std::string> environment;
  // The findings of CheckFlags() about this host. May be null: then it finds out each time.
  std::shared_ptr<HostFacts> facts;
  // Of a toolchain that is on another node and described here (daemon/toolchain/description.h): all paths are of that
  // node, nothing can be run or built, and `files` has the description. Null: the tools are here.
  std::shared_ptr<const DescribedFiles> described;
};

using ToolchainPtr = std::shared_ptr<const Toolchain>;

// For people: "/usr/bin/g++ 12.2.0, /usr/local/cuda/bin/nvcc 13.0".
std::string DescribeTools(const Toolchain& toolchain);

// The programs that `language` needs, the host compiler first. One that is not named is empty.
std::vector<std::string> ProgramsOf(const v1::ToolchainPaths& paths, v1::Language language);

// Whether one of them is not named.
bool LacksTools(const v1::ToolchainPaths& paths, v1::Language language);

// The language that needs all of the named tools.
v1::Language LanguageOf(const v1::ToolchainPaths& paths);

v1::ToolchainPaths WithoutVariables(v1::ToolchainPaths paths);

// A question to Resolve().
struct UsedTools {
  v1::ToolchainPaths paths;
  v1::Language language = v1::LANGUAGE_CPP;
};

// Finds out what the tools at the given paths are. Keeps a result until one of its files changes (by stat), so that a
// warm load costs a few stat calls. Thread-safe; callers that need different toolchains do not wait for each other.
class ToolchainRegistry {
 public:
  // `compiler_setting` names what sets the host compiler: errors tell people to correct it. `description`: the file of
  // the toolchain that serves whoever names no tools; empty: none does.
  explicit ToolchainRegistry(Env& env, std::string_view compiler_setting = "CXX", std::string description = "");

  // From now on, the toolchains that Remember() gets are kept in the first of `folders`, and those in all of them serve
  // whoever names no tools, if there is no description: the last one by Resolve(), the others by Remembered().
  void RememberIn(std::vector<std::string> folders);

  // Must be called with a toolchain that has filled the store.
  void Remember(const Toolchain& toolchain);

  // Tools that do not work are asked once more, with the variables of `paths`. TOOLCHAIN errors: no such program, it
  // does not run, it is neither GCC nor Clang, or an nvcc lacks parts. If `paths` lack a tool, the described or
  // remembered toolchain is the answer; without one, the error has the code kUnimplemented. `language` decides whether
  // nvcc is needed. CheckFlags() reports a host compiler that nvcc refuses. Errors are not kept.
  absl::StatusOr<ToolchainPtr> Resolve(const v1::ToolchainPaths& paths, v1::Language language);

  // The toolchains that have filled the store, the last one first: for a load without tools.
  std::vector<ToolchainPtr> Remembered(v1::Language language);

  // Whether Resolve() has found these tools before, however they have changed since.
  bool HasFound(const v1::ToolchainPaths& paths, v1::Language language);

  // The result of the last Resolve() of these tools, if `check` finds its files unchanged; else null. Runs no tool,
  // reads no file, and waits for nobody.
  ToolchainPtr FindKnown(const v1::ToolchainPaths& paths, v1::Language language, FileCheck& check);

  // The tools that Resolve() has found at least once.
  std::vector<UsedTools> Used();

  // The digests of all files that make up a toolchain, including headers.
  FileDigests& digests();

 private:
  // Each takes some kilobytes.
  static constexpr size_t kMostToolchains = 64;

  struct Entry;
  // `paths` with its variables are another toolchain than without.
  absl::StatusOr<ToolchainPtr> ResolveAs(const v1::ToolchainPaths& paths, v1::Language language);
  std::string KeyOf(const v1::ToolchainPaths& paths, v1::Language language) const;
  std::shared_ptr<Entry> EntryOf(const v1::ToolchainPaths& paths, v1::Language language);
  // The toolchain that was found at `paths`, without their variables or with them; null: none was.
  ToolchainPtr Found(const v1::ToolchainPaths& paths, v1::Language language);
  ToolchainPtr FoundAs(const v1::ToolchainPaths& paths, v1::Language language);
  absl::StatusOr<ToolchainPtr> Probe(const v1::ToolchainPaths& paths, v1::Language language);
  absl::StatusOr<ToolchainPtr> Described(v1::Language language) const;
  std::shared_ptr<RememberedToolchains> Memory();
  absl::Status WithRemedy(const absl::Status& does_not_work) const;
  absl::Status LackOf(const v1::ToolchainPaths& paths) const;
  // Adds what does not depend on the tools.
  ToolchainPtr Complete(Toolchain toolchain) const;

  Env& env_;
  const std::string compiler_setting_;
  const std::string description_;
  const std::shared_ptr<HostFacts> facts_;
  Mutex mutex_;
  Lru<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_){kMostToolchains};
  std::shared_ptr<RememberedToolchains> memory_ ABSL_GUARDED_BY(mutex_);  // null: nothing is remembered
};

// Which toolchains have filled a store, kept in it. If the store is there and they are not, as in a slim container made
// from the build image, loads get the store's results.

// Thread-safe. A failure to write or read is no error; such a toolchain is not remembered.
class RememberedToolchains {
 public:
  // `folders`: of the store, whose folder is made when it is needed, and of those that are only read. Each holds a
  // description of some kilobytes for each toolchain.
  RememberedToolchains(Env& env, std::vector<std::string> folders) : env_(env), folders_(std::move(folders)) {}

  // Writes its description, once for each of this object.
  void Keep(const Toolchain& toolchain);

  // Those that have what `language` needs, the one that was kept last first, each with a state of its description as
  // the only file. No more than kMostTried: a load plans for one after the other.
  std::vector<Toolchain> All(v1::Language language) const;

  static constexpr size_t kMostTried = 16;

 private:
  Env& env_;
  const std::vector<std::string> folders_;
  Mutex mutex_;
  absl::flat_hash_set<Digest> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kernix::toolchain
