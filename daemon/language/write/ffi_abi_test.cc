// SPDX-License-Identifier: Apache-2.0
//
// Compares our declarations of XLA's FFI C ABI with those of an installed jaxlib, by means of a compiler.
#include "kernel/brainevent/internal/ffi_abi.h"

#include <string>

#include "common/base/strings.h"
#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

// A struct of theirs and of ours; `fields` is "theirs=ours" for each field. Structs may continue after our last field.
struct Layout {
  const char* theirs;
  const char* ours;
  std::vector<std::pair<const char*, const char*>> fields;
};

const std::vector<Layout>& Layouts() {
  static const auto& layouts = *new std::vector<Layout>{
      {"XLA_FFI_Extension_Base", "ExtensionBase", {{"struct_size", "struct_size"}, {"type", "type"}, {"next", "next"}}},
      {"XLA_FFI_Api_Version",
       "ApiVersion",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"major_version", "major_version"},
        {"minor_version", "minor_version"}}},
      {"XLA_FFI_Error_Create_Args",
       "ErrorCreateArgs",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"message", "message"},
        {"errc", "errc"}}},
      {"XLA_FFI_Error_GetMessage_Args",
       "ErrorGetMessageArgs",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"error", "error"},
        {"message", "message"}}},
      {"XLA_FFI_Error_Destroy_Args",
       "ErrorDestroyArgs",
       {{"struct_size", "struct_size"}, {"extension_start", "extension_start"}, {"error", "error"}}},
      {"XLA_FFI_Buffer",
       "Buffer",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"dtype", "dtype"},
        {"data", "data"},
        {"rank", "rank"},
        {"dims", "dims"}}},
      {"XLA_FFI_ByteSpan", "ByteSpan", {{"ptr", "ptr"}, {"len", "len"}}},
      {"XLA_FFI_Scalar", "Scalar", {{"dtype", "dtype"}, {"value", "value"}}},
      {"XLA_FFI_Array", "Array", {{"dtype", "dtype"}, {"size", "size"}, {"data", "data"}}},
      {"XLA_FFI_Args",
       "Buffers",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"size", "size"},
        {"types", "types"},
        {"args", "buffers"}}},
      {"XLA_FFI_Rets",
       "Buffers",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"size", "size"},
        {"types", "types"},
        {"rets", "buffers"}}},
      {"XLA_FFI_Attrs",
       "Attributes",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"size", "size"},
        {"types", "types"},
        {"names", "names"},
        {"attrs", "values"}}},
      {"XLA_FFI_Stream_Get_Args",
       "StreamGetArgs",
       {{"struct_size", "struct_size"}, {"extension_start", "extension_start"}, {"ctx", "ctx"}, {"stream", "stream"}}},
      {"XLA_FFI_Api",
       "Api",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"api_version", "api_version"},
        {"internal_api", "internal_api"},
        {"XLA_FFI_Error_Create", "error_create"},
        {"XLA_FFI_Error_GetMessage", "error_get_message"},
        {"XLA_FFI_Error_Destroy", "error_destroy"},
        {"XLA_FFI_Handler_Register", "handler_register"},
        {"XLA_FFI_Stream_Get", "stream_get"},
        {"XLA_FFI_DeviceMemory_Allocate", "device_memory_allocate"},
        {"XLA_FFI_DeviceMemory_Free", "device_memory_free"},
        {"XLA_FFI_DeviceOrdinal_Get", "device_ordinal_get"}}},
      {"XLA_FFI_DeviceMemory_Allocate_Args",
       "DeviceMemoryAllocateArgs",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"ctx", "ctx"},
        {"size", "size"},
        {"alignment", "alignment"},
        {"data", "data"}}},
      {"XLA_FFI_DeviceMemory_Free_Args",
       "DeviceMemoryFreeArgs",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"ctx", "ctx"},
        {"size", "size"},
        {"data", "data"}}},
      {"XLA_FFI_DeviceOrdinal_Get_Args",
       "DeviceOrdinalGetArgs",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"ctx", "ctx"},
        {"device_ordinal", "device_ordinal"}}},
      {"XLA_FFI_CallFrame",
       "CallFrame",
       {{"struct_size", "struct_size"},
        {"extension_start", "extension_start"},
        {"api", "api"},
        {"ctx", "ctx"},
        {"stage", "stage"},
        {"args", "args"},
        {"rets", "rets"},
        {"attrs", "attributes"}}},
      {"XLA_FFI_Metadata",
       "Metadata",
       {{"struct_size", "struct_size"}, {"api_version", "api_version"}, {"traits", "traits"}}},
      {"XLA_FFI_Metadata_Extension", "MetadataExtension", {{"extension_base", "base"}, {"metadata", "metadata"}}},
  };
  return layouts;
}

