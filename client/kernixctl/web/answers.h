// SPDX-License-Identifier: Apache-2.0
//
// What `kernixctl web` answers. Everything comes from kernixd, which decides what this process's user may see.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/connection/daemon_client.h"
#include "client/kernixctl/web/http_server.h"

namespace kernix::ctl {

// The page: HTML with its styles and script. It asks for everything else itself.
std::string_view WebPage();

// Not thread-safe.
class WebAnswers {
 public:
  // `client`, which must not start a daemon, must outlive this object. With a `token`, the paths below /api/ are only
  // for requests with "Authorization: Bearer TOKEN". `at` is the address of the server, or empty for a Unix socket.
  WebAnswers(DaemonClient& client, std::string token, const std::string& at);

  // Errors are plain text, or a JSON object {"error": ...} below /api/. 503: there is no daemon.
  HttpResponse Answer(const HttpRequest& request);

  // The daemon, its loads and its cache now, as a server-sent event "now": {"unix_ms", "status", "cache"}, of which the
  // latter two are as `kernixctl status --json` and `kernixctl cache stats --json` print them; or {"unix_ms", "error"}.
  std::string NowEvent();

  // Adds a sample of the daemon's counts to those that a new stream begins with: the latest hour.
  void Sample();

  // Whether samples are worth taking though nobody looks: they would keep a private daemon from ending.
  bool SamplesAlways() const { return !of_private_daemon_; }

 private:
  absl::StatusOr<HttpResponse> Find(const HttpRequest& request);
  absl::StatusOr<std::string> Now();
  absl::StatusOr<HttpResponse> Health(bool ready);
  absl::StatusOr<HttpResponse> MetricsFor(const HttpRequest& request);
  absl::StatusOr<std::string> Trace(const std::string& key);
  absl::StatusOr<std::string> Kernel(const std::string& key);
  absl::StatusOr<v1::ArtifactTexts> TextsOf(const v1::CacheEntry& entry);
  HttpResponse Stream();
  bool IsForUs(const HttpRequest& request) const;
  bool MayAsk(const HttpRequest& request) const;

  DaemonClient& client_;
  const std::string token_;
  const std::string host_;           // that requests must name; empty: any
  std::deque<std::string> samples_;  // JSON objects
  bool of_private_daemon_ = false;
};

// `metrics`, in Prometheus' text format, as OpenMetrics 1.0: a counter's family has no "_total", and a line ends the
// text.
std::string ToOpenMetrics(std::string_view metrics);

}  // namespace kernix::ctl
