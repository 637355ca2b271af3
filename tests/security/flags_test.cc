// SPDX-License-Identifier: Apache-2.0
//
// Words for the compilers: what nvcc's shell would run, files of words, and flags that make tools load, read or write.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kShell[] = "1 nvcc's shell";
constexpr char kFilesOfWords[] = "2 @file";
constexpr char kFlags[] = "3 what flags do";

enum class Tool { kGcc, kClang, kNvcc, kGccLink, kNvccLink };

struct FlagAttack {
  Tool tool;
  std::vector<std::string> words;
  std::vector<std::string> twin;  // what somebody may well want to say; none: that of a row before
};

// A plugin of any tool: makes the canary, and prints the secret for the compiler's output.
constexpr char kPlugin[] = R"(#include <fcntl.h>
#include <unistd.h>
int plugin_is_GPL_compatible;
__attribute__((constructor)) static void Run(void) {
  char text[4096];
  open(CANARY, O_CREAT | O_WRONLY, 0666);
  const long size = read(open(SECRET, O_RDONLY), text, sizeof text);
  if (size > 0) write(2, text, size);
}
)";

class FlagsTest : public SecurityTest {
 protected:
  FlagsTest() {
    // What a member can leave on any machine for the service to read.
    WriteAs(TheUsers().member, "mallory/plugin.c", kPlugin, 0644);
    const ProgramOutcome built =
        RunAs(0, {"/usr/bin/gcc", "-shared", "-fPIC", Fill("-DCANARY=\"{canary}\""), Fill("-DSECRET=\"{secret}\""),
                  "-o", Path("mallory/plugin.so"), Path("mallory/plugin.c")});
    EXPECT_EQ(built.exit_code, 0) << built.output;
    const std::string run = Fill("x -wrapper \"/bin/sh,-c,touch {canary}\"");
    WriteAs(TheUsers().member, "mallory/words", run, 0644);
    WriteAs(TheUsers().member, "mallory/as", Fill("#!/bin/sh\ntouch {canary}\n"), 0755);
    WriteAs(TheUsers().member, "mallory/specs", Fill("*cpp:\n%:getenv(PATH -fplugin={mallory}/plugin.so)\n"), 0644);
    WriteAs(TheUsers().member, "mallory/script", "SECTIONS { }\n", 0644);
  }

  Kernel With(Tool tool, const std::vector<std::string>& words) const {
    const bool cuda = tool == Tool::kNvcc || tool == Tool::kNvccLink;
    Kernel kernel = cuda ? CudaKernel(nvcc()) : CppKernel();
    if (tool == Tool::kClang) kernel.request.mutable_toolchain()->set_host_compiler(clang());
    const bool link = tool == Tool::kGccLink || tool == Tool::kNvccLink;
    v1::Options& options = *kernel.request.mutable_options();
    for (const std::string& word : words) {
      link ? options.add_link_flags(Fill(word)) : options.add_compile_flags(Fill(word));
    }
    return kernel;
  }

  // Whether the plugin does anything at all: otherwise no attack with it would mean anything.
  void ExpectThatThePluginRuns() {
    const ProgramOutcome outcome =
        RunAs(TheUsers().service,
              {"/usr/bin/g++", StrCat("-fplugin=", Path("mallory/plugin.so")), "-fsyntax-only", "-xc++", "/dev/null"});
    EXPECT_NE(SecretIn(outcome.output), "") << outcome.output;
    EXPECT_NE(Canaries(), "") << outcome.output;
  }

  // The attacks one by one, each twin once; those of nvcc all in one load, since each would take a second.
  void Walk(const std::string& row, Must must, const std::vector<FlagAttack>& attacks) {
    std::set<std::vector<std::string>> twins;
    std::vector<std::string> for_nvcc;
    for (const FlagAttack& attack : attacks) {
      if (!HasTool(attack.tool)) continue;
      Try(row, must, attack);
      if (attack.twin.empty() || !twins.insert(attack.twin).second) continue;
      if (attack.tool == Tool::kNvcc) {
        for_nvcc.insert(for_nvcc.end(), attack.twin.begin(), attack.twin.end());
      } else {
        Twin(row, Words(attack.twin), With(attack.tool, attack.twin));
      }
    }
    if (!for_nvcc.empty()) Twin(row, Words(for_nvcc), With(Tool::kNvcc, for_nvcc));
  }

