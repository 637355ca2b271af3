// SPDX-License-Identifier: Apache-2.0
//
// The macros of a text, and what their uses expand to.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/cxx/branches.h"
#include "common/cxx/lexer.h"

namespace kernix::language {

// What macros may cost: sources come from other users. Each goes down as it is used; macros are left alone then.
struct MacroBudget {
  size_t tokens = 1'000'000;  // that they make
  size_t text = 32 << 20;  // bytes of these tokens: pasting, and arguments that are long, make large ones out of little
  size_t work = 16'000'000;
};

// A mark in a row of tokens: "#if", "#else", "#endif".
Token Mark(std::string_view text, const Token& at);

// Where it depends on conditionals what a name is, its use expands to all that it may be, each as a branch between
// marks.
class MacroTable {
 public:
  // Of one name; the oldest is forgotten.
  static constexpr size_t kMaxChoices = 8;

  // `storage` gets the text of pasted tokens. All of them must outlive the table.
  MacroTable(const Branches& branches, std::deque<std::string>& storage, MacroBudget& budget)
      : branches_(branches), storage_(storage), budget_(budget) {}

  // `line` is what follows `#define`.
  void Define(absl::Span<const Token> line);
  void Undefine(std::string_view name);

  // Whether `name` is a macro here, whatever the conditionals say.
  bool IsDefined(std::string_view name) const;

  // A header may have changed any macro. What is known of them is still what uses expand to: people include first.
  void NoteHeader() { ++headers_; }
  // Whether a header may have changed `name` since it was defined.
  bool MayHaveChanged(std::string_view name) const;
  // The name that `name` is the macro of, if it is one for a single name.
  std::optional<std::string_view> StandsFor(std::string_view name) const;

  // Appends the expansion of `tokens` to `out`.
  void Expand(absl::Span<const Token> tokens, std::vector<Token>& out);

  // Whether some use was left alone because it is nested too deeply, or the budget was spent.
  bool IsCut() const { return too_deep_ || budget_.tokens == 0 || budget_.work == 0; }

 private:
  struct Macro {
    bool is_defined = true;  // else an #undef
    bool function_like = false;
    bool variadic = false;
    std::vector<std::string_view> parameters;
    std::vector<Token> body;
    int place = 0;    // in `branches_`
    int meaning = 0;  // the same for what the same name stands for alike
    int headers = 0;  // `headers_` there
  };
  // What a name may be here, the latest first.
  struct Choices {
    std::vector<const Macro*> macros;
    bool may_be_none = true;
  };

  static size_t ReadParameters(absl::Span<const Token> line, Macro& macro);
  static bool Alike(const Macro& a, const Macro& b);
  void Add(std::string_view name, Macro macro);
  Choices ChoicesFor(std::string_view name) const;
  Choices Expandable(const Token& token) const;

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

  const Branches& branches_;
  std::deque<std::string>& storage_;
  MacroBudget& budget_;
  absl::flat_hash_map<std::string_view, std::vector<Macro>> macros_;
  std::vector<std::string_view> active_;
  size_t nesting_ = 0;
  bool too_deep_ = false;
  int headers_ = 0;   // that were included
  int meanings_ = 0;  // of macros
};

}  // namespace kernix::language
