// SPDX-License-Identifier: Apache-2.0
//
// What flags of a tool look like, what they mean to kernix, and who may use them: one table a tool (tables.h), which
// the client, the daemon's policy and the plan read with Read().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/flags/value_kind.h"

namespace kernix::flags {

enum class User {
  kAnyone,     // with a value of a kind that the rule names; with any other value as kOwnDaemon
  kOwnDaemon,  // users of a daemon that runs as themselves
  kNobody,
};

enum class Meaning {
  kNothingMore,  // kernix passes it to the tool, that is all
  // Lines of the source.
  kDefine,
  kUndefine,
  // Folders of headers, in the order in which they are searched.
  kIncludePath,
  kSystemIncludePath,
  kLastIncludePath,
  // Flags of another tool.
  kHostFlags,
  kAssemblerFlags,
  kPtxasFlags,
  kCudafeFlags,
  kLinkerFlags,
  // What is linked.
  kLibraryPath,
  kLibrary,
  kStaticLibraries,  // libraries named from here on: -Bstatic
  kSharedLibraries,  // -Bdynamic
  // What a plan has to know.
  kStandard,
  kLinkTimeOptimization,
  kProcessRounding,  // at the link: makes the whole process flush denormal numbers to zero
  kRelocatableDeviceCode,
  kDeviceCompile,  // -rdc=true, and -c, which is kernix's business
  kThreads,        // how many nvcc may use
  // What kernix replaces, or sees to itself.
  kProcessor,        // may be "native"
  kFileForKey,       // the value is a file whose content goes into the key
  kHostCompiler,     // which one
  kAnyHostCompiler,  // also one that nvcc refuses
  kCudart,           // which CUDA runtime is linked
  kIsTheCaseAnyway,  // dropped
};

// `spellings` are the flag as the tool takes it. "|" stands between two spellings, "[...]" around what can be left out,
// and "*" for the value. Before it stands nothing when the value is joined to the name ("-I*"), "=" ("-std=*"), a
// blank when it is the next word ("-I *"), or ":" for either "=" or the next word ("-maxrregcount:*").
struct Rule {
  std::string_view spellings;
  User user = User::kAnyone;
  unsigned values = 0;  // kinds of value, for kAnyone
  Meaning meaning = Meaning::kNothingMore;
  std::string_view reason = {};  // why not everybody may use it, or what to use instead
};

constexpr Rule Anyone(std::string_view spellings, unsigned values = 0, Meaning meaning = Meaning::kNothingMore) {
  return {spellings, User::kAnyone, values, meaning};
}
constexpr Rule OwnDaemon(std::string_view spellings, std::string_view reason = {},
                         Meaning meaning = Meaning::kNothingMore) {
  return {spellings, User::kOwnDaemon, 0, meaning, reason};
}
constexpr Rule Nobody(std::string_view spellings, std::string_view reason, Meaning meaning = Meaning::kNothingMore) {
  return {spellings, User::kNobody, 0, meaning, reason};
}

// The first rule that fits a flag counts. One whose spelling fits, but that takes no value, or none of this kind,
// counts when no other does.
struct Table {
  std::span<const Rule> rules;
  bool two_dashes = false;           // the tool takes "--x" for "-x"
  const Table* otherwise = nullptr;  // where flags are looked up that this table does not have
};

// One flag as it was given.
struct Flag {
  const Rule* rule = nullptr;      // null: the table has none for it
  std::vector<std::string> words;  // one, or two when the value is the next word
  std::string value;
  bool lacks_value = false;  // there is no next word
  bool fits_kind = true;     // the value is of one of the rule's kinds

  const std::string& text() const { return words.front(); }
  // Of what no rule knows, nobody can say that it is harmless.
  User user() const { return rule == nullptr || !fits_kind ? User::kOwnDaemon : rule->user; }
  Meaning meaning() const { return rule == nullptr ? Meaning::kNothingMore : rule->meaning; }
  std::string_view reason() const { return rule == nullptr ? std::string_view() : rule->reason; }
};

// Reads the flag that begins at words[next], and moves `next` behind it.
Flag Read(const Table& table, const std::vector<std::string>& words, size_t& next);

std::vector<Flag> ReadAll(const Table& table, const std::vector<std::string>& words);

// Whether one of the flags has this meaning.
bool Has(const Table& table, const std::vector<std::string>& words, Meaning meaning);

}  // namespace kernix::flags
