// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "daemon/base/strings.h"
#include "daemon/codegen/codegen.h"
#include "daemon/codegen/prologue.h"
#include "daemon/codegen/words.h"

namespace kernix::codegen {
namespace {

// `text` as a C string literal.
std::string Literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') literal += '\\';
    literal += c == '\n' || c == '\r' ? ' ' : c;
  }
  return literal + "\"";
}

// A source after its #line. The blank line ends a last line that is continued by a backslash.
std::vector<std::string_view> Texts(const std::vector<SourceText>& sources) {
  std::vector<std::string_view> texts;
  for (const SourceText& source : sources) texts.push_back(source.text);
  return texts;
}

void AppendSource(const SourceText& source, std::string& out) {
  std::string_view text = source.text;
  ConsumePrefix(text, "\xef\xbb\xbf");
  StrAppend(&out, "#line 1 ", Literal(source.label), "\n", text, "\n\n");
}

std::string_view RuntimeType(AttributeType type) {
  switch (type) {
    case AttributeType::kBool:
      return "kBool";
    case AttributeType::kInt8:
      return "kInt8";
    case AttributeType::kUInt8:
      return "kUInt8";
    case AttributeType::kInt16:
      return "kInt16";
    case AttributeType::kUInt16:
      return "kUInt16";
    case AttributeType::kInt32:
      return "kInt32";
    case AttributeType::kUInt32:
      return "kUInt32";
    case AttributeType::kInt64:
      return "kInt64";
    case AttributeType::kUInt64:
      return "kUInt64";
    case AttributeType::kFloat16:
      return "kFloat16";
    case AttributeType::kBFloat16:
      return "kBFloat16";
    case AttributeType::kFloat32:
      return "kFloat32";
    case AttributeType::kFloat64:
      return "kFloat64";
    case AttributeType::kString:
      return "kString";
  }
  return "";
}

// The C++ type that the user's parameter has.
std::string CppType(AttributeType type) {
  switch (type) {
    case AttributeType::kBool:
      return "bool";
    case AttributeType::kFloat16:
    case AttributeType::kBFloat16:
      return "uint16_t";
    case AttributeType::kFloat32:
      return "float";
    case AttributeType::kFloat64:
      return "double";
    case AttributeType::kString:
      return "std::string_view";
    default:
      return StrCat(AttributeTypeName(type), "_t");
  }
}

// A call's attribute as the user's parameter, from `value`, an AttributeValue.
std::string AttributeExpression(const Parameter& parameter, std::string_view value) {
  const std::string type = CppType(parameter.attribute_type);
  if (parameter.is_array) return StrCat("kernix_handler::SpanOf<", type, ">(", value, ")");
  switch (parameter.attribute_type) {
    case AttributeType::kString:
      return StrCat(type, "(static_cast<const char*>(", value, ".block.data), ", value, ".block.size)");
    case AttributeType::kFloat32:
    case AttributeType::kFloat64:
      return StrCat("static_cast<", type, ">(", value, ".real)");
    default:
      return StrCat("static_cast<", type, ">(", value, ".integer)");
  }
}

bool IsBlock(const Parameter& parameter) {
  return parameter.is_array || parameter.attribute_type == AttributeType::kString;
}

// What the user's function is called with.
std::vector<std::string> CallArguments(const FunctionSpec& spec) {
  int argument = 0;
  int result = spec.CountOf(ParameterKind::kArgument);
  int attribute = 0;
  std::vector<std::string> expressions;
  for (const Parameter& parameter : spec.parameters) {
    switch (parameter.kind) {
      case ParameterKind::kArgument:
        expressions.push_back(StrCat("kernix_call.tensors[", argument++, "]"));
        break;
      case ParameterKind::kResult:
        expressions.push_back(StrCat("kernix_call.tensors[", result++, "]"));
        break;
      case ParameterKind::kStream:
        expressions.push_back("kernix_call.stream");
        break;
      case ParameterKind::kAttribute:
        expressions.push_back(AttributeExpression(parameter, StrCat("kernix_call.attributes[", attribute++, "]")));
        break;
    }
  }
  return expressions;
}

