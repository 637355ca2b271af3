// SPDX-License-Identifier: Apache-2.0
#include "kernix/inspection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "client/load/artifact_kernels.h"
#include "client/load/ptxas_report.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

using Kind = KeptText::Kind;

absl::Status Invalid(const std::string& message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

absl::Status OnlyCuda(const Module& module) {
  return Invalid(StrCat("module \"", module.name(),
                        "\" is C++: only CUDA modules have PTX, machine code and the resource usage of kernels"));
}

absl::Status NothingOf(const Module& module, const ModuleTexts& texts, Kind kind) {
  if (module.language() != Language::kCuda) return OnlyCuda(module);
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
  return Invalid(StrCat("cannot read what the kernels of module \"", module.name(), "\" use: ", ToStd(why.message()),
                        ". Load it again with `keep`, which keeps what ptxas says of them"));
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
  if (module.language() != Language::kCuda) return OnlyCuda(module);
  absl::StatusOr<std::vector<KernelResources>> kernels = KernelsInArtifact(module.artifact());
  if (kernels.ok() && SaysAll(*kernels)) return kernels;
  KERNIX_ASSIGN_OR_RETURN(const ModuleTexts texts, module.texts());
  std::vector<KernelResources> reported = ReportedByPtxas(texts);
  if (!reported.empty()) return reported;
  if (!kernels.ok()) return Unreadable(module, kernels.status());
  return kernels;
}

}  // namespace kernix
