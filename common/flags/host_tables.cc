// SPDX-License-Identifier: Apache-2.0
//
// Flags of g++ and clang++, which compile and link, and flags of the assembler and the linker that they call.
//
// A flag that no rule opens to everyone may read or write a file (-fplugin=, -fdump-..., -fprofile-use,
// -fsanitize-ignorelist=), quote one (-fdiagnostics-generate-patch, -gembed-source), put text into the assembler's
// input (-mfentry-section=), or simply has not been requested yet.
#include "common/flags/flag_table.h"

namespace kernix::flags {
namespace {

constexpr std::string_view kMechanics = "kernix decides what the compiler makes, and where";
constexpr std::string_view kTools = "it replaces parts of the compiler: choose another compiler with CXX instead";
constexpr std::string_view kSideFiles = "it reads or writes files beside the object, which kernix does not keep";
constexpr std::string_view kCommandLine = "it writes the command line, with this machine's paths, into the artifact";
constexpr std::string_view kPrefixMaps = "kernix itself keeps paths out of the artifact";
constexpr std::string_view kNoOtherOutput = "an artifact is a shared library";
constexpr std::string_view kPreprocessor = "pass the preprocessor flag by itself";

constexpr std::string_view kLtoJobs = "this kernixd is shared, and a link takes one job's processor: write -flto";

constexpr Rule kCompilerRules[] = {
    Nobody("@*", kFileOfFlags),
    Nobody("-o *|-o*", kMechanics),
    Nobody("-c", kMechanics),
    Nobody("-S", kMechanics),
    Nobody("-E", kMechanics),
    Nobody("-M*", kMechanics),
    Nobody("-x *|-x*", kMechanics),
    Nobody("-v", kVerbose),
    Nobody("-###", kMechanics),
    Nobody("--version|--help*", kMechanics),
    Nobody("-print-*|--print-*|-dump*", kMechanics),
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
    Nobody("--sysroot*|--gcc-*|-B*|-wrapper", kTools),
    Nobody("-target|--target*|-resource-dir*|--config*|-fuse-ld*", kTools),

    // Flags that run code, and files beside the object.
    OwnDaemon("-specs=*|--specs=*|-fplugin=*|-fpass-plugin=*", kNamesFile, Meaning::kFileForKey),
    OwnDaemon("-fplugin-arg-*"),
    Nobody("-fprofile*|-fcs-profile*|-fauto-profile*|-fbranch-probabilities", kSideFiles),
    Nobody("--coverage|-coverage|-ftest-coverage", kSideFiles),
    Nobody("-fdump-*|-fstack-usage|-fcallgraph-info*|-fopt-info*", kSideFiles),
    Nobody("-fsave-optimization-record*|-foptimization-record*|-ftime-trace*", kSideFiles),
    Nobody("-fmodule*|-fprebuilt-module*|-fpch*", kSideFiles),
    Nobody("-fcrash-diagnostics*|-fvtable-verify*|-gsplit-dwarf*|-aux-info*|-time*", kSideFiles),
    Nobody("-frecord-*|-grecord-*", kCommandLine),
    Nobody("-fdebug-prefix-map*|-fmacro-prefix-map*|-ffile-prefix-map*|-fdebug-compilation-dir*", kPrefixMaps),
    Nobody("-static|-pie|-r", kNoOtherOutput),

    // Flags of other tools.
    Nobody("-Wl,*|-Xlinker:*", kLinkFlag, Meaning::kLinkerFlags),
    Nobody("-L *|-L*|--library-path:*", kLinkFlag, Meaning::kLibraryPath),
    Nobody("-l *|-l*|--library:*", kLinkFlag, Meaning::kLibrary),
    Nobody("-Wp,*|-Xpreprocessor *", kPreprocessor),
    Nobody("-Xassembler *", "write it as -Wa,..."),
    Anyone("-Wa,*", kAnyValue, Meaning::kAssemblerFlags),
    OwnDaemon("-Xclang *|-mllvm *|-mmlir *|-mthread-model *"),

    Anyone("-D *|-D*", kAnyValue, Meaning::kDefine),
    Anyone("-U *|-U*", kAnyValue, Meaning::kUndefine),
    Anyone("--param=*|--param *", kPair),
    Anyone("-std=*|--std=*", kWord, Meaning::kStandard),
    Anyone("-ansi", 0, Meaning::kStandard),
    Anyone("-stdlib=*", kWord),
    Anyone("-trigraphs"),
    Anyone("-pthread"),
    Anyone("-pipe"),
    Anyone("-shared"),
    Anyone("-O|-O0|-O1|-O2|-O3|-O4|-Og|-Os|-Oz"),
    // Names of warnings, of which there are hundreds, and the values that some compare with. None contains a comma.
    Anyone("-W*", kWord | kPair),
    Anyone("-W[no-]error=*", kPair),  // "-Werror=format=2"
    Anyone("-w|-pedantic|-pedantic-errors"),

    // Arithmetic.
    Anyone("-ffast-math|-funsafe-math-optimizations|-Ofast", 0, Meaning::kProcessRounding),
    Anyone("-f[no-]fast-math|-f[no-]finite-math-only|-f[no-]math-errno|-f[no-]associative-math"),
    Anyone("-f[no-]reciprocal-math|-f[no-]signed-zeros|-f[no-]trapping-math|-f[no-]rounding-math"),
    Anyone("-f[no-]signaling-nans|-f[no-]unsafe-math-optimizations|-f[no-]cx-limited-range"),
    Anyone("-f[no-]cx-fortran-rules|-f[no-]single-precision-constant|-f[no-]fp-int-builtin-inexact"),
    Anyone("-f[no-]honor-infinities|-f[no-]honor-nans|-f[no-]approx-func|-f[no-]strict-float-cast-overflow"),
    Anyone("-f[no-]float-store"),
    Anyone("-f[no-]fp-contract=*|-f[no-]fp-model=*|-f[no-]fp-exception-behavior=*", kWord),
    Anyone("-f[no-]excess-precision=*", kWord),
    Anyone("-f[no-]denormal-fp-math[-f32]=*", kWords),
    Anyone("-f[no-]wrapv[-pointer]|-f[no-]trapv|-f[no-]strict-overflow"),

    // The language.
    Anyone("-f[no-]exceptions|-f[no-]rtti|-f[no-]permissive|-f[no-]concepts|-f[no-]coroutines[-ts]"),
    Anyone("-f[no-]char8_t|-f[no-][un]signed-char|-f[no-][un]signed-bitfields|-f[no-]short-enums"),
    Anyone("-f[no-]short-wchar|-f[no-]strict-enums|-f[no-]strict-aliasing"),
    Anyone("-f[no-]strict-flex-arrays[=*]", kNumber),
    Anyone("-f[no-]gnu-keywords|-f[no-]ms-extensions|-f[no-]ms-compatibility|-f[no-]declspec"),
    Anyone("-f[no-]operator-names"),
    Anyone("-f[no-]strong-eval-order[=*]", kWord),
    Anyone("-f[no-]assume-sane-operator-new|-f[no-]delayed-template-parsing|-f[no-]access-control"),
    Anyone("-f[no-]elide-constructors|-f[no-]check-new|-f[no-]enforce-eh-specs|-f[no-]ext-numeric-literals"),
    Anyone("-f[no-]extended-identifiers|-f[no-]dollars-in-identifiers|-f[no-]implicit-[inline-]templates"),
    Anyone("-f[no-]implicit-constexpr|-f[no-]lax-vector-conversions|-f[no-]new-inheriting-ctors"),
    Anyone("-f[no-]new-ttp-matching|-f[no-]relaxed-template-template-args|-f[no-]nonansi-builtins"),
    Anyone("-f[no-]sized-deallocation|-f[no-]aligned-allocation"),
    Anyone("-f[no-]aligned-new[=*]", kNumber),
    Anyone("-f[no-]threadsafe-statics|-f[no-]extern-tls-init|-f[no-]use-cxa-atexit"),
    Anyone("-f[no-]use-cxa-get-exception-ptr|-f[no-]nothrow-opt"),
    Anyone("-f[no-]builtin[-*]", kEnding),
    Anyone("-f[no-]freestanding|-f[no-]hosted|-f[no-]weak"),
    Anyone("-f[no-]abi-[compat-]version=*|-f[no-]pack-struct[=*]|-f[no-]template-depth=*", kNumber),
    Anyone("-f[no-]template-depth-*", kEnding),
    Anyone("-f[no-]template-backtrace-limit=*|-f[no-]bracket-depth=*", kNumber),
    Anyone("-f[no-]constexpr-depth=*|-f[no-]constexpr-steps=*|-f[no-]constexpr-loop-limit=*", kNumber),
    Anyone("-f[no-]constexpr-ops-limit=*|-f[no-]constexpr-cache-depth=*", kNumber),
    Anyone("-f[no-]experimental-library"),
    Anyone("-f[no-]openmp[=*]", kWord),
    Anyone("-f[no-]openmp-simd"),
    Anyone("-f[no-]openmp-version=*", kNumber),

    // Diagnostics about the source.
    Anyone("-f[no-]max-errors=*|-f[no-]error-limit=*|-f[no-]macro-backtrace-limit=*", kNumber),
    Anyone("-f[no-]message-length=*", kNumber),
    Anyone("-f[no-]pretty-templates|-f[no-]show-column"),
    Anyone("-f[no-]diagnostics-color[=*]", kWord),
    Anyone("-f[no-]color-diagnostics|-f[no-]diagnostics-show-option|-f[no-]diagnostics-show-caret"),
    Anyone("-f[no-]diagnostics-show-labels|-f[no-]diagnostics-show-line-numbers"),
    Anyone("-f[no-]diagnostics-show-template-tree|-f[no-]diagnostics-plain-output|-f[no-]caret-diagnostics"),

    // Code generation.
    Anyone("-f[no-]PIC|-f[no-]pic|-f[no-]PIE|-f[no-]pie|-f[no-]plt|-f[no-]common|-f[no-]gnu-unique"),
    Anyone("-f[no-]ident|-f[no-]function-sections|-f[no-]data-sections|-f[no-]unique-section-names"),
    Anyone("-f[no-]section-anchors|-f[no-][asynchronous-]unwind-tables|-f[no-]dwarf2-cfi-asm"),
    Anyone("-f[no-]omit-frame-pointer|-f[no-]optimize-sibling-calls|-f[no-]non-call-exceptions"),
    Anyone("-f[no-]delete-null-pointer-checks|-f[no-]delete-dead-exceptions"),
    Anyone("-f[no-]isolate-erroneous-paths-*", kEnding),
    Anyone("-f[no-]semantic-interposition"),
    Anyone("-f[no-]visibility=*", kWord),
    Anyone("-f[no-]visibility-inlines-hidden[-static-local-var]|-f[no-]visibility-ms-compat"),
    Anyone("-f[no-]tls-model=*", kWord),
    Anyone("-f[no-]zero-initialized-in-bss"),
    Anyone("-f[no-]zero-call-used-regs=*|-f[no-]trivial-auto-var-init=*", kWord),
    Anyone("-f[no-]stack-protector[-all]|-f[no-]stack-protector-strong|-f[no-]stack-protector-explicit"),
    Anyone("-f[no-]stack-clash-protection|-f[no-]stack-check"),
    Anyone("-f[no-]stack-reuse=*|-f[no-]cf-protection[=*]", kWord),
    Anyone("-f[no-]hardened|-f[no-]instrument-functions|-f[no-]whole-program[-vtables]"),
    Anyone("-f[no-]random-seed=*", kWord),
    Anyone("-f[no-]debug-types-section"),
    Anyone("-f[no-]eliminate-unused-debug-types|-f[no-]eliminate-unused-debug-symbols"),
    Anyone("-f[no-]standalone-debug|-f[no-]limit-debug-info|-f[no-]var-tracking[-assignments]"),
    Anyone("-f[no-]sanitize=*|-f[no-]sanitize-recover[=*]|-f[no-]sanitize-trap[=*]", kWords),
    Anyone("-f[no-]sanitize-undefined-trap-on-error|-f[no-]sanitize-address-use-after-scope"),
    Anyone("-f[no-]sanitize-address-use-after-return=*", kWord),

    // Optimisation.
    Anyone("-f[no-]inline[-*]", kEnding),
    Anyone("-f[no-]inline-limit=*", kNumber),
    Anyone("-f[no-]early-inlining|-f[no-]partial-inlining|-f[no-]keep-inline-functions"),
    Anyone("-f[no-]keep-static-consts|-f[no-]keep-static-functions|-f[no-]default-inline"),
    Anyone("-f[no-]tree-*", kEnding),
    Anyone("-f[no-]tree-parallelize-loops=*", kNumber),
    Anyone("-f[no-]ipa-*|-f[no-]gcse*|-f[no-]graphite*|-f[no-]loop-*|-f[no-]ssa-*|-f[no-]sched-*", kEnding),
    Anyone("-f[no-]schedule-*|-f[no-]selective-scheduling*|-f[no-]sel-sched-*|-f[no-]modulo-sched*", kEnding),
    Anyone("-f[no-]ira-share-*", kEnding),
    Anyone("-f[no-]ira-loop-pressure|-f[no-]ira-hoist-pressure"),
    Anyone("-f[no-]ira-algorithm=*|-f[no-]ira-region=*", kWord),
    Anyone("-f[no-]lra-remat"),
    Anyone("-f[no-]reorder-*", kEnding),
    Anyone("-f[no-]reorder-blocks-algorithm=*", kWord),
    Anyone("-f[no-]split-*|-f[no-]unroll-*", kEnding),
    Anyone("-f[no-]unswitch-loops|-f[no-]peel-loops|-f[no-]version-loops-for-strides"),
    Anyone("-f[no-]prefetch-loop-arrays|-f[no-]predictive-commoning|-f[no-]aggressive-loop-optimizations"),
    Anyone("-f[no-]finite-loops|-f[no-]ivopts"),
    Anyone("-f[no-]move-loop-*", kEnding),
    Anyone("-f[no-]vectorize"),
    Anyone("-f[no-]veclib=*", kWord),
    Anyone("-f[no-]slp-vectorize"),
    Anyone("-f[no-]vect-cost-model[=*]|-f[no-]simd-cost-model=*", kWord),
    Anyone("-f[no-]variable-expansion-in-unroller"),
    Anyone("-f[no-]align-functions[=*]|-f[no-]align-jumps[=*]", kNumbers),
    Anyone("-f[no-]align-labels[=*]|-f[no-]align-loops[=*]", kNumbers),
    Anyone("-f[no-]limit-function-alignment|-f[no-]allow-store-data-races|-f[no-]auto-inc-dec"),
    Anyone("-f[no-]bit-tests|-f[no-]branch-count-reg|-f[no-]caller-saves|-f[no-]code-hoisting"),
    Anyone("-f[no-]combine-stack-adjustments|-f[no-]compare-elim|-f[no-]conserve-stack"),
    Anyone("-f[no-]cprop-registers|-f[no-]crossjumping"),
    Anyone("-f[no-]cse-*", kEnding),
    Anyone("-f[no-]dce|-f[no-]dse|-f[no-]defer-pop"),
    Anyone("-f[no-]devirtualize[-*]", kEnding),
    Anyone("-f[no-]expensive-optimizations|-f[no-]forward-propagate|-f[no-]guess-branch-probability"),
    Anyone("-f[no-]hoist-adjacent-loads"),
    Anyone("-f[no-]if-conversion*", kEnding),
    Anyone("-f[no-]indirect-inlining|-f[no-]jump-tables"),
    Anyone("-f[no-]lifetime-dse[=*]", kNumber),
    Anyone("-f[no-]live-range-shrinkage|-f[no-]merge-[all-]constants|-f[no-]merge-debug-strings"),
    Anyone("-f[no-]peephole[2]|-f[no-]printf-return-value|-f[no-]ree|-f[no-]rename-registers"),
    Anyone("-f[no-]rerun-cse-after-loop|-f[no-]shrink-wrap[-separate]|-f[no-]stdarg-opt"),
    Anyone("-f[no-]store-merging|-f[no-]thread-jumps|-f[no-]toplevel-reorder|-f[no-]tracer"),
    Anyone("-f[no-]unconstrained-commons|-f[no-]unit-at-a-time|-f[no-]web"),

    // Link-time optimisation.
    Anyone("-fno-lto"),
    Anyone("-flto|-flto=thin|-flto=full", {}, Meaning::kLinkTimeOptimization),
    Anyone("-flto-partition=*", kWord, Meaning::kLinkTimeOptimization),
    Anyone("-flto-compression-level=*", kNumber, Meaning::kLinkTimeOptimization),
    OwnDaemon("-flto*", kLtoJobs, Meaning::kLinkTimeOptimization),

    // The processor. All -m flags without a value are properties of it.
    Anyone("-march=*|-mcpu=*|-mtune=*", kWord, Meaning::kProcessor),
    Anyone("-m[no-]fpmath=*", kWords),
    Anyone("-m[no-]cmodel=*|-m[no-]abi=*|-m[no-]asm=*", kWord),
    Anyone("-m[no-]recip[=*]", kWords),
    Anyone("-m[no-]veclibabi=*|-m[no-]tls-dialect=*", kWord),
    Anyone("-m[no-]tls-size=*", kNumber),
    Anyone("-m[no-]prefer-vector-width=*", kWord),
    Anyone("-m[no-]preferred-stack-boundary=*|-m[no-]incoming-stack-boundary=*|-m[no-]stack-alignment=*", kNumber),
    Anyone("-m[no-]branch-cost=*", kNumber),
    Anyone("-m[no-]branch-protection=*", kWord),
    Anyone("-m[no-]large-data-threshold=*", kNumber),
    Anyone("-m[no-]move-max=*|-m[no-]store-max=*|-m[no-]function-return=*|-m[no-]indirect-branch=*", kWord),
    Anyone("-m[no-]harden-sls=*|-m[no-]sve-vector-bits=*", kWord),
    Anyone("-m[no-]sse4.1|-m[no-]sse4.2|-m[no-]avx10.1[-256]|-m[no-]avx10.1-512|-m[no-]avx10.2"),
    OwnDaemon("-m|-mno-"),  // the rest of the name is missing
    Anyone("-m[no-]*", kEnding),

    // Debug information.
    Anyone("-g|-g0|-g1|-g2|-g3|-ggdb|-ggdb0|-ggdb1|-ggdb2|-ggdb3"),
    Anyone("-gdwarf|-gdwarf-2|-gdwarf-3|-gdwarf-4|-gdwarf-5|-gdwarf32|-gdwarf64|-g[no-]strict-dwarf"),
    Anyone("-gz[=*]", kWord),
    Anyone("-g[no-]column-info|-gline-tables-only|-g[no-]inline-points"),
    Anyone("-g[no-]statement-frontiers|-g[no-]variable-location-views"),
};

constexpr std::string_view kRunPath =
    "an artifact holds no user's folder. Add the library's folder to LD_LIBRARY_PATH, or open the library before "
    "you load the module (ctypes.CDLL(path); the library needs a name of its own, set with -Wl,-soname)";
constexpr std::string_view kLinkerFile = "the linker would read or write a file that kernix cannot track";
constexpr std::string_view kByItself = "pass it by itself, not through -Wl or -Xlinker";
constexpr std::string_view kName = "artifacts have no name of their own";

constexpr Rule kLinkRules[] = {
    OwnDaemon("-L *|-L*|--library-path:*", "this kernixd is shared and reads no user's folders", Meaning::kLibraryPath),
    Anyone("-l *|-l*|--library:*", kAnyValue, Meaning::kLibrary),
    Anyone("-Wl,*|-Xlinker:*", kAnyValue, Meaning::kLinkerFlags),
    Anyone("-z *", kWord | kPair),
    Anyone("-u *", kWord),
    Anyone("-static-libgcc|-static-libstdc++|-nostdlib|-nodefaultlibs|-rdynamic|-s|-symbolic"),
    Nobody("-rpath*|-R*", kRunPath),
    Nobody("-T*", kLinkerFile),
};

constexpr Rule kLinkerRules[] = {
    Nobody("@*", kFileOfFlags),
    OwnDaemon("--z|--u|--E|--s|--S|--x"),  // the linker accepts these with one dash only
    Anyone("-z *", kWord | kPair),
    Anyone("-u *", kWord),
    Anyone("-[no-]as-needed"),
    Anyone("-no-undefined|-[no-]allow-shlib-undefined"),
    Anyone("-unresolved-symbols:*|-undefined:*|-wrap:*|-hash-style:*", kWord),
    Anyone("-defsym:*", kPair),
    Anyone("-exclude-libs:*", kWord),
    Anyone("-[no-]gc-sections|-print-gc-sections"),
    Anyone("-E|-export-dynamic"),
    Anyone("-eh-frame-hdr"),
    Anyone("-[no-]whole-archive|-start-group|-end-group|-push-state|-pop-state"),
    Anyone("-Bstatic", 0, Meaning::kStaticLibraries),
    Anyone("-Bdynamic", 0, Meaning::kSharedLibraries),
    Anyone("-Bsymbolic[-functions]"),
    Anyone("-s|-S|-x|-strip-all|-strip-debug"),
    Anyone("-O0|-O1|-O2|-O3"),
    Anyone("-build-id[=*]|-sort-common[=*]", kWord),
    Anyone("-sort-section=*|-compress-debug-sections=*", kWord),
    Anyone("-[no-]warn-*", kEnding),
    Anyone("-[no-]fatal-warnings"),
    Anyone("-enable-new-dtags|-disable-new-dtags"),
    Anyone("-allow-multiple-definition"),
    Anyone("-[no-]relax"),

    Nobody("-rpath*|-R*", kRunPath),
    Nobody("-L*|-library*|-l*", kByItself),
    Nobody("-T*|-script*|-default-script*|-version-script*|-dynamic-list|-dynamic-list=*", kLinkerFile),
    Nobody("-retain-symbols-file*|-just-symbols*|-section-ordering*|-symbol-ordering*", kLinkerFile),
    Nobody("-Map*|-o*|-output*|-out-implib*|-dependency-file*|-plugin*|-sysroot*", kLinkerFile),
    Nobody("-dynamic-linker*|-audit*|-depaudit*", kLinkerFile),
    Nobody("-auxiliary*|-filter*|-soname*|-h*", kName),
};

constexpr Rule kAssemblerRules[] = {
    Anyone("--noexecstack"),
    Anyone("--compress-debug-sections[=*]", kWord),
    Anyone("-mbranches-within-32B-boundaries"),
    Anyone("-march=*|-mtune=*|-mcpu=*|-mfpu=*|-mabi=*|-mmnemonic=*|-msyntax=*|-msse-check=*", kWord),
    Anyone("-moperand-check=*|-mevexlig=*|-mevexwig=*|-mevexrcig=*|-mavxscalar=*|-mvexwig=*", kWord),
    Anyone("-mrelax-relocations=*|-mlfence-after-load=*|-mlfence-before-indirect-branch=*", kWord),
    Anyone("-mlfence-before-ret=*|-mx86-used-note=*|-malign-branch=*", kWord),
    Anyone("-malign-branch-boundary=*|-malign-branch-prefix-size=*", kNumber),
    Anyone("-m*", kEnding),
};

}  // namespace

constinit const Table kCompiler = {kCompilerRules};
constinit const Table kCompilerAtLink = {.rules = kLinkRules, .otherwise = &kCompiler};
constinit const Table kAssembler = {kAssemblerRules};
constinit const Table kLinker = {.rules = kLinkerRules, .two_dashes = true};

}  // namespace kernix::flags
