// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/handler.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_join.h"
#include "common/base/artifact_symbols.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "daemon/language/spec/arg_spec.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/source_text.h"

namespace kernix::language {
namespace {

// The C++ type of the user's parameter.
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

// The expression that converts `value`, an AttributeValue, to the user's parameter.
std::string AttributeExpression(const Parameter& parameter, std::string_view value) {
  const std::string type = CppType(parameter.PassedAs());
  if (parameter.is_array) return StrCat("kernix_handler::SpanOf<", type, ">(", value, ")");
  switch (parameter.PassedAs()) {
    case AttributeType::kString:
      return StrCat(type, "(static_cast<const char*>(", value, ".block.data), ", value, ".block.size)");
    case AttributeType::kFloat32:
    case AttributeType::kFloat64:
      return StrCat("static_cast<", type, ">(", value, ".real)");
    default:
      return StrCat("static_cast<", type, ">(", value, ".integer)");
  }
}

// The C++ type of an attribute.
std::string ParameterType(const Parameter& parameter) {
  const std::string type = CppType(parameter.PassedAs());
  return parameter.is_array ? StrCat("BE::Span<const ", type, ">") : type;
}

bool IsBlock(const Parameter& parameter) {
  return parameter.is_array || parameter.attribute_type == AttributeType::kString;
}

bool IsNarrowed(const Parameter& parameter) { return parameter.narrowed_to.has_value(); }

// The type of an attribute in `scratch:` expressions: integers are widened to 64 bits.
std::string ScratchType(const Parameter& parameter) {
  switch (parameter.PassedAs()) {
    case AttributeType::kInt8:
    case AttributeType::kUInt8:
    case AttributeType::kInt16:
    case AttributeType::kUInt16:
    case AttributeType::kInt32:
    case AttributeType::kUInt32:
      return parameter.is_array ? ParameterType(parameter) : "int64_t";
    default:
      return ParameterType(parameter);
  }
}

// A parameter of the user's function, as the handler sees it.
struct Value {
  std::string name;               // name in `scratch:` expressions; may be empty
  std::string type;               // type in `scratch:` expressions
  std::string expression;         // expression in terms of `kernix_call`
  std::string type_to_pass = {};  // a type that makes the user's parameter from it and its names; may be empty
  std::string names = {};

  std::string Passed() const {
    return type_to_pass.empty() ? expression : StrCat(type_to_pass, "{", expression, ", ", names, "}");
  }
};

// "BE::DType::Float32, 2": element type and rank of a typed parameter.
std::string ArrayArguments(const Parameter& parameter) {
  return StrCat("BE::DType::", FindElementType(parameter.element)->dtype, ", ", parameter.rank);
}

// The type that converts a tensor to the user's parameter; empty if that takes any tensor.
std::string TypedTensor(const Parameter& parameter) {
  if (!parameter.IsTyped()) return "";
  if (parameter.IsTensorMap()) {
    return StrCat("kernix_handler::TensorMapOf<BE::DType::", FindElementType(parameter.element)->dtype, ", ",
                  parameter.swizzle, ", ", parameter.expression, ">");
  }
  const std::string_view name = parameter.kind == ParameterKind::kArgument ? "TypedArgument" : "TypedResult";
  return StrCat("kernix_handler::", name, "<", ArrayArguments(parameter), ">");
}

// The names of a function and its parameter, for errors.
std::string NamesOf(const FunctionSpec& spec, const Parameter& parameter) {
  return StrCat(Literal(spec.name), ", ", Literal(parameter.declared_name));
}

// Yields the places of a function's arguments, or of its results, and their names, one after the other.
class Places {
 public:
  Places(const FunctionSpec& spec, bool results)
      : roles_(results ? spec.Results() : spec.Arguments()),
        list_(results ? "kernix_call.results" : "kernix_call.arguments"),
        name_(results ? "ret" : "arg"),
        tensor_(results ? "BE::Tensor" : "const BE::Tensor"),
        spec_(spec),
        rest_(static_cast<size_t>(std::find_if(roles_.begin(), roles_.end(), IsRest) - roles_.begin())) {}

