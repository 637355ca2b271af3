// SPDX-License-Identifier: Apache-2.0
//
// A client that starts kernixd for a load names the load's compiler, so that kernixd can look at it while it still
// opens its store.
#pragma once

#include <string>
#include <thread>

#include "daemon/toolchain/toolchain.h"

namespace kernix::server {

// Identifies a host compiler in a thread of its own. A load that needs it meanwhile waits for this thread instead of
// asking the compiler again; a load that needs another compiler loses nothing but processor time. Says no errors: the
// load does.
class FirstLook {
 public:
  // `registry` must outlive the object. Reads no file before FileDigests::Remember() is called, since the store may
  // know the file. Without a thread to be had, does nothing.
  FirstLook(toolchain::ToolchainRegistry& registry, const std::string& host_compiler);
  // Waits for the thread, which may wait for the compiler.
  ~FirstLook();
  FirstLook(const FirstLook&) = delete;
  FirstLook& operator=(const FirstLook&) = delete;

 private:
  toolchain::ToolchainRegistry& registry_;
  std::thread thread_;
};

}  // namespace kernix::server
