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
constexpr std::string_view kDeviceLto = "device link-time optimisation is not supported";

constexpr Rule kNvccRules[] = {
    Anyone("-std:*", Meaning::kStandard),
    Anyone("-define-macro:*|-D:*", Meaning::kDefine),
    Anyone("-undefine-macro:*|-U:*", Meaning::kUndefine),
    Anyone("-relocatable-device-code:*|-rdc:*", Meaning::kRelocatableDeviceCode),
    Anyone("-device-c|-dc", Meaning::kDeviceCompile),
    Nobody("-extensible-whole-program|-ewp", "use -rdc=true, which links the device runtime as well"),
    Anyone("-threads:*|-t:*", Meaning::kThreads),
    Nobody("-split-compile:*|-split-compile-extended:*", kThreads),
    Nobody("-dlink-time-opt|-dlto|-lto|-gen-opt-lto", kDeviceLto),

    // The value may be the next word.
    Anyone("-stdlib:*|-ftemplate-depth:*|-ftemplate-backtrace-limit:*|-fmax-errors:*|-frandom-seed:*"),
    Anyone("-default-stream:*|-static-global-template-stub:*|-device-entity-has-hidden-visibility:*"),
    Anyone("-optimize:*|-O:*|-Ofast-compile:*|-Ofc:*|-dopt:*|-ftz:*|-prec-div:*|-prec-sqrt:*|-fmad:*"),
    Anyone("-maxrregcount:*|-jump-table-density:*|-jtd:*|-device-stack-protector:*|-compress-mode:*"),
    Anyone("-Werror:*|-diag-error:*|-diag-suppress:*|-diag-warn:*|-opt-info:*|-brief-diagnostics:*|-brief-diag:*"),

    // nvcc's own, though their names begin as other flags do.
    Anyone("-Wreorder|-Wdefault-stream-launch|-Wmissing-launch-bounds|-Wconversion|-Wext-lambda-captures-this"),
    Anyone("-Wno-deprecated-declarations|-Wno-deprecated-gpu-targets|-lineinfo"),
    Nobody("-verbose|-v", kVerbose),

    // Other tools and their flags.
    Anyone("-compiler-options:*|-Xcompiler:*", Meaning::kHostFlags),
    Anyone("-ptxas-options:*|-Xptxas:*", Meaning::kPtxasFlags),
    Anyone("-Xcudafe:*", Meaning::kCudafeFlags),
    Nobody("-linker-options:*|-Xlinker:*|-Wl,*", kLinkFlag, Meaning::kLinkerFlags),
    Nobody("-nvlink-options:*|-Xnvlink:*", kTools),
    Nobody("-compiler-bindir:*|-ccbin:*", "choose the host compiler with CXX", Meaning::kHostCompiler),
    Anyone("-allow-unsupported-compiler", Meaning::kAnyHostCompiler),
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
    Anyone("-m64|-shared", Meaning::kIsTheCaseAnyway),
    Anyone("-cudart:*", Meaning::kCudart),
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
    Anyone("--D*|--U*|--I*|--L*|--l*|--t*"),
    Anyone("-D*", Meaning::kDefine),
    Anyone("-U*", Meaning::kUndefine),
    Anyone("-t*", Meaning::kThreads),
    Nobody("-I*", kInclude, Meaning::kIncludePath),
    Nobody("-L*", kLinkFlag, Meaning::kLibraryPath),
    Nobody("-l*", kLinkFlag, Meaning::kLibrary),
};

constexpr Rule kPtxasRules[] = {
    Nobody("-o:*|-output-file:*", kMechanics),
    Nobody("-optf:*|-options-file:*", kFileOfFlags),
    Nobody("-split-compile:*", kThreads),
};

// No other word goes to cudafe++: it does not tell which files it has read.
constexpr Rule kCudafeRules[] = {
    Anyone("--diag_*|--display_error_number|--no_display_error_number"),
};

}  // namespace

constinit const Table kNvcc = {.rules = kNvccRules, .two_dashes = true};
constinit const Table kPtxas = {.rules = kPtxasRules, .two_dashes = true};
constinit const Table kCudafe = {kCudafeRules};

}  // namespace kernix::flags
