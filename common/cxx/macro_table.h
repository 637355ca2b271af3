// SPDX-License-Identifier: Apache-2.0
//
// The macros of a text, and the expansion of their uses.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// Limits the cost of macros, because sources come from other users. Each field counts down; at 0, macros stay
// unexpanded. Fuzzers take hundreds of times as long for a token as kernixd, so in their build the limits are small.
struct MacroBudget {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  size_t tokens = 20'000;
  size_t text = 1 << 20;
  size_t work = 300'000;
#else
  size_t tokens = 1'000'000;  // tokens that macros produce
  size_t text = 32 << 20;     // bytes of these tokens: pasting and long arguments make large tokens out of short texts
  size_t work = 16'000'000;
#endif
};

// A marker in a token sequence: "#if", "#else" or "#endif".
Token Mark(std::string_view text, const Token& at);

// If conditionals decide the meaning of a name, a use of it expands to all meanings, each as a branch between marks.
class MacroTable {
 public:
  // The most meanings of one name. A further one replaces the oldest.
  static constexpr size_t kMaxChoices = 8;

  // `storage` receives the text of pasted tokens. `storage` and `budget` must outlive the table.
  MacroTable(std::deque<std::string>& storage, MacroBudget& budget) : storage_(storage), budget_(budget) {}

  // `line` is the text after `#define`. `certain` means that no conditional decides whether the definition is compiled;
  // otherwise, the name keeps its earlier meanings as well.
  void Define(absl::Span<const Token> line, bool certain);
  void Undefine(std::string_view name, bool certain);

  // Whether `name` is a macro here in any branch of the conditionals.
  bool IsDefined(std::string_view name) const;

  // Appends the expansion of `tokens` to `out`.
  void Expand(absl::Span<const Token> tokens, std::vector<Token>& out);

 private:
  struct Macro {
    bool function_like = false;
    bool variadic = false;
    std::vector<std::string_view> parameters;
    std::vector<Token> body;
  };
  // The meanings of a name, latest first.
  struct Choices {
    std::vector<Macro> macros;
    bool may_be_none = true;
  };

  static size_t ReadParameters(absl::Span<const Token> line, Macro& macro);
  static bool Alike(const Macro& a, const Macro& b);
  const Choices* Expandable(const Token& token) const;

  size_t ExpandUse(const Choices& choices, const Token& name, absl::Span<const Token> tokens, size_t next,
                   std::vector<Token>& out);
  size_t ExpandOne(const Macro& macro, const Token& name, absl::Span<const Token> tokens, size_t next,
                   std::vector<Token>& out);
  size_t ExpandChoices(const Choices& choices, const Token& name, absl::Span<const Token> tokens, size_t next,
                       std::vector<Token>& out);
  size_t End(const Macro& macro, absl::Span<const Token> tokens, size_t next);
  void ExpandBody(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments, const Token& use,
                  std::vector<Token>& out);
  std::vector<Token> Substitute(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments);
  static std::vector<Token> WithVaOpt(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments);
  std::vector<Token> Piece(const Macro& macro, const std::vector<absl::Span<const Token>>& arguments,
                           absl::Span<const Token> body, size_t& i, bool pasted);
  bool IsSpent() const { return budget_.tokens == 0 || budget_.text == 0 || budget_.work == 0; }
  void Paste(Token& left, const Token& right);

  std::deque<std::string>& storage_;
  MacroBudget& budget_;
  absl::flat_hash_map<std::string_view, Choices> macros_;
  std::vector<std::string_view> active_;
  size_t nesting_ = 0;
};

}  // namespace kernix::language
