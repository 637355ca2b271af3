// SPDX-License-Identifier: Apache-2.0
//
// Answers GET requests, and keeps streams of server-sent events open. libevent speaks HTTP; everything runs in the
// thread that calls Run().
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Of libevent.
struct event;
struct event_base;
struct evhttp;
struct evhttp_bound_socket;
struct evhttp_connection;
struct evhttp_request;

namespace kernix::ctl {

struct HttpRequest {
  std::string path;                          // "/api/kernel.json"
  std::map<std::string, std::string> query;  // decoded
  std::string accept;                        // the header of this name, as are the next ones
  std::string authorization;
  std::string host;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool stream = false;  // after `body`, the answer goes on with what Publish() is given
};

class HttpServer {
 public:
  explicit HttpServer(std::function<HttpResponse(const HttpRequest&)> answer);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "127.0.0.1:9464", "[::1]:9464". Port 0 means any. Returns the address with the port.
  absl::StatusOr<std::string> Listen(const std::string& address);

  // At a Unix socket, to which only this user can connect. Replaces a socket at which nobody listens any more.
  absl::Status ListenAtSocket(const std::string& path);

  // Calls `act` every `period` while Run() runs.
  void Every(std::chrono::milliseconds period, std::function<void()> act);

  // Sends `text` to all open streams. A stream whose reader is far behind misses it.
  void Publish(std::string_view text);

  size_t streams() const { return streams_.size(); }

  // Serves until a signal ends the process.
  void Run();

 private:
  template <typename T>
  using Handle = std::unique_ptr<T, void (*)(T*)>;

  void PauseAfterErrors(evhttp_bound_socket* bound);
  void Answer(evhttp_request* request);
  void StartStream(evhttp_request* request, const HttpResponse& response);
  void Forget(evhttp_connection* closed);

  const std::function<HttpResponse(const HttpRequest&)> answer_;
  std::map<evhttp_connection*, evhttp_request*> streams_;
  std::vector<std::unique_ptr<std::function<void()>>> acts_;
  Handle<event_base> base_;
  std::vector<Handle<event>> events_;
  Handle<evhttp> server_;
};

}  // namespace kernix::ctl
