// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::RecordedLoad LoadOf(const std::string& name, const std::string& source, const std::string& header,
                        Recording& recording) {
  v1::RecordedLoad load;
  load.set_key(DigestOf(name).Hex());
  load.set_architecture_of_machine(true);
  load.mutable_request()->set_name(name);
  load.mutable_request()->set_language(v1::LANGUAGE_CUDA);
  load.mutable_request()->mutable_options()->add_architectures("sm_90");
  load.mutable_request()->add_source()->set_label(name);
  load.add_source_digest(DigestOf(source).Raw());
  load.mutable_request()->add_header()->set_digest(DigestOf(header).Raw());
  recording.texts[DigestOf(source)] = source;
  recording.texts[DigestOf(header)] = header;
  return load;
}

// Two loads with a header in common that is not UTF-8, and an empty source.
Recording TwoLoads() {
  Recording recording;
  recording.loads.push_back(LoadOf("add", "int a;\n", "// \xe4\n", recording));
  recording.loads.push_back(LoadOf("empty", "", "// \xe4\n", recording));
  return recording;
}

std::vector<std::string> LinesOf(const std::string& manifest) {
  return absl::StrSplit(manifest, absl::ByChar('\n'), absl::SkipEmpty());
}

std::string Joined(const std::vector<std::string>& lines) { return absl::StrJoin(lines, "\n") + "\n"; }

std::string ErrorOf(const std::string& content) {
  const absl::Status status = ParseManifest(content, "kernels.manifest").status();
  EXPECT_FALSE(status.ok()) << content;
  if (status.ok()) return "";
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST);
  return std::string(status.message());
}

TEST(ManifestTest, WhatIsWrittenIsRead) {
  const Recording recording = TwoLoads();
  const std::string manifest = ManifestOf(recording);
  const absl::StatusOr<Recording> read = ParseManifest(manifest, "m");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->texts, recording.texts);
  ASSERT_EQ(read->loads.size(), 2u);
  EXPECT_EQ(read->loads[0].SerializeAsString(), recording.loads[0].SerializeAsString());
  EXPECT_EQ(ManifestOf(*read), manifest);
}

TEST(ManifestTest, ALineHoldsATextOnceOrALoad) {
  const std::vector<std::string> lines = LinesOf(ManifestOf(TwoLoads()));
  ASSERT_EQ(lines.size(), 1u + 3u + 2u);
  EXPECT_EQ(lines[0], R"({"kernix_manifest":{"version":1,"texts":3,"loads":2}})");
  EXPECT_THAT(lines, ::testing::Contains(R"({"text":{"utf8":"int a;\n"}})"));
  EXPECT_THAT(lines[4], AllOf(StartsWith(StrCat(R"({"load":{"key":")", DigestOf("add").Hex())),
                              HasSubstr(R"("name":"add")"), HasSubstr(R"("architectures":["sm_90"])")));
}

TEST(ManifestTest, AnEmptyRecordingIsAManifest) {
  const absl::StatusOr<Recording> read = ParseManifest(ManifestOf({}), "m");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->loads.empty());
}

TEST(ManifestTest, WhatIsNoManifestIsRefused) {
  for (const char* text :
       {"", "\n", "not JSON\n", "{}\n", "{\"text\":{}}\n", "\x7f\x45LF", "[1, 2]\n", "{\"a\": 1}\n"}) {
    EXPECT_THAT(ErrorOf(text), StartsWith("kernels.manifest:1: this is not a manifest")) << text;
  }
}

TEST(ManifestTest, ANewerVersionIsNamed) {
  EXPECT_THAT(ErrorOf("{\"kernix_manifest\":{\"version\":2,\"parts\":[1]}}\n{\"part\":1}\n"),
              AllOf(StartsWith("kernels.manifest:1: "), HasSubstr("version 2"), HasSubstr("version 1")));
}

// Wherever it is cut, the error says so, and where.
TEST(ManifestTest, AManifestThatWasCutIsRefused) {
  const std::string whole = ManifestOf(TwoLoads());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ErrorOf(whole.substr(0, size)), StartsWith("kernels.manifest:"));
  }
  std::vector<std::string> lines = LinesOf(whole);
  lines.pop_back();
  EXPECT_THAT(ErrorOf(Joined(lines)), AllOf(StartsWith("kernels.manifest:5: "), HasSubstr("1 of 2 loads")));
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 1)),
              HasSubstr("kernels.manifest:6: the manifest ends in this line"));
}

TEST(ManifestTest, DamageIsNamedWithItsLine) {
  const std::vector<std::string> lines = LinesOf(ManifestOf(TwoLoads()));
  std::vector<std::string> damaged = lines;
  damaged[2] = "{\"text\":{\"utf8\":\"other\"}}";
  EXPECT_THAT(ErrorOf(Joined(damaged)), AllOf(StartsWith("kernels.manifest:"), HasSubstr("lacks the text")));
  damaged = lines;
  damaged[2] = damaged[1];
  EXPECT_THAT(ErrorOf(Joined(damaged)), StartsWith("kernels.manifest:3: this text is there twice"));
  damaged = lines;
  damaged[3] = "{\"word\":1}";
  EXPECT_THAT(ErrorOf(Joined(damaged)), StartsWith("kernels.manifest:4: no line of a manifest: "));
  damaged = lines;
  damaged[3] = lines[0];
  EXPECT_THAT(ErrorOf(Joined(damaged)), StartsWith("kernels.manifest:4: neither a text nor a load"));
  damaged = lines;
  damaged.push_back(lines[4]);
  EXPECT_THAT(ErrorOf(Joined(damaged)), HasSubstr("3 of 2 loads"));
  damaged = lines;
  damaged[4] = "{\"load\":{\"request\":{\"source\":[{}]}}}";
  EXPECT_THAT(ErrorOf(Joined(damaged)),
              StartsWith("kernels.manifest:5: each source of a recorded load needs a digest"));
  damaged[4] = "{\"load\":{\"request\":{\"header\":[{\"digest\":\"AAAA\"}]}}}";
  EXPECT_THAT(ErrorOf(Joined(damaged)), StartsWith("kernels.manifest:5: "));
}

}  // namespace
}  // namespace kernix::ctl
