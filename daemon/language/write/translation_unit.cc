// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/translation_unit.h"

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/spec/words.h"
#include "daemon/language/write/handler.h"
#include "daemon/language/write/prologue.h"

namespace kernix::language {
namespace {

// A source after its #line. The blank line ends a last line that a backslash continues.
std::vector<std::string_view> Texts(const std::vector<SourceText>& sources) {
  std::vector<std::string_view> texts;
  for (const SourceText& source : sources) texts.push_back(source.text);
  return texts;
}

void AppendSource(const SourceText& source, std::string& out) {
  std::string_view text = source.text;
  ConsumePrefix(text, "\xef\xbb\xbf");
  StrAppend(&out, "#line 1 ", Literal(ToolName(source.label)), "\n", text, "\n\n");
}

// The name of the macro of a "#define"; empty for an "#undef".
std::string_view DefinedName(std::string_view definition) {
  return ConsumePrefix(definition, "#define ") ? definition.substr(0, definition.find_first_of(" (")) : "";
}

// Uses the name that compilers give to -D and -U.
void AppendDefinitions(const std::vector<std::string>& definitions, std::string& out) {
  out += "#line 1 \"<command-line>\"\n";
  for (const std::string& definition : definitions) StrAppend(&out, definition, "\n");
}

// For a unit's own text. As for a compiler, a macro of a flag counts as used (-Wunused-macros).
void AppendUsedDefinitions(const std::vector<std::string>& definitions, std::string& out) {
  int line = 0;
  for (const std::string& definition : definitions) {
    StrAppend(&out, "#line ", ++line, " \"<command-line>\"\n", definition, "\n");
    const std::string_view name = DefinedName(definition);
    if (!name.empty()) StrAppend(&out, "#ifdef ", name, "\n#endif\n");
  }
}

// The last line is a token after which nothing has to be read: a kept preamble (plan/split_pass.h) joins there.
constexpr std::string_view kIncludeHandlers = "#include \"kernix_handlers.h\"\nstatic_assert(true, \"\");\n";

constexpr std::string_view kSystemHeader = "#pragma GCC system_header\n";

// A macro may have any name that is not reserved.
bool MayBeMacro(const Token& token) { return token.IsIdentifier() && !token.text.starts_with('_'); }

template <typename F>
void ForEachToken(std::string_view text, std::deque<std::string>& storage, F f) {
  Lexer lexer(text, storage);
  for (Token token; lexer.Next(token);) f(token);
}

// The macros of `definitions` that have a name of ours.
std::vector<std::string_view> NamesOfOurs(const std::vector<std::string>& definitions) {
  std::vector<std::string_view> names;
  for (const std::string& definition : definitions) {
    const auto found = NamesInHeaders().find(DefinedName(definition));
    if (found != NamesInHeaders().end()) names.push_back(*found);
  }
  return names;
}

// Handlers come last, so that no macro but those that `functions` are named by need be left.
void AppendUndefinitions(const std::string& handlers, const std::vector<FunctionSpec>& functions, std::string& out) {
  std::deque<std::string> storage;
  std::set<std::string_view> names;
  ForEachToken(handlers, storage, [&](const Token& token) {
    if (MayBeMacro(token) && !token.in_directive && !token.text.starts_with("kernix_") && !IsKeyword(token.text)) {
      names.insert(token.text);
    }
  });
  for (const FunctionSpec& function : functions) {
    std::vector<std::string> texts = {function.Callee()};
    for (const Parameter& parameter : function.parameters) texts.push_back(parameter.expression);
    for (const std::string& text : texts) {
      ForEachToken(text, storage, [&](const Token& token) { names.erase(token.text); });
    }
  }
  for (const std::string_view name : names) StrAppend(&out, "#undef ", name, "\n");
}

}  // namespace

const OurNames& NamesInHeaders() {
  static const OurNames& names = *new OurNames([] {
    static std::deque<std::string>& storage = *new std::deque<std::string>;
    OurNames found;
    OurNames of_directives;
    for (const GeneratedFile& header : KernelHeaders()) {
      std::string_view directive;
      ForEachToken(header.text, storage, [&](const Token& token) {
        if (token.starts_directive || !token.in_directive) directive = "";
        if (token.in_directive && directive.empty() && token.IsIdentifier()) directive = token.text;
        const bool is_tested =
            token.in_directive && directive != "error" && (directive != "define" || token.text.starts_with("KERNIX"));
        if (MayBeMacro(token)) (is_tested ? of_directives : found).insert(token.text);
      });
    }
    for (const std::string_view name : of_directives) found.erase(name);
    return found;
  }());
  return names;
}

std::string HeaderWith(const std::vector<std::string>& definitions, std::string_view header) {
  std::string out = StrCat("#ifndef ", kRuntimeHeaderGuard, "\n#define ", kRuntimeHeaderGuard, "\n");
  AppendDefinitions(definitions, out);
  // The pragma keeps -pedantic quiet about #include_next.
  return out + StrCat("#endif\n#pragma GCC system_header\n#include_next <", header, ">\n");
}

std::string TranslationUnit::Text() const {
  if (handlers.empty()) return sources;
  const std::string_view before = std::string_view(sources).substr(0, sources.size() - kIncludeHandlers.size());
  return StrCat(before, std::string_view(handlers).substr(kSystemHeader.size()));
}

TranslationUnit GenerateTranslationUnit(v1::Language language, const std::vector<SourceText>& sources,
                                        const std::vector<FunctionSpec>& functions, bool allow_cuda_graph,
                                        bool has_headers, const std::vector<std::string>& definitions,
                                        bool defined_before) {
  TranslationUnit unit;
  std::string& out = unit.sources;
  out = "// Generated by kernix: the sources of a kernel, then an XLA FFI handler for each function.\n";
  if (!definitions.empty() && !defined_before) {
    AppendUsedDefinitions(definitions, out);
    out += "#line 1 \"<kernix>\"\n";
  }
  const std::vector<std::string_view> hidden = NamesOfOurs(definitions);
  for (const std::string_view name : hidden) StrAppend(&out, "#pragma push_macro(\"", name, "\")\n#undef ", name, "\n");
  std::vector<std::string_view> texts = Texts(sources);
  texts.insert(texts.end(), definitions.begin(), definitions.end());
  out += has_headers ? StrCat("#include \"", kPrologueHeader, "\"\n")
                     : Prologue(texts, PrologueScan({}, &NamesInHeaders()));
  AppendHandlerIncludes(functions, out);
  for (const std::string_view name : hidden) StrAppend(&out, "#pragma pop_macro(\"", name, "\")\n");
  for (const SourceText& source : sources) AppendSource(source, out);
  if (functions.empty()) return unit;
  StrAppend(&out, "#line 1 \"<kernix>\"\n", kIncludeHandlers);
  std::string handlers;
  for (const FunctionSpec& function : functions) AppendHandler(language, function, allow_cuda_graph, handlers);
  unit.handlers = kSystemHeader;
  AppendUndefinitions(handlers, functions, unit.handlers);
  unit.handlers += handlers;
  return unit;
}

}  // namespace kernix::language
