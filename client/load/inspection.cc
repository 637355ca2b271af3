// SPDX-License-Identifier: Apache-2.0
#include "kernix/inspection.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "client/load/kernel_resources.h"
#include "client/load/module.h"
#include "client/tools/environment.h"
#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/posix_error.h"

namespace kernix {

// What a module says of itself: kept texts, the resources of its kernels, and their occupancy.

namespace {

using Kind = KeptText::Kind;

absl::Status Invalid(const std::string& message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

absl::Status OnlyCuda(const Module& module) {
  return Invalid(StrCat("module \"", module.name(),
                        "\" is C++: only CUDA modules have PTX, machine code and the resource usage of kernels"));
}

absl::Status NothingOf(const Module& module, const ModuleTexts& texts, Kind kind) {
  if (!TraitsOf(module.language()).needs_nvcc) return OnlyCuda(module);
  const std::string name = StrCat("module \"", module.name(), "\"");
  if (kind != Kind::kSass || texts.kept.empty()) {
    return Invalid(StrCat(name,
                          " was loaded without `keep`, so PTX and machine code were not kept as text: load it "
                          "again with `keep`"));
  }
  return Invalid(StrCat(name,
                        " has no disassembled machine code: there was no nvdisasm beside nvcc when it was compiled. "
                        "Install nvdisasm (the wheel nvidia-cuda-nvdisasm, of nvcc's version, or the whole CUDA "
                        "toolkit) and load again"));
}

// Sorted by unit, then by architecture.
absl::StatusOr<std::vector<KeptText>> TextsOf(const Module& module, Kind kind) {
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts all, module.texts());
  std::vector<KeptText> texts;
  for (const KeptText& text : all.kept) {
    if (text.kind == kind) texts.push_back(text);
  }
  if (texts.empty()) return NothingOf(module, all, kind);
  return texts;
}

std::vector<std::string> Architectures(const std::vector<KeptText>& texts) {
  std::vector<std::string> names;
  for (const KeptText& text : texts) {
    if (std::find(names.begin(), names.end(), text.architecture) == names.end()) names.push_back(text.architecture);
  }
  return names;
}

absl::StatusOr<std::string> TextOf(const Module& module, Kind kind, std::string_view architecture) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<KeptText> texts, TextsOf(module, kind));
  const std::string_view wanted = architecture.empty() ? texts.back().architecture : architecture;
  std::string all;
  bool found = false;
  for (const KeptText& text : texts) {
    if (text.architecture != wanted) continue;
    found = true;
    all += text.text;
  }
  if (found) return all;
  return Invalid(StrCat("module \"", module.name(), "\" was compiled for ", absl::StrJoin(Architectures(texts), ", "),
                        ", not for ", wanted));
}

bool SaysAll(const std::vector<KernelResources>& kernels) {
  return std::all_of(kernels.begin(), kernels.end(),
                     [](const KernelResources& kernel) { return kernel.spill_stores.has_value(); });
}

// By architecture. Empty without LoadOptions::keep.
std::vector<KernelResources> ReportedByPtxas(const ModuleTexts& texts) {
  std::vector<KernelResources> kernels;
  for (const std::string& architecture : Architectures(texts.kept)) {
    for (const KeptText& text : texts.kept) {
      if (text.kind != Kind::kResources || text.architecture != architecture) continue;
      std::vector<KernelResources> read = ReadPtxasReport(text.text, architecture);
      std::move(read.begin(), read.end(), std::back_inserter(kernels));
    }
  }
  return kernels;
}

absl::Status Unreadable(const Module& module, const absl::Status& why) {
  return Invalid(StrCat("cannot read the resources of the kernels of module \"", module.name(), "\": ",
                        ToStd(why.message()), ". Load it again with `keep`, which keeps what ptxas says of them"));
}

}  // namespace

