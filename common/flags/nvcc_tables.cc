// SPDX-License-Identifier: Apache-2.0
//
// Flags of nvcc and of the tools that it calls. Each nvcc flag has a long name and often a short one.
#include "common/flags/flag_table.h"

namespace kernix::flags {
namespace {

constexpr std::string_view kMechanics = "kernix decides what nvcc makes, and where";
constexpr std::string_view kArchitecture = "choose the GPU with compute_capability";
constexpr std::string_view kTools = "it replaces parts of the toolkit: choose another nvcc with CUDA_HOME instead";
constexpr std::string_view kForward = "pass each host compiler flag separately, as -Xcompiler=FLAG";
constexpr std::string_view kThreads =
    "kernixd does not count its threads as jobs. kernixd itself compiles several architectures in parallel, as many "
    "as ninja_workers allows";
constexpr std::string_view kQuotesFiles =
    "this kernixd is shared, and PTX would quote any file of the machine that a #line names";
constexpr std::string_view kDeviceLto = "device link-time optimisation is not supported";

constexpr Rule kNvccRules[] = {
    // The language.
    Anyone("-std:*", kWord, Meaning::kStandard),
    Anyone("-stdlib:*", kWord),
    Anyone("-define-macro:*|-D:*", kAnyValue, Meaning::kDefine),
    Anyone("-undefine-macro:*|-U:*", kAnyValue, Meaning::kUndefine),
    Anyone("-expt-relaxed-constexpr|-extended-lambda|-expt-extended-lambda|-restrict"),
    Anyone("-no-host-device-initializer-list|-nohdinitlist|-no-host-device-move-forward|-nohdmoveforward"),
    Anyone("-no-exceptions|-noeh"),
    Anyone("-ftemplate-depth:*", kNumber),
    Anyone("-default-stream:*", kWord),
    Anyone("-static-global-template-stub:*|-device-entity-has-hidden-visibility:*", kWord),

    // Code generation.
    Anyone("-optimize:*|-O:*", kNumber),
    Anyone("-Ofast-compile:*|-Ofc:*|-dopt:*", kWord),
    Anyone("-debug|-g|-device-debug|-G|-generate-line-info|-lineinfo"),
    OwnDaemon("-source-in-ptx|-src-in-ptx", kQuotesFiles),
    Anyone("-use_fast_math|-extra-device-vectorization|-keep-device-functions|-profile|-pg"),
    Anyone("-ftz:*|-prec-div:*|-prec-sqrt:*|-fmad:*", kWord),
    Anyone("-maxrregcount:*|-device-stack-protector:*|-compress-mode:*|-frandom-seed:*", kWord),
    Anyone("-jump-table-density:*|-jtd:*", kNumber),
    Anyone("-no-compress"),
    Anyone("-relocatable-device-code:*|-rdc:*", kWord, Meaning::kRelocatableDeviceCode),
    Anyone("-device-c|-dc", 0, Meaning::kDeviceCompile),
    Anyone("-threads:*|-t:*", kAnyValue, Meaning::kThreads),
    Nobody("-split-compile:*|-split-compile-extended:*", kThreads),
    Nobody("-dlink-time-opt|-dlto|-lto|-gen-opt-lto", kDeviceLto),

    // Diagnostics about the source.
    Anyone("-ftemplate-backtrace-limit:*|-fmax-errors:*", kNumber),
    Anyone("-disable-warnings|-w|-Wreorder|-Wdefault-stream-launch|-Wmissing-launch-bounds|-Wconversion"),
    Anyone("-Wext-lambda-captures-this|-Wno-deprecated-declarations|-Wno-deprecated-gpu-targets"),
    Anyone("-Werror:*|-diag-error:*|-diag-suppress:*|-diag-warn:*|-opt-info:*", kWords),
    Anyone("-display-error-number|-err-no|-no-display-error-number|-no-err-no"),
    Anyone("-brief-diagnostics:*|-brief-diag:*", kWord),
    Anyone("-resource-usage|-res-usage"),
    Nobody("-verbose|-v", kVerbose),

    // Other tools and their flags.
    Anyone("-compiler-options:*|-Xcompiler:*", kAnyValue, Meaning::kHostFlags),
    Anyone("-ptxas-options:*|-Xptxas:*", kAnyValue, Meaning::kPtxasFlags),
    Anyone("-Xcudafe:*", kAnyValue, Meaning::kCudafeFlags),
    Nobody("-linker-options:*|-Xlinker:*|-Wl,*", kLinkFlag, Meaning::kLinkerFlags),
    Nobody("-nvlink-options:*|-Xnvlink:*", kTools),
    Nobody("-compiler-bindir:*|-ccbin:*", "choose the host compiler with CXX", Meaning::kHostCompiler),
    Anyone("-allow-unsupported-compiler", 0, Meaning::kAnyHostCompiler),
    Nobody("-options-file:*|-optf:*", kFileOfFlags),
    Nobody("-forward-unknown-to-host-compiler|-forward-unknown-to-host-linker|-forward-unknown-opts", kForward),
    Nobody("-libdevice-directory:*|-ldir:*|-target-directory:*|-target-dir:*|-archiver-binary:*|-arbin:*", kTools),
    Nobody("-dont-use-profile|-noprof|-apply-controls:*|-qpp-config:*", kTools),

    // Folders of headers and libraries. nvcc does not have the last two kinds of flag; kernix does.
    Nobody("-include-path:*|-I:*", kInclude, Meaning::kIncludePath),
    Nobody("-system-include:*|-isystem:*|-isystem*", kInclude, Meaning::kSystemIncludePath),
    Nobody("-pre-include:*|-include:*", kPreInclude),
    Nobody("-library:*|-l:*", kLinkFlag, Meaning::kLibrary),
    Nobody("-library-path:*|-L:*", kLinkFlag, Meaning::kLibraryPath),
    Nobody("-iquote:*|-iquote*|-include-directory:*", kInclude, Meaning::kIncludePath),
    Nobody("-idirafter:*|-idirafter*", kInclude, Meaning::kLastIncludePath),

    // Outputs.
    Anyone("-m64|-shared", 0, Meaning::kIsTheCaseAnyway),
    Anyone("-cudart:*", kAnyValue, Meaning::kCudart),
    Nobody("-machine:*|-m:*", "kernix compiles for 64 bits"),
    Nobody("-gpu-architecture:*|-arch:*|-gpu-code:*|-code:*|-generate-code:*|-gencode:*", kArchitecture),
    Nobody("-device-w|-dw|-device-link|-dlink|-compile|-c|-link|-lib|-run|-run-args:*", kMechanics),
    Nobody("-cuda|-cubin|-fatbin|-ptx|-optix-ir|-ltoir|-preprocess|-E|-relocatable-link|-r|-x:*", kMechanics),
    Nobody("-output-file:*|-o:*|-output-directory:*|-odir:*|-objdir-as-tempdir|-objtemp", kMechanics),
    Nobody("-generate-dependencies|-M|-generate-nonsystem-dependencies|-MM", kMechanics),
    Nobody("-generate-dependencies-with-compile|-MD", kMechanics),
    Nobody("-generate-nonsystem-dependencies-with-compile|-MMD", kMechanics),
    Nobody("-dependency-output:*|-MF:*|-dependency-target-name:*|-MT:*", kMechanics),
    Nobody("-generate-dependency-targets|-MP", kMechanics),
    Nobody("-keep|-keep-dir:*|-save-temps|-clean-targets|-clean|-dryrun", kMechanics),
    Nobody("-time:*|-fdevice-time-trace:*|-fdevice-syntax-only|-jobserver|-cudadevrt:*", kMechanics),
    Nobody("-help|-h|-version|-V|-list-gpu-code|-code-ls|-list-gpu-arch|-arch-ls", kMechanics),
    Nobody("-host-linker-script:*|-hls:*|-augment-host-linker-script|-aug-hls", kMechanics),

    // Short names with the value joined to them; they take one dash only. They come last, because other names may begin
    // with them.
    OwnDaemon("--D*|--U*|--O*|--I*|--L*|--l*"),
    Anyone("-D*", kAnyValue, Meaning::kDefine),
    Anyone("-U*", kAnyValue, Meaning::kUndefine),
    Anyone("-O*", kNumber),
    Nobody("-I*", kInclude, Meaning::kIncludePath),
    Nobody("-L*", kLinkFlag, Meaning::kLibraryPath),
    Nobody("-l*", kLinkFlag, Meaning::kLibrary),
};

constexpr Rule kPtxasRules[] = {
    Anyone("-verbose|-v|-disable-warnings|-w|-warning-as-error|-Werror|-suppress-*", kEnding),
    Anyone("-warn-on-spills|-warn-spills|-warn-on-local-memory-usage|-warn-lmem-usage"),
    Anyone("-warn-on-double-precision-use|-warn-double-usage|-make-errors-visible-at-exit"),
    Anyone("-device-debug|-g|-generate-line-info|-lineinfo|-compiler-annotations|-annotate"),
    Anyone("-O0|-O1|-O2|-O3|-O4"),
    Anyone("-opt-level:*|-O:*", kNumber),
    Anyone("-Ofast-compile:*|-Ofc:*|-allow-expensive-optimizations:*|-fmad:*", kWord),
    Anyone("-disable-optimizer-constants|-disable-optimizer-consts|-no-bb-merge|-dont-merge-basicblocks"),
    Anyone("-optimize-float-atomics|-opt-fp-atomics"),
    Anyone("-def-load-cache:*|-dlcm:*|-def-store-cache:*|-dscm:*", kWord),
    Anyone("-force-load-cache:*|-flcm:*|-force-store-cache:*|-fscm:*", kWord),
    Anyone("-maxrregcount:*|-device-function-maxrregcount:*|-func-maxrregcount:*", kWord),
    Anyone("-minnctapersm:*|-register-usage-level:*|-regUsageLevel:*", kNumber),
    Anyone("-override-directive-values|-preserve-relocs|-return-at-end|-ret-end|-sp-bounds-check"),
    Anyone("-extensible-whole-program|-ewp"),
    Anyone("-enable-func-clone-sc:*|-position-independent-code:*|-pic:*|-device-stack-protector:*", kWord),
    Nobody("-o|-o=*|-output-file*|-opt*", kMechanics),
};

constexpr Rule kCudafeRules[] = {
    Anyone("--diag_suppress=*|--diag_warning=*|--diag_error=*", kWord),
    Anyone("--diag_remark=*|--diag_once=*|--diag_default=*", kWord),
    Anyone("--display_error_number|--no_display_error_number"),
};

}  // namespace

constinit const Table kNvcc = {.rules = kNvccRules, .two_dashes = true};
constinit const Table kPtxas = {.rules = kPtxasRules, .two_dashes = true};
constinit const Table kCudafe = {kCudafeRules};

}  // namespace kernix::flags
