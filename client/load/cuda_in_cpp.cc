// SPDX-License-Identifier: Apache-2.0
#include "client/load/cuda_in_cpp.h"

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"

namespace kernix {
namespace {

bool LaunchesAt(const std::vector<language::Token>& tokens, size_t i) {
  return i + 2 < tokens.size() && tokens[i].Is("<") && tokens[i + 1].Is("<") && tokens[i + 2].Is("<") &&
         !tokens[i + 1].space_before && !tokens[i + 2].space_before;
}

// What the first word of CUDA in `source` is and where, as "add.cpp:7 has '__global__'"; empty if there is none.
std::string CudaIn(const v1::Source& source) {
  const language::LexedSource lexed = language::Lex(source.text(), 0);
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    const bool is_kernel = lexed.tokens[i].Is("__global__");
    if (!is_kernel && !LaunchesAt(lexed.tokens, i)) continue;
    return StrCat(source.label(), ":", lexed.tokens[i].line, " has '", is_kernel ? "__global__" : "<<<", "'");
  }
  return "";
}

}  // namespace

absl::Status WithCudaAdvice(const v1::LoadRequest& request, const absl::Status& error) {
  if (request.language() != v1::LANGUAGE_CPP || KindOf(error) != v1::ErrorDetail::COMPILATION) return error;
  for (const v1::Source& source : request.source()) {
    const std::string found = CudaIn(source);
    if (found.empty()) continue;
    v1::ErrorDetail detail = GetErrorDetail(error);
    detail.set_message(StrCat(detail.message(), ". ", found,
                              ", which is CUDA, but this load is C++: use load_cuda_inline or load_cuda_file"));
    return MakeError(std::move(detail));
  }
  return error;
}

}  // namespace kernix
