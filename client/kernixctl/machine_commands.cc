// SPDX-License-Identifier: Apache-2.0
//
// The commands about this machine: `kernixctl doctor` looks at everything that a load needs, and `kernixctl describe`
// writes down the compilers.
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "client/connection/daemon_process.h"
#include "client/connection/endpoint.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "client/load/module.h"
#include "client/tools/environment.h"
#include "client/tools/gpu_architecture.h"
#include "client/tools/toolchain_finder.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/base/version.h"
#include "common/os/env.h"
#include "kernix/load.h"

namespace kernix::ctl {
namespace {

// --- Doctor

constexpr char kDoctorDetails[] =
    R"(Checks everything that a load needs, and compiles one kernel for each language. Each line begins with ok, warn or
fail; the text below a warning or a failure says what to do. Starts this user's daemon if none is running. A machine
without a GPU or without nvcc gets warnings: C++ kernels work there.

Exit codes: 0 nothing failed, 1 something failed.

Examples:
  kernixctl doctor
  kernixctl doctor --json
  kernixctl --address unix:/run/kernix/kernixd.sock doctor)";

constexpr char kModule[] = "kernix_doctor";
constexpr uint64_t kLittleRoom = 1ull << 30;
// Every nvcc that kernix supports can compile for it.
constexpr char kAnyArchitecture[] = "sm_80";

constexpr char kCppSource[] = R"(#include "brainevent/common.h"
// @BE kernix_doctor ret
void kernix_doctor(BE::Tensor y) { *static_cast<float*>(y.data_ptr()) = 1; }
)";
constexpr char kCudaSource[] = R"(#include "brainevent/common.h"
__global__ void kernix_doctor_kernel(float* y) { *y = 1; }
// @BE kernix_doctor ret stream
void kernix_doctor(BE::Tensor y, cudaStream_t stream) {
  kernix_doctor_kernel<<<1, 1, 0, stream>>>(static_cast<float*>(y.data_ptr()));
}
)";

struct Finding {
  enum class State { kOk, kWarn, kFail };
  State state = State::kOk;
  std::string subject;
  std::string text;  // one or more lines; of a problem, also what to do
};

using Findings = std::vector<Finding>;

Finding Ok(std::string subject, std::string text) { return {Finding::State::kOk, std::move(subject), std::move(text)}; }

Finding Warn(std::string subject, std::string text) {
  return {Finding::State::kWarn, std::move(subject), std::move(text)};
}

// The messages of kernix' errors end with what to do.
Finding Problem(Finding::State state, std::string subject, const absl::Status& status) {
  const v1::ErrorDetail detail = GetErrorDetail(status);
  std::string text = WithOwnWords(detail.message());
  if (!detail.compiler_output().empty() && text.find(detail.compiler_output()) == std::string::npos) {
    StrAppend(&text, "\n", detail.compiler_output());
  }
  return {state, std::move(subject), std::move(text)};
}

Finding Fails(std::string subject, const absl::Status& status) {
  return Problem(Finding::State::kFail, std::move(subject), status);
}

// --- Doctor: the parts

Finding CheckCompiler(const ClientEnvironment& environment, const ClientOptions& options, v1::Language language) {
  const bool cuda = TraitsOf(language).needs_nvcc;
  const std::string subject = cuda ? "nvcc" : "C++ compiler";
  const absl::StatusOr<v1::ToolchainPaths> found = FindToolchain(
      *environment.env, environment.get_env, {.language = language, .site_packages = options.site_packages});
  if (found.ok()) return Ok(subject, cuda ? found->nvcc() : found->host_compiler());
  const std::optional<std::string> description = environment.get_env("KERNIX_TOOLCHAIN_DESCRIPTION");
  if (description && LacksTools(found.status())) {
    return Ok(subject, StrCat("none here: loads use the description ", *description));
  }
  return Problem(cuda ? Finding::State::kWarn : Finding::State::kFail, subject, found.status());
}

void CheckGpu(Findings& findings, std::string& architecture) {
  const absl::StatusOr<std::string> found = DetectGpuArchitecture();
  if (!found.ok()) {
    findings.push_back(Problem(Finding::State::kWarn, "GPU", found.status()));
    return;
  }
  architecture = *found;
  findings.push_back(Ok("GPU", *found));
}

Finding CheckProgram(const ClientEnvironment& environment, const ClientOptions& options) {
  const absl::StatusOr<std::string> program = FindKernixd(environment, options.kernixd);
  return program.ok() ? Ok("kernixd", *program) : Problem(Finding::State::kWarn, "kernixd", program.status());
}

void CheckVariables(const ClientEnvironment& environment, Findings& findings) {
  std::vector<std::string> warnings = UnknownVariableWarnings(ProcessVariables());
  const absl::StatusOr<CompilerEnvironment> read = ReadCompilerEnvironment(environment.get_env, v1::LANGUAGE_CUDA);
  if (read.ok()) {
    warnings.insert(warnings.end(), read->warnings.begin(), read->warnings.end());
  } else {
    findings.push_back(Fails("variables", read.status()));
  }
  for (const std::string& warning : warnings) findings.push_back(Warn("variables", warning));
  if (read.ok() && warnings.empty()) findings.push_back(Ok("variables", "nothing unknown or ineffective"));
}

