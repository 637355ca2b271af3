// SPDX-License-Identifier: Apache-2.0
//
// The flags of `compile`, `build` and `watch`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/kernixctl/command.h"
#include "kernix/load.h"

namespace kernix::ctl {

struct CompileFlags {
  std::vector<std::string> files;
  std::vector<std::string> functions;
  std::vector<std::string> defines;
  std::vector<std::string> flags;
  std::vector<std::string> link_flags;
  std::vector<std::string> include_paths;
  std::vector<std::string> site_packages;
  std::string name;
  std::string architectures;
  std::string output;
  std::string build_directory;
  std::string print;
  std::string policy;
  int optimization_level = 3;
  uint32_t jobs = 0;
  bool separate = false;
  bool debug = false;
  bool keep = false;
  bool use_fast_math = false;
  bool no_cuda_graph = false;
  bool force = false;
  bool verbose = false;
  bool json = false;
};

// The options that hold for modules of any number: the parameters of their loads, and how to report.
std::vector<Option> OptionsOfEachModule(CompileFlags& flags);

// The options that set `flags`.
std::vector<Option> CompileOptions(CompileFlags& flags);

// Returns "" if `flags` can be used together.
std::string Contradiction(const CompileFlags& flags);

// All options of a load except the callbacks.
LoadOptions LoadOptionsFrom(const CompileFlags& flags);

// The files of each module: one file each, or all files in one module.
std::vector<std::vector<std::string>> Modules(const CompileFlags& flags);

// The name of the module that is made of `files`.
std::string NameOf(const std::vector<std::string>& files, const CompileFlags& flags);

// Whether the module that is made of `files` is CUDA's.
bool IsCuda(const std::vector<std::string>& files);

}  // namespace kernix::ctl
