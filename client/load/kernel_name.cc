// SPDX-License-Identifier: Apache-2.0
#include "client/load/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace kernix {

std::string KernelName(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // __cxa_demangle() reads "f" as the type float
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return name != nullptr ? name.get() : symbol;
}

}  // namespace kernix
