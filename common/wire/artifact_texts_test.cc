// SPDX-License-Identifier: Apache-2.0
#include "common/wire/artifact_texts.h"

#include <gtest/gtest.h>

#include "common/os/elf_file.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

// A small shared object that every machine of the tests has.
std::string AnObject() {
  const auto file = ElfFile::Open("/lib64/ld-linux-x86-64.so.2");
  EXPECT_THAT(file, IsOk());
  return std::string(file->bytes());
}

TEST(ArtifactTextsTest, AreReadAsTheyWereAdded) {
  v1::ArtifactTexts texts;
  v1::GeneratedUnit& unit = *texts.add_unit();
  unit.add_source("a.cu");
  unit.add_source("b.cu");
  unit.set_language(v1::LANGUAGE_CUDA);
  unit.set_text(std::string("caf\xe9 \0;", 7));  // in no certain encoding
  v1::KeptText& kept = *texts.add_kept();
  kept.set_kind(v1::KeptText::RESOURCES);
  kept.set_unit(3);
  kept.set_architecture("sm_90");
  kept.set_text("ptxas info");

  std::string artifact = AnObject();
  ASSERT_THAT(AddTexts(texts, artifact), IsOk());
  const auto image = ElfImage::Parse(artifact);
  ASSERT_THAT(image, IsOk());
  const auto read = ReadTexts(*image);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->SerializeAsString(), texts.SerializeAsString());
}

TEST(ArtifactTextsTest, TheCodeIsTheSameWithOtherTexts) {
  const auto code_with = [](const std::string& text) {
    v1::ArtifactTexts texts;
    texts.add_unit()->set_text(text);
    std::string artifact = AnObject();
    EXPECT_THAT(AddTexts(texts, artifact), IsOk());
    return CodeDigest(ElfImage::Parse(artifact).value()).value();
  };
  EXPECT_EQ(code_with("a"), DigestOf(AnObject()));
  EXPECT_EQ(code_with("b"), DigestOf(AnObject()));
}

TEST(ArtifactTextsTest, AreMissingOrDamaged) {
  std::string object = AnObject();
  EXPECT_TRUE(absl::IsNotFound(CodeDigest(ElfImage::Parse(object).value()).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadTexts(ElfImage::Parse(object).value()).status()));
  ASSERT_THAT(AddSection(".kernix.texts", "\xff\xff", object), IsOk());
  EXPECT_TRUE(absl::IsDataLoss(ReadTexts(ElfImage::Parse(object).value()).status()));
}

}  // namespace
}  // namespace kernix
