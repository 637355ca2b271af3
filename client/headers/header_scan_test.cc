// SPDX-License-Identifier: Apache-2.0
#include "client/headers/header_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "tests/support/client_support.h"

namespace kernix {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchFolder;
using ::testing::UnorderedElementsAre;

class HeaderScanTest : public ::testing::Test {
 protected:
  // A source that is a file in the scratch folder.
  SourceToScan File(const std::string& path, std::string_view text) {
    return {.text = text, .label = path, .folder = Dirname(folder_ / path)};
  }
  static SourceToScan Inline(std::string_view text) { return {.text = text, .label = "m", .folder = ""}; }

  absl::StatusOr<HeaderScan> Scan(std::vector<SourceToScan> sources,
                                  const std::vector<std::string>& include_paths = {}) {
    HeaderScanRequest request;
    request.sources = std::move(sources);
    for (const std::string& path : include_paths) request.include_paths.push_back(folder_ / path);
    request.toolchain_folders = {folder_ / "toolchain"};
    request.max_guessed_headers = 3;
    HeaderTable table(Env::Posix(), [this] { return folder_.path(); });
    return ScanHeaders(Env::Posix(), files_, table, request);
  }

  // "root:path" of each header.
  static std::vector<std::string> Names(const absl::StatusOr<HeaderScan>& scan) {
    EXPECT_TRUE(scan.ok()) << scan.status();
    std::vector<std::string> names;
    if (!scan.ok()) return names;
    for (const v1::Header& header : scan->headers) names.push_back(StrCat(header.include_root(), ":", header.path()));
    return names;
  }

