// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/handler.h"

#include <algorithm>
#include <iterator>

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
  std::string name;         // name in `scratch:` expressions; may be empty
  std::string type;         // type in `scratch:` expressions
  std::string expression;   // expression in terms of `kernix_call`
  std::string passed = {};  // the expression that the user's parameter is made of, if it is another

  const std::string& Passed() const { return passed.empty() ? expression : passed; }
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

// The place of a parameter among the function's.
size_t IndexOf(const FunctionSpec& spec, const Parameter& parameter) {
  return static_cast<size_t>(&parameter - spec.parameters.data());
}

// A launch passes arrays by their bytes.
bool IsBytes(const FunctionSpec& spec, const Parameter& parameter) { return spec.is_global && parameter.is_array; }

bool IsOpaque(const FunctionSpec& spec, const Parameter& parameter) {
  return parameter.is_opaque && !IsBytes(spec, parameter);
}

// The type that converts a value to a parameter whose type kernix has not read.
std::string OpaqueType(const FunctionSpec& spec, const Parameter& parameter) {
  return StrCat("kernix_value", IndexOf(spec, parameter), "_of_", spec.name);
}

// What OpaqueType() has in it.
std::string OpaqueValue(const Parameter& parameter) {
  const std::string type = CppType(parameter.PassedAs());
  if (parameter.IsTyped()) {
    return StrCat("kernix_handler::TypedValue<", TypedTensor(parameter),
                  ", BE::DType::", FindElementType(parameter.element)->dtype, ">");
  }
  if (parameter.is_array) {
    return StrCat("kernix_handler::ArrayValue<", type, ">");
  }
  if (IsHalf(parameter.attribute_type)) {
    return StrCat("kernix_handler::HalfValue<kernix_handler::", AttributeTypeEnumerator(parameter.attribute_type), ">");
  }
  return StrCat("kernix_handler::NumberValue<", type, ">");
}

// The error for a parameter that cannot be made of that.
std::string OpaqueProblem(const FunctionSpec& spec, const Parameter& parameter) {
  const std::string type = CppType(parameter.PassedAs());
  const std::string token = spec.Tokens()[IndexOf(spec, parameter)];
  if (parameter.IsTyped()) {
    return StrCat("'", parameter.declared_name, "' of ", spec.name, ": the token ", token,
                  " has another element type than this parameter. An element is one number: for a struct of several, "
                  "take a BE::Tensor, whose data_ptr<T>() is the pointer");
  }
  const std::string intro = StrCat("the parameter of ", spec.name, " for ", token, " must be ");
  if (parameter.is_array) {
    return StrCat(intro, "a BE::Span<const ", type,
                  ">, or a struct of these bytes, without a destructor or virtual functions of its own");
  }
  if (IsHalf(parameter.attribute_type)) {
    return StrCat(intro, "a half, a float, a double, or a uint16_t, which gets the bits");
  }
  return StrCat(intro, "an enum, or a type to which C++ converts ", type);
}

// Declares the types that Passed() of Values() use.
void AppendOpaqueTypes(const FunctionSpec& spec, std::string& out) {
  for (const Parameter& parameter : spec.parameters) {
    if (!IsOpaque(spec, parameter)) continue;
    const std::string value = OpaqueValue(parameter);
    StrAppend(&out, "struct ", OpaqueType(spec, parameter), " {\n  ", value,
              " value;\n  template <typename T>\n  operator T() const {\n    static_assert(", value,
              "::template kTakes<T>, ", Literal(OpaqueProblem(spec, parameter)), ");\n    if constexpr (", value,
              "::template kTakes<T>) return value.template To<T>();\n  }\n};\n");
  }
}