const std::vector<std::pair<const char*, const char*>>& Constants() {
  static const auto& constants = *new std::vector<std::pair<const char*, const char*>>{
      {"XLA_FFI_API_MAJOR", "kApiMajor"},
      {"XLA_FFI_Extension_Metadata", "kExtensionMetadata"},
      {"XLA_FFI_Error_Code_OK", "kOk"},
      {"XLA_FFI_Error_Code_CANCELLED", "kCancelled"},
      {"XLA_FFI_Error_Code_UNKNOWN", "kUnknown"},
      {"XLA_FFI_Error_Code_INVALID_ARGUMENT", "kInvalidArgument"},
      {"XLA_FFI_Error_Code_DEADLINE_EXCEEDED", "kDeadlineExceeded"},
      {"XLA_FFI_Error_Code_NOT_FOUND", "kNotFound"},
      {"XLA_FFI_Error_Code_ALREADY_EXISTS", "kAlreadyExists"},
      {"XLA_FFI_Error_Code_PERMISSION_DENIED", "kPermissionDenied"},
      {"XLA_FFI_Error_Code_RESOURCE_EXHAUSTED", "kResourceExhausted"},
      {"XLA_FFI_Error_Code_FAILED_PRECONDITION", "kFailedPrecondition"},
      {"XLA_FFI_Error_Code_ABORTED", "kAborted"},
      {"XLA_FFI_Error_Code_OUT_OF_RANGE", "kOutOfRange"},
      {"XLA_FFI_Error_Code_UNIMPLEMENTED", "kUnimplemented"},
      {"XLA_FFI_Error_Code_INTERNAL", "kInternal"},
      {"XLA_FFI_Error_Code_UNAVAILABLE", "kUnavailable"},
      {"XLA_FFI_Error_Code_DATA_LOSS", "kDataLoss"},
      {"XLA_FFI_Error_Code_UNAUTHENTICATED", "kUnauthenticated"},
      {"XLA_FFI_DataType_INVALID", "kInvalid"},
      {"XLA_FFI_DataType_PRED", "kPred"},
      {"XLA_FFI_DataType_S8", "kS8"},
      {"XLA_FFI_DataType_S16", "kS16"},
      {"XLA_FFI_DataType_S32", "kS32"},
      {"XLA_FFI_DataType_S64", "kS64"},
      {"XLA_FFI_DataType_U8", "kU8"},
      {"XLA_FFI_DataType_U16", "kU16"},
      {"XLA_FFI_DataType_U32", "kU32"},
      {"XLA_FFI_DataType_U64", "kU64"},
      {"XLA_FFI_DataType_F16", "kF16"},
      {"XLA_FFI_DataType_F32", "kF32"},
      {"XLA_FFI_DataType_F64", "kF64"},
      {"XLA_FFI_DataType_C64", "kC64"},
      {"XLA_FFI_DataType_BF16", "kBF16"},
      {"XLA_FFI_DataType_TOKEN", "kToken"},
      {"XLA_FFI_DataType_C128", "kC128"},
      {"XLA_FFI_DataType_F8E5M2", "kF8E5M2"},
      {"XLA_FFI_DataType_F8E4M3FN", "kF8E4M3FN"},
      {"XLA_FFI_DataType_S4", "kS4"},
      {"XLA_FFI_DataType_U4", "kU4"},
      {"XLA_FFI_DataType_F8E4M3B11FNUZ", "kF8E4M3B11FNUZ"},
      {"XLA_FFI_DataType_F8E5M2FNUZ", "kF8E5M2FNUZ"},
      {"XLA_FFI_DataType_F8E4M3FNUZ", "kF8E4M3FNUZ"},
      {"XLA_FFI_DataType_S2", "kS2"},
      {"XLA_FFI_DataType_U2", "kU2"},
      {"XLA_FFI_DataType_F8E4M3", "kF8E4M3"},
      {"XLA_FFI_DataType_F8E3M4", "kF8E3M4"},
      {"XLA_FFI_DataType_S1", "kS1"},
      {"XLA_FFI_DataType_U1", "kU1"},
      {"XLA_FFI_DataType_F4E2M1FN", "kF4E2M1FN"},
      {"XLA_FFI_DataType_F8E8M0FNU", "kF8E8M0FNU"},
      {"XLA_FFI_ArgType_BUFFER", "kBuffer"},
      {"XLA_FFI_RetType_BUFFER", "kBuffer"},
      {"XLA_FFI_AttrType_ARRAY", "kAttributeArray"},
      {"XLA_FFI_AttrType_DICTIONARY", "kAttributeDictionary"},
      {"XLA_FFI_AttrType_SCALAR", "kAttributeScalar"},
      {"XLA_FFI_AttrType_STRING", "kAttributeString"},
      {"XLA_FFI_ExecutionStage_INSTANTIATE", "kStageInstantiate"},
      {"XLA_FFI_ExecutionStage_PREPARE", "kStagePrepare"},
      {"XLA_FFI_ExecutionStage_INITIALIZE", "kStageInitialize"},
      {"XLA_FFI_ExecutionStage_EXECUTE", "kStageExecute"},
      {"XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE", "kCommandBufferCompatible"},
  };
  return constants;
}