std::string AttributeTable(const FunctionSpec& spec) {
  std::string table;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kAttribute) continue;
    StrAppend(&table, table.empty() ? "" : ", ", "{", Literal(parameter.attribute_name),
              ", kernix_handler::", RuntimeType(parameter.attribute_type), parameter.is_array ? ", true}" : "}");
  }
  return table;
}

std::string_view StreamUse(v1::Language language, const FunctionSpec& spec) {
  if (spec.CountOf(ParameterKind::kStream) == 0) return "kNoStream";
  return language == v1::LANGUAGE_CUDA ? "kRequiredStream" : "kNullableStream";
}

// What reads the attributes.
std::string_view Reader(const FunctionSpec& spec) {
  if (spec.CountOf(ParameterKind::kAttribute) == 0) return "nullptr";
  const bool blocks = std::any_of(spec.parameters.begin(), spec.parameters.end(), IsBlock);
  return blocks ? "kernix_handler::ReadAnyAttribute" : "kernix_handler::ReadScalarAttribute";
}

// The headers of the handlers.
void AppendIncludes(const std::vector<FunctionSpec>& functions, std::string& out) {
  bool blocks = false;
  bool strings = false;
  for (const FunctionSpec& function : functions) {
    for (const Parameter& parameter : function.parameters) {
      blocks |= IsBlock(parameter);
      strings |= parameter.attribute_type == AttributeType::kString;
    }
  }
  if (strings) out += "#include <string_view>\n";
  out += "#include \"brainevent/internal/handler.h\"\n";
  if (blocks) out += "#include \"brainevent/internal/attributes.h\"\n";
}

// The handler of one function, on lines that a diagnostic names after it.
void AppendHandler(v1::Language language, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  const int attributes = spec.CountOf(ParameterKind::kAttribute);
  const int arguments = spec.CountOf(ParameterKind::kArgument);
  const int results = spec.CountOf(ParameterKind::kResult);
  StrAppend(&out, "#line 1 ", Literal(StrCat("<handler of ", spec.name, ">")), "\n");
  StrAppend(&out, "extern \"C\" __attribute__((visibility(\"default\")))\n");
  StrAppend(&out, "kernix_ffi_abi::Error* ", spec.HandlerSymbol(), "(kernix_ffi_abi::CallFrame* kernix_frame) {\n");
  if (attributes > 0) {
    StrAppend(&out, "  static constexpr kernix_handler::AttributeSpec kernix_attributes[] = {", AttributeTable(spec),
              "};\n  kernix_handler::AttributeValue kernix_values[", attributes, "];\n");
  }
  StrAppend(&out, "  static constexpr kernix_handler::Signature kernix_signature = {", Literal(spec.name), ", ",
            arguments, ", ", results, ", ", attributes > 0 ? "kernix_attributes, " : "nullptr, ", attributes, ", ",
            allow_cuda_graph ? "kernix_ffi_abi::kCommandBufferCompatible" : "0", "};\n");
  StrAppend(&out, "  BE::Tensor kernix_tensors[", arguments + results, "];\n");
  StrAppend(&out, "  kernix_handler::Call kernix_frame_call = {kernix_tensors, ",
            attributes > 0 ? "kernix_values" : "nullptr", ", {nullptr}};\n");
  StrAppend(&out, "  return kernix_handler::Run<", Reader(spec), ", kernix_handler::", StreamUse(language, spec),
            ">(\n      kernix_frame, kernix_signature, kernix_frame_call,\n");
  StrAppend(&out, "      [](kernix_handler::Call& kernix_call) {\n        ", spec.name, "(",
            absl::StrJoin(CallArguments(spec), ", "), ");\n      });\n}\n");
}

}  // namespace

std::string GenerateTranslationUnit(v1::Language language, const std::vector<SourceText>& sources,
                                    const std::vector<FunctionSpec>& functions, bool allow_cuda_graph,
                                    bool has_headers) {
  std::string out = "// Generated by kernix: the sources of a kernel, then an XLA FFI handler for each function.\n";
  out += has_headers ? StrCat("#include \"", kPrologueHeader, "\"\n") : Prologue(Texts(sources));
  AppendIncludes(functions, out);
  for (const SourceText& source : sources) AppendSource(source, out);
  for (const FunctionSpec& function : functions) AppendHandler(language, function, allow_cuda_graph, out);
  return out;
}

}  // namespace kernix::codegen