Finding CheckStore(const DaemonInfo& info) {
  const std::string reads = StoresRead(info);
  if (const std::string lack = LackOfStore(info); !lack.empty()) {
    return Warn("store", StrCat(info.store_directory, reads, "\n", lack));
  }
  struct statvfs disk {};
  if (statvfs(info.store_directory.c_str(), &disk) != 0) return Ok("store", StrCat(info.store_directory, reads));
  const uint64_t room = uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::string text = StrCat(info.store_directory, ", ", FormatBytes(room), " free", reads);
  if (room >= kLittleRoom) return Ok("store", text);
  return Warn("store", StrCat(text,
                              "\nFree space there, for example with `kernixctl cache purge --older-than 30d`, or "
                              "choose another store with KERNIX_CACHE_DIR."));
}

Finding DescribeDaemon(const DaemonInfo& info) {
  const std::string text = StrCat(info.address, ", kernixd ", info.version, ", process ", info.pid,
                                  info.shared ? ", serves several users" : "");
  if (info.draining) return Warn("socket", StrCat(text, "\nIt is stopping; the next load starts another one."));
  if (info.build_id == BuildId()) return Ok("socket", text);
  return Warn("socket",
              StrCat(text, "\nIt is another build than this kernixctl. That works, but install both from one ",
                     "release if you meet trouble."));
}

// For a user who is alone beside a service.
void CheckService(const ClientEnvironment& environment, const ClientOptions& options, Findings& findings) {
  const absl::StatusOr<Endpoint> endpoint = ResolveEndpoint(environment, options);
  if (endpoint.ok() && !endpoint->hint.empty()) findings.push_back(Warn("service", endpoint->hint));
}

Finding CheckSandbox(DaemonClient& client) {
  const auto status = client.Ask<v1::GetStatusResponse>("GetStatus", v1::GetStatusRequest());
  if (!status.ok()) return Fails("sandbox", status.status());
  if (status->sandbox_lack().empty()) return Ok("sandbox", status->sandbox());
  return Warn("sandbox", StrCat(status->sandbox(), ": ", status->sandbox_lack()));
}

bool CheckDaemon(DaemonClient& client, Findings& findings) {
  const absl::StatusOr<DaemonInfo> info = client.Info(/*start=*/true);
  if (!info.ok()) {
    findings.push_back(Fails("socket", info.status()));
    return false;
  }
  findings.push_back(DescribeDaemon(*info));
  findings.push_back(CheckStore(*info));
  findings.push_back(CheckSandbox(client));
  return true;
}

Finding CheckCompile(Client& client, Language language, const char* source, std::string architecture) {
  const std::string subject = StrCat(TraitsOf(language).name, " kernel");
  std::string warnings;
  LoadOptions options;
  options.force_rebuild = true;
  options.compute_capability = std::move(architecture);
  options.callbacks.warning = [&warnings](std::string_view text) { StrAppend(&warnings, "\n", text); };
  const auto module = Load(client, language, kModule, {{.text = source, .label = "", .path = ""}}, options);
  if (!module.ok()) return Fails(subject, module.status());
  const std::string text = StrCat("compiled in ", (*module)->build_ms(), " ms, and opened", warnings);
  return warnings.empty() ? Ok(subject, text) : Warn(subject, text);
}

void CheckKernels(DaemonClient& client, bool has_nvcc, const std::string& architecture, Findings& findings) {
  findings.push_back(CheckCompile(client, Language::kCpp, kCppSource, ""));
  if (has_nvcc) {
    findings.push_back(
        CheckCompile(client, Language::kCuda, kCudaSource, architecture.empty() ? kAnyArchitecture : architecture));
  }
  v1::PurgeCacheRequest purge;
  purge.set_name(kModule);
  (void)client.Ask<v1::PurgeCacheResponse>("PurgeCache", purge);
}

Findings Examine(const ClientOptions& options) {
  const ClientEnvironment environment;
  Findings findings = {Ok("kernixctl", StrCat(Version(), " (build ", BuildId(), ")"))};
  CheckVariables(environment, findings);
  findings.push_back(CheckCompiler(environment, options, v1::LANGUAGE_CPP));
  findings.push_back(CheckCompiler(environment, options, v1::LANGUAGE_CUDA));
  const bool has_nvcc = findings.back().state == Finding::State::kOk;
  std::string architecture;
  CheckGpu(findings, architecture);
  findings.push_back(CheckProgram(environment, options));
  CheckService(environment, options, findings);
  const absl::StatusOr<std::unique_ptr<DaemonClient>> client = DaemonClient::Create({}, options);
  if (!client.ok()) {
    findings.push_back(Fails("socket", client.status()));
  } else if (CheckDaemon(**client, findings)) {
    CheckKernels(**client, has_nvcc, architecture, findings);
  }
  return findings;
}

// --- Doctor: the report

