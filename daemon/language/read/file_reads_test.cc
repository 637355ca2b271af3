// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/file_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status Check(const std::string& text) {
  return CheckFileReads({{"k.cc", text}}, {.outside = [](std::string_view, const Include& name) -> std::string {
                          return name.path == "/opt/tool/x.h" ? "" : "no header";
                        }});
}

std::string MessageOf(const std::string& text) {
  const absl::Status status = Check(text);
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::INVALID_REQUEST) << text;
  return std::string(status.message());
}

TEST(FileReadsTest, RefusesWhatTheAssemblerWouldRead) {
  EXPECT_THAT(MessageOf("int x;\nasm(\n  \".section .rodata\\n\"\n  \".incbin \\\"/etc/hosts\\\"\\n\");"),
              AllOf(StartsWith("k.cc:4: .incbin in assembler text: "), HasSubstr("xxd -i")));
  EXPECT_THAT(MessageOf("__asm__ volatile(\".include 'a.s'\");"), StartsWith("k.cc:1: .include in assembler text: "));
  EXPECT_THAT(MessageOf("#define EMBED(f) __asm(\"x: .incbin \" #f)\nEMBED(\"a\");"), StartsWith("k.cc:1: .incbin"));
  EXPECT_THAT(MessageOf("asm(\"nop\\n.incbin 'a'\");"), StartsWith("k.cc:1: .incbin"));
  EXPECT_THAT(MessageOf("asm(\"nop\\n\\t.include 'a'\");"), StartsWith("k.cc:1: .include"));
  EXPECT_THAT(MessageOf("const char* s = R\"(.incbin \"a\")\";\nasm(\"nop\");"), StartsWith("k.cc:1: .incbin"));
}

TEST(FileReadsTest, StringsOfOneTextMayBeAssemblyInAnother) {
  const TextView source{"k.cc", "asm(TEXT);"}, header{"inc/0/t.h", "\n#define TEXT \".incbin 'a'\""};
  FileReadRules rules{.outside = [](std::string_view, const Include&) { return ""; }};
  for (const std::vector<TextView>& texts : {std::vector<TextView>{source, header}, {header, source}}) {
    EXPECT_THAT(std::string(CheckFileReads(texts, rules).message()), StartsWith("inc/0/t.h:2: .incbin"));
  }
  rules.assembler_text = false;
  EXPECT_THAT(CheckFileReads({source, header}, rules), IsOk());
}

TEST(FileReadsTest, LetsOtherTextPass) {
  EXPECT_THAT(Check("const char* help = \"no .incbin here\";"), IsOk());  // no asm in the text
  EXPECT_THAT(Check("asm(\"nop\"); // .incbin \"a\"\nconst char* s = \"x.include_all, .incbins\";"), IsOk());
  EXPECT_THAT(Check("#include \"a.h\"\n#include <vector>\n#if __has_include(<a.h>)\n#endif\nint embed;"), IsOk());
}

TEST(FileReadsTest, RefusesEmbeddedFiles) {
  EXPECT_THAT(MessageOf("char x[] = {\n#embed \"a.bin\"\n};"), StartsWith("k.cc:2: #embed: "));
  EXPECT_THAT(MessageOf("#if __has_embed(\"a.bin\")\n#endif"), StartsWith("k.cc:1: __has_embed: "));
  EXPECT_THAT(Check("#ifdef __has_embed\n#endif\n#if defined(__has_embed)\n#endif"), IsOk());
}

TEST(FileReadsTest, RefusesToAskForTheAgeOfAFile) {
  EXPECT_THAT(MessageOf("\n#pragma GCC dependency \"/etc/passwd\" newer"),
              StartsWith("k.cc:2: #pragma GCC dependency: "));
  EXPECT_THAT(MessageOf("#define P(x) _Pragma(#x)\nP(GCC dependency \"x\")"), StartsWith("k.cc:2: "));
  EXPECT_THAT(MessageOf("_Pragma(\"GCC dependency 'x'\")"), StartsWith("k.cc:1: "));
  EXPECT_THAT(Check("#pragma GCC diagnostic push\n#pragma GCC unroll 4\nint dependency;\nconst char* GCC = \"no GCC "
                    "dependency\";"),
              IsOk());
}

TEST(FileReadsTest, AsksAboutPathsThatLeadOutside) {
  EXPECT_EQ(MessageOf("#include \"/home/a/../b/x.h\""), "k.cc:1: #include /home/b/x.h: no header");
  EXPECT_EQ(MessageOf("\n# include </etc/x.h>\n"), "k.cc:2: #include /etc/x.h: no header");
  EXPECT_EQ(MessageOf("#import \"a/../../x.h\""), "k.cc:1: #include ../x.h: no header");
  EXPECT_EQ(MessageOf("#inc\\\nlude \"/et\\\nc/x.h\""), "k.cc:2: #include /etc/x.h: no header");
  EXPECT_EQ(MessageOf("?\?=include \"/etc/x.h\""), "k.cc:1: #include /etc/x.h: no header");
  EXPECT_EQ(MessageOf("%:include_next </etc/x.h>"), "k.cc:1: #include /etc/x.h: no header");
  EXPECT_THAT(Check("#include \"/opt/tool/x.h\"\n#include \"a/../x.h\"\n"), IsOk());
}

}  // namespace
}  // namespace kernix::language
