// SPDX-License-Identifier: Apache-2.0
#include "daemon/codegen/file_reads.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "daemon/base/error.h"
#include "daemon/base/paths.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/strings.h"
#include "daemon/codegen/lexer.h"
#include "daemon/codegen/preprocessor.h"

namespace kernix::codegen {
namespace {

constexpr std::string_view kDataAdvice =
    "kernix cannot take the file's content into account. Write the data into a header that the source includes (`xxd "
    "-i` does), or pass it to the kernel as an argument";
constexpr std::string_view kAssemblerAdvice =
    "kernix cannot take the file's content into account. Write the assembler's text into the source";

absl::Status Refuse(const TextView& text, const Token& at, std::string_view what, std::string_view why) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat(text.label, ":", at.line, ": ", what, ": ", why));
}

bool IsAssembly(const Token& token) { return token.Is("asm") || token.Is("__asm__") || token.Is("__asm"); }

// Whether `literal` holds the assembler's directive `name`, not just a longer word.
bool HoldsDirective(std::string_view literal, std::string_view name) {
  for (size_t at = literal.find(name); at != std::string_view::npos; at = literal.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool ends = end == literal.size() || !IsIdentifierPart(literal[end]);
    const bool after_escape = at > 1 && literal[at - 2] == '\\';  // "\n.incbin"
    const bool begins = at == 0 || after_escape || !IsIdentifierPart(literal[at - 1]);
    if (begins && ends) return true;
  }
  return false;
}

// What one text makes the tools read.
class FileReads {
 public:
  FileReads(const TextView& text, const FileReadRules& rules)
      : text_(text), tokens_(Lex(text.text, 0).tokens), rules_(rules) {}

  absl::Status Check() const {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].starts_directive) KERNIX_RETURN_IF_ERROR(CheckDirective(i));
      if (tokens_[i].IsIdentifier()) KERNIX_RETURN_IF_ERROR(CheckQuestion(i));
    }
    return absl::OkStatus();
  }

  bool HasAssembly() const { return std::any_of(tokens_.begin(), tokens_.end(), IsAssembly); }

  // For strings that end up in an `asm`.
  absl::Status CheckStrings() const {
    for (const Token& token : tokens_) {
      if (token.kind == TokenKind::kString) KERNIX_RETURN_IF_ERROR(CheckString(token));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckString(const Token& token) const {
    if (HoldsDirective(token.text, ".incbin")) return Refuse(text_, token, ".incbin in assembler text", kDataAdvice);
    if (HoldsDirective(token.text, ".include")) {
      return Refuse(text_, token, ".include in assembler text", kAssemblerAdvice);
    }
    return absl::OkStatus();
  }

  absl::Status CheckDirective(size_t i) const {
    if (i + 2 >= tokens_.size()) return absl::OkStatus();
    const Token& name = tokens_[i + 1];
    if (name.Is("embed")) return Refuse(text_, name, "#embed", kDataAdvice);
    const bool include = name.Is("include") || name.Is("include_next") || name.Is("import");
    return include ? CheckName(i + 2, "#include", /*question=*/false) : absl::OkStatus();
  }

  absl::Status CheckQuestion(size_t i) const {
    const Token& name = tokens_[i];
    if (name.Is("__has_embed") && !IsFeatureTest(i)) return Refuse(text_, name, "__has_embed", kDataAdvice);
    const bool question = name.Is("__has_include") || name.Is("__has_include_next");
    const bool asks = question && i + 2 < tokens_.size() && tokens_[i + 1].Is("(");
    return asks ? CheckName(i + 2, "__has_include", /*question=*/true) : absl::OkStatus();
  }

  // `#ifdef __has_embed`, `defined(__has_embed)`: whether the compiler has it, no file.
  bool IsFeatureTest(size_t i) const { return i + 1 >= tokens_.size() || !tokens_[i + 1].Is("("); }

  absl::Status CheckName(size_t first, std::string_view directive, bool question) const {
    size_t end = first;
    while (end < tokens_.size() && tokens_[end].in_directive && !tokens_[end].starts_directive) ++end;
    const std::optional<Include> include = ReadInclude(absl::MakeSpan(tokens_).subspan(first, end - first));
    if (!include || !include->path.starts_with('/')) return absl::OkStatus();
    const std::string path = NormalizePath(include->path);
    const std::string why = rules_.absolute_path(path, question);
    return why.empty() ? absl::OkStatus() : Refuse(text_, tokens_[first], StrCat(directive, " ", path), why);
  }

  const TextView& text_;
  const std::vector<Token> tokens_;
  const FileReadRules& rules_;
};

}  // namespace

absl::Status CheckFileReads(const std::vector<TextView>& texts, const FileReadRules& rules) {
  // Any string may end up in the `asm` of another text, which may still come.
  bool assembly = false;
  absl::Status strings;
  for (const TextView& text : texts) {
    const FileReads reads(text, rules);
    KERNIX_RETURN_IF_ERROR(reads.Check());
    assembly = assembly || reads.HasAssembly();
    if (strings.ok() && rules.assembler_text) strings = reads.CheckStrings();
  }
  return assembly ? strings : absl::OkStatus();
}

}  // namespace kernix::codegen