  Value Tensor(const Parameter& parameter) {
    return {Name(), tensor_ + "&",
            place_ > rest_ ? At("FromEnd", roles_.size() - 1 - place_++) : At("FromStart", place_++),
            TypedTensor(parameter), NamesOf(spec_, parameter)};
  }
  Value Optional() { return {Name(), tensor_ + "*", At("Optional", place_++)}; }
  Value Rest() {
    const size_t before = place_++;
    return {StrCat(name_, "s"), StrCat("BE::Span<", tensor_, ">"),
            StrCat(list_, ".Rest<", tensor_, ">(", before, ", ", roles_.size() - place_, ")")};
  }
  void SkipToken() { ++place_; }

 private:
  static bool IsRest(ParameterKind kind) {
    return kind == ParameterKind::kArguments || kind == ParameterKind::kResults;
  }

  std::string Name() { return StrCat(name_, named_++); }
  std::string At(std::string_view function, size_t place) const {
    return StrCat(list_, ".", function, "(", place, ")");
  }

  std::vector<ParameterKind> roles_;
  std::string list_;
  std::string name_;
  std::string tensor_;
  const FunctionSpec& spec_;
  size_t rest_;
  size_t place_ = 0;
  int named_ = 0;
};

// The values with which a handler of extended.h calls the user's function. A scratch parameter has no name.
std::vector<Value> ExtendedValues(const FunctionSpec& spec) {
  Places arguments(spec, false);
  Places results(spec, true);
  int attribute = 0;
  int scratch = 0;
  std::vector<Value> values;
  for (const Parameter& parameter : spec.parameters) {
    switch (parameter.kind) {
      case ParameterKind::kArgument:
        values.push_back(arguments.Tensor(parameter));
        break;
      case ParameterKind::kOptionalArgument:
        values.push_back(arguments.Optional());
        break;
      case ParameterKind::kArguments:
        values.push_back(arguments.Rest());
        break;
      case ParameterKind::kArgumentToken:
        arguments.SkipToken();
        break;
      case ParameterKind::kResult:
        values.push_back(results.Tensor(parameter));
        break;
      case ParameterKind::kResults:
        values.push_back(results.Rest());
        break;
      case ParameterKind::kResultToken:
        results.SkipToken();
        break;
      case ParameterKind::kStream:
        values.push_back({"", "", "kernix_call.stream"});
        break;
      case ParameterKind::kAttribute:
        values.push_back({parameter.attribute_name, ScratchType(parameter),
                          AttributeExpression(parameter, StrCat("kernix_call.attributes[", attribute++, "]"))});
        break;
      case ParameterKind::kDeviceOrdinal:
        values.push_back({"device_ordinal", "int32_t", "kernix_call.device_ordinal"});
        break;
      case ParameterKind::kScratch:
        values.push_back({"", "", StrCat("kernix_scratch", scratch++, ".view()")});
        break;
    }
  }
  return values;
}

// The same for a handler of handler.h, which has all tensors in one array.
std::vector<std::string> PlainArguments(const FunctionSpec& spec) {
  int argument = 0;
  int result = spec.CountOf(ParameterKind::kArgument);
  int attribute = 0;
  std::vector<std::string> expressions;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind == ParameterKind::kArgument || parameter.kind == ParameterKind::kResult) {
      int& place = parameter.kind == ParameterKind::kArgument ? argument : result;
      const Value tensor = {"", "", StrCat("kernix_call.tensors[", place++, "]"), TypedTensor(parameter),
                            NamesOf(spec, parameter)};
      expressions.push_back(tensor.Passed());
    } else if (parameter.kind == ParameterKind::kStream) {
      expressions.emplace_back("kernix_call.stream");
    } else {
      expressions.push_back(AttributeExpression(parameter, StrCat("kernix_call.attributes[", attribute++, "]")));
    }
  }
  return expressions;
}

