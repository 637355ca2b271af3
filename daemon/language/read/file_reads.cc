// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/file_reads.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/base/paths.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/spec/source_text.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix::language {
namespace {

constexpr std::string_view kDataAdvice =
    "kernix cannot take the file's content into account. Write the data into a header that the source includes (with "
    "`xxd "
    "-i`, for example), or pass it to the kernel as an argument";
constexpr std::string_view kAssemblerAdvice =
    "kernix cannot take the file's content into account. Write the assembler's text into the source";

constexpr std::string_view kDependencyAdvice = "it asks for a file's age, but kernix sends only the content. Remove it";

constexpr std::string_view kSignAdvice =
    "nvcc's tools would take a line that begins with it for a directive, and this shared kernixd could not know which "
    "files it reads. Write the directive itself";

using Tokens = absl::Span<const Token>;

absl::Status Refuse(const TextView& text, const Token& at, std::string_view what, std::string_view why) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST, StrCat(text.label, ":", at.line, ": ", what, ": ", why));
}

bool IsAssembly(const Token& token) { return token.Is("asm") || token.Is("__asm__") || token.Is("__asm"); }

// Whether `literal` contains the assembler's directive `name`, not just a longer word.
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

bool HoldsWord(std::string_view text) { return std::any_of(text.begin(), text.end(), IsIdentifierPart); }

// Checks which files a text makes the tools read.
class FileReads {
 public:
  FileReads(const TextView& text, const FileReadRules& rules) : text_(text), rules_(rules) {
    LexInPieces(Lexer(text.text, storage_), [this](const std::vector<Token>& tokens, size_t first) {
      for (size_t i = first; i < tokens.size(); ++i) Look(tokens, i);
    });
  }

  // The first refusal.
  const absl::Status& status() const { return status_; }

  bool HasAssembly() const { return assembly_; }

  // The first refusal among strings, which applies if they end up in an `asm`.
  const absl::Status& strings() const { return strings_; }

 private:
  void Look(const std::vector<Token>& tokens, size_t i) {
    const Token& token = tokens[i];
    assembly_ = assembly_ || IsAssembly(token);
    if (status_.ok() && token.starts_directive) status_ = CheckDirective(tokens, i);
    if (status_.ok() && token.IsIdentifier()) status_ = CheckWord(tokens, i);
    if (status_.ok() && token.kind == TokenKind::kString) status_ = CheckPragma(token);
    if (status_.ok() && rules_.made_directives) status_ = CheckSign(tokens, i);
    if (strings_.ok() && rules_.assembler_text && token.kind == TokenKind::kString) strings_ = CheckString(token);
  }

  // `_Pragma("GCC dependency ...")`, unless other words precede the two.
  absl::Status CheckPragma(const Token& token) const {
    if (!rules_.dependency_pragmas) return absl::OkStatus();
    const size_t gcc = token.text.find("GCC");
    const size_t dependency = gcc == std::string_view::npos ? gcc : token.text.find("dependency", gcc);
    if (dependency == std::string_view::npos) return absl::OkStatus();
    const size_t open = token.text.find_first_of("\"(");
    const bool words =
        HoldsWord(token.text.substr(open, gcc - open)) || HoldsWord(token.text.substr(gcc + 3, dependency - gcc - 3));
    return words ? absl::OkStatus() : Refuse(text_, token, "#pragma GCC dependency", kDependencyAdvice);
  }

  // A '#' begins a directive or makes a string of a parameter. `%:` is another spelling of it, which a paste could
  // make.
  absl::Status CheckSign(Tokens tokens, size_t i) const {
    const Token& token = tokens[i];
    const auto is = [&](size_t at, std::string_view text) { return at < tokens.size() && tokens[at].Is(text); };
    const bool sign = (token.Is("#") || token.Is("%:")) && !token.starts_directive;
    const bool stringizes =
        token.in_directive && i + 1 < tokens.size() && tokens[i + 1].in_directive && tokens[i + 1].IsIdentifier();
    const bool pastes_colon = (token.Is("##") && is(i + 1, ":")) || (token.Is(":") && is(i + 1, "##"));
    const bool passes_colon =
        token.Is(":") && i > 0 && (is(i - 1, ",") || is(i - 1, "(")) && (is(i + 1, ",") || is(i + 1, ")"));
    if ((sign && !stringizes) || pastes_colon || passes_colon) return Refuse(text_, token, token.text, kSignAdvice);
    return absl::OkStatus();
  }

  absl::Status CheckString(const Token& token) const {
    if (HoldsDirective(token.text, ".incbin")) return Refuse(text_, token, ".incbin in assembler text", kDataAdvice);
    if (HoldsDirective(token.text, ".include")) {
      return Refuse(text_, token, ".include in assembler text", kAssemblerAdvice);
    }
    return absl::OkStatus();
  }

  absl::Status CheckDirective(Tokens tokens, size_t i) const {
    if (i + 2 >= tokens.size()) return absl::OkStatus();
    const Token& name = tokens[i + 1];
    if (name.Is("embed")) return Refuse(text_, name, "#embed", kDataAdvice);
    const bool include = name.Is("include") || name.Is("include_next") || name.Is("import");
    return include ? CheckName(tokens, i + 2) : absl::OkStatus();
  }

  // Words that ask for a file in any context.
  absl::Status CheckWord(Tokens tokens, size_t i) const {
    const bool asks = tokens[i].Is("__has_embed") && i + 1 < tokens.size() && tokens[i + 1].Is("(");
    if (asks) return Refuse(text_, tokens[i], "__has_embed", kDataAdvice);
    const bool compares = tokens[i].Is("GCC") && i + 1 < tokens.size() && tokens[i + 1].Is("dependency");
    return compares && rules_.dependency_pragmas ? Refuse(text_, tokens[i], "#pragma GCC dependency", kDependencyAdvice)
                                                 : absl::OkStatus();
  }

  absl::Status CheckName(Tokens tokens, size_t first) const {
    size_t end = first;
    while (end < tokens.size() && tokens[end].in_directive && !tokens[end].starts_directive) ++end;
    const std::optional<Include> include = ReadInclude(tokens.subspan(first, end - first));
    if (!include) return absl::OkStatus();
    const std::string path = NormalizePath(include->path);
    if (!path.starts_with('/') && path != ".." && !path.starts_with("../")) return absl::OkStatus();
    const std::string why = rules_.outside(text_.label, {path, include->quoted});
    return why.empty() ? absl::OkStatus() : Refuse(text_, tokens[first], StrCat("#include ", path), why);
  }

  const TextView& text_;
  const FileReadRules& rules_;
  std::deque<std::string> storage_;
  absl::Status status_;
  absl::Status strings_;
  bool assembly_ = false;
};

}  // namespace

absl::Status CheckFileReads(const std::vector<TextView>& texts, const FileReadRules& rules) {
  // Any string may end up in the `asm` of another text, including a later one.
  bool assembly = false;
  absl::Status strings;
  for (const TextView& text : texts) {
    std::deque<std::string> storage;
    for (const std::string_view reading : Readings(text.text, storage)) {
      const TextView view{text.label, reading};
      const FileReads reads(view, rules);
      KERNIX_RETURN_IF_ERROR(reads.status());
      assembly = assembly || reads.HasAssembly();
      if (strings.ok()) strings = reads.strings();
    }
  }
  return assembly ? strings : absl::OkStatus();
}

}  // namespace kernix::language
