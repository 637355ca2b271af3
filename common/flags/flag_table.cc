// SPDX-License-Identifier: Apache-2.0
#include "common/flags/flag_table.h"

#include <algorithm>
#include <optional>

namespace kernix::flags {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSmallLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsSmallLetter(c) || (c >= 'A' && c <= 'Z'); }

bool HoldsOnly(std::string_view text, std::string_view signs, bool (*is_plain)(char)) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return is_plain(c) || signs.find(c) != signs.npos; });
}

bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }
bool IsSmallLetterOrDigit(char c) { return IsSmallLetter(c) || IsDigit(c); }

bool HoldsWordCharacters(std::string_view text) { return !text.empty() && HoldsOnly(text, "_+.-", IsLetterOrDigit); }

bool IsWord(std::string_view text) { return HoldsWordCharacters(text) && text.front() != '-'; }

bool IsPair(std::string_view text) {
  const size_t equals = text.find('=');
  return equals != text.npos && IsWord(text.substr(0, equals)) && HoldsWordCharacters(text.substr(equals + 1));
}

bool IsWords(std::string_view text) {
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    if (!IsWord(text.substr(0, comma))) return false;
    text.remove_prefix(comma + 1);
  }
  return IsWord(text);
}

}  // namespace

bool IsOfKind(unsigned kinds, std::string_view value) {
  const auto may_be = [&](unsigned kind) { return (kinds & kind) != 0; };
  return (may_be(kNumber) && !value.empty() && HoldsOnly(value, "", IsDigit)) || (may_be(kWord) && IsWord(value)) ||
         (may_be(kWords) && IsWords(value)) || (may_be(kNumbers) && !value.empty() && HoldsOnly(value, ":", IsDigit)) ||
         (may_be(kPair) && IsPair(value)) || (may_be(kEnding) && HoldsOnly(value, "-_", IsSmallLetterOrDigit)) ||
         may_be(kAnyValue);
}

namespace {

struct Spelled {
  std::optional<std::string_view> value;  // in the same word
  bool value_is_next = false;
  bool takes_value = true;  // false for "-c=x", where "-c" has none
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
  if (word.front() == '=') return Spelled{.value = word.substr(1), .takes_value = false};
  return std::nullopt;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& words, size_t next) : words_(words), next_(next) {
    flag_.words = {words[next]};
  }

  Flag Read(const Table& table) && {
    for (const Table* from = &table; from != nullptr && !is_decided_; from = from->otherwise) Search(*from);
    if (value_is_next_ && !flag_.lacks_value) flag_.words.push_back(flag_.value);
    return std::move(flag_);
  }

 private:
  void Search(const Table& table) {
    const std::string_view word = words_[next_];
    for (const Rule& rule : table.rules) {
      for (std::string_view rest = rule.spellings; !rest.empty() && !is_decided_;) {
        const std::string_view spelling = rest.substr(0, rest.find('|'));
        rest.remove_prefix(std::min(spelling.size() + 1, rest.size()));
        Try(rule, spelling, word);
        if (table.two_dashes && word.starts_with("--")) Try(rule, spelling, word.substr(1));
      }
    }
  }

  void Try(const Rule& rule, std::string_view spelling, std::string_view word) {
    if (is_decided_) return;
    const std::optional<Spelled> spelled = Match(spelling, word);
    if (!spelled) return;
    std::optional<std::string_view> value = spelled->value;
    if (spelled->value_is_next && next_ + 1 < words_.size()) value = words_[next_ + 1];
    const bool fits = rule.user != User::kAnyone || !value || (spelled->takes_value && IsOfKind(rule.values, *value));
    if (flag_.rule != nullptr && !fits) return;
    flag_.rule = &rule;
    flag_.fits_kind = fits;
    flag_.value = value.value_or("");
    flag_.lacks_value = spelled->value_is_next && !value;
    value_is_next_ = spelled->value_is_next;
    is_decided_ = fits;
  }

  const std::vector<std::string>& words_;
  const size_t next_;
  Flag flag_;
  bool value_is_next_ = false;
  bool is_decided_ = false;
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

}  // namespace kernix::flags