// The attributes of a __global__ function precede those that say how to launch it.
std::string AttributeTable(const FunctionSpec& spec) {
  std::string table;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kAttribute) continue;
    StrAppend(&table, table.empty() ? "" : ", ", "{", Literal(parameter.attribute_name),
              ", kernix_handler::", AttributeTypeEnumerator(parameter.attribute_type),
              parameter.is_array ? ", true" : "");
    if (IsNarrowed(parameter))
      StrAppend(&table, ", false, kernix_handler::", AttributeTypeEnumerator(*parameter.narrowed_to));
    table += "}";
  }
  if (!spec.is_global) return table;
  for (const std::string_view name : kLaunchAttributes) {
    StrAppend(&table, table.empty() ? "" : ", ", "{", Literal(name), ", kernix_handler::kInt64}");
  }
  return table;
}

std::string_view StreamUse(bool on_gpu, const FunctionSpec& spec) {
  if (spec.CountOf(ParameterKind::kStream) == 0) return "kNoStream";
  return on_gpu ? "kRequiredStream" : "kNullableStream";
}

// The name of the function template that reads the attributes.
std::string Reader(const FunctionSpec& spec) {
  if (spec.CountOf(ParameterKind::kAttribute) == 0) return "nullptr";
  const bool blocks = std::any_of(spec.parameters.begin(), spec.parameters.end(), IsBlock);
  const std::string reader = blocks ? "kernix_handler::ReadAnyAttribute" : "kernix_handler::ReadScalarAttribute";
  const bool narrowed = std::any_of(spec.parameters.begin(), spec.parameters.end(), IsNarrowed);
  return narrowed ? StrCat("kernix_handler::ReadConvertedAttribute<", reader, ">") : reader;
}

std::string_view Traits(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph) {
  // A replayed graph would use memory that has been freed.
  const bool scratch = on_gpu && spec.CountOf(ParameterKind::kScratch) > 0;
  return allow_cuda_graph && !scratch ? "kernix_ffi_abi::kCommandBufferCompatible" : "0";
}

bool HasAttributeTable(const FunctionSpec& spec) {
  return spec.is_global || spec.CountOf(ParameterKind::kAttribute) > 0;
}

std::string AttributesName(const FunctionSpec& spec) { return StrCat("kernix_attributes_of_", spec.name); }

// "name, arguments, results, attributes, count, traits" of a kernix_handler::Signature.
std::string SignatureFields(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph) {
  const int attributes = spec.CountOf(ParameterKind::kAttribute);
  return StrCat(Literal(spec.name), ", ", spec.CountOf(ParameterKind::kArgument), ", ",
                spec.CountOf(ParameterKind::kResult), ", ", HasAttributeTable(spec) ? AttributesName(spec) : "nullptr",
                ", ", attributes, ", ", Traits(on_gpu, spec, allow_cuda_graph));
}

// Appends the lines after the signature that adapt it to the call, if a call may leave out attributes.
void AppendLeavingOut(const FunctionSpec& spec, std::string& out) {
  if (spec.DefaultCount() == 0) return;
  StrAppend(&out, "  if (kernix_ffi_abi::Error* kernix_error = kernix_handler::LeaveOut(kernix_frame, ",
            spec.CountOf(ParameterKind::kAttribute) - spec.DefaultCount(),
            ", kernix_signature)) {\n    return kernix_error;\n  }\n");
}

// The place of a typed parameter in a call: negative, from the end, if it follows `args...` or `rets...`.
int64_t PlaceInCall(const FunctionSpec& spec, const Parameter& typed) {
  FunctionSpec before = {spec.name, {}};
  for (const Parameter& parameter : spec.parameters) {
    if (&parameter == &typed) break;
    before.parameters.push_back(parameter);
  }
  const bool argument = typed.kind == ParameterKind::kArgument;
  const auto place = static_cast<int64_t>(argument ? before.Arguments().size() : before.Results().size());
  const auto count = static_cast<int64_t>(argument ? spec.Arguments().size() : spec.Results().size());
  const bool open = before.CountOf(argument ? ParameterKind::kArguments : ParameterKind::kResults) > 0;
  return open ? place - count : place;
}

