// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/kernixctl/manifest.pb.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/os/env.h"

namespace kernix::ctl {
namespace {

using internal::ManifestHead;
using internal::ManifestLine;
using internal::ManifestText;

constexpr uint32_t kVersion = 1;
constexpr char kRecordAgain[] = "record it again, or copy it again from a whole one";

std::string Json(const ManifestLine& line) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for messages that have no form in JSON, which these do.
  (void)google::protobuf::util::MessageToJsonString(line, &json, options);
  return json + "\n";
}

std::string HeadLine(const Recording& recording) {
  ManifestLine line;
  ManifestHead& head = *line.mutable_kernix_manifest();
  head.set_version(kVersion);
  head.set_texts(static_cast<uint32_t>(recording.texts.size()));
  head.set_loads(static_cast<uint32_t>(recording.loads.size()));
  return Json(line);
}

std::string TextLine(const std::string& text) {
  ManifestLine line;
  if (IsValidUtf8(text)) {
    line.mutable_text()->set_utf8(text);
  } else {
    line.mutable_text()->set_other(text);
  }
  return Json(line);
}

// Reads line after line. Every error names the line.
class Reader {
 public:
  Reader(std::string_view content, const std::string& path) : rest_(content), path_(path) {}

  absl::StatusOr<Recording> Read() {
    KERNIX_ASSIGN_OR_RETURN(const ManifestHead head, ReadHead());
    Recording recording;
    while (!rest_.empty()) KERNIX_RETURN_IF_ERROR(ReadLine(recording));
    if (recording.texts.size() == head.texts() && recording.loads.size() == head.loads()) return recording;
    return Error(StrCat("the manifest ends after ", recording.texts.size(), " of ", head.texts(), " texts and ",
                        recording.loads.size(), " of ", head.loads(), " loads: ", kRecordAgain));
  }

 private:
  absl::Status Error(std::string_view what) const {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat(path_, ":", line_, ": ", what));
  }

  // The next line. One without an end was cut.
  absl::StatusOr<std::string_view> Next() {
    ++line_;
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return Error(StrCat("the manifest ends in this line: ", kRecordAgain));
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  static absl::StatusOr<ManifestLine> Parse(std::string_view text, bool of_any_version) {
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = of_any_version;
    ManifestLine line;
    const auto parsed = google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &line, options);
    if (parsed.ok()) return line;
    return absl::InvalidArgumentError(std::string(parsed.message()));
  }

  absl::StatusOr<ManifestHead> ReadHead() {
    const absl::StatusOr<std::string_view> text = Next();
    const absl::StatusOr<ManifestLine> line = text.ok() ? Parse(*text, /*of_any_version=*/true) : text.status();
    if (!line.ok() || !line->has_kernix_manifest()) {
      line_ = 1;
      return Error("this is not a manifest of kernixctl record, or not a whole one");
    }
    const uint32_t version = line->kernix_manifest().version();
    if (version == kVersion) return line->kernix_manifest();
    return Error(StrCat("this manifest has version ", version, " of the format, and this kernixctl reads version ",
                        kVersion, ": use the kernixctl that recorded it"));
  }

  absl::Status ReadLine(Recording& recording) {
    KERNIX_ASSIGN_OR_RETURN(const std::string_view text, Next());
    absl::StatusOr<ManifestLine> line = Parse(text, /*of_any_version=*/false);
    if (!line.ok()) return Error(StrCat("no line of a manifest: ", ToStd(line.status().message())));
    if (line->has_text()) return AddText(line->text(), recording);
    if (line->has_load()) return AddLoad(std::move(*line->mutable_load()), recording);
    return Error("neither a text nor a load");
  }

  absl::Status AddText(const ManifestText& text, Recording& recording) const {
    const std::string& content = text.has_other() ? text.other() : text.utf8();
    if (recording.texts.emplace(DigestOf(content), content).second) return absl::OkStatus();
    return Error("this text is there twice");
  }

  absl::Status AddLoad(v1::RecordedLoad load, Recording& recording) const {
    const absl::StatusOr<std::vector<Digest>> digests = TextsOf(load);
    if (!digests.ok()) return Error(ToStd(digests.status().message()));
    for (const Digest& digest : *digests) {
      if (recording.texts.contains(digest)) continue;
      return Error(StrCat("the manifest lacks the text ", digest.Hex(), " of this load, or the load was changed"));
    }
    recording.loads.push_back(std::move(load));
    return absl::OkStatus();
  }

  std::string_view rest_;
  const std::string& path_;
  int line_ = 0;
};

}  // namespace

std::string ManifestOf(const Recording& recording) {
  std::string manifest = HeadLine(recording);
  for (const auto& [digest, text] : recording.texts) manifest += TextLine(text);
  for (const v1::RecordedLoad& load : recording.loads) {
    ManifestLine line;
    *line.mutable_load() = load;
    manifest += Json(line);
  }
  return manifest;
}

absl::StatusOr<Recording> ParseManifest(std::string_view content, const std::string& path) {
  return Reader(content, path).Read();
}

absl::StatusOr<Recording> ReadManifest(const std::string& path) {
  absl::StatusOr<std::string> content = Env::Posix().ReadFile(path);
  if (content.ok()) return ParseManifest(*content, path);
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("cannot read the manifest: ", ToStd(content.status().message())));
}

}  // namespace kernix::ctl