  bool HasTool(Tool tool) const {
    if (tool == Tool::kClang) return !clang().empty();
    return (tool != Tool::kNvcc && tool != Tool::kNvccLink) || !nvcc().empty();
  }

  // With headers that hold words and a plugin, for what names uploaded files.
  void Try(const std::string& row, Must must, const FlagAttack& attack) {
    Kernel kernel = With(attack.tool, attack.words);
    AddHeader(kernel, "args.h", "x -fplugin=inc/0/plugin.h");
    AddHeader(kernel, "plugin.h", Env::Posix().ReadFile(Path("mallory/plugin.so")).value());
    SecurityTest::Attack(row, Words(attack.words), kernel, must);
  }

  static std::string Words(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) StrAppend(&text, text.empty() ? "" : " ", word);
    return text;
  }
};

// Where no enclosure would hide what a shell does.
constexpr char kWithoutEnclosures[] = "sandbox = \"none\"";

// nvcc hands its words to a shell. A macro's text may be anything, as long as no shell sees it.
TEST_F(FlagsTest, NothingOfAShellRuns) {
  Serve(kWithoutEnclosures, /*with_nvcc=*/true);
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc: `make setup` installs one";
  Walk(kShell, Must::kBeHarmless,
       {
           {Tool::kNvcc, {"-DX=$(touch {canary})"}, {"-DNAME=\"a b\""}},
           {Tool::kNvcc, {"-D", "X=`touch {canary}`"}, {"-D", "SHIFT=(1<<3)"}},
           {Tool::kNvcc, {"--define-macro=X=1;touch {canary}"}, {"--define-macro=F(x)=x"}},
           {Tool::kNvcc, {"-Xcompiler", "-DX=$(touch${IFS}{canary})"}, {"-Xcompiler", "-DY=2"}},
       });
  Walk(kShell, Must::kBeRefused,
       {
           {Tool::kNvcc, {"-U$(touch {canary})"}, {"-UUNKNOWN"}},
           {Tool::kNvcc, {"-U", "X`touch {canary}`"}, {"-U", "OTHER"}},
           {Tool::kNvcc, {"-Xcompiler=-UX;touch${IFS}{canary};"}, {"-Xcompiler=-UZ"}},
           {Tool::kNvcc, {"-Xcompiler", "-fno-inline;{script};true"}, {"-Xcompiler", "-fno-inline"}},
           {Tool::kNvcc, {"-Xcompiler", "-Wall|({script})|true"}, {"-Xcompiler", "-Wall"}},
           {Tool::kNvcc, {"-Xcompiler", "-g`{script}`"}, {"-Xcompiler", "-g"}},
           {Tool::kNvcc, {"-Xptxas=-v;{script};true"}, {"-Xptxas=-v"}},
           {Tool::kNvcc, {"-Xptxas", "-O3`{script}`"}, {"-Xptxas", "-O3"}},
           {Tool::kNvcc, {"-Xcudafe", "--diag_suppress=1;{script};true"}, {"-Xcudafe", "--diag_suppress=177"}},
           {Tool::kNvcc, {"--maxrregcount=32;touch {canary}"}, {"--maxrregcount=32"}},
           {Tool::kNvcc, {"-std=c++17;touch {canary}"}, {"-std=c++17"}},
           {Tool::kNvcc, {"--default-stream=legacy|touch {canary}"}, {"--default-stream=legacy"}},
           {Tool::kNvcc, {"-frandom-seed=x$(touch {canary})"}, {"-frandom-seed=x"}},
           {Tool::kNvcc, {"--diag-suppress", "1;touch {canary}"}, {"--diag-suppress", "20014"}},
           {Tool::kNvcc, {"-O2;touch {canary}"}, {"-O2"}},
           {Tool::kNvcc, {"-DX=1\ntouch {canary}"}, {}},
           {Tool::kNvcc, {"-D$(touch {canary})"}, {}},
           {Tool::kNvcc, {"-D", "X Y;touch {canary}"}, {}},
       });
}