absl::StatusOr<std::string> GeneratedSource(const Module& module, std::string_view label) {
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts texts, module.texts());
  std::string text;
  std::vector<std::string> labels;
  bool found = label.empty();
  for (const GeneratedUnit& unit : texts.units) {
    labels.insert(labels.end(), unit.sources.begin(), unit.sources.end());
    const bool wanted =
        label.empty() || std::find(unit.sources.begin(), unit.sources.end(), label) != unit.sources.end();
    if (!wanted) continue;
    found = true;
    text += unit.text;
  }
  if (found) return text;
  return absl::NotFoundError(
      StrCat("no source \"", label, "\" in module \"", module.name(), "\"; it has: ", absl::StrJoin(labels, ", ")));
}

absl::StatusOr<std::string> Ptx(const Module& module, std::string_view architecture) {
  return TextOf(module, Kind::kPtx, architecture);
}

absl::StatusOr<std::string> Sass(const Module& module, std::string_view architecture) {
  return TextOf(module, Kind::kSass, architecture);
}

absl::StatusOr<std::vector<KernelResources>> Resources(const Module& module) {
  if (!TraitsOf(module.language()).needs_nvcc) return OnlyCuda(module);
  absl::StatusOr<std::vector<KernelResources>> kernels = KernelsInArtifact(module.artifact());
  if (kernels.ok() && SaysAll(*kernels)) return kernels;
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts texts, module.texts());
  std::vector<KernelResources> reported = ReportedByPtxas(texts);
  if (!reported.empty()) return reported;
  if (!kernels.ok()) return Unreadable(module, kernels.status());
  return kernels;
}

namespace {

constexpr uint64_t kKiB = 1024;

// A multiprocessor's limits (CUDA C++ Programming Guide, technical specifications per compute capability).
struct Limits {
  std::string_view architecture;  // without the suffix of sm_90a
  uint64_t warps;
  uint64_t blocks;
  uint64_t shared_memory;
  uint64_t reserved;  // of it, for each block, by the system
  uint64_t shared_unit;
};

constexpr Limits kLimits[] = {
    {"sm_70", 64, 32, 96 * kKiB, 0, 256},      {"sm_72", 64, 32, 96 * kKiB, 0, 256},
    {"sm_75", 32, 16, 64 * kKiB, 0, 256},      {"sm_80", 64, 32, 164 * kKiB, kKiB, 128},
    {"sm_86", 48, 16, 100 * kKiB, kKiB, 128},  {"sm_87", 48, 16, 164 * kKiB, kKiB, 128},
    {"sm_89", 48, 24, 100 * kKiB, kKiB, 128},  {"sm_90", 64, 32, 228 * kKiB, kKiB, 128},
    {"sm_100", 64, 32, 228 * kKiB, kKiB, 128}, {"sm_103", 64, 32, 228 * kKiB, kKiB, 128},
    {"sm_110", 48, 24, 228 * kKiB, kKiB, 128}, {"sm_120", 48, 24, 100 * kKiB, kKiB, 128},
    {"sm_121", 48, 24, 100 * kKiB, kKiB, 128},
};

constexpr uint64_t kThreadsOfWarp = 32;
constexpr uint64_t kMostThreads = 1024;  // of a block
// The registers lie in four parts, and a warp has all of its registers in one.
constexpr uint64_t kParts = 4;
constexpr uint64_t kRegistersOfPart = 16384;
constexpr uint64_t kRegisterUnit = 256;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

const Limits* LimitsOf(std::string_view architecture) {
  while (!architecture.empty() && (architecture.back() == 'a' || architecture.back() == 'f')) {
    architecture.remove_suffix(1);
  }
  const auto* found = std::find_if(std::begin(kLimits), std::end(kLimits),
                                   [&](const Limits& limits) { return limits.architecture == architecture; });
  return found == std::end(kLimits) ? nullptr : found;
}

uint64_t WarpsByRegisters(const Limits& limits, uint64_t registers) {
  if (registers == 0) return limits.warps;
  return kRegistersOfPart / RoundUp(registers * kThreadsOfWarp, kRegisterUnit) * kParts;
}

uint64_t BlocksBySharedMemory(const Limits& limits, uint64_t bytes) {
  const uint64_t needed = RoundUp(bytes + limits.reserved, limits.shared_unit);
  return needed == 0 ? limits.blocks : limits.shared_memory / needed;
}

}  // namespace

