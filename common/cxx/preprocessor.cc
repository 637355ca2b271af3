// SPDX-License-Identifier: Apache-2.0
#include "common/cxx/preprocessor.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/cxx/branches.h"

namespace kernix::language {
namespace {

using Tokens = absl::Span<const Token>;

// Whether it is a header of the toolchain or of kernix, which change no macro of a source.
bool LeavesMacrosAlone(const Include& include) {
  static constexpr std::string_view kFolders[] = {"cuda/", "cub/", "thrust/", "cooperative_groups/", "sys/"};
  static constexpr std::string_view kNames[] = {"assert.h",        "cooperative_groups.h",
                                                "cuda.h",          "cuda_bf16.h",
                                                "cuda_fp16.h",     "cuda_fp8.h",
                                                "cuda_runtime.h",  "cuda_runtime_api.h",
                                                "curand_kernel.h", "float.h",
                                                "inttypes.h",      "limits.h",
                                                "math.h",          "omp.h",
                                                "mma.h",           "stdbool.h",
                                                "stddef.h",        "stdint.h",
                                                "stdio.h",         "stdlib.h",
                                                "string.h",        "time.h"};
  if (include.path.starts_with("brainevent/")) return true;
  if (include.quoted) return false;
  const auto begins = [&](std::string_view folder) { return include.path.starts_with(folder); };
  const bool of_cpp = include.path.find_first_of("./") == std::string_view::npos;  // <vector>
  return of_cpp || std::any_of(std::begin(kFolders), std::end(kFolders), begins) ||
         std::find(std::begin(kNames), std::end(kNames), include.path) != std::end(kNames);
}

class Preprocessor {
 public:
  Preprocessor(Preprocessed& result, MacroBudget& budget)
      : result_(result), macros_(branches_, result.storage, budget) {}

  void Add(const LexedSource& source) {
    const Tokens tokens = source.tokens;
    size_t comment = 0;
    for (size_t i = 0; i < tokens.size();) {
      const size_t end = EndOfRun(tokens, i);
      const Tokens run = tokens.subspan(i, end - i);
      comment = AddComments(source, comment, i);
      if (run[0].starts_directive) {
        Directive(run, tokens.subspan(end));
      } else if (branches_.Live()) {
        macros_.Expand(run, result_.tokens);
      }
      i = end;
    }
    AddComments(source, comment, tokens.size());
  }

 private:
  // One directive, or everything up to the next one.
  static size_t EndOfRun(Tokens tokens, size_t begin) {
    size_t end = begin + 1;
    while (end < tokens.size() && !tokens[end].starts_directive &&
           tokens[end].in_directive == tokens[begin].in_directive)
      ++end;
    return end;
  }

  // Takes the comments from `comment` up to the token `until`; text between directives is live or dead as a whole.
  size_t AddComments(const LexedSource& source, size_t comment, size_t until) {
    for (; comment < source.comments.size() && source.comments[comment].next_token <= until; ++comment) {
      const LineComment& line = source.comments[comment];
      if (branches_.Live()) result_.comments.push_back({line.text, source.source, line.line});
    }
    return comment;
  }

  // `after` is what follows the line.
  void Directive(Tokens line, Tokens after) {
    if (line.size() < 2) return;
    const std::string_view name = line[1].text;
    const Tokens rest = line.subspan(2);
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      branches_.If(branches_.Live() ? Condition(name, rest, after) : std::nullopt);
      AddMark("#if", line[0]);
    } else if (name == "else" || name == "elif" || name == "elifdef" || name == "elifndef") {
      branches_.Leave();
      branches_.Else(name == "else" ? true : Condition(name.substr(2), rest, after));
      if (branches_.BranchLives()) AddMark("#else", line[0]);
    } else if (name == "endif") {
      branches_.End();
      AddMark("#endif", line[0]);
    } else if (branches_.Live()) {
      Definition(name, rest);
    }
  }