TEST_F(FlagsTest, NoWordIsAFileOfWords) {
  Serve(kWithoutEnclosures, /*with_nvcc=*/true);
  Walk(kFilesOfWords, Must::kBeRefused,
       {
           {Tool::kGcc, {"-D", "@inc/0/args.h"}, {"-D", "X"}},
           {Tool::kGcc, {"-U", "@inc/0/args.h"}, {"-U", "X"}},
           {Tool::kGcc, {"--param", "@inc/0/args.h"}, {"--param", "max-inline-insns-auto=20"}},
           {Tool::kGcc, {"--param", "@{secret}"}, {}},
           {Tool::kGcc, {"-D", "@{secret}"}, {}},
           {Tool::kGcc, {"@inc/0/args.h"}, {}},
           {Tool::kGcc, {"-D@inc/0/args.h"}, {"-DX=1"}},
           {Tool::kGcc, {"-Wa,@inc/0/args.h"}, {"-Wa,--noexecstack"}},
           {Tool::kGcc, {"-march=@inc/0/args.h"}, {"-march=native"}},
           {Tool::kGcc, {"-O@inc/0/args.h"}, {"-O2"}},
           {Tool::kClang, {"-D", "@inc/0/args.h"}, {"-D", "Y"}},
           {Tool::kClang, {"-Xclang", "@inc/0/args.h"}, {}},
           {Tool::kGccLink, {"-u", "@{mallory}/words"}, {"-u", "memcpy"}},
           {Tool::kGccLink, {"-z", "@{mallory}/words"}, {"-z", "now"}},
           {Tool::kGccLink, {"-u", "@{secret}"}, {}},
           {Tool::kGccLink, {"-z", "@{secret}"}, {}},
           {Tool::kGccLink, {"-T", "@{mallory}/words"}, {}},
           {Tool::kGccLink, {"-l", "@{mallory}/words"}, {"-l", "m"}},
           {Tool::kGccLink, {"@{mallory}/words"}, {}},
           {Tool::kGccLink, {"-Wl,-u,@{mallory}/words"}, {"-Wl,-u,strlen"}},
           {Tool::kGccLink, {"-Wl,--defsym,@{secret}"}, {"-Wl,--defsym,one=1"}},
           {Tool::kGccLink, {"-Xlinker", "-z", "-Xlinker", "@{secret}"}, {"-Xlinker", "-z", "-Xlinker", "relro"}},
           {Tool::kNvcc, {"-D", "@inc/0/args.h"}, {"-D", "X"}},
           {Tool::kNvcc, {"-maxrregcount", "@inc/0/args.h"}, {"-maxrregcount", "64"}},
           {Tool::kNvcc, {"-Xcompiler", "-D,@inc/0/args.h"}, {"-Xcompiler", "-Wall"}},
           {Tool::kNvcc, {"-Xcompiler=--param,@inc/0/args.h"}, {}},
           {Tool::kNvcc, {"-Xptxas", "@inc/0/args.h"}, {"-Xptxas", "-v"}},
           {Tool::kNvcc, {"-Xcudafe", "@inc/0/args.h"}, {}},
           {Tool::kNvccLink, {"-Xlinker", "@{mallory}/words"}, {}},
           {Tool::kNvccLink, {"-Xcompiler", "-u,@{mallory}/words"}, {}},
       });
}

