// SPDX-License-Identifier: Apache-2.0
//
// The flags of `compile`, `build` and `watch`, their loads, and the output of loaded modules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kernixctl/command.h"
#include "kernix/client.h"
#include "kernix/inspection.h"
#include "kernix/load.h"
#include "kernix/module.h"

namespace kernix::ctl {

// The argument of `--function`: "add=arg,arg,ret", or "add" to infer the tokens from the signature. Tokens end at
// commas outside of brackets, so "f=arg,scratch:max(a,b)" has two; white space around them is dropped. Accepts any
// text: the daemon refuses invalid tokens.
Function ParseFunction(std::string_view text);

// The flags of `compile`, `build` and `watch`.
struct CompileFlags {
  LoadOptions load;  // what is the same there; LoadOptionsFrom() adds the rest
  std::vector<std::string> files;
  std::vector<std::string> functions;
  std::vector<std::string> defines;
  std::vector<std::string> site_packages;
  std::string name;
  std::string output;
  std::string build_directory;
  std::string print;
  std::string policy;
  bool no_cuda_graph = false;
  bool json = false;
};

// The options that hold for modules of any number: the parameters of their loads, and how to report.
std::vector<Option> OptionsOfEachModule(CompileFlags& flags);

// The options that set `flags`.
std::vector<Option> CompileOptions(CompileFlags& flags);

// All options of a load except the callbacks.
LoadOptions LoadOptionsFrom(const CompileFlags& flags);

// The files of each module: one file each, or all files in one module.
std::vector<std::vector<std::string>> Modules(const CompileFlags& flags);

// The name of the module that is made of `files`.
std::string NameOf(const std::vector<std::string>& files, const CompileFlags& flags);

// The language of the module that is made of `files`: C++ may stand beside another one.
Language LanguageOfFiles(const std::vector<std::string>& files);

// Calls `use(client)` with a client for these options, or refuses flags that contradict each other. Catches Ctrl-C.
int WithFlags(const ClientOptions& options, const CompileFlags& flags, const std::function<int(Client&)>& use);

// Prints a warning of a load on stderr.
void PrintWarning(std::string_view text);

// Loads the module that is made of `files`, and shows progress and output meanwhile. `callbacks` gets warnings, which
// are printed if it has no function for them, and the inputs. Ctrl-C cancels the load.
absl::StatusOr<std::shared_ptr<Module>> LoadModule(Client& client, const std::vector<std::string>& files,
                                                   const CompileFlags& flags, LoadCallbacks callbacks = {});

// The source files that `paths` stand for: a file for itself, a folder for the sources in it and below it that export a
// function by a `// @BE` line. INVALID_REQUEST names a folder without such files.
absl::StatusOr<std::vector<std::string>> SourcesBelow(const std::vector<std::string>& paths);

// Loads the module of one file as one of many. Options for CUDA do not affect a C++ file. `environment`: see
// LoadOptions.
absl::StatusOr<std::shared_ptr<Module>> LoadAlone(Client& client, const std::string& file, const CompileFlags& flags,
                                                  const std::optional<std::vector<std::string>>& environment,
                                                  const LoadCallbacks& callbacks);

// With --build-directory, leaves there what it takes to run the command of a compile error again, and says so.
void SaveFailure(const absl::Status& error, const std::vector<std::string>& files, const CompileFlags& flags);

// Writes what `flags` ask for: the artifact, the build directory, and a report on stdout.
absl::Status Deliver(const Module& module, const std::vector<std::string>& files, const CompileFlags& flags);

// A row for each kernel and architecture, below a line of titles. "?" stands for unknown values.
std::string KernelTable(const std::vector<KernelResources>& kernels);

// A JSON array with an object for each of them; null stands for unknown values.
std::string KernelsJson(const std::vector<KernelResources>& kernels);

// A module and its source files.
struct CompiledFiles {
  std::vector<std::string> files;  // at least one
  const Module& module;
  std::string path;  // where the user finds its library
};

// "add.cu: add (built in 12 ms: new source) -> path".
std::string SummaryLine(const CompiledFiles& compiled);

// One JSON object. For a CUDA module, it includes the resources of each kernel if they can be read.
std::string SummaryJson(const CompiledFiles& compiled);

// The values of `--print`.
extern const std::vector<std::string> kPrintable;

// Whether `--print` with this value requires that the module was loaded with LoadOptions::keep; that it is CUDA.
bool NeedsKeep(const std::string& printable);
bool NeedsCuda(const std::string& printable);

// `printable` is one of kPrintable. The result ends with a line feed.
absl::StatusOr<std::string> TextToPrint(const Module& module, const std::string& printable);

}  // namespace kernix::ctl
