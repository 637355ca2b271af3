// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/device_text.h"

#include <deque>

#include "daemon/language/read/declarations.h"

namespace kernix::language {
namespace {

bool IsLiteral(const Token& token) { return token.kind == TokenKind::kString || token.kind == TokenKind::kCharacter; }

// Writes tokens with one form of white space between them.
class Writer {
 public:
  void Add(const Token& token) {
    text_ += Separator(token);
    text_ += token.text;
    last_ = token;
  }

  // A preprocessor line.
  void AddDirective(const std::vector<Token>& directive, bool is_marker) {
    if (!text_.empty()) text_ += '\n';
    last_ = {};
    for (const Token& token : directive) {
      Add(token);
      if (is_marker && token.starts_directive) text_ += " 1";
    }
    text_ += '\n';
    last_ = {};
  }

  std::string Finish() { return std::move(text_) + "\n"; }

 private:
  std::string_view Separator(const Token& token) const {
    if (last_.text.empty()) return "";
    const bool is_prefix = last_.IsIdentifier() && IsLiteral(token);  // of a literal: `u8"a"`
    if (!token.space_before && (is_prefix || MayJoin(last_, token))) return "";
    // No line gets too long, and none begins like a directive.
    const bool ends_line = IsOneOf(last_, {";", "{", "}"}) && !token.text.starts_with('#');
    return ends_line ? "\n" : " ";
  }

  std::string text_;
  Token last_;
};

}  // namespace

bool MayJoin(const Token& left, const Token& right) {
  if (left.text.empty()) return false;
  if (right.IsIdentifier()) return IsLiteral(left);
  if (left.kind != TokenKind::kPunctuator || right.kind != TokenKind::kPunctuator) return false;
  const char first = left.text.back();
  const char second = right.text.front();
  if (second == '=') return std::string_view("=!<>+-*/%&|^").find(first) != std::string_view::npos;
  if (second == '*') return first == '>' || first == '.';
  if (second == '>') return first == '>' || first == '-' || first == '=';
  return first == second && std::string_view("+-&|<:#.").find(first) != std::string_view::npos;
}

bool AsksForItsLine(const Token& token) {
  return token.text.starts_with("__builtin_") &&
         IsOneOf(token, {"__builtin_LINE", "__builtin_COLUMN", "__builtin_source_location"});
}

bool LineMarkers::Counts(std::vector<Token>& directive) {
  if (directive.size() < 3 || directive[1].kind != TokenKind::kNumber) return true;
  directive.erase(directive.begin() + 1);
  std::string file;
  bool changes_file = false;
  for (const Token& token : directive) {
    const bool enters_or_leaves = token.Is("1") || token.Is("2");
    changes_file = changes_file || enters_or_leaves;
    if (!enters_or_leaves) file.append(token.text).append(1, ' ');
  }
  if (!changes_file && file == file_) return false;
  file_ = std::move(file);
  return true;
}

std::optional<std::string> CanonicalDeviceText(std::string_view preprocessed) {
  std::deque<std::string> storage;
  Lexer lexer(preprocessed, storage);
  LineMarkers markers;
  Writer writer;
  std::vector<Token> directive;
  const auto end_directive = [&] {
    const size_t tokens = directive.size();
    if (tokens > 0 && markers.Counts(directive)) writer.AddDirective(directive, directive.size() < tokens);
    directive.clear();
  };
  for (Token token; lexer.Next(token);) {
    if (AsksForItsLine(token)) return std::nullopt;
    if (token.starts_directive || !token.in_directive) end_directive();
    if (token.in_directive) {
      directive.push_back(token);
    } else {
      writer.Add(token);
    }
  }
  end_directive();
  return writer.Finish();
}

}  // namespace kernix::language