// The kernix_handler::ArrayTypes of typed arguments and results; empty if there are none.
std::vector<std::string> ArrayTypes(const FunctionSpec& spec) {
  std::vector<std::string> types;
  for (const Parameter& parameter : spec.parameters) {
    if (!parameter.IsTyped()) continue;
    types.push_back(StrCat("{", Literal(parameter.declared_name), ", ", ArrayArguments(parameter), ", ",
                           parameter.kind == ParameterKind::kResult ? "true" : "false", ", ",
                           PlaceInCall(spec, parameter), "}"));
  }
  return types;
}

// Appends the check of typed arguments and results, if there are any.
void AppendArrayChecks(const FunctionSpec& spec, std::string& out) {
  const std::vector<std::string> types = ArrayTypes(spec);
  if (types.empty()) return;
  StrAppend(&out, "  static constexpr kernix_handler::ArrayType kernix_types[] = {", absl::StrJoin(types, ", "),
            "};\n  if (kernix_ffi_abi::Error* kernix_error = kernix_handler::CheckArrays(kernix_frame, "
            "kernix_signature, kernix_types, ",
            types.size(), ")) {\n    return kernix_error;\n  }\n");
}

std::string_view SignatureQualifiers(const FunctionSpec& spec) { return spec.DefaultCount() == 0 ? "const " : ""; }

// Code that selects `lambda` without as many of its last attributes as the call has left out.
std::string FunctionToCall(const FunctionSpec& spec, const std::function<std::string(int)>& lambda) {
  const int defaults = spec.DefaultCount();
  std::string choice;
  for (int left_out = defaults; left_out > 0; --left_out) {
    StrAppend(&choice, "      kernix_signature.attribute_count == ", spec.CountOf(ParameterKind::kAttribute) - left_out,
              " ? +", lambda(left_out), " :\n");
  }
  return StrCat(choice, "      ", defaults > 0 ? "+" : "", lambda(0));
}

std::string PlainCall(const FunctionSpec& spec, int left_out) {
  std::vector<std::string> arguments = PlainArguments(spec);
  arguments.resize(arguments.size() - static_cast<size_t>(left_out));
  return StrCat("[](kernix_handler::Call& kernix_call) {\n        ", spec.Callee(), "(", absl::StrJoin(arguments, ", "),
                ");\n      }");
}

void AppendPlainBody(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  const bool attributes = spec.CountOf(ParameterKind::kAttribute) > 0;
  StrAppend(&out, "  ", SignatureQualifiers(spec), "kernix_handler::Signature kernix_signature = {",
            SignatureFields(on_gpu, spec, allow_cuda_graph), ", kernix_module};\n");
  AppendLeavingOut(spec, out);
  AppendArrayChecks(spec, out);
  StrAppend(&out, "  BE::Tensor kernix_tensors[",
            spec.CountOf(ParameterKind::kArgument) + spec.CountOf(ParameterKind::kResult), "];\n");
  StrAppend(&out, "  kernix_handler::Call kernix_frame_call = {kernix_tensors, ",
            attributes ? "kernix_values" : "nullptr", ", {nullptr}};\n");
  StrAppend(&out, "  return kernix_handler::Run<", Reader(spec), ", kernix_handler::", StreamUse(on_gpu, spec),
            ">(\n      kernix_frame, kernix_signature, kernix_frame_call,\n",
            FunctionToCall(spec, [&spec](int left_out) { return PlainCall(spec, left_out); }), ");\n");
}

// The expressions that a launch passes. Each converts to the parameter's type.
std::vector<std::string> LaunchArguments(const FunctionSpec& spec) {
  std::vector<std::string> expressions = PlainArguments(spec);
  int argument = 0;
  int result = spec.CountOf(ParameterKind::kArgument);
  int attribute = 0;
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const Parameter& parameter = spec.parameters[i];
    if (parameter.kind == ParameterKind::kAttribute) {
      const std::string block = StrCat("kernix_call.attributes[", attribute++, "].block");
      if (!parameter.is_array) continue;
      expressions[i] = StrCat("kernix_handler::LaunchBytes{", Literal(parameter.attribute_name), ", ", block, ".data, ",
                              block, ".size * sizeof(", CppType(parameter.PassedAs()), ")}");
      continue;
    }
    const bool is_result = parameter.kind == ParameterKind::kResult;
    const int place = is_result ? result++ : argument++;
    if (parameter.IsTensorMap()) continue;
    expressions[i] =
        StrCat("kernix_handler::LaunchArray<",
               parameter.IsTyped() ? ArrayArguments(parameter) : "BE::DType::Invalid, BE::kAnyRank", ", ",
               is_result ? "true" : "false", ">{kernix_call.tensors[", place, "], ", NamesOf(spec, parameter), "}");
  }
  return expressions;
}