TEST_F(FlagsTest, NoFlagOfTheCompilersReachesOutside) {
  ExpectThatThePluginRuns();
  Serve();
  Walk(kFlags, Must::kBeRefused,
       {
           // Code: plugins, other programs in place of the compiler's.
           {Tool::kGcc, {"-fplugin=inc/0/plugin.h"}, {"-fno-plt"}},
           {Tool::kGcc, {"-fplugin={mallory}/plugin.so"}, {}},
           {Tool::kGcc, {"-iplugindir={mallory}"}, {}},
           {Tool::kGcc, {"-specs={mallory}/specs"}, {}},
           {Tool::kGcc, {"--specs={mallory}/specs"}, {}},
           {Tool::kGcc, {"-wrapper", "/bin/sh,-c,touch {canary}"}, {}},
           {Tool::kGcc, {"-B{mallory}"}, {}},
           {Tool::kGcc, {"-B", "{mallory}"}, {}},
           {Tool::kGcc, {"--prefix=inc"}, {}},
           {Tool::kGcc, {"--sysroot={mallory}"}, {}},
           {Tool::kGcc, {"-fmodules-ts", "-fmodule-mapper=|touch {canary}"}, {"-std=c++20"}},
           {Tool::kGcc, {"-fcompare-debug=-fplugin={mallory}/plugin.so"}, {"-fno-omit-frame-pointer"}},
           {Tool::kGcc, {"-fcompare-debug=-fplugin=inc"}, {}},
           // Files that are read.
           {Tool::kGcc, {"-fprofile-use={secret}"}, {"-fprefetch-loop-arrays"}},
           {Tool::kGcc, {"-fauto-profile={secret}"}, {}},
           {Tool::kGcc, {"-include", "{secret}"}, {}},
           {Tool::kGcc, {"-imacros{secret}"}, {}},
           {Tool::kGcc, {"-finput-charset=../../x"}, {"-ftemplate-depth=100"}},
           {Tool::kGcc, {"-frandom-seed={secret}"}, {}},
           {Tool::kGcc, {"-Wa,-I{mallory}"}, {"-Wa,-mbranches-within-32B-boundaries"}},
           {Tool::kGcc, {"-Wp,-include,{secret}"}, {"-Wextra"}},
           // Files that are written.
           {Tool::kGcc, {"-fdump-tree-all={canary}"}, {"-fstrict-aliasing"}},
           {Tool::kGcc, {"-fdump-final-insns={canary}"}, {}},
           {Tool::kGcc, {"-dumpdir", "{canary}"}, {}},
           {Tool::kGcc, {"-fopt-info-all={canary}"}, {}},
           {Tool::kGcc, {"-Wa,-al={canary}"}, {}},
           {Tool::kGcc, {"-Wa,--MD,{canary}"}, {}},
           {Tool::kGcc, {"-save-temps=cwd"}, {}},
           {Tool::kGcc, {"-ftime-trace={canary}"}, {"-ftrapv"}},
           {Tool::kGcc, {"-gsplit-dwarf"}, {"-gdwarf-4"}},
           {Tool::kGcc, {"-Wno-error\n-fplugin=x"}, {"-Wno-error"}},
           {Tool::kClang, {"-fplugin={mallory}/plugin.so"}, {"-fno-exceptions"}},
           {Tool::kClang, {"-fpass-plugin={mallory}/plugin.so"}, {}},
           {Tool::kClang, {"-fpass-plugin=inc/0/plugin.h"}, {}},
           {Tool::kClang, {"-Xclang", "-load", "-Xclang", "{mallory}/plugin.so"}, {"-Wall"}},
           {Tool::kClang, {"--config={mallory}/words"}, {}},
           {Tool::kClang, {"-fsanitize-ignorelist={secret}"}, {"-fstack-protector-strong"}},
           {Tool::kClang, {"-fproc-stat-report={canary}"}, {"-fvisibility=hidden"}},
           {Tool::kClang, {"-fmodules", "-fmodules-cache-path={mallory}"}, {}},
           {Tool::kClang, {"-working-directory={mallory}"}, {}},
           {Tool::kGcc, {"-fsanitize-ignorelist=../../../../../../../..{secret}"}, {}},
           {Tool::kGcc, {"-fcompare-debug=-fplugin=inc/0/plugin.h"}, {"-fno-omit-frame-pointer"}},
           {Tool::kClang, {"-Xclang", "-load", "-Xclang", "inc/0/plugin.h"}, {"-Wall"}},
           {Tool::kClang, {"-mllvm", "-load=inc/0/plugin.h"}, {"-mavx2"}},
           {Tool::kGcc, {"-flto=4"}, {"-flto"}},
       });
  Walk(kFlags, Must::kBeHarmless,
       {
           {Tool::kGcc, {"-fplugin-arg-x-y=z"}, {}},
           {Tool::kGcc, {"-foffload=x"}, {"-fopenmp"}},
           {Tool::kGcc, {"-foffload-options=-fplugin=inc"}, {}},
           {Tool::kGcc, {"-fresolution=inc"}, {}},
           {Tool::kGcc, {"-fpreprocessed"}, {"-funroll-loops"}},
           {Tool::kGcc, {"-fdirectives-only"}, {}},
           {Tool::kGcc, {"-fdiagnostics-format=sarif-file"}, {"-fdiagnostics-color=never"}},
           {Tool::kGcc, {"-fdiagnostics-generate-patch"}, {}},
           {Tool::kClang, {"-fsanitize-blacklist=inc"}, {}},
           {Tool::kClang, {"-fproc-stat-report=x"}, {}},
           {Tool::kClang, {"-fthinlto-index=inc"}, {}},
           {Tool::kClang, {"-gembed-source"}, {"-g1"}},
           {Tool::kClang, {"-gen-reproducer"}, {}},
           {Tool::kClang, {"-Xclang", "-dependency-file", "-Xclang", "x"}, {}},
           {Tool::kClang, {"-fplugin-arg-x-y"}, {}},
       });
}