std::optional<double> Occupancy(const KernelResources& kernel, uint64_t threads, uint64_t dynamic_shared_memory) {
  const Limits* limits = LimitsOf(kernel.architecture);
  if (limits == nullptr) return std::nullopt;
  if (threads == 0 || threads > kMostThreads || dynamic_shared_memory > limits->shared_memory) return 0;
  const uint64_t warps = RoundUp(threads, kThreadsOfWarp) / kThreadsOfWarp;
  const uint64_t blocks =
      std::min({limits->blocks, limits->warps / warps, WarpsByRegisters(*limits, kernel.registers) / warps,
                BlocksBySharedMemory(*limits, kernel.shared_memory + dynamic_shared_memory)});
  return static_cast<double>(blocks * warps) / static_cast<double>(limits->warps);
}

namespace {

// Never the name of a source, because the folder may contain the user's own file.
std::string SuffixOf(Language language) { return StrCat(".kernix", TraitsOf(language).suffixes.front()); }

std::string_view SuffixOf(KeptText::Kind kind) {
  constexpr std::string_view kSuffixes[] = {"", ".ptx", ".sass", ".ptxas"};  // by the numbers of the kinds
  static_assert(std::size(kSuffixes) == static_cast<size_t>(KeptText::Kind::kResources) + 1);
  return kSuffixes[static_cast<size_t>(kind)];
}

// The files by name. The contents point into the arguments, which must outlive the map.
std::map<std::string, std::string_view> FilesOf(const Module& module, const ModuleTexts& texts,
                                                const std::string& library) {
  // If there are several units, the name includes the unit's number.
  const auto unit_name = [&](size_t unit) {
    return texts.units.size() == 1 ? module.name() : StrCat(module.name(), ".", unit);
  };
  std::map<std::string, std::string_view> files = {{module.name() + ".so", library}};
  for (size_t i = 0; i < texts.units.size(); ++i) {
    files.emplace(StrCat(unit_name(i), SuffixOf(texts.units[i].language)), texts.units[i].text);
  }
  for (const KeptText& kept : texts.kept) {
    files.emplace(StrCat(unit_name(kept.unit), ".", kept.architecture, SuffixOf(kept.kind)), kept.text);
  }
  return files;
}

// The umask determines the mode, as for any compiler's output.
absl::Status WriteFile(const std::string& path, std::string_view content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoStatus(errno == 0 ? EIO : errno, "write", path);
}

// Writes each file under a temporary name and renames it, so that processes that have the earlier file open or mapped
// keep it unchanged.
absl::Status PutFiles(Env& env, const std::string& directory, const std::map<std::string, std::string_view>& files) {
  KERNIX_RETURN_IF_ERROR(env.CreateDirectories(directory));
  KERNIX_ASSIGN_OR_RETURN(const std::string beside, env.CreateTempDirectory(JoinPath(directory, ".kernix-")));
  absl::Status status;
  for (const auto& [name, content] : files) {
    status = WriteFile(JoinPath(beside, name), content);
    if (status.ok()) status = env.Rename(JoinPath(beside, name), JoinPath(directory, name));
    if (!status.ok()) break;
  }
  const absl::Status removed = env.RemoveTree(beside);
  return status.ok() ? removed : status;
}

}  // namespace

absl::Status WriteBuildDirectory(const Module& module, const std::string& directory) {
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts texts, module.texts());
  KERNIX_ASSIGN_OR_RETURN(const std::string library, LibraryFileOf(module));
  const absl::Status written = PutFiles(Env::Posix(), AbsolutePath(directory), FilesOf(module, texts, library));
  if (written.ok()) return written;
  return MakeError(v1::ErrorDetail::RESOURCE,
                   StrCat("cannot write to the build directory ", directory, ": ", written.message()));
}

}  // namespace kernix
