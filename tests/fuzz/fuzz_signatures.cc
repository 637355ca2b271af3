// SPDX-License-Identifier: Apache-2.0
//
// Any text as the source of a load: its functions found, their signatures read, the translation unit written. What was
// inferred is taken when it is said.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/cxx/lexer.h"
#include "daemon/language/read/resolve.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"
#include "daemon/language/write/prologue.h"
#include "daemon/language/write/translation_unit.h"
#include "kernix/v1/kernix.pb.h"

namespace {

using namespace kernix;
using namespace kernix::language;

void Expect(bool condition) {
  if (!condition) std::abort();
}

void CheckUnit(const std::vector<SourceText>& sources, const std::vector<FunctionSpec>& specs) {
  const std::string unit = GenerateTranslationUnit(v1::LANGUAGE_CUDA, sources, specs, true, false).Text();
  for (const FunctionSpec& spec : specs) {
    Expect(IsPlainIdentifier(spec.name) && spec.CountOf(ParameterKind::kResult) > 0);
    Expect(unit.find(spec.HandlerSymbol()) != std::string::npos);
  }
}

// The functions of `functions` with the tokens that they were found to have.
void CheckAgain(const std::vector<SourceText>& sources, v1::Functions functions,
                const std::vector<FunctionSpec>& specs) {
  for (int i = 0; i < functions.function_size(); ++i) {
    functions.mutable_function(i)->clear_tokens();
    for (const std::string& token : specs[static_cast<size_t>(i)].Tokens())
      functions.mutable_function(i)->add_tokens(token);
  }
  const auto again = ResolveFunctions(sources, functions);
  Expect(again.ok());
  for (size_t i = 0; i < specs.size(); ++i) {
    Expect((*again)[i].name == specs[i].name && (*again)[i].Tokens() == specs[i].Tokens());
    Expect((*again)[i].callee == specs[i].callee);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<SourceText> sources = {{"k.cu", std::string(reinterpret_cast<const char*>(data), size)}};
  v1::Functions annotated;
  annotated.set_from_annotations(true);
  const auto found = ResolveFunctions(sources, annotated);
  if (found.ok()) CheckUnit(sources, *found);
  for (const char* name : {"f", "a::f", "f<int>", "f<float, 2>"}) {
    v1::Functions listed;
    listed.add_function()->set_name(name);
    const auto specs = ResolveFunctions(sources, listed);
    if (!specs.ok()) continue;
    CheckUnit(sources, *specs);
    CheckAgain(sources, listed, *specs);
  }
  return 0;
}