void AppendLaunchBody(const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  StrAppend(&out, "  const kernix_handler::Signature kernix_signature = {",
            SignatureFields(/*on_gpu=*/true, spec, allow_cuda_graph), ", kernix_module};\n");
  AppendArrayChecks(spec, out);
  StrAppend(&out, "  BE::Tensor kernix_tensors[", spec.parameters.size(), "];\n");
  StrAppend(&out, "  kernix_handler::LaunchCall kernix_launch = {{kernix_tensors, ",
            spec.CountOf(ParameterKind::kAttribute) > 0 ? "kernix_values" : "nullptr",
            ", {nullptr}}, kernix_frame, &kernix_signature};\n");
  StrAppend(
      &out, "  return kernix_handler::RunLaunch<", Reader(spec),
      ">(\n      kernix_frame, kernix_signature, kernix_launch,\n      [](kernix_handler::LaunchCall& kernix_call) "
      "{\n        kernix_handler::Launch(kernix_call, ",
      spec.Callee(), ", ", absl::StrJoin(LaunchArguments(spec), ", "), ");\n      });\n");
}

std::string_view RoleName(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kArguments:
    case ParameterKind::kResults:
      return "kernix_handler::kRest";
    case ParameterKind::kArgumentToken:
    case ParameterKind::kResultToken:
      return "kernix_handler::kToken";
    default:
      return "kernix_handler::kTensor";
  }
}

// Declares `name`, an array of roles, and returns a kernix_handler::BufferRoles of it.
std::string AppendRoles(const std::vector<ParameterKind>& kinds, std::string_view name, std::string& out) {
  if (kinds.empty()) return "{nullptr, 0, 0, 0}";
  std::vector<std::string> names;
  size_t rest = kinds.size();
  for (const ParameterKind kind : kinds) {
    names.emplace_back(RoleName(kind));
    if (names.back() == RoleName(ParameterKind::kArguments)) rest = names.size() - 1;
  }
  StrAppend(&out, "  static constexpr kernix_handler::BufferRole ", name, "[] = {", absl::StrJoin(names, ", "), "};\n");
  return StrCat("{", name, ", ", kinds.size(), ", ",
                std::count(kinds.begin(), kinds.end(), ParameterKind::kOptionalArgument), ", ", rest, "}");
}

std::string ScratchFunction(const FunctionSpec& spec, int index) {
  return StrCat("kernix_scratch", index, "_of_", spec.name);
}

// The values that `expression` names.
std::vector<Value> ValuesIn(std::string_view expression, const std::vector<Value>& values) {
  const std::vector<std::string_view> names = FreeNames(expression);
  std::vector<Value> used;
  for (const Value& value : values) {
    if (std::find(names.begin(), names.end(), value.name) != names.end()) used.push_back(value);
  }
  return used;
}

// Appends functions that compute the scratch expressions, with the line where the user wrote them.
void AppendScratchFunctions(const FunctionSpec& spec, std::string& out) {
  const std::vector<Value> values = ExtendedValues(spec);
  const std::string label = spec.label.empty() ? StrCat("<arg_spec of ", spec.name, ">") : ToolName(spec.label);
  int index = 0;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kScratch) continue;
    std::vector<std::string> parameters;
    for (const Value& value : ValuesIn(parameter.expression, values)) {
      parameters.push_back(StrCat(value.type, " ", value.name));
    }
    StrAppend(&out, "#line ", std::max(spec.line, 1), " ", Literal(label), "\nstatic kernix_handler::ScratchSize ",
              ScratchFunction(spec, index++), "(", absl::StrJoin(parameters, ", "),
              ") { kernix_handler::Arithmetic kernix_of; return kernix_of.Size(",
              WithOperandsMarked(parameter.expression, "kernix_of"), ", ", Literal(parameter.expression), "); }\n");
  }
}

