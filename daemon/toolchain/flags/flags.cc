// SPDX-License-Identifier: Apache-2.0
#include "daemon/toolchain/flags/flags.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/shell_words.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/flag_table.h"
#include "daemon/toolchain/description.h"
#include "daemon/toolchain/flags/tool_flags.h"

namespace kernix::toolchain {
namespace {

// How the words begin that commands have for what only this machine knows: "{kernix-host-0}", "{kernix-action-root}".
constexpr char kPlaceholderBegin[] = "{kernix-";

// Finds "@file" wherever a tool may pass it on as a separate word: after '=' or ',', or joined to a flag's name,
// "-u@file".
bool HoldsFileOfFlags(std::string_view word) {
  for (size_t at = word.find('@'); at != word.npos; at = word.find('@', at + 1)) {
    const std::string_view before = word.substr(0, at);
    if (before.empty() || before.back() == '=' || before.back() == ',') return true;
    if (word.front() == '-' && before.find_first_of("=,:/") == before.npos) return true;
  }
  return false;
}

absl::Status CheckHost(const FlagContext& context, const std::vector<std::string>& words) {
  if (!context.nvcc() || context.toolchain.cuda->host_refusal.empty()) return absl::OkStatus();
  if (flags::Has(flags::kNvcc, words, flags::Meaning::kAnyHostCompiler)) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::TOOLCHAIN, context.toolchain.cuda->host_refusal);
}

absl::Status CheckText(const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    if (flag.empty()) return RefuseFlag(flag, "a flag cannot be empty");
    if (flag.find('\0') != std::string::npos || flag.find('\n') != std::string::npos) {
      return RefuseFlag(flag, "a flag cannot contain a line end or a NUL");
    }
    // The key would not cover what these words become.
    if (flag.find(kPlaceholderBegin) != std::string::npos) {
      return RefuseFlag(
          flag, StrCat("kernixd reserves words that begin with \"", kPlaceholderBegin, "\": choose another word"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEachIsOne(const flags::Table& table, const std::vector<std::string>& words) {
  for (const flags::Flag& flag : flags::ReadAll(table, words)) {
    KERNIX_RETURN_IF_ERROR(flags::CheckIsOneFlag(table, flag));
  }
  return absl::OkStatus();
}

bool HasWordThatBegins(const CheckedFlags& flags, std::string_view begin) {
  const auto begins = [&](const std::string& word) { return word.starts_with(begin); };
  return std::any_of(flags.host.begin(), flags.host.end(), begins) ||
         std::any_of(flags.link.begin(), flags.link.end(), begins);
}

absl::Status AddParts(const FlagContext& context, std::string_view flag, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const absl::StatusOr<Digest> digest = DigestOfPart(context.toolchain, context.facts.digests(), path);
    if (!digest.ok()) return RefuseFlag(flag, ToStd(digest.status().message()));
    context.result.files.push_back({"", path, *digest});
  }
  return absl::OkStatus();
}

// The link step has -fno-lto unless flags ask for -flto (LinkStep() in the plan), and g++ then names no plugin and runs
// no program for it. It links a sanitizer's library for -fsanitize; one that -l names is a file of that flag. A specs
// file can change all of that.
absl::Status AddSpareParts(const FlagContext& context) {
  const CheckedFlags& flags = context.result;
  const HostCompiler& host = context.toolchain.host;
  const bool has_specs = HasWordThatBegins(flags, "-specs") || HasWordThatBegins(flags, "--specs");
  if (has_specs || LinksWithLto(flags.host, flags.link)) {
    KERNIX_RETURN_IF_ERROR(AddParts(context, "-flto", host.lto_programs));
  }
  if (!has_specs && !HasWordThatBegins(flags, "-fsanitize")) return absl::OkStatus();
  return AddParts(context, "-fsanitize", host.sanitizer_files);
}

absl::Status CheckNoFileOfFlags(std::string_view flag, std::string_view word) {
  if (!HoldsFileOfFlags(word)) return absl::OkStatus();
  return RefuseFlag(flag, "a tool may take it for a file of flags: write the flags themselves instead");
}

}  // namespace

absl::Status RefuseFlag(std::string_view flag, std::string_view why) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("flag \"", flag, "\" is not allowed: ", why));
}

absl::Status CheckHostWord(const FlagContext& context, std::string_view flag, std::string_view word) {
  return context.nvcc() ? CheckWord(flag, word) : CheckNoFileOfFlags(flag, word);
}

absl::Status CheckWord(std::string_view flag, std::string_view word) {
  KERNIX_RETURN_IF_ERROR(CheckNoFileOfFlags(flag, word));
  if (IsHarmlessWord(word)) return absl::OkStatus();
  return RefuseFlag(flag, StrCat("a shell would interpret it: a flag's value may contain only ", kHarmlessCharacters));
}

absl::Status CheckUser(const FlagContext& context, const flags::Flag& flag, std::string_view text) {
  if (flag.user() == flags::User::kNobody) return RefuseFlag(text, flag.reason());
  if (flag.rule == nullptr && !flag.text().starts_with("-")) {
    return RefuseFlag(text, "it is not a flag (a flag and its value can be joined with '=')");
  }
  if (flag.user() == flags::User::kAnyone || !context.shared()) return absl::OkStatus();
  return RefuseFlag(text, flag.reason());
}

absl::Status CheckNamesNoFile(const flags::Flag& flag, std::string_view text) {
  const auto has_slash = [](const std::string& word) { return word.find('/') != word.npos; };
  const bool names_file = std::any_of(flag.words.begin(), flag.words.end(), has_slash);
  return names_file ? RefuseFlag(text, kNamesUnseenFile) : absl::OkStatus();
}

absl::StatusOr<Digest> DigestOfFile(const FlagContext& context, std::string_view flag, const std::string& path) {
  const absl::StatusOr<Digest> digest = context.facts.digests().Get(path);
  if (!digest.ok()) return RefuseFlag(flag, ToStd(digest.status().message()));
  return *digest;
}

bool LinksWithLto(const std::vector<std::string>& host, const std::vector<std::string>& link) {
  return flags::Has(flags::kCompiler, host, flags::Meaning::kLinkTimeOptimization) ||
         flags::Has(flags::kCompilerAtLink, link, flags::Meaning::kLinkTimeOptimization);
}

absl::StatusOr<CheckedFlags> CheckFlags(Env& env, const Toolchain& toolchain, v1::Language language, FlagPolicy policy,
                                        const std::vector<std::string>& compile_flags,
                                        const std::vector<std::string>& link_flags) {
  CheckedFlags result;
  HostFacts own_facts(env);
  const LanguageTraits& traits = TraitsOf(language);
  FlagContext context{env,   toolchain, traits, policy, toolchain.facts != nullptr ? *toolchain.facts : own_facts,
                      result};
  KERNIX_RETURN_IF_ERROR(CheckText(compile_flags));
  KERNIX_RETURN_IF_ERROR(CheckText(link_flags));
  KERNIX_RETURN_IF_ERROR(CheckEachIsOne(*traits.compile_flags, compile_flags));
  KERNIX_RETURN_IF_ERROR(CheckEachIsOne(*traits.link_flags, link_flags));
  KERNIX_RETURN_IF_ERROR(CheckHost(context, compile_flags));
  KERNIX_RETURN_IF_ERROR(context.nvcc() ? CheckNvccFlags(context, compile_flags)
                                        : CheckHostFlags(context, compile_flags, result.host));
  KERNIX_RETURN_IF_ERROR(CheckLinkFlags(context, link_flags));
  KERNIX_RETURN_IF_ERROR(AddSpareParts(context));
  return result;
}

namespace {

// A number and a letter: "a" for exactly this GPU, "f" for its family, empty for this GPU and newer ones. Pairs sort in
// the order that CheckArchitectures() promises.
using Architecture = std::pair<int, std::string>;

std::string Name(const Architecture& architecture) { return StrCat("sm_", architecture.first, architecture.second); }

std::optional<Architecture> Parse(std::string text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  Architecture result;
  if (text.ends_with('a') || text.ends_with('f')) {
    result.second = text.back();
    text.pop_back();
  }
  const size_t dot = text.find('.');
  const bool dotted = dot != std::string::npos && dot + 2 == text.size();  // "8.6", "12.0"
  if (dotted) text.erase(dot, 1);
  const bool digits = text.size() >= 2 && text.size() <= 4 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits || !absl::SimpleAtoi(text, &result.first)) return std::nullopt;
  return result;
}

std::string Known(const CudaToolkit& cuda) {
  return absl::StrJoin(cuda.architectures, ", ", [](std::string* out, int number) { StrAppend(out, "sm_", number); });
}

absl::Status CheckKnown(const CudaToolkit& cuda, const Architecture& architecture) {
  const std::vector<int>& known = cuda.architectures;
  if (std::find(known.begin(), known.end(), architecture.first) != known.end()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("nvcc ", cuda.version, " cannot compile for ", Name(architecture), ". It supports ",
                          Known(cuda), ". Choose one of these with compute_capability, or use another CUDA toolkit"));
}

// The meaning of nvcc's words; empty for any other text.
std::set<Architecture> All(const CudaToolkit& cuda, std::string_view text) {
  std::set<Architecture> all;
  if (text != "all" && text != "all-major") return all;
  for (const int number : cuda.architectures) {
    const bool is_major = number % 10 == 0 || number == cuda.architectures.front();
    if (text == "all" || is_major) all.insert({number, ""});
  }
  return all;
}

// For the GPU of this number alone: with wgmma, TMA multicast or FP4, which the plain target lacks since 9.0.
void MakeSpecific(const CudaToolkit& cuda, Architecture& architecture) {
  constexpr int kFirstSpecific = 90, kFirstWithFamily = 120;
  const bool has_families = cuda.major_version > 12 || (cuda.major_version == 12 && cuda.minor_version >= 9);
  if (architecture.first < kFirstSpecific || !architecture.second.empty()) return;
  architecture.second.assign(1, architecture.first >= kFirstWithFamily && has_families ? 'f' : 'a');
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckArchitectures(const CudaToolkit& cuda,
                                                            const std::vector<std::string>& architectures,
                                                            bool of_gpu) {
  std::set<Architecture> checked;
  for (const std::string& text : architectures) {
    if (const std::set<Architecture> all = All(cuda, text); !all.empty()) {
      checked.insert(all.begin(), all.end());
      continue;
    }
    std::optional<Architecture> architecture = Parse(text);
    if (!architecture) {
      return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                       StrCat("\"", text, "\" is not a compute capability: write \"sm_86\" or \"8.6\""));
    }
    KERNIX_RETURN_IF_ERROR(CheckKnown(cuda, *architecture));
    if (of_gpu) MakeSpecific(cuda, *architecture);
    checked.insert(*architecture);
  }
  if (checked.empty()) {
    return MakeError(v1::ErrorDetail::INVALID_REQUEST, "no compute capability is given: write \"sm_86\" or \"8.6\"");
  }
  std::vector<std::string> names;
  names.reserve(checked.size());
  for (const Architecture& architecture : checked) names.push_back(Name(architecture));
  return names;
}

}  // namespace kernix::toolchain
