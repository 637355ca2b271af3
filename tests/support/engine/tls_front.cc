// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engine/tls_front.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>

#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/unique_fd.h"

namespace kernix::testing {
namespace {

constexpr char kMakeCertificates[] = R"(
set -e
curve='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
for who in ca other; do openssl req -x509 $curve -days 2 -subj /CN=$who -keyout $who.key -out $who.pem; done
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names
for who in server client; do
  openssl req $curve -subj /CN=$who -keyout $who.key -out $who.csr
  openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out $who.pem -extfile names
done)";

void MakeCertificates(const std::string& folder) {
  ProcessSpec spec;
  spec.argv = {"/bin/sh", "-c", kMakeCertificates};
  spec.environment = {{"PATH", "/usr/bin:/bin"}, {"HOME", folder}};
  spec.working_directory = folder;
  const auto result = Env::Posix().RunProcess(spec, nullptr, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->exit_code, 0) << result->output;
}

// A socket on a free port that nginx takes over, so that no other process can take the port in between.
UniqueFd Listen(int& port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd.get(), 64), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return fd;
}

// nginx's own check of Basic: bazel-remote's --htpasswd_file means the same.
std::string TokenCheck(const std::string& folder, const TlsFrontOptions& options) {
  if (options.token.empty()) return "";
  if (options.header == "authorization: Basic") {
    return StrCat("auth_basic engine; auth_basic_user_file ", folder, "/htpasswd;");
  }
  const size_t colon = options.header.find(':');
  std::string name = options.header.substr(0, colon);
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string scheme = colon == std::string::npos ? "" : options.header.substr(colon + 2) + " ";
  return StrCat("if ($http_", name, " != \"", scheme, options.token, "\") { return 401; }");
}

std::string Configuration(const std::string& folder, const std::string& engine, int port,
                          const TlsFrontOptions& options) {
  const std::string client = options.wants_client_certificate
                                 ? StrCat("ssl_client_certificate ", folder, "/ca.pem; ssl_verify_client on;")
                                 : "";
  const std::string token = TokenCheck(folder, options);
  return StrCat("user root; daemon off; pid ", folder, "/nginx.pid; error_log stderr warn;\n",
                "events { worker_connections 256; }\nhttp {\n  access_log off; client_max_body_size 0;\n",
                "  client_body_temp_path ", folder, "/t; proxy_temp_path ", folder, "/t; fastcgi_temp_path ", folder,
                "/t; uwsgi_temp_path ", folder, "/t; scgi_temp_path ", folder, "/t;\n",
                "  upstream engine { server unix:", engine, "; keepalive 8; }\n  server {\n    listen 127.0.0.1:", port,
                " ssl http2;\n    ssl_certificate ", folder, "/server.pem; ssl_certificate_key ", folder,
                "/server.key; ", client, "\n    location / { ", token, " grpc_pass grpc://engine; }\n  }\n}\n");
}

}  // namespace

TlsFront::TlsFront(const std::string& engine, const TlsFrontOptions& options) {
  MakeCertificates(folder_.path());
  if (const size_t colon = options.token.find(':'); colon != std::string::npos) {
    folder_.Write("htpasswd",
                  StrCat(options.token.substr(0, colon), ":{PLAIN}", options.token.substr(colon + 1), "\n"));
  }
  const UniqueFd listening = Listen(port_);
  const std::string configuration = folder_.Write("nginx.conf", Configuration(folder_.path(), engine, port_, options));
  // What connects before nginx accepts waits in the socket. NGINX names the descriptors that an older nginx has left.
  process_ = std::make_unique<ChildProcess>(
      ChildCommand{.argv = {KERNIX_ENGINES "/nginx", "-e", "stderr", "-p", folder_.path(), "-c", configuration},
                   .environment = {{"PATH", "/usr/bin:/bin"}, {"NGINX", "3;"}},
                   .log = folder_.File("nginx.log"),
                   .inherited_fd = listening.get()});
}

// Killed, it would leave its workers.
TlsFront::~TlsFront() { process_->End(SIGTERM); }

std::string TlsFront::address() const { return StrCat("grpcs://localhost:", port_); }

}  // namespace kernix::testing
