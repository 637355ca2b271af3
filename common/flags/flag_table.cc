// SPDX-License-Identifier: Apache-2.0
#include "common/flags/flag_table.h"

#include <algorithm>
#include <optional>

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

}  // namespace kernix::flags