// Static assertions that both have the same layout.
std::string Comparison() {
  std::string text =
      "#include \"brainevent/internal/ffi_abi.h\"\n#include <stddef.h>\n#include \"xla/ffi/api/c_api.h\"\n"
      "namespace k = kernix_ffi_abi;\n"
      "static_assert(k::kApiMinor <= XLA_FFI_API_MINOR, \"kApiMinor\");\n";
  for (const auto& [theirs, ours] : Constants()) {
    StrAppend(&text, "static_assert((int)", theirs, " == (int)k::", ours, ", \"", ours, "\");\n");
  }
  for (const Layout& layout : Layouts()) {
    for (const auto& [theirs, ours] : layout.fields) {
      const std::string field = StrCat("\"", layout.ours, "::", ours, "\"");
      StrAppend(&text, "static_assert(offsetof(", layout.theirs, ", ", theirs, ") == offsetof(k::", layout.ours, ", ",
                ours, "), ", field, ");\nstatic_assert(sizeof(", layout.theirs, "::", theirs,
                ") == sizeof(k::", layout.ours, "::", ours, "), ", field, ");\n");
    }
  }
  return text;
}

TEST(FfiAbiTest, AgreesWithTheInstalledJaxlib) {
  const std::optional<std::string> python = FindJaxPython();
  if (!python.has_value()) GTEST_SKIP() << "no Python with jaxlib: set KERNIX_TEST_PYTHON";
  const std::string xla = Evaluate(*python, "import jax; print(jax.ffi.include_dir())");
  ASSERT_FALSE(xla.empty());
  Workshop workshop;
  const Outcome outcome = workshop.Compile("c++", Comparison(), {"-I" + xla, "-std=c++17", "-fsyntax-only"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

// Structs that XLA embeds by value must not have grown beyond the fields that we read.
TEST(FfiAbiTest, EmbeddedStructsHaveTheSameSize) {
  const std::optional<std::string> python = FindJaxPython();
  if (!python.has_value()) GTEST_SKIP() << "no Python with jaxlib: set KERNIX_TEST_PYTHON";
  const std::string xla = Evaluate(*python, "import jax; print(jax.ffi.include_dir())");
  const std::string text =
      "#include \"brainevent/internal/ffi_abi.h\"\n#include \"xla/ffi/api/c_api.h\"\nnamespace k = kernix_ffi_abi;\n"
      "static_assert(sizeof(XLA_FFI_Args) == sizeof(k::Buffers), \"\");\n"
      "static_assert(sizeof(XLA_FFI_Attrs) == sizeof(k::Attributes), \"\");\n"
      "static_assert(sizeof(XLA_FFI_Api_Version) == sizeof(k::ApiVersion), \"\");\n"
      "static_assert(sizeof(XLA_FFI_Extension_Base) == sizeof(k::ExtensionBase), \"\");\n"
      "static_assert(sizeof(XLA_FFI_ByteSpan) == sizeof(k::ByteSpan), \"\");\n";
  const Outcome outcome = Workshop().Compile("c++", text, {"-I" + xla, "-std=c++17", "-fsyntax-only"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace kernix::language
