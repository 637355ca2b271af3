// SPDX-License-Identifier: Apache-2.0
//
// For tests: nginx before an engine that speaks no TLS, with certificates of its own.
#pragma once

#include <memory>
#include <string>

#include "tests/support/engine/child_process.h"
#include "tests/support/temp_folder.h"

namespace kernix::testing {

struct TlsFrontOptions {
  bool wants_client_certificate = false;
  std::string token;                             // that it wants; empty: none
  std::string header = "authorization: Bearer";  // where: NAME or NAME: SCHEME; of Basic, `token` is USER:PASSWORD
};

class TlsFront {
 public:
  // Before the engine at the Unix socket `engine`. What connects early waits.
  TlsFront(const std::string& engine, const TlsFrontOptions& options);
  ~TlsFront();

  std::string address() const;  // grpcs://localhost:PORT
  std::string ca_file() const { return folder_.File("ca.pem"); }
  std::string client_certificate() const { return folder_.File("client.pem"); }
  std::string client_key() const { return folder_.File("client.key"); }
  // An authority that has signed nothing here.
  std::string other_ca_file() const { return folder_.File("other.pem"); }

 private:
  const TempFolder folder_;
  int port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace kernix::testing
