// SPDX-License-Identifier: Apache-2.0
#include "common/flags/flag_table.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix::flags {
namespace {

struct Spelled {
  std::optional<std::string_view> value;  // in the same word
  bool value_is_next = false;
};

// Matches `word` against `spelling`. Returns nullopt if it does not match.
std::optional<Spelled> Match(std::string_view spelling, std::string_view word) {
  for (; !spelling.empty(); spelling.remove_prefix(1)) {
    const char c = spelling.front();
    if (c == '*') return Spelled{.value = word};
    if (c == '[') {
      const size_t close = spelling.find(']');
      const std::string_view inside = spelling.substr(1, close - 1);
      const std::string_view rest = spelling.substr(close + 1);
      std::optional<Spelled> with;
      if (rest.empty()) {
        with = Match(inside, word);
      } else if (word.starts_with(inside)) {
        with = Match(rest, word.substr(inside.size()));
      }
      return with ? with : Match(rest, word);
    }
    if (word.empty() && (c == ' ' || c == ':')) return Spelled{.value_is_next = true};
    if (word.empty() || c == ' ' || word.front() != (c == ':' ? '=' : c)) return std::nullopt;
    word.remove_prefix(1);
  }
  if (word.empty()) return Spelled{};
  if (word.front() == '=') return Spelled{.value = word.substr(1)};
  return std::nullopt;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& words, size_t next) : words_(words), next_(next) {
    flag_.words = {words[next]};
  }

  Flag Read(const Table& table) && {
    for (const Table* from = &table; from != nullptr && flag_.rule == nullptr; from = from->otherwise) Search(*from);
    return std::move(flag_);
  }

 private:
  void Search(const Table& table) {
    const std::string_view word = words_[next_];
    for (const Rule& rule : table.rules) {
      for (std::string_view rest = rule.spellings; !rest.empty();) {
        const std::string_view spelling = rest.substr(0, rest.find('|'));
        rest.remove_prefix(std::min(spelling.size() + 1, rest.size()));
        std::optional<Spelled> spelled = Match(spelling, word);
        if (!spelled && table.two_dashes && word.starts_with("--")) spelled = Match(spelling, word.substr(1));
        if (spelled) return Take(rule, *spelled);
      }
    }
  }

  void Take(const Rule& rule, const Spelled& spelled) {
    flag_.rule = &rule;
    flag_.lacks_value = spelled.value_is_next && next_ + 1 == words_.size();
    if (spelled.value_is_next && !flag_.lacks_value) {
      flag_.value = words_[next_ + 1];
      flag_.words.push_back(flag_.value);
    } else {
      flag_.value = spelled.value.value_or("");
    }
  }

  const std::vector<std::string>& words_;
  const size_t next_;
  Flag flag_;
};

}  // namespace

Flag Read(const Table& table, const std::vector<std::string>& words, size_t& next) {
  Flag flag = Reader(words, next).Read(table);
  next += flag.words.size();
  return flag;
}

std::vector<Flag> ReadAll(const Table& table, const std::vector<std::string>& words) {
  std::vector<Flag> flags;
  for (size_t next = 0; next < words.size();) flags.push_back(Read(table, words, next));
  return flags;
}

bool Has(const Table& table, const std::vector<std::string>& words, Meaning meaning) {
  const std::vector<Flag> flags = ReadAll(table, words);
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.meaning() == meaning; });
}

namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view separators) : separators_(separators) {}

  std::vector<std::string> Split(std::string_view value) && {
    for (const char c : value) Take(c);
    if (escaped_ && quote_ == '\0') piece_ += '\\';  // there is nothing to escape
    EndPiece();
    return std::move(pieces_);
  }

 private:
  void Take(char c) {
    if (std::exchange(escaped_, false)) {
      piece_ += c;
    } else if (c == '\\') {
      escaped_ = true;
      if (quote_ != '\0') piece_ += c;
    } else if (quote_ == '\0' && depth_ == 0 && separators_.find(c) != separators_.npos) {
      EndPiece();
    } else {
      Note(c);
      piece_ += c;
    }
  }

  void Note(char c) {
    if (c == '"' || c == '\'') {
      if (quote_ == '\0') {
        quote_ = c;
      } else if (quote_ == c) {
        quote_ = '\0';
      }
    }
    if (quote_ != '\0') return;
    if (c == '(') ++depth_;
    if (c == ')' && depth_ > 0) --depth_;
  }

  void EndPiece() {
    if (!piece_.empty()) pieces_.push_back(std::exchange(piece_, ""));
  }

  const std::string_view separators_;
  std::vector<std::string> pieces_;
  std::string piece_;
  char quote_ = '\0';
  bool escaped_ = false;
  int depth_ = 0;
};

}  // namespace

std::vector<std::string> SplitNvccList(std::string_view value, std::string_view separators) {
  return Splitter(separators).Split(value);
}

namespace {

void Append(std::string_view prefix, const std::vector<std::string>& pieces, std::vector<std::string>& words) {
  for (const std::string& piece : pieces) words.push_back(StrCat(prefix, piece));
}

// nvcc splits a value at its commas and, like the shell, at its blanks; folders may hold blanks.
void AppendAtLink(const Flag& flag, std::vector<std::string>& words) {
  const Meaning meaning = flag.lacks_value ? Meaning::kNothingMore : flag.meaning();
  if (meaning == Meaning::kCudart) return;
  if (meaning == Meaning::kHostFlags) return Append("", SplitNvccList(flag.value, ", "), words);
  if (meaning == Meaning::kLinkerFlags) return Append("-Wl,", {flag.value}, words);
  if (meaning == Meaning::kLibraryPath) return Append("-L", SplitNvccList(flag.value, ","), words);
  if (meaning == Meaning::kLibrary) return Append("-l", SplitNvccList(flag.value, ","), words);
  Append("", flag.words, words);
}

}  // namespace