  ScratchFolder folder_;
  HeaderFiles& files_ = PerProcess<HeaderFiles>::Get();
};

TEST_F(HeaderScanTest, ASourceWithoutHeadersNeedsNone) {
  const auto scan = Scan({Inline("#include <vector>\n#include \"brainevent/common.h\"\n#include <cuda_runtime.h>\n")});
  EXPECT_THAT(Names(scan), IsEmpty());
  EXPECT_EQ(scan->include_root_count, 0u);
}

TEST_F(HeaderScanTest, FollowsHeadersWithTheirContent) {
  folder_.Write("src/a.h", "#include \"sub/b.h\"\n");
  folder_.Write("src/sub/b.h", "#include \"c.h\"\n#include \"../a.h\"\n#include <vector>\n");
  folder_.Write("src/sub/c.h", "the end");
  folder_.Write("src/unused.h", "");
  const auto scan = Scan({File("src/k.cu", "#include \"a.h\"\n")});
  EXPECT_THAT(Names(scan), ElementsAre("0:a.h", "0:sub/b.h", "0:sub/c.h"));
  EXPECT_EQ(scan->include_root_count, 1u);
  EXPECT_THAT(scan->roots, ElementsAre(folder_ / "src"));
  const auto digest = Digest::FromRaw(scan->headers[2].digest());
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(scan->headers[2].size(), 7u);
  EXPECT_EQ(*scan->Read(Env::Posix(), *digest), "the end");
}

TEST_F(HeaderScanTest, TheWrapperOfXlasBuffersBringsXlasHeaders) {
  folder_.Write("xla-include/xla/ffi/api/ffi.h", "#include \"xla/ffi/api/c_api.h\"\n");
  folder_.Write("xla-include/xla/ffi/api/c_api.h", "");
  const auto scan = Scan({Inline("#include \"brainevent/ffi_compat.h\"\n")}, {"xla-include"});
  EXPECT_THAT(Names(scan), ElementsAre("0:xla/ffi/api/c_api.h", "0:xla/ffi/api/ffi.h"));
}

TEST_F(HeaderScanTest, TextThatIsNoFileLooksAtTheIncludePathsAlone) {
  folder_.Write("one/x.h", "1");
  folder_.Write("two/x.h", "2");
  folder_.Write("two/y.h", "");
  EXPECT_THAT(Names(Scan({Inline("#include \"x.h\"\n#include <y.h>\n")}, {"one", "two"})),
              ElementsAre("0:x.h", "1:y.h"));
}

TEST_F(HeaderScanTest, TheFolderOfTheIncluderComesFirst) {
  folder_.Write("one/x.h", "");
  folder_.Write("two/y.h", "#include \"x.h\"\n");
  folder_.Write("two/x.h", "");
  EXPECT_THAT(Names(Scan({Inline("#include <y.h>\n")}, {"one", "two"})), ElementsAre("1:x.h", "1:y.h"));
}

TEST_F(HeaderScanTest, AQuotedFolderIsNoPlaceForAngles) {
  folder_.Write("src/x.h", "");
  EXPECT_THAT(Names(Scan({File("src/k.cu", "#include <x.h>\n")})), IsEmpty());
  EXPECT_THAT(Names(Scan({File("src/k.cu", "#include <x.h>\n")}, {"src"})), ElementsAre("0:x.h"));
}

TEST_F(HeaderScanTest, TellsWhereItLooked) {
  folder_.Write("src/k.cu", "");
  folder_.Write("inc/opt/y.h", "");
  const auto scan = Scan({File("src/k.cu",
                               "#include \"y.h\"\n#include <opt/x.h>\n#include <sub/x.h>\n"
                               "#include <a/b/../../x.h>\n#include \"/no/such.h\"\n")},
                         {"inc", "missing"});
  EXPECT_THAT(Names(scan), IsEmpty());
  EXPECT_THAT(scan->searched,
              UnorderedElementsAre(folder_ / "src", folder_ / "inc", folder_ / "inc/opt", folder_ / "inc/sub",
                                   folder_ / "inc/a/b", folder_ / "missing", "/no"));
}

TEST_F(HeaderScanTest, AGuessLooksIntoEveryFolder) {
  folder_.Write("inc/a.h", "");
  folder_.Write("inc/none/readme.txt", "");
  const auto scan = Scan({Inline("#include CHOOSE(x)\n")}, {"inc"});
  EXPECT_THAT(Names(scan), ElementsAre("0:a.h"));
  EXPECT_THAT(scan->searched, UnorderedElementsAre(folder_ / "inc", folder_ / "inc/none"));
}

TEST_F(HeaderScanTest, IncludeNextGoesOnBehindItsRoot) {
  folder_.Write("one/x.h", "#include_next <x.h>\n");
  folder_.Write("two/x.h", "#include_next <x.h>\n");
  folder_.Write("three/y.h", "");
  EXPECT_THAT(Names(Scan({Inline("#include <x.h>\n")}, {"one", "two", "three"})), ElementsAre("0:x.h", "1:x.h"));
}

TEST_F(HeaderScanTest, QuestionsAndDeadBranchesCount) {
  folder_.Write("inc/a.h", "");
  folder_.Write("inc/b.h", "");
  EXPECT_THAT(Names(Scan({Inline("#if __has_include(<a.h>)\n#endif\n#if 0\n#include <b.h>\n#endif")}, {"inc"})),
              ElementsAre("0:a.h", "0:b.h"));
}

TEST_F(HeaderScanTest, FollowsLinksAndMacros) {
  folder_.Write("real/a.h", "#define NEXT SECOND\n#include NEXT\n");
  folder_.Write("inc/b.h", "");
  ASSERT_EQ(symlink((folder_ / "real/a.h").c_str(), (folder_ / "inc/a.h").c_str()), 0);
  EXPECT_THAT(Names(Scan({Inline("#define SECOND <b.h>\n#include <a.h>\n")}, {"inc"})), ElementsAre("0:a.h", "0:b.h"));
}

TEST_F(HeaderScanTest, FoldersThatAnIncludeLeadsThroughAreThere) {
  folder_.Write("p/src/k.cpp", "");
  folder_.Write("p/inc/a.h", "#include \"../src/./../inc/b.h\"\n#include \"c/../d.h\"\n#include \"none/../b.h\"\n");
  for (const char* path : {"p/inc/b.h", "p/inc/d.h", "p/inc/c/x.txt"}) folder_.Write(path, "");
  const auto scan = Scan({File("p/src/k.cpp", "#include \"../inc/a.h\"\n")});
  EXPECT_THAT(Names(scan), ElementsAre("0:../inc/a.h", "0:../inc/b.h", "0:../inc/d.h"));
  HeaderScan folders;
  folders.headers = scan->folders;
  EXPECT_THAT(Names(folders), ElementsAre("0:../inc/c/.keep", "0:../src/.keep"));
  EXPECT_EQ(scan->Read(Env::Posix(), *Digest::FromRaw(scan->folders[0].digest())).value(), "");
}

TEST_F(HeaderScanTest, AMacroThatCannotBeReadReachesEveryHeader) {
  folder_.Write("inc/a.h", "");
  folder_.Write("inc/deep/b.cuh", "");
  folder_.Write("inc/notes.txt", "");
  folder_.Write("inc/.hidden/c.h", "");
  EXPECT_THAT(Names(Scan({Inline("#include CHOOSE(a)\n")}, {"inc"})), ElementsAre("0:a.h", "0:deep/b.cuh"));
  // But a __has_include question about one does not.
  EXPECT_THAT(Names(Scan({Inline("#define HAS(x) __has_include(x)\n")}, {"inc"})), IsEmpty());
}

TEST_F(HeaderScanTest, TooManyGuessesAreAnError) {
  for (int i = 0; i < 5; ++i) folder_.Write(StrCat("inc/", i, ".h"), "");
  const auto scan = Scan({Inline("\n#include CHOOSE(a)\n")}, {"inc"});
  EXPECT_EQ(KindOf(scan.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(scan.status().ToString(),
              AllOf(HasSubstr("m:2: #include CHOOSE"), HasSubstr("more than 3"), HasSubstr("extra_include_paths")));
}

// "far/../b.h" is beside the folder that the link leads to. A build has no links, so the scan must not find that
// header.
TEST_F(HeaderScanTest, ALinkIsNoFolderThatAnIncludeLeadsThrough) {
  folder_.Write("elsewhere/far/c.h", "");
  folder_.Write("elsewhere/b.h", "");
  folder_.Write("inc/b.h", "");
  folder_.Write("inc/near/c.h", "");
  std::filesystem::create_directory_symlink(folder_ / "elsewhere/far", folder_ / "inc/far");
  EXPECT_THAT(Names(Scan({Inline("#include \"far/../b.h\"\n")}, {"inc"})), IsEmpty());
  EXPECT_THAT(Names(Scan({Inline("#include \"near/../b.h\"\n")}, {"inc"})), Contains("0:b.h"));
}

TEST_F(HeaderScanTest, HeadersBesideAndAboveTheSourcesFolder) {
  folder_.Write("p/common/x.h", "#include \"y.h\"\n#include \"../top.h\"\n");
  folder_.Write("p/common/y.h", "");
  folder_.Write("p/top.h", "");
  folder_.Write("p/src/k.cu", "");
  const auto scan = Scan({File("p/src/k.cu", "#include \"../common/x.h\"\n#include \"../none/x.h\"\n")});
  EXPECT_THAT(Names(scan), ElementsAre("0:../common/x.h", "0:../common/y.h", "0:../top.h"));
  EXPECT_THAT(scan->quoted_roots, ElementsAre(0u));
}

TEST_F(HeaderScanTest, AbsoluteHeadersAreFollowedButNotSent) {
  const std::string header = folder_.Write("far/x.h", "#include \"y.h\"\n#include <z.h>\n#include \"none.h\"\n");
  folder_.Write("far/y.h", "");
  folder_.Write("inc/z.h", "");
  const std::string text = StrCat("#include \"", header, "\"\n#include </no/such.h>\n");
  const auto scan = Scan({Inline(text)}, {"inc"});
  EXPECT_THAT(Names(scan), ElementsAre("0:z.h"));
  EXPECT_THAT(scan->absolute_headers, ElementsAre(header, folder_ / "far/y.h"));
}

TEST_F(HeaderScanTest, ANameThatClimbsTooFarIsTheCompilersBusiness) {
  folder_.Write("src/k.cu", "");
  std::string name = "hosts";
  for (int i = 0; i < 40; ++i) name.insert(0, "../");
  const std::string text = StrCat("#include \"", name, "\"\n");
  EXPECT_THAT(Names(Scan({File("src/k.cu", text)})), IsEmpty());
}

TEST_F(HeaderScanTest, TheToolchainsFoldersAreNoRoots) {
  folder_.Write("toolchain/cuda_runtime.h", "");
  const auto scan = Scan({Inline("#include <cuda_runtime.h>\n")}, {"toolchain", "missing"});
  EXPECT_THAT(Names(scan), IsEmpty());
  EXPECT_EQ(scan->include_root_count, 0u);
}

TEST_F(HeaderScanTest, AFolderIsOneRootHoweverItIsSpelled) {
  folder_.Write("inc/a.h", "");
  ASSERT_EQ(symlink((folder_ / "inc").c_str(), (folder_ / "link").c_str()), 0);
  const auto scan = Scan({Inline("#include <a.h>\n")}, {"inc", "inc/../inc", "link"});
  EXPECT_THAT(Names(scan), ElementsAre("0:a.h"));
  EXPECT_EQ(scan->include_root_count, 1u);
}

TEST_F(HeaderScanTest, TwoHeadersOfOneNameThatTheBuildWouldConfuse) {
  folder_.Write("a/x.h", "1");
  folder_.Write("a/k.cu", "");
  folder_.Write("b/x.h", "2");
  folder_.Write("b/l.cu", "");
  const auto scan = Scan({File("a/k.cu", "#include \"x.h\"\n"), File("b/l.cu", "#include \"x.h\"\n")});
  EXPECT_EQ(KindOf(scan.status()), v1::ErrorDetail::INVALID_REQUEST);
  EXPECT_THAT(scan.status().ToString(), AllOf(HasSubstr(folder_ / "a/x.h"), HasSubstr(folder_ / "b/x.h")));
  // Identical content is not a conflict.
  folder_.Write("b/x.h", "1");
  EXPECT_THAT(Names(Scan({File("a/k.cu", "#include \"x.h\"\n"), File("b/l.cu", "#include \"x.h\"\n")})),
              ElementsAre("0:x.h", "1:x.h"));
}

TEST_F(HeaderScanTest, ASourcesFolderHidesNothingOfTheToolchain) {
  folder_.Write("src/math.h", "");
  const auto scan = Scan({File("src/k.cu", "#include \"math.h\"\n#include <math.h>\n")});
  EXPECT_THAT(Names(scan), ElementsAre("0:math.h"));
  EXPECT_THAT(scan->quoted_roots, ElementsAre(0u));
}

TEST_F(HeaderScanTest, NoticesChanges) {
  folder_.Write("inc/a.h", "#include <b.h>\n");
  folder_.Write("inc/b.h", "");
  folder_.Write("inc/c.h", "");
  const auto first = Scan({Inline("#include <a.h>\n")}, {"inc"});
  EXPECT_THAT(Names(first), ElementsAre("0:a.h", "0:b.h"));
  folder_.Write("inc/a.h", "#include <c.h>\n");
  EXPECT_THAT(Names(Scan({Inline("#include <a.h>\n")}, {"inc"})), ElementsAre("0:a.h", "0:c.h"));
  EXPECT_TRUE(absl::IsAborted(first->Read(Env::Posix(), *Digest::FromRaw(first->headers[0].digest())).status()));
  EXPECT_TRUE(absl::IsNotFound(first->Read(Env::Posix(), DigestOf("no header")).status()));
}

// Root can read everything, so the test becomes the user nobody for a while.
class NotRoot {
 public:
  NotRoot() { EXPECT_TRUE(!was_root_ || seteuid(65534) == 0); }
  ~NotRoot() { EXPECT_TRUE(!was_root_ || seteuid(0) == 0); }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  const bool was_root_ = geteuid() == 0;
};

TEST_F(HeaderScanTest, AnUnreadableHeaderIsAnError) {
  folder_.Write("inc/readable.h", "");
  ASSERT_EQ(chmod(folder_.Write("inc/unreadable.h", "").c_str(), 0), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  const NotRoot not_root;
  EXPECT_TRUE(Scan({Inline("#include <readable.h>\n")}, {"inc"}).ok());
  EXPECT_FALSE(Scan({Inline("#include <unreadable.h>\n")}, {"inc"}).ok());
}

}  // namespace
}  // namespace kernix
