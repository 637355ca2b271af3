// SPDX-License-Identifier: Apache-2.0
//
// The flags of a tool that kernix acts on or refuses, and those whose value is the next word. There is one table per
// tool. The client, the daemon's policy and the plan all read flags from the tables with Read(). A flag without a row
// goes to the tool as it is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kernix::flags {

enum class User {
  kAnyone,
  kOwnDaemon,  // users of a daemon that runs under their own account
  kNobody,
};

enum class Meaning {
  kNothingMore,  // kernix only passes it to the tool
  // Preprocessor input.
  kDefine,
  kUndefine,
  // Header folders, in search order.
  kIncludePath,
  kSystemIncludePath,
  kLastIncludePath,
  // Flags of another tool.
  kHostFlags,
  kAssemblerFlags,
  kPtxasFlags,
  kCudafeFlags,
  kLinkerFlags,
  // Link inputs.
  kLibraryPath,
  kLibrary,
  kStaticLibraries,  // libraries named from here on: -Bstatic
  kSharedLibraries,  // -Bdynamic
  // Properties that a plan must know.
  kStandard,
  kLinkTimeOptimization,
  kProcessRounding,  // at the link: makes the whole process flush denormal numbers to zero
  kRelocatableDeviceCode,
  kDeviceCompile,  // -rdc=true, and -c, which kernix controls
  kThreads,        // how many threads nvcc may use
  // Flags that kernix replaces or handles itself.
  kProcessor,        // may be "native"
  kFileForKey,       // the value names a file whose content goes into the key
  kHostCompiler,     // names the host compiler
  kAnyHostCompiler,  // also accepts one that nvcc refuses
  kCudart,           // which CUDA runtime to link
  kIsTheCaseAnyway,  // redundant, so dropped
};

// `spellings` lists the flag as the tool accepts it. "|" separates two spellings, "[...]" encloses an optional part,
// and "*" stands for the value. The character before "*" says how the value is attached: none when it is joined to the
// name ("-I*"), "=" ("-std=*"), a blank when it is the next word ("-I *"), or ":" for either "=" or the next word
// ("-maxrregcount:*").
struct Rule {
  std::string_view spellings;
  User user = User::kAnyone;
  Meaning meaning = Meaning::kNothingMore;
  std::string_view reason = {};  // why not everyone may use it, or what to use instead
};

constexpr Rule Anyone(std::string_view spellings, Meaning meaning = Meaning::kNothingMore) {
  return {spellings, User::kAnyone, meaning};
}
constexpr Rule OwnDaemon(std::string_view spellings, std::string_view reason, Meaning meaning = Meaning::kNothingMore) {
  return {spellings, User::kOwnDaemon, meaning, reason};
}
constexpr Rule Nobody(std::string_view spellings, std::string_view reason, Meaning meaning = Meaning::kNothingMore) {
  return {spellings, User::kNobody, meaning, reason};
}

// The first rule with a fitting spelling applies. A spelling without a value also fits "-flag=value".
struct Table {
  std::span<const Rule> rules;
  bool two_dashes = false;           // the tool accepts "--x" for "-x"
  const Table* otherwise = nullptr;  // the table for flags that this one does not contain
};

extern const Table kCompiler;        // g++ and clang++ when they compile
extern const Table kCompilerAtLink;  // g++ and clang++ when they link
extern const Table kAssembler;       // words after -Wa
extern const Table kLinker;          // words after -Wl and -Xlinker
extern const Table kNvcc;
extern const Table kPtxas;
extern const Table kCudafe;

// Reasons for refusing flags that apply to several tools.
inline constexpr std::string_view kInclude =
    "pass header folders in extra_include_paths, so that their content becomes part of the key";
inline constexpr std::string_view kPreInclude = "write an #include at the top of the source instead";
inline constexpr std::string_view kLinkFlag = "it is a link flag: pass it in extra_ldflags";
inline constexpr std::string_view kFileOfFlags = "write the flags out instead of naming a file";
inline constexpr std::string_view kNamesFile = "this kernixd is shared and reads no file that a flag names";
inline constexpr std::string_view kVerbose = "set verbose instead";

// One flag of a command line.
struct Flag {
  const Rule* rule = nullptr;      // null: the table has no rule for it
  std::vector<std::string> words;  // one word, or two if the value is the next word
  std::string value;
  bool lacks_value = false;  // the value should be the next word, but there is none

  const std::string& text() const { return words.front(); }
  User user() const { return rule == nullptr ? User::kAnyone : rule->user; }
  Meaning meaning() const { return rule == nullptr ? Meaning::kNothingMore : rule->meaning; }
  std::string_view reason() const { return rule == nullptr ? std::string_view() : rule->reason; }
};

// Reads the flag that begins at words[next] and moves `next` past it.
Flag Read(const Table& table, const std::vector<std::string>& words, size_t& next);

std::vector<Flag> ReadAll(const Table& table, const std::vector<std::string>& words);

// Whether any of the flags has this meaning.
bool Has(const Table& table, const std::vector<std::string>& words, Meaning meaning);

// Splits `value` as nvcc does: at each of `separators` outside literals and parentheses; drops empty pieces. Outside
// literals, a backslash is removed and makes the next character literal: "X=a\,b" is "X=a,b", and "X=\"a\"" is "X="a"".
std::vector<std::string> SplitNvccList(std::string_view value, std::string_view separators);

// nvcc's words for the host compiler, when it compiles: what -Xcompiler holds.
std::vector<std::string> HostWordsAtCompile(const std::vector<std::string>& nvcc_words);

// When it links: all of them, each in the spelling of the host compiler. "-library-path /x" is "-L/x", "-Xlinker=a,b"
// is "-Wl,a,b", and what -Xcompiler holds stands by itself. -cudart is left out, since the host compiler has nothing
// like it. A flag that lacks its value stays as it is.
std::vector<std::string> HostWordsAtLink(const std::vector<std::string>& nvcc_words);

// Each flag is an element of its list. Code that was written for a shell has several in one string, and a compiler
// would take the second one for a part of the first one's value, perhaps in silence: "-DA=8 -DB=9".

// INVALID_REQUEST if one of the flag's words holds another flag, or the flag's value, behind a blank outside quotes and
// parentheses. A value that is a list of another tool's flags may hold several.
absl::Status CheckIsOneFlag(const Table& table, const Flag& flag);

}  // namespace kernix::flags
