// SPDX-License-Identifier: Apache-2.0
//
// Flags of g++ and clang++, which compile and link, and flags of the assembler and the linker that they call.
#include "common/flags/flag_table.h"

namespace kernix::flags {
namespace {

constexpr std::string_view kMechanics = "kernix decides what the compiler makes, and where";
constexpr std::string_view kTools = "it replaces parts of the compiler: choose another compiler with CXX instead";
constexpr std::string_view kSideFiles = "it reads or writes files beside the object, which kernix does not keep";
constexpr std::string_view kReport = "its report differs from run to run, and an artifact keeps what compilers print";
constexpr std::string_view kCommandLine = "it writes the command line, with this machine's paths, into the artifact";
constexpr std::string_view kPrefixMaps = "kernix itself keeps paths out of the artifact";
constexpr std::string_view kNoOtherOutput = "an artifact is a shared library";
constexpr std::string_view kUnseenLibrary = "it links a library of the compiler's that kernix does not watch";
constexpr std::string_view kForeignAbi =
    "it changes the layout of structs, or the calls, that a kernel shares with XLA and with libraries";
constexpr std::string_view kLongMacro = "write it as -D... or -U...";
constexpr std::string_view kPreprocessor = "pass the preprocessor flag by itself";

constexpr std::string_view kLtoJobs = "this kernixd is shared, and a link takes one job's processor: write -flto";
constexpr std::string_view kLinkThreads = "this kernixd is shared, and a link takes one job's processor";

constexpr Rule kCompilerRules[] = {
    Nobody("@*", kFileOfFlags),
    Nobody("-o *|-o*", kMechanics),
    Nobody("-c", kMechanics),
    Nobody("-S", kMechanics),
    Nobody("-E", kMechanics),
    Nobody("-M*", kMechanics),
    Nobody("-x *|-x*", kMechanics),
    Nobody("-v|--verbose", kVerbose),
    Nobody("-###", kMechanics),
    Nobody("--version|--help*", kMechanics),
    Nobody("-print-*|--print-*|-dump*", kMechanics),
    Nobody("--output*|--compile|--assemble|--preprocess|--language*", kMechanics),
    Nobody("--dependencies|--user-dependencies|--write-*", kMechanics),
    Nobody("-fsyntax-only", kMechanics),
    Nobody("-emit-*", kMechanics),
    Nobody("-save-temps*|--save-temps*", kSideFiles),

    // Where the compiler looks for headers and its own files.
    Nobody("-isysroot*", kTools),
    Nobody("-isystem *|-isystem*", kInclude, Meaning::kSystemIncludePath),
    Nobody("-idirafter *|-idirafter*", kInclude, Meaning::kLastIncludePath),
    Nobody("-iquote *|-iquote*", kInclude, Meaning::kIncludePath),
    Nobody("-I *|-I*|--include-directory:*", kInclude, Meaning::kIncludePath),
    Nobody("-include *|-include*|--include*|-imacros *|-imacros*", kPreInclude),
    Nobody("-i*|-cxx-isystem*", kInclude),
    Nobody("--sysroot*|--gcc-*|-B*|--prefix*|-wrapper", kTools),
    Nobody("-target|--target*|-resource-dir*|--config*|-fuse-ld*", kTools),

    // Flags that run code, and files beside the object.
    OwnDaemon("-specs=*|--specs=*|-fplugin=*|-fpass-plugin=*", kNamesFile, Meaning::kFileForKey),
    Nobody("-fprofile*|-fcs-profile*|-fauto-profile*|-fbranch-probabilities", kSideFiles),
    Nobody("--coverage|-coverage|-ftest-coverage", kSideFiles),
    Nobody("-fdump-*|-fstack-usage|-fcallgraph-info*|-fopt-info*", kSideFiles),
    Nobody("-fsave-optimization-record*|-foptimization-record*|-ftime-trace*", kSideFiles),
    Nobody("-fmodule*|-fprebuilt-module*|-fpch*", kSideFiles),
    Nobody("-fcrash-diagnostics*|-fvtable-verify*|-gsplit-dwarf*|-aux-info*|-time*", kSideFiles),
    Nobody("-ftime-report*|-fmem-report*|-fpre-ipa-mem-report|-fpost-ipa-mem-report|-fproc-stat-report*|-Q", kReport),
    Nobody("-fcompare-debug*", kMechanics),
    Nobody("-frecord-*|-grecord-*", kCommandLine),
    Nobody("-fdebug-prefix-map*|-fmacro-prefix-map*|-ffile-prefix-map*|-fdebug-compilation-dir*", kPrefixMaps),
    Nobody("-static|-pie|-static-pie|-r", kNoOtherOutput),
    Nobody("-static-libasan|-static-libtsan|-static-libubsan|-static-liblsan|-static-openmp", kUnseenLibrary),
    Nobody("-fgnu-tm|-fxray-*|-fmemory-profile*|-unwindlib*|--unwindlib*|-mpc32|-mpc64|-mpc80", kUnseenLibrary),
    Nobody("-fpack-struct*|-mabi=ms|-m32|-mx32|-m16", kForeignAbi),

    // Flags of other tools.
    Nobody("-Wl,*|-Xlinker:*", kLinkFlag, Meaning::kLinkerFlags),
    Nobody("-L *|-L*|--library-path:*", kLinkFlag, Meaning::kLibraryPath),
    Nobody("-l *|-l*|--library:*", kLinkFlag, Meaning::kLibrary),
    Nobody("-Wp,*|-Xpreprocessor *", kPreprocessor),
    Nobody("-Xassembler *", "write it as -Wa,..."),
    Nobody("--for-*", "write it as -Wa,... or -Wl,..."),
    Anyone("-Wa,*", Meaning::kAssemblerFlags),

    Anyone("-D *|-D*", Meaning::kDefine),
    Anyone("-U *|-U*", Meaning::kUndefine),
    Anyone("-std=*|--std=*|-ansi", Meaning::kStandard),
    Nobody("--define-macro*|--undefine-macro*|--assert*", kLongMacro),
    Anyone("-ffast-math|-funsafe-math-optimizations|-Ofast|-mdaz-ftz", Meaning::kProcessRounding),
    Anyone("-march=*|-mcpu=*|-mtune=*", Meaning::kProcessor),
    Anyone("-flto=thin|-flto=full", Meaning::kLinkTimeOptimization),
    OwnDaemon("-flto=*|-flto-jobs=*", kLtoJobs, Meaning::kLinkTimeOptimization),
    Anyone("-flto*", Meaning::kLinkTimeOptimization),

    // The value is the next word.
    Anyone("--param *|-Xclang *|-mllvm *|-mmlir *|-mthread-model *"),
};

constexpr std::string_view kRunPath =
    "an artifact holds no user's folder. Add the library's folder to LD_LIBRARY_PATH, or open the library before "
    "you load the module (ctypes.CDLL(path); the library needs a name of its own, set with -Wl,-soname)";
constexpr std::string_view kLinkerFile = "the linker would read or write a file that kernix cannot track";
constexpr std::string_view kByItself = "pass it by itself, not through -Wl or -Xlinker";
constexpr std::string_view kRandom = "it is another one in each run: write --build-id=sha1";
constexpr std::string_view kName = "artifacts have no name of their own";

constexpr Rule kLinkRules[] = {
    OwnDaemon("-L *|-L*|--library-path:*", "this kernixd is shared and reads no user's folders", Meaning::kLibraryPath),
    Anyone("-l *|-l*|--library:*", Meaning::kLibrary),
    Anyone("-Wl,*|-Xlinker:*", Meaning::kLinkerFlags),
    Anyone("-z *|-u *"),
    Nobody("-rpath*|-R*", kRunPath),
    Nobody("-T*", kLinkerFile),
};

constexpr Rule kLinkerRules[] = {
    Nobody("@*", kFileOfFlags),
    Anyone("-z *|-u *|-defsym:*|-exclude-libs:*|-hash-style:*|-undefined:*|-unresolved-symbols:*|-wrap:*"),
    Anyone("-Bstatic", Meaning::kStaticLibraries),
    Anyone("-Bdynamic", Meaning::kSharedLibraries),
    OwnDaemon("-thread*|-thinlto-jobs*", kLinkThreads),
    Nobody("-stats", kReport),
    Nobody("-bu=uuid|-bui=uuid|-buil=uuid|-build=uuid|-build-=uuid|-build-i=uuid|-build-id=uuid", kRandom),
    Nobody("-rp*|-R*", kRunPath),
    Nobody("-L*|-library*|-l*", kByItself),
    Nobody("-T*|-script*|-default-script*|-version-script*|-dynamic-list|-dynamic-list=*", kLinkerFile),
    Nobody("-retain-symbols-file*|-just-symbols*|-section-ordering*|-symbol-ordering*", kLinkerFile),
    Nobody("-Map*|-o*|-output*|-out-implib*|-dependency-file*|-plugin*|-sysroot*", kLinkerFile),
    Nobody("-dynamic-linker*|-audit*|-depaudit*", kLinkerFile),
    Nobody("-auxiliary*|-filter*|-soname*|-h*", kName),
};

// No other word goes to the assembler: --MD would replace kernix's list of the files that it has read.
constexpr Rule kAssemblerRules[] = {
    Anyone("-m*|--noexecstack|--compress-debug-sections[=*]"),
};

}  // namespace

constinit const Table kCompiler = {kCompilerRules};
constinit const Table kCompilerAtLink = {.rules = kLinkRules, .otherwise = &kCompiler};
constinit const Table kAssembler = {kAssemblerRules};
constinit const Table kLinker = {.rules = kLinkerRules, .two_dashes = true};

}  // namespace kernix::flags