std::vector<std::string> HostWordsAtCompile(const std::vector<std::string>& nvcc_words) {
  std::vector<std::string> words;
  for (const Flag& flag : ReadAll(kNvcc, nvcc_words)) {
    if (flag.meaning() == Meaning::kHostFlags) Append("", SplitNvccList(flag.value, ", "), words);
  }
  return words;
}

std::vector<std::string> HostWordsAtLink(const std::vector<std::string>& nvcc_words) {
  std::vector<std::string> words;
  for (const Flag& flag : ReadAll(kNvcc, nvcc_words)) AppendAtLink(flag, words);
  return words;
}

namespace {

constexpr std::string_view kBlanks = " \t\v\f\r";

// A word, parted at a blank.
struct Parts {
  std::string_view first;
  std::string_view rest;
};

bool IsBlank(char c) { return kBlanks.find(c) != kBlanks.npos; }

// Calls `visit` with the parts of `word` at each blank outside quotes and parentheses, until it returns an error.
// Returns that. Linear in the word, which a member of a shared daemon may make as long as a request. A word with a
// single quote has no parts: it is an apostrophe.
template <typename Visit>
absl::Status ForEachPart(std::string_view word, Visit visit) {
  char quote = '\0';
  for (const char c : word) {
    if (quote == '\0' ? c == '"' || c == '\'' : c == quote) quote = quote == '\0' ? c : '\0';
  }
  if (quote != '\0') return absl::OkStatus();
  int depth = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == ')') {
      depth += c == '(' ? 1 : -1;
    } else if (IsBlank(c) && depth <= 0 && i > 0 && !IsBlank(word[i - 1])) {
      const size_t next = word.find_first_not_of(kBlanks, i);
      if (next == word.npos) return absl::OkStatus();
      KERNIX_RETURN_IF_ERROR(visit(Parts{word.substr(0, i), word.substr(next)}));
    }
  }
  return absl::OkStatus();
}

bool LooksLikeFlag(std::string_view text) {
  const size_t dashes = text.starts_with("--") ? 2 : 1;
  return text.starts_with('-') && text.size() > dashes && absl::ascii_isalpha(static_cast<unsigned char>(text[dashes]));
}

// Names of most flags, and of few things behind a minus: "-O3", "-Wall", "-fopenmp", "-mavx2", "-ggdb".
bool IsNamedLikeFlag(std::string_view word) {
  constexpr std::string_view kFirstLetters = "OWfgm";
  static constexpr std::string_view kShort[] = {"-g",  "-w",    "-O",        "-s",       "-p",        "-pg",
                                                "-G",  "-ansi", "-pedantic", "-pthread", "-pipe",     "-rdynamic",
                                                "-dc", "-dlto", "-restrict", "-ewp",     "-res-usage"};
  if (std::ranges::find(kShort, word) != std::ranges::end(kShort)) return true;
  return word.size() > 2 && kFirstLetters.find(word[1]) != kFirstLetters.npos && word.find('(') == word.npos;
}

// A macro's value may be an expression: "a -b". One that stands in a word of its own is meant as it is, unless another
// macro follows.
bool IsFlagBehindMacro(const Table& table, std::string_view text, bool has_own_word) {
  if (!LooksLikeFlag(text)) return false;
  size_t next = 0;
  const std::string word(text.substr(0, text.find_first_of(kBlanks)));
  const Flag flag = Read(table, {word}, next);
  const bool is_macro = flag.meaning() == Meaning::kDefine || flag.meaning() == Meaning::kUndefine;
  return is_macro || (!has_own_word && (text.starts_with("--") || flag.rule != nullptr || IsNamedLikeFlag(word)));
}

bool HoldsFlagsOfAnotherTool(Meaning meaning) {
  return meaning == Meaning::kHostFlags || meaning == Meaning::kPtxasFlags || meaning == Meaning::kCudafeFlags;
}

// Whether the first part of a word is a flag that takes a word as its value: "-Xptxas -v", "-I /x".
bool TakesNextWord(const Table& table, std::string_view first) {
  size_t next = 0;
  const Flag flag = Read(table, {std::string(first), "value"}, next);
  return flag.rule != nullptr && next == 2;
}

absl::Status Refuse(std::string_view word, std::string_view what, const Parts& parts, std::string_view or_else) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat("\"", word, "\" is ", what, " in one string: write two, \"",
                                                            parts.first, "\" and \"", parts.rest, "\"", or_else));
}

}  // namespace

absl::Status CheckIsOneFlag(const Table& table, const Flag& flag) {
  if (HoldsFlagsOfAnotherTool(flag.meaning())) return absl::OkStatus();
  const bool is_macro = flag.meaning() == Meaning::kDefine || flag.meaning() == Meaning::kUndefine;
  for (const std::string& word : flag.words) {
    const bool is_value = &word != &flag.text();
    const std::string_view first = std::string_view(word).substr(0, word.find_first_of(kBlanks));
    const bool takes_next = !is_value && first.size() < word.size() && TakesNextWord(table, first);
    KERNIX_RETURN_IF_ERROR(ForEachPart(word, [&](const Parts& parts) {
      if (takes_next && parts.first == first) return Refuse(word, "a flag and its value", parts, "");
      if (is_macro ? IsFlagBehindMacro(table, parts.rest, is_value) : LooksLikeFlag(parts.rest)) {
        return Refuse(word, "two flags", parts, is_macro ? ". If it is one value, put it in parentheses" : "");
      }
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace kernix::flags
