// SPDX-License-Identifier: Apache-2.0
//
// The texts for people to read that an artifact carries: the compiled translation units and, with Options.keep, the
// compilers' results as text. They lie in a section of their own, ".kernix.texts", which no loader maps; its content is
// a v1::ArtifactTexts. So the cache, streaming and sharing know nothing of them.
//
// Two artifacts may be the same code with other texts, for example if only a comment differs. A second section,
// ".kernix.code", tells: it holds the SHA-256 of the artifact as the linker made it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/digest.h"
#include "common/base/elf_image.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Adds both sections to the shared object `artifact`. Returns the errors of AddSection(), and kInvalidArgument for more
// than 2 GiB.
absl::Status AddTexts(const v1::ArtifactTexts& texts, std::string& artifact);

// Stands for the form of the sections in keys.
const Digest& TextsFormat();

// The digest of the artifact without texts. Returns kNotFound if it carries none, and kInvalidArgument if it is
// damaged.
absl::StatusOr<Digest> CodeDigest(const ElfImage& artifact);

// Returns kNotFound if the artifact carries no texts, and kDataLoss if they are damaged.
absl::StatusOr<v1::ArtifactTexts> ReadTexts(const ElfImage& artifact);

}  // namespace kernix
