// SPDX-License-Identifier: Apache-2.0
#include "tests/support/client_support.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "client/tools/toolchain_finder.h"
#include "common/base/strings.h"
#include "common/os/env.h"

namespace kernix::testing {

std::string SourceRoot() { return KERNIX_SOURCE_DIR; }

ScratchFolder::ScratchFolder() : path_(*Env::Posix().CreateTempDirectory(::testing::TempDir() + "kernix-client-")) {}

ScratchFolder::~ScratchFolder() { (void)Env::Posix().RemoveTree(path_); }

std::string ScratchFolder::Put(std::string_view relative, std::string_view text, mode_t mode) const {
  const std::string path = *this / relative;
  EXPECT_TRUE(Env::Posix().CreateDirectories(Dirname(path)).ok());
  EXPECT_TRUE(Env::Posix().WriteFile(path, text, mode).ok());
  return path;
}

std::string ScratchFolder::Write(std::string_view relative, std::string_view text) const {
  return Put(relative, text, 0644);
}

std::string ScratchFolder::WriteProgram(std::string_view relative) const { return Put(relative, "#!/bin/sh\n", 0755); }

GetEnv Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

std::string HostCompiler() {
  for (const char* name : {"g++", "c++", "clang++"}) {
    const auto is_compiler = [](const std::string& program) { return !IsCompilerLauncher(Env::Posix(), program); };
    if (const auto found = FirstOnPath(Env::Posix(), ProcessGetEnv, name, is_compiler)) return *found;
  }
  ADD_FAILURE() << "these tests need a C++ compiler on PATH";
  return "";
}

void CompileLibrary(const std::string& source, const std::string& output, const std::vector<std::string>& flags) {
  ScratchFolder folder;
  ProcessSpec compile;
  compile.argv = {HostCompiler(), "-std=c++17", "-O1",        "-shared",
                  "-fPIC",        "-I",         SourceRoot(), folder.Write("k.cc", source),
                  "-o",           output};
  compile.argv.insert(compile.argv.end(), flags.begin(), flags.end());
  compile.environment = {{"PATH", ProcessGetEnv("PATH").value_or("/usr/bin:/bin")}};
  const absl::StatusOr<ProcessResult> result = Env::Posix().RunProcess(compile, nullptr, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->exit_code, 0) << result->output;
}

std::string AddConstantHandler(const std::string& symbol, int constant, int traits) {
  return StrCat(R"(
#include "kernel/brainevent/internal/ffi_abi.h"
namespace abi = kernix_ffi_abi;
extern "C" __attribute__((visibility("default"))) abi::Error* )",
                symbol, R"((abi::CallFrame* frame) {
  if (frame->extension_start != nullptr && frame->extension_start->type == abi::kExtensionMetadata) {
    abi::Metadata* metadata = reinterpret_cast<abi::MetadataExtension*>(frame->extension_start)->metadata;
    metadata->api_version.major_version = abi::kApiMajor;
    metadata->api_version.minor_version = abi::kApiMinor;
    metadata->traits = )",
                traits, R"(;
    return nullptr;
  }
  auto* in = static_cast<abi::Buffer*>(frame->args.buffers[0]);
  auto* out = static_cast<abi::Buffer*>(frame->rets.buffers[0]);
  for (int64_t i = 0; i < in->dims[0]; ++i) {
    static_cast<float*>(out->data)[i] = static_cast<float*>(in->data)[i] + )",
                constant, R"(;
  }
  return nullptr;
}
)");
}

}  // namespace kernix::testing