TEST_F(FlagsTest, NoFlagOfTheLinkerReachesOutside) {
  Serve();
  Walk(kFlags, Must::kBeRefused,
       {
           {Tool::kGccLink, {"-Wl,-plugin,{mallory}/plugin.so"}, {"-Wl,--as-needed"}},
           {Tool::kGccLink, {"-Wl,--plugin={mallory}/plugin.so"}, {}},
           {Tool::kGccLink, {"-Xlinker", "-plugin={mallory}/plugin.so"}, {"-Xlinker", "--no-undefined"}},
           {Tool::kGccLink, {"-wrapper", "/bin/sh,-c,touch {canary}"}, {}},
           {Tool::kGccLink, {"-B{mallory}"}, {}},
           {Tool::kGccLink, {"-fuse-ld={mallory}/as"}, {}},
           {Tool::kGccLink, {"-Wl,--error-handling-script={mallory}/as", "-lnone"}, {}},
           {Tool::kGccLink, {"-Wl,-T,{mallory}/script"}, {"-Wl,-z,now"}},
           {Tool::kGccLink, {"-Wl,-dT,{mallory}/script"}, {}},
           {Tool::kGccLink, {"-Xlinker", "--exclude-libs=a,-Tscript"}, {"-Xlinker", "--exclude-libs=a"}},
           {Tool::kGccLink, {"-Wl,--version-script={secret}"}, {"-Wl,--exclude-libs,ALL"}},
           {Tool::kGccLink, {"-Wl,--dynamic-list={secret}"}, {}},
           {Tool::kGccLink, {"-Wl,-c,{mallory}/script"}, {}},
           {Tool::kGccLink, {"-Wl,-R,{secret}"}, {}},
           {Tool::kGccLink, {"-Wl,--dynamic-linker={mallory}/plugin.so"}, {"-Wl,--no-undefined"}},
           {Tool::kGccLink, {"-Wl,--audit={mallory}/plugin.so"}, {}},
           {Tool::kGccLink, {"-Wl,-rpath,{mallory}"}, {"-Wl,-Bsymbolic"}},
           {Tool::kGccLink, {"-Wl,-Map={canary}"}, {"-Wl,--gc-sections"}},
           {Tool::kGccLink, {"-Wl,--dependency-file={canary}"}, {}},
           {Tool::kGccLink, {"-Wl,--out-implib={canary}"}, {}},
           {Tool::kGccLink, {"-L{mallory}", "-lx"}, {"-lm"}},
           {Tool::kGccLink, {"{mallory}/plugin.so"}, {}},
           {Tool::kGccLink, {"-l:../../../../../..{mallory}/plugin.so"}, {}},
           {Tool::kGccLink, {"-flto=4"}, {"-flto"}},
       });
  Walk(kFlags, Must::kBeHarmless,
       {
           {Tool::kGccLink, {"-Wl,--u,-Tscript"}, {}},
           {Tool::kGccLink, {"-Wl,--no-such"}, {"-Wl,--no-undefined"}},
           {Tool::kGccLink, {"-Wl,--error-handling-script=x", "-lnone"}, {"-lm"}},
       });
}

