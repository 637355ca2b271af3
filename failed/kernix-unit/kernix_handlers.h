#pragma GCC system_header
#undef Call
#undef CallFrame
#undef Error
#undef Handler
#undef RunTable
#undef kCommandBufferCompatible
#undef kNoStream
#undef maybe_unused
#undef tensors
#undef visibility
#line 1 "<handler of f>"
static void kernix_call_of_f([[maybe_unused]] kernix_handler::Call& kernix_call) {
  f(kernix_call.tensors[0], kernix_call.tensors[1]);
}
static constexpr kernix_handler::Handler kernix_table_of_f = {{"f", 1, 1, nullptr, 0, kernix_ffi_abi::kCommandBufferCompatible},
  kernix_call_of_f, nullptr, kernix_handler::kNoStream, nullptr, 0};
extern "C" __attribute__((visibility("default")))
kernix_ffi_abi::Error* kernix_handler_f(kernix_ffi_abi::CallFrame* kernix_frame) {
  return kernix_handler::RunTable(kernix_frame, nullptr, kernix_table_of_f);
}
extern "C" __attribute__((visibility("default")))
kernix_ffi_abi::Error* kernix_named_kernix_handler_f(kernix_ffi_abi::CallFrame* kernix_frame, const char* kernix_module) {
  return kernix_handler::RunTable(kernix_frame, kernix_module, kernix_table_of_f);
}