// Appends the lines of a call that run before the user's function.
void AppendScratchMemory(bool on_gpu, const FunctionSpec& spec, const std::vector<Value>& values, std::string& out) {
  int index = 0;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kScratch) continue;
    std::vector<std::string> arguments;
    for (const Value& value : ValuesIn(parameter.expression, values)) arguments.push_back(value.expression);
    StrAppend(&out, "        const kernix_handler::ScratchMemory<", on_gpu ? "true" : "false", "> kernix_scratch",
              index, "(kernix_call, ", ScratchFunction(spec, index), "(", absl::StrJoin(arguments, ", "), "));\n");
    ++index;
  }
  if (index > 0) out += "        if (kernix_call.error != nullptr) return;\n";
}

std::string ExtendedFunction(bool on_gpu, const FunctionSpec& spec, int left_out) {
  std::string lambda = "[](kernix_handler::ExtendedCall& kernix_call) {\n";
  std::vector<Value> values = ExtendedValues(spec);
  AppendScratchMemory(on_gpu, spec, values, lambda);
  values.resize(values.size() - static_cast<size_t>(left_out));
  const auto passed = [](std::string* text, const Value& value) { text->append(value.Passed()); };
  StrAppend(&lambda, "        static_cast<void>(kernix_call);\n        ", spec.Callee(), "(",
            absl::StrJoin(values, ", ", passed), ");\n      }");
  return lambda;
}

void AppendExtendedBody(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  const std::string arguments = AppendRoles(spec.Arguments(), "kernix_argument_roles", out);
  const std::string results = AppendRoles(spec.Results(), "kernix_result_roles", out);
  StrAppend(&out, "  ", SignatureQualifiers(spec), "kernix_handler::ExtendedSignature kernix_signature = {{",
            SignatureFields(on_gpu, spec, allow_cuda_graph), ", kernix_module}, ", arguments, ", ", results, "};\n");
  AppendLeavingOut(spec, out);
  AppendArrayChecks(spec, out);
  StrAppend(&out, "  return kernix_handler::RunExtended<", Reader(spec), ", kernix_handler::", StreamUse(on_gpu, spec),
            ", ", spec.CountOf(ParameterKind::kDeviceOrdinal) > 0 ? "true" : "false",
            ">(\n      kernix_frame, kernix_signature, ",
            spec.CountOf(ParameterKind::kAttribute) > 0 ? "kernix_values" : "nullptr", ",\n",
            FunctionToCall(spec, [&](int left_out) { return ExtendedFunction(on_gpu, spec, left_out); }), ");\n");
}

// The function that does the work of a handler.
std::string CallFunction(const FunctionSpec& spec) { return StrCat("kernix_call_of_", spec.name); }

// Appends the handler as XLA calls it, and with the module's name (see artifact_symbols.h). Both call `function` with
// the frame, that name and `more`.
void AppendExports(const FunctionSpec& spec, std::string_view function, std::string_view more, std::string& out) {
  constexpr char kExported[] = "extern \"C\" __attribute__((visibility(\"default\")))\nkernix_ffi_abi::Error* ";
  StrAppend(&out, kExported, spec.HandlerSymbol(), "(kernix_ffi_abi::CallFrame* kernix_frame) {\n  return ", function,
            "(kernix_frame, nullptr", more, ");\n}\n");
  StrAppend(&out, kExported, NamedHandlerSymbol(spec.HandlerSymbol()),
            "(kernix_ffi_abi::CallFrame* kernix_frame, const char* kernix_module) {\n  return ", function,
            "(kernix_frame, kernix_module", more, ");\n}\n");
}

// The usual handler: data, and a function that passes the parameters on. To compile code takes far longer.
bool IsTable(const FunctionSpec& spec) { return !spec.is_global && !spec.IsExtended() && spec.DefaultCount() == 0; }

