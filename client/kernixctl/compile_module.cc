// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/compile_module.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "client/kernixctl/interrupt.h"
#include "client/kernixctl/module_report.h"
#include "client/kernixctl/progress_line.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/os/env.h"
#include "kernix/error.h"
#include "kernix/inspection.h"

namespace kernix::ctl {
namespace {

// `line` must outlive the callbacks.
LoadCallbacks Complete(LoadCallbacks callbacks, ProgressLine& line, bool verbose) {
  callbacks.output = [&line](std::string_view text) {
    line.Erase();
    std::cerr << text;
  };
  if (!callbacks.warning) {
    callbacks.warning = [&line](std::string_view text) {
      line.Erase();
      PrintWarning(text);
    };
  }
  callbacks.progress = [&line](std::string_view text) { line.SetState(text); };
  if (verbose) callbacks.progress = [](std::string_view text) { std::cerr << "kernixctl: " << text << "\n"; };
  callbacks.cancelled = [&line] {
    line.Poll();
    return Interrupted();
  };
  return callbacks;
}

absl::StatusOr<std::string> CopyTo(const std::string& output, const Module& module) {
  if (output.empty()) return module.path();
  KERNIX_ASSIGN_OR_RETURN(const std::string content, Env::Posix().ReadFile(module.path()));
  KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFileDurably(output, content, 0755));
  return output;
}

absl::StatusOr<std::string> Report(const CompiledFiles& compiled, const CompileFlags& flags) {
  if (!flags.print.empty()) return TextToPrint(compiled.module, flags.print);
  if (!flags.json) return SummaryLine(compiled) + "\n";
  return SummaryJson(compiled) + "\n";
}

}  // namespace

void PrintWarning(std::string_view text) { std::cerr << "kernixctl: warning: " << PrintableLines(text) << "\n"; }

int WithFlags(const GlobalOptions& options, const CompileFlags& flags, const std::function<int(Client&)>& use) {
  const std::string contradiction = Contradiction(flags);
  if (!contradiction.empty()) return RefuseUsage(contradiction);
  GlobalOptions with_packages = options;
  with_packages.client.site_packages = flags.site_packages;
  CatchInterrupt();
  return WithClient(with_packages, use);
}

absl::StatusOr<std::shared_ptr<Module>> LoadModule(Client& client, const std::vector<std::string>& files,
                                                   const CompileFlags& flags, LoadCallbacks callbacks) {
  const std::string name = NameOf(files, flags);
  ProgressLine line(files.size() == 1 ? Basename(files[0]) : name, std::cerr,
                    !flags.verbose && isatty(STDERR_FILENO) == 1);
  LoadOptions options = LoadOptionsFrom(flags);
  options.callbacks = Complete(std::move(callbacks), line, flags.verbose);
  return LoadFiles(client, IsCuda(files) ? Language::kCuda : Language::kCpp, name, files, options);
}

void SaveFailure(const absl::Status& error, const std::vector<std::string>& files, const CompileFlags& flags) {
  if (flags.build_directory.empty() || DescribeError(error).category != ErrorCategory::kCompilation) return;
  const auto script = SaveFailedCommand(error, JoinPath(flags.build_directory, NameOf(files, flags) + ".failed"));
  if (script.ok()) std::cerr << "kernixctl: to run the command that failed again: " << Printable(*script) << "\n";
}

absl::Status Deliver(const Module& module, const std::vector<std::string>& files, const CompileFlags& flags) {
  KERNIX_ASSIGN_OR_RETURN(const std::string path, CopyTo(flags.output, module));
  if (!flags.build_directory.empty()) KERNIX_RETURN_IF_ERROR(WriteBuildDirectory(module, flags.build_directory));
  KERNIX_ASSIGN_OR_RETURN(const std::string report, Report({files, module, path}, flags));
  std::cout << report << std::flush;
  return absl::OkStatus();
}

}  // namespace kernix::ctl
