// SPDX-License-Identifier: Apache-2.0
#include "common/wire/artifact_texts.h"

#include <string_view>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

constexpr char kTexts[] = ".kernix.texts";
constexpr char kCode[] = ".kernix.code";

}  // namespace

absl::Status AddTexts(const v1::ArtifactTexts& texts, std::string& artifact) {
  std::string content;
  if (!texts.SerializeToString(&content)) return absl::InvalidArgumentError("the texts have more than 2 GiB");
  KERNIX_RETURN_IF_ERROR(AddSection(kCode, DigestOf(artifact).Raw(), artifact));
  return AddSection(kTexts, content, artifact);
}

const Digest& TextsFormat() {
  static const Digest format =
      DigestOf(StrCat(kCode, kTexts, v1::ArtifactTexts::descriptor()->DebugString(),
                      v1::GeneratedUnit::descriptor()->DebugString(), v1::KeptText::descriptor()->DebugString()));
  return format;
}

absl::StatusOr<Digest> CodeDigest(const ElfImage& artifact) {
  KERNIX_ASSIGN_OR_RETURN(const std::string_view content, artifact.SectionNamed(kCode));
  return Digest::FromRaw(content);
}

absl::StatusOr<v1::ArtifactTexts> ReadTexts(const ElfImage& artifact) {
  KERNIX_ASSIGN_OR_RETURN(const std::string_view content, artifact.SectionNamed(kTexts));
  v1::ArtifactTexts texts;
  if (texts.ParseFromArray(content.data(), static_cast<int>(content.size()))) return texts;
  return absl::DataLossError("the texts in the artifact are damaged");
}

}  // namespace kernix