// The user's parameter for an attribute whose value is `expression`.
std::string PassedAttribute(const FunctionSpec& spec, const Parameter& parameter, std::string_view expression) {
  if (!IsOpaque(spec, parameter)) return "";
  const bool is_half = IsHalf(parameter.attribute_type) && !parameter.is_array;
  const std::string name = is_half ? "" : StrCat(Literal(parameter.attribute_name), ", ");
  return StrCat(OpaqueType(spec, parameter), "{", name, expression, "}");
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
    const std::string place =
        place_ > rest_ ? At("FromEnd", roles_.size() - 1 - place_) : StrCat(list_, ".tensors[", place_, "]");
    ++place_;
    const std::string type = parameter.is_opaque ? OpaqueType(spec_, parameter) : TypedTensor(parameter);
    return {Name(), tensor_ + "&", place,
            type.empty() ? "" : StrCat(type, "{", place, ", ", NamesOf(spec_, parameter), "}")};
  }
  Value Optional() { return {Name(), tensor_ + "*", At("Optional", place_++)}; }
  Value Rest() {
    const size_t before = place_++;
    const std::string span = StrCat("BE::Span<", tensor_, ">");
    return {StrCat(name_, "s"), span, StrCat(list_, ".Rest<", span, ">(", before, ", ", roles_.size() - place_, ")")};
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

// The values with which a handler calls the user's function. A scratch parameter has no name.
std::vector<Value> Values(const FunctionSpec& spec) {
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
      case ParameterKind::kAttribute: {
        const std::string expression =
            AttributeExpression(parameter, StrCat("kernix_call.attributes[", attribute++, "]"));
        values.push_back({parameter.attribute_name, ScratchType(parameter), expression,
                          PassedAttribute(spec, parameter, expression)});
        break;
      }
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
  if (spec.is_global) return "kRequiredStream";
  if (spec.CountOf(ParameterKind::kStream) == 0) return "kNoStream";
  return on_gpu ? "kRequiredStream" : "kNullableStream";
}

std::string_view Traits(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph) {
  // A replayed graph would use memory that has been freed.
  const bool scratch = on_gpu && spec.CountOf(ParameterKind::kScratch) > 0;
  return allow_cuda_graph && !scratch ? "kernix_ffi_abi::kCommandBufferCompatible" : "0";
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

// The expressions that a launch passes. Each converts to the parameter's type.
std::vector<std::string> LaunchArguments(const FunctionSpec& spec) {
  const std::vector<Value> values = Values(spec);
  std::vector<std::string> expressions;
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const Parameter& parameter = spec.parameters[i];
    if (IsBytes(spec, parameter)) {
      expressions.push_back(
          StrCat("kernix_handler::LaunchBytes{", Literal(parameter.attribute_name), ", ", values[i].expression, "}"));
    } else if (parameter.kind == ParameterKind::kAttribute || parameter.IsTensorMap() || parameter.is_opaque) {
      expressions.push_back(values[i].Passed());
    } else {
      expressions.push_back(StrCat("kernix_handler::LaunchArray<",
                                   parameter.IsTyped() ? ArrayArguments(parameter) : "BE::DType::Invalid, BE::kAnyRank",
                                   ", ", parameter.kind == ParameterKind::kResult ? "true" : "false", ">{",
                                   values[i].expression, ", ", NamesOf(spec, parameter), "}"));
    }
  }
  return expressions;
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

// The kernix_handler::BufferRoles of `kinds`. Declares their array, `name`, if not all are tensors.
std::string AppendRoles(const std::vector<ParameterKind>& kinds, const std::string& name, std::string& out) {
  std::vector<std::string> roles;
  int64_t rest = -1;
  for (const ParameterKind kind : kinds) {
    if (kind == ParameterKind::kArguments || kind == ParameterKind::kResults) rest = std::ssize(roles);
    roles.emplace_back(RoleName(kind));
  }
  const bool only_tensors = std::ranges::all_of(
      kinds, [](ParameterKind kind) { return RoleName(kind) == RoleName(ParameterKind::kArgument); });
  if (!only_tensors) {
    StrAppend(&out, "static constexpr kernix_handler::BufferRole ", name, "[] = {", absl::StrJoin(roles, ", "), "};\n");
  }
  return StrCat("{", kinds.size(), ", ", only_tensors ? "nullptr" : name, ", ",
                std::ranges::count(kinds, ParameterKind::kOptionalArgument), ", ", rest, "}");
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

// The `#line` for code whose errors are about the tokens: where the user wrote them.
std::string LineOfTokens(const FunctionSpec& spec) {
  const std::string label = spec.label.empty() ? StrCat("<arg_spec of ", spec.name, ">") : ToolName(spec.label);
  return StrCat("#line ", std::max(spec.line, 1), " ", Literal(label), "\n");
}

// Appends functions that compute the scratch expressions.
void AppendScratchFunctions(const FunctionSpec& spec, std::string& out) {
  const std::vector<Value> values = Values(spec);
  int index = 0;
  for (const Parameter& parameter : spec.parameters) {
    if (parameter.kind != ParameterKind::kScratch) continue;
    std::vector<std::string> parameters;
    for (const Value& value : ValuesIn(parameter.expression, values)) {
      parameters.push_back(StrCat(value.type, " ", value.name));
    }
    StrAppend(&out, LineOfTokens(spec), "static kernix_handler::ScratchSize ", ScratchFunction(spec, index++), "(",
              absl::StrJoin(parameters, ", "), ") { kernix_handler::Arithmetic kernix_of; return kernix_of.Size(",
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
    StrAppend(&out, "  const kernix_handler::ScratchMemory<", on_gpu ? "true" : "false", "> kernix_scratch", index,
              "(kernix_call, ", ScratchFunction(spec, index), "(", absl::StrJoin(arguments, ", "), "));\n");
    ++index;
  }
  if (index > 0) out += "  if (kernix_call.error != nullptr) return;\n";
}

// The function that calls the user's.
std::string CallFunction(const FunctionSpec& spec) { return StrCat("kernix_call_of_", spec.name); }

void AppendCall(const FunctionSpec& spec, const std::vector<Value>& values, std::string& out) {
  const auto passed = [](std::string* text, const Value& value) { text->append(value.Passed()); };
  StrAppend(&out, spec.Callee(), "(", absl::StrJoin(values, ", ", passed), ");");
}

// The `#line` of the function's declaration, or of its tokens if that is not known.
std::string LineOfFunction(const FunctionSpec& spec) {
  const size_t colon = spec.declared_at.rfind(':');
  if (colon == std::string::npos) return LineOfTokens(spec);
  return StrCat("#line ", spec.declared_at.substr(colon + 1), " ", Literal(ToolName(spec.declared_at.substr(0, colon))),
                "\n");
}

// Appends assertions that what a launch passes by its bytes can be made of them.
void AppendBytesAssertions(const FunctionSpec& spec, std::string& out) {
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    if (!IsBytes(spec, spec.parameters[i])) continue;
    StrAppend(&out, LineOfFunction(spec), "static_assert(kernix_handler::TakesBytes<", i, ">(", spec.Callee(), "), \"'",
              spec.parameters[i].attribute_name,
              "' takes the bytes of a struct, union or vector without virtual functions\");\n");
  }
}

void AppendCallFunction(bool on_gpu, const FunctionSpec& spec, std::string& out) {
  StrAppend(&out, "static void ", CallFunction(spec), "([[maybe_unused]] kernix_handler::Call& kernix_call) {\n");
  if (spec.is_global) {
    StrAppend(&out, "  kernix_handler::Launch(kernix_call, ", spec.Callee());
    for (const std::string& argument : LaunchArguments(spec)) StrAppend(&out, ", ", argument);
    out += ");\n}\n";
    return;
  }
  std::vector<Value> values = Values(spec);
  AppendScratchMemory(on_gpu, spec, values, out);
  std::vector<Value> given = values;
  for (int left_out = 1; left_out <= spec.DefaultCount(); ++left_out) {
    given.pop_back();
    StrAppend(&out,
              "  if (kernix_call.signature->attribute_count == ", spec.CountOf(ParameterKind::kAttribute) - left_out,
              ") {\n    ");
    AppendCall(spec, given, out);
    out += "\n    return;\n  }\n";
  }
  out += "  ";
  AppendCall(spec, values, out);
  out += "\n}\n";
}

// Appends the kernix_handler::Handler `name`, and the tables that it needs.
void AppendTable(bool on_gpu, const FunctionSpec& spec, bool allow_cuda_graph, const std::string& name,
                 std::string& out) {
  const std::string attributes = StrCat("kernix_attributes_of_", spec.name);
  const bool has_attributes = spec.is_global || spec.CountOf(ParameterKind::kAttribute) > 0;
  if (has_attributes) {
    StrAppend(&out, "static constexpr kernix_handler::AttributeSpec ", attributes, "[] = {", AttributeTable(spec),
              "};\n");
  }
  const std::string types = StrCat("kernix_types_of_", spec.name);
  const std::vector<std::string> array_types = ArrayTypes(spec);
  if (!array_types.empty()) {
    StrAppend(&out, "static constexpr kernix_handler::ArrayType ", types, "[] = {", absl::StrJoin(array_types, ", "),
              "};\n");
  }
  const std::string arguments = AppendRoles(spec.Arguments(), StrCat("kernix_argument_roles_of_", spec.name), out);
  const std::string results = AppendRoles(spec.Results(), StrCat("kernix_result_roles_of_", spec.name), out);
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  StrAppend(&out, "static constexpr kernix_handler::Handler ", name, " = {{", Literal(spec.name), ", ", arguments, ", ",
            results, ", ", has_attributes ? attributes : "nullptr", ", ", spec.CountOf(ParameterKind::kAttribute), ", ",
            Traits(on_gpu, spec, allow_cuda_graph), "},\n  ", CallFunction(spec),
            ", kernix_handler::", StreamUse(on_gpu, spec), ", ", array_types.empty() ? "nullptr" : types, ", ",
            array_types.size());
  StrAppend(&out, ", ", spec.is_global ? 0 : spec.DefaultCount(), ", ",
            flag(spec.CountOf(ParameterKind::kDeviceOrdinal) > 0), ", ", flag(spec.is_global), "};\n");
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
  if (any_has(ParameterKind::kArguments) || any_has(ParameterKind::kResults)) out += "#include \"brainevent/span.h\"\n";
  include_if(true, "handler.h");
  include_if(any_parameter([](const Parameter& p) { return p.is_array || p.is_opaque; }), "attributes.h");
  include_if(std::ranges::any_of(functions, &FunctionSpec::HasTyped), "typed_arrays.h");
  include_if(std::ranges::any_of(functions, &FunctionSpec::is_global), "launch.h");
  include_if(any_parameter(&Parameter::IsTensorMap), "tensor_map.h");
  include_if(any_has(ParameterKind::kScratch), "scratch_memory.h");
}

void AppendHandler(v1::Language language, const FunctionSpec& spec, bool allow_cuda_graph, std::string& out) {
  const bool on_gpu = TraitsOf(language).runs_on_gpu;
  AppendScratchFunctions(spec, out);
  AppendBytesAssertions(spec, out);
  StrAppend(&out, "#line 1 ", Literal(StrCat(kHandlerOf, spec.name, ">")), "\n");
  AppendOpaqueTypes(spec, out);
  AppendCallFunction(on_gpu, spec, out);
  const std::string table = StrCat("kernix_table_of_", spec.name);
  AppendTable(on_gpu, spec, allow_cuda_graph, table, out);
  // As XLA calls it, and with the module's name (artifact_symbols.h).
  constexpr char kExported[] = "extern \"C\" __attribute__((visibility(\"default\")))\nkernix_ffi_abi::Error* ";
  StrAppend(&out, kExported, spec.HandlerSymbol(), "(kernix_ffi_abi::CallFrame* kernix_frame) {\n",
            "  return kernix_handler::RunHandler(kernix_frame, nullptr, ", table, ");\n}\n");
  StrAppend(&out, kExported, NamedHandlerSymbol(spec.HandlerSymbol()),
            "(kernix_ffi_abi::CallFrame* kernix_frame, const char* kernix_module) {\n",
            "  return kernix_handler::RunHandler(kernix_frame, kernix_module, ", table, ");\n}\n");
}

}  // namespace kernix::language
