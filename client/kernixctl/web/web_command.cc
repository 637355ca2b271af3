// SPDX-License-Identifier: Apache-2.0
//
// `kernixctl web`: kernixd's state and metrics over HTTP, from a process of its own.
#include <openssl/rand.h>

#include <iostream>
#include <memory>

#include "absl/strings/escaping.h"
#include "client/kernixctl/command.h"
#include "client/kernixctl/web/answers.h"
#include "client/kernixctl/web/http_server.h"
#include "common/base/strings.h"

namespace kernix::ctl {
namespace {

constexpr char kDetails[] =
    R"(Serves a page that shows what the daemon does, and /metrics for Prometheus, /healthz, /readyz and
/api/status.json, until Ctrl-C. The page shows what `kernixctl` shows this user. Over TCP, where other users of the
machine can connect, the page and the paths below /api/ need the token in the printed address. Never starts a daemon,
and waits for one.

Examples:
  kernixctl web
  kernixctl web --socket /run/user/1000/kernix-web.sock
  kernixctl --address unix:/run/kernix/kernixd.sock web --listen 127.0.0.1:9464 --no-token)";

constexpr std::chrono::seconds kNowPeriod{1};
constexpr std::chrono::seconds kSamplePeriod{5};
constexpr size_t kTokenBytes = 16;
// One thread asks kernixd and answers everybody: a kernixd that hangs must not hold up the others for long.
constexpr std::chrono::seconds kPatience{2};

struct WebFlags {
  std::string listen = "127.0.0.1:9464";
  std::string socket;
  bool no_token = false;
};

absl::StatusOr<std::string> RandomToken() {
  std::string bytes(kTokenBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kTokenBytes) != 1) {
    return absl::InternalError("no random bytes for a token");
  }
  return absl::BytesToHexString(bytes);
}

// Listens, and returns what to tell the user.
absl::StatusOr<std::string> Listen(HttpServer& server, const WebFlags& flags, const std::string& token) {
  if (!flags.socket.empty()) {
    const absl::Status status = server.ListenAtSocket(flags.socket);
    if (!status.ok()) return status;
    return StrCat("listening at ", flags.socket);
  }
  const absl::StatusOr<std::string> address = server.Listen(flags.listen);
  if (!address.ok()) return address.status();
  return StrCat("http://", *address, "/", token.empty() ? "" : "#token=" + token);
}

int Serve(DaemonClient& client, const WebFlags& flags) {
  absl::StatusOr<std::string> token = "";
  if (flags.socket.empty() && !flags.no_token) token = RandomToken();
  if (!token.ok()) return Fail(token.status());
  WebAnswers answers(client, *token, flags.socket.empty() ? flags.listen : "");
  HttpServer server([&answers](const HttpRequest& request) { return answers.Answer(request); });
  server.Every(kNowPeriod, [&] {
    if (server.streams() > 0) server.Publish(answers.NowEvent());
  });
  answers.Sample();
  server.Every(kSamplePeriod, [&] {
    if (server.streams() > 0 || answers.SamplesAlways()) answers.Sample();
  });
  const absl::StatusOr<std::string> where = Listen(server, flags, *token);
  if (absl::IsInvalidArgument(where.status())) return RefuseUsage(ToStd(where.status().message()));
  if (!where.ok()) return Fail(where.status());
  std::cout << *where << std::endl;
  server.Run();
  return kOk;
}

}  // namespace

Command WebCommand(const ClientOptions& options) {
  const auto flags = std::make_shared<WebFlags>();
  return {.name = "web",
          .summary = "Serve a page and metrics over HTTP",
          .details = kDetails,
          .options = {{"--listen", &flags->listen, "HOST:PORT to listen at (default: 127.0.0.1:9464)"},
                      {"--socket",
                       &flags->socket,
                       "Listen at this Unix socket instead, which only this user can use",
                       {.excludes = "--listen", .names = Names::kFiles}},
                      {"--no-token", &flags->no_token, "Let everybody who can connect see what this user may see"}},
          .run = [&options, flags] {
            ClientOptions impatient = options;
            impatient.start_timeout = impatient.call_timeout = kPatience;
            return WithClient(impatient, [flags](DaemonClient& client) { return Serve(client, *flags); });
          }};
}

}  // namespace kernix::ctl