  // What is known of the condition of an #if, #ifdef or #ifndef.
  std::optional<bool> Condition(std::string_view kind, Tokens rest, Tokens after) {
    if (kind == "if") {
      const bool negated = !rest.empty() && rest[0].Is("!");
      const Tokens test = rest.subspan(negated ? 1 : 0);
      if (test.empty() || !test[0].Is("defined")) return Constant(rest);
      const bool brackets = test.size() == 4 && test[1].Is("(") && test[3].Is(")");
      if (test.size() != 2 && !brackets) return std::nullopt;
      return Defined(test.subspan(brackets ? 2 : 1, 1), !negated, after);
    }
    return rest.empty() ? std::nullopt : Defined(rest.first(1), kind == "ifdef", after);
  }

  // Whether it is true that `name` is `wanted`, a macro or none. One that is none here may come from a header, but for
  // what an include guard guards, and what gets a default.
  std::optional<bool> Defined(Tokens name, bool wanted, Tokens after) const {
    if (macros_.MayHaveChanged(name[0].text)) return std::nullopt;
    if (macros_.IsDefined(name[0].text)) return wanted;
    const bool defines =
        after.size() > 2 && after[0].starts_directive && after[1].Is("define") && after[2].text == name[0].text;
    const bool guard = defines && (after.size() == 3 || !after[3].in_directive || after[3].starts_directive);
    if (!wanted && (guard || (defines && !IncludesUserHeaders(result_)))) return true;
    return std::nullopt;
  }

  // What people write to leave a part of the text out, and macros that are that for sure.
  std::optional<bool> Constant(Tokens condition) {
    std::vector<Token> value;
    if (condition.size() == 1 && !DependsOnHeaders(condition[0].text)) macros_.Expand(condition, value);
    if (value.size() != 1) return std::nullopt;
    if (value[0].Is("0") || value[0].Is("false")) return false;
    if (value[0].Is("1") || value[0].Is("true")) return true;
    return std::nullopt;
  }

  // Whether a header may have changed the macro `name`, or one that it stands for.
  bool DependsOnHeaders(std::string_view name) const {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps; ++step) {
      if (macros_.MayHaveChanged(name)) return true;
      const std::optional<std::string_view> next = macros_.StandsFor(name);
      if (!next.has_value()) return false;
      name = *next;
    }
    return true;
  }

  void Definition(std::string_view name, Tokens rest) {
    if (name == "define") macros_.Define(rest);
    if (name == "undef" && !rest.empty()) macros_.Undefine(rest[0].text);
    const std::optional<Include> include = name == "include" ? ReadInclude(rest) : std::nullopt;
    if (include.has_value()) result_.includes.push_back(*include);
    const bool includes = name == "include" || name == "include_next" || name == "import";
    if (includes && (!include.has_value() || !LeavesMacrosAlone(*include))) macros_.NoteHeader();
  }

  void AddMark(std::string_view text, const Token& at) {
    result_.tokens.push_back(Mark(text, at));
    result_.tokens.back().in_directive = true;
  }

  Preprocessed& result_;
  Branches branches_;
  MacroTable macros_;
};

}  // namespace

std::optional<Include> ReadInclude(Tokens rest) {
  if (rest.empty()) return std::nullopt;
  const std::string_view first = rest[0].text;
  if (rest[0].kind == TokenKind::kString && first.size() > 2 && first.ends_with('"')) {
    return Include{first.substr(1, first.size() - 2), true};
  }
  const auto close = std::find_if(rest.begin(), rest.end(), [](const Token& token) { return token.Is(">"); });
  if (!rest[0].Is("<") || close == rest.end()) return std::nullopt;
  const char* begin = first.data() + 1;
  return Include{std::string_view(begin, static_cast<size_t>(close->text.data() - begin)), false};
}

bool IncludesUserHeaders(const Preprocessed& preprocessed) {
  return std::any_of(preprocessed.includes.begin(), preprocessed.includes.end(),
                     [](const Include& include) { return include.quoted && !include.path.starts_with("brainevent/"); });
}

Preprocessed Preprocess(const std::vector<LexedSource>& sources, MacroBudget& budget) {
  Preprocessed result;
  Preprocessor preprocessor(result, budget);
  for (const LexedSource& source : sources) {
    preprocessor.Add(source);
    result.has_text = result.has_text || !source.tokens.empty();
  }
  return result;
}

}  // namespace kernix::language