TEST_F(FlagsTest, NoFlagOfNvccOrItsToolsReachesOutside) {
  Serve("", /*with_nvcc=*/true);
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc: `make setup` installs one";
  Walk(kFlags, Must::kBeRefused,
       {
           {Tool::kNvcc, {"-ccbin", "{mallory}/as"}, {"--use_fast_math"}},
           {Tool::kNvcc, {"-optf", "{mallory}/words"}, {"-lineinfo"}},
           {Tool::kNvcc, {"--options-file={mallory}/words"}, {}},
           {Tool::kNvcc, {"-forward-unknown-to-host-compiler", "-fplugin={mallory}/plugin.so"}, {}},
           {Tool::kNvcc, {"--forward-unknown-opts"}, {"--expt-relaxed-constexpr"}},
           {Tool::kNvcc, {"-keep-dir", "{mallory}"}, {}},
           {Tool::kNvcc, {"-keep"}, {}},
           {Tool::kNvcc, {"-odir", "{mallory}"}, {}},
           {Tool::kNvcc, {"-ldir", "{mallory}"}, {"--extended-lambda"}},
           {Tool::kNvcc, {"-target-dir", "{mallory}"}, {}},
           {Tool::kNvcc, {"-arbin", "{mallory}/as"}, {}},
           {Tool::kNvcc, {"-qpp-config", "{mallory}/words"}, {}},
           {Tool::kNvcc, {"-include", "{secret}"}, {"-std=c++17"}},
           {Tool::kNvcc, {"-Xcompiler", "-fplugin={mallory}/plugin.so"}, {"-Xcompiler", "-fopenmp"}},
           {Tool::kNvcc, {"-Xcompiler", "-wrapper,{mallory}/as"}, {}},
           {Tool::kNvcc, {"-Xcompiler", "-B,{mallory}"}, {}},
           {Tool::kNvcc, {"-Xcompiler", "-fplugin=inc/0/plugin.h"}, {"-Xcompiler", "-march=native"}},
           {Tool::kNvcc, {"-Xcompiler", "-fcompare-debug=-fplugin=inc"}, {}},
           {Tool::kNvcc, {"-Xcompiler=-fsanitize=address\\,-B."}, {"-Xcompiler=-fno-math-errno,-fwrapv"}},
           {Tool::kNvcc, {"-Xcompiler=-mrecip=none\\,-include\\,{secret}"}, {}},
           {Tool::kNvcc, {"-Xptxas", "-o={canary}"}, {"-Xptxas", "-v"}},
           {Tool::kNvcc, {"-Xptxas", "--output-file={canary}"}, {"-Xptxas", "-warn-spills"}},
           {Tool::kNvcc, {"-Xptxas", "-optf,{mallory}/words"}, {}},
           {Tool::kNvcc, {"-Xptxas", "--options-file,inc"}, {"-Xptxas", "--maxrregcount=64"}},
           {Tool::kNvcc, {"-Xcudafe", "--gen_c_file_name={canary}"}, {"-Xcudafe", "--diag_suppress=177"}},
           {Tool::kNvcc, {"-Xcudafe", "--preinclude={secret}"}, {}},
           {Tool::kNvcc, {"-Xcudafe", "--list={canary}"}, {"-Xcudafe", "--display_error_number"}},
           {Tool::kNvcc, {"-Xnvlink", "-o={canary}"}, {}},
           {Tool::kNvcc, {"-Xfatbinary", "-create={canary}"}, {}},
           {Tool::kNvcc, {"-fdevice-time-trace={canary}"}, {}},
           {Tool::kNvcc, {"--time={canary}"}, {}},
           {Tool::kNvcc, {"-dryrun"}, {}},
           {Tool::kNvcc, {"-Xcompiler", "-fcompare-debug=-fplugin=inc/0/plugin.h"}, {"-Xcompiler", "-fopenmp"}},
           // A flag in the place of another's value, which nvcc takes for a flag.
           {Tool::kNvcc, {"-frandom-seed=", "-optf", "-lineinfo"}, {"-frandom-seed=x"}},
           {Tool::kNvcc, {"-maxrregcount=", "-keep"}, {}},
           {Tool::kNvcc, {"-Ofc", "-keep"}, {"-Ofc=max"}},
           {Tool::kNvccLink, {"-Xlinker", "-plugin={mallory}/plugin.so"}, {}},
           {Tool::kNvccLink, {"-Xcompiler", "-wrapper,{mallory}/as"}, {}},
       });
  Walk(kFlags, Must::kBeHarmless,
       {
           {Tool::kNvcc, {"-Xptxas", "-keep"}, {}},
           {Tool::kNvcc, {"-src-in-ptx", "-lineinfo"}, {"-lineinfo"}},
           {Tool::kNvcc, {"-Xcicc=--preinclude=args.h"}, {}},
       });
}

}  // namespace
}  // namespace kernix::security