const char* NameOf(Finding::State state) {
  if (state == Finding::State::kOk) return "ok";
  return state == Finding::State::kWarn ? "warn" : "fail";
}

// "ok    GPU            sm_90"; further lines of the text are indented.
std::string Text(const Finding& finding) {
  constexpr size_t kStateWidth = 6;
  constexpr size_t kSubjectWidth = 14;
  std::string line = NameOf(finding.state);
  line.resize(kStateWidth, ' ');
  StrAppend(&line, finding.subject);
  line.resize(kStateWidth + kSubjectWidth, ' ');
  const std::string indent = "\n" + std::string(kStateWidth + kSubjectWidth, ' ');
  return StrCat(line, absl::StrReplaceAll(PrintableLines(finding.text), {{"\n", indent}}), "\n");
}

std::string Json(const Findings& findings) {
  const auto json_of = [](const Finding& finding) {
    return JsonObject()
        .Text("state", NameOf(finding.state))
        .Text("subject", finding.subject)
        .Text("text", finding.text)
        .Str();
  };
  return JsonOfAll(findings, json_of) + "\n";
}

int RunDoctor(const ClientOptions& options, bool json) {
  const Findings findings = Examine(options);
  int code = kOk;
  if (json) std::cout << Json(findings);
  for (const Finding& finding : findings) {
    if (!json) std::cout << Text(finding);
    if (finding.state == Finding::State::kFail) code = kFailure;
  }
  return code;
}

// --- Describe

constexpr char kDescribeDetails[] =
    R"(Describes the compilers of loads on this machine, and the digests of their headers, for nodes without compilers:
with the file as the setting toolchain_description, the kernixd there takes results of nodes with these compilers.
Without nvcc, the description serves C++ only. CXX chooses the C++ compiler, as for loads.

Examples:
  kernixctl describe -o fleet.toolchain
  CXX=g++-12 kernixctl describe -o fleet.toolchain)";

struct DescribeFlags {
  std::string output;
  std::vector<std::string> site_packages;
};

// For CUDA and C++ if there is an nvcc.
absl::StatusOr<v1::ToolchainPaths> FindTools(const std::vector<std::string>& site_packages) {
  ToolchainSearch search{.language = v1::LANGUAGE_CUDA, .site_packages = site_packages};
  absl::StatusOr<v1::ToolchainPaths> found = FindToolchain(Env::Posix(), ProcessGetEnv, search);
  if (!LacksTools(found.status())) return found;
  search.language = v1::LANGUAGE_CPP;
  return FindToolchain(Env::Posix(), ProcessGetEnv, search);
}

std::vector<std::string> CommandFor(const std::string& kernixd, const std::string& output,
                                    const v1::ToolchainPaths& tools) {
  std::vector<std::string> command = {kernixd, "--describe-toolchain", AbsolutePath(output), "--host-compiler",
                                      tools.host_compiler()};
  if (!tools.nvcc().empty()) command.insert(command.end(), {"--nvcc", tools.nvcc()});
  for (const std::string& folder : tools.cuda_include_directories()) {
    command.insert(command.end(), {"--cuda-include-directory", folder});
  }
  for (const std::string& folder : tools.cuda_library_directories()) {
    command.insert(command.end(), {"--cuda-library-directory", folder});
  }
  return command;
}

// Becomes that program. Returns if it cannot be started.
absl::Status Become(std::vector<std::string> command) {
  execv(command[0].c_str(), ToArgv(command).data());
  return MakeError(v1::ErrorDetail::UNREACHABLE, StrCat("cannot run ", command[0], ": ", std::strerror(errno)));
}

// Only kernixd looks into compilers.
absl::Status Describe(const ClientOptions& options, const DescribeFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const v1::ToolchainPaths tools, FindTools(flags.site_packages));
  KERNIX_ASSIGN_OR_RETURN(const std::string kernixd, FindKernixd(ClientEnvironment(), options.kernixd));
  return Become(CommandFor(kernixd, flags.output, tools));
}

}  // namespace

Command DoctorCommand(const ClientOptions& options) {
  struct Flags {
    std::vector<std::string> site_packages;
    bool json = false;
  };
  const auto flags = std::make_shared<Flags>();
  return {.name = "doctor",
          .summary = "Check compilers, GPU, daemon and store, and compile a kernel",
          .details = kDoctorDetails,
          .options = {SitePackages(flags->site_packages), {"--json", &flags->json, "Print a JSON array of objects"}},
          .run = [&options, flags] {
            ClientOptions with_packages = options;
            with_packages.site_packages = flags->site_packages;
            return RunDoctor(with_packages, flags->json);
          }};
}

Command DescribeCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<DescribeFlags>();
  return {.name = "describe",
          .summary = "Describe this machine's compilers for nodes without",
          .details = kDescribeDetails,
          .options = {{"-o,--output",
                       &flags->output,
                       "Write the description to this file",
                       {.required = true, .names = Names::kFiles}},
                      SitePackages(flags->site_packages)},
          .run = [&options, flags] { return Fail(Describe(options, *flags)); }};
}

}  // namespace kernix::ctl