void AppendTable(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  const std::vector<std::string> types = ArrayTypes(spec);
  if (!types.empty()) {
    StrAppend(&out, "static constexpr kernix_handler::ArrayType kernix_types_of_", spec.name, "[] = {",
              absl::StrJoin(types, ", "), "};\n");
  }
  StrAppend(&out, "static void ", CallFunction(spec), "([[maybe_unused]] kernix_handler::Call& kernix_call) {\n  ",
            spec.Callee(), "(", absl::StrJoin(PlainArguments(spec), ", "), ");\n}\n");
  StrAppend(&out, "static constexpr kernix_handler::Handler kernix_table_of_", spec.name, " = {{",
            SignatureFields(on_gpu, spec, allow_cuda_graph), "},\n  ", CallFunction(spec), ", ", Reader(spec),
            ", kernix_handler::", StreamUse(on_gpu, spec), ", ",
            types.empty() ? "nullptr" : StrCat("kernix_types_of_", spec.name), ", ", types.size(), "};\n");
  AppendExports(spec, "kernix_handler::RunTable", StrCat(", kernix_table_of_", spec.name), out);
}

}  // namespace

// `text` as a C string literal.
std::string Literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') literal += '\\';
    literal += c == '\n' || c == '\r' ? ' ' : c;
  }
  return literal + "\"";
}

void AppendHandlerIncludes(const std::vector<FunctionSpec>& functions, std::string& out) {
  const auto any_has = [&](ParameterKind kind) {
    return std::ranges::any_of(functions, [kind](const FunctionSpec& f) { return f.CountOf(kind) > 0; });
  };
  const auto any_parameter = [&](const auto& holds) {
    return std::ranges::any_of(functions,
                               [&](const FunctionSpec& f) { return std::ranges::any_of(f.parameters, holds); });
  };
  const auto include_if = [&out](bool needed, std::string_view header) {
    if (needed) StrAppend(&out, "#include \"brainevent/internal/", header, "\"\n");
  };
  const auto is_string = [](const Parameter& p) { return p.attribute_type == AttributeType::kString; };
  if (any_parameter(is_string)) out += "#include <string_view>\n";
  include_if(true, "handler.h");
  include_if(any_has(ParameterKind::kAttribute), "scalars.h");
  include_if(any_parameter(IsBlock), "attributes.h");
  include_if(std::ranges::any_of(functions, &FunctionSpec::IsExtended), "extended.h");
  include_if(std::ranges::any_of(functions, &FunctionSpec::HasTyped), "typed_arrays.h");
  include_if(std::ranges::any_of(functions, &FunctionSpec::is_global), "launch.h");
  include_if(any_parameter(&Parameter::IsTensorMap), "tensor_map.h");
  include_if(any_has(ParameterKind::kScratch), "scratch_memory.h");
}

void AppendHandler(v1::Language language, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  const bool on_gpu = TraitsOf(language).runs_on_gpu;
  const int attributes = spec.CountOf(ParameterKind::kAttribute);
  AppendScratchFunctions(spec, out);
  StrAppend(&out, "#line 1 ", Literal(StrCat(kHandlerOf, spec.name, ">")), "\n");
  if (HasAttributeTable(spec)) {
    StrAppend(&out, "static constexpr kernix_handler::AttributeSpec ", AttributesName(spec), "[] = {",
              AttributeTable(spec), "};\n");
  }
  if (IsTable(spec)) return AppendTable(on_gpu, spec, allow_cuda_graph, out);
  StrAppend(&out, "static kernix_ffi_abi::Error* ", CallFunction(spec),
            "(kernix_ffi_abi::CallFrame* kernix_frame, const char* kernix_module) {\n");
  if (attributes > 0) StrAppend(&out, "  kernix_handler::AttributeValue kernix_values[", attributes, "];\n");
  if (spec.is_global) {
    AppendLaunchBody(spec, allow_cuda_graph, out);
  } else if (spec.IsExtended()) {
    AppendExtendedBody(on_gpu, spec, allow_cuda_graph, out);
  } else {
    AppendPlainBody(on_gpu, spec, allow_cuda_graph, out);
  }
  out += "}\n";
  AppendExports(spec, CallFunction(spec), "", out);
}

}  // namespace kernix::language
