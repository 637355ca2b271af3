// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/web/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/numbers.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/env.h"
#include "common/os/posix_error.h"
#include "common/os/unique_fd.h"
#include "common/os/unix_socket.h"

namespace kernix::ctl {
namespace {

constexpr size_t kMostStreams = 64;
constexpr size_t kMostUnread = 4 << 20;  // bytes that wait for the reader of one stream
constexpr int kMostHeaderBytes = 16 << 10;
constexpr int kPatienceSeconds = 10;        // with a connection that asks nothing, or does not read its answer
constexpr int kStreamPatienceSeconds = 60;  // with one that does not read its stream
constexpr int kBacklog = 64;

using Buffer = std::unique_ptr<evbuffer, void (*)(evbuffer*)>;

Buffer BufferOf(std::string_view text) {
  Buffer buffer(evbuffer_new(), evbuffer_free);
  evbuffer_add(buffer.get(), text.data(), text.size());
  return buffer;
}

std::string HeaderOf(evhttp_request* request, const char* name) {
  const char* value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
  return value == nullptr ? "" : value;
}

HttpRequest Read(evhttp_request* from) {
  HttpRequest request{.accept = HeaderOf(from, "Accept"),
                      .authorization = HeaderOf(from, "Authorization"),
                      .host = HeaderOf(from, "Host")};
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(from);
  const char* path = evhttp_uri_get_path(uri);
  request.path = path == nullptr || *path == '\0' ? "/" : path;
  const char* query = evhttp_uri_get_query(uri);
  evkeyvalq pairs{};
  if (query != nullptr && evhttp_parse_query_str(query, &pairs) == 0) {
    for (const evkeyval* pair = pairs.tqh_first; pair != nullptr; pair = pair->next.tqe_next) {
      request.query[pair->key] = pair->value;
    }
    evhttp_clear_headers(&pairs);
  }
  return request;
}

struct HostAndPort {
  std::string host;
  uint16_t port = 0;
};

absl::StatusOr<HostAndPort> Parse(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        StrCat("\"", address, "\" is not an address to listen at: give HOST:PORT, such as 127.0.0.1:9464"));
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return HostAndPort{std::move(host), static_cast<uint16_t>(port)};
}

uint16_t PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace

HttpServer::HttpServer(std::function<HttpResponse(const HttpRequest&)> answer)
    : answer_(std::move(answer)),
      base_(event_base_new(), event_base_free),
      server_(evhttp_new(base_.get()), evhttp_free) {
  evhttp_set_allowed_methods(server_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_max_headers_size(server_.get(), kMostHeaderBytes);
  evhttp_set_max_body_size(server_.get(), 0);
  evhttp_set_timeout(server_.get(), kPatienceSeconds);
  evhttp_set_gencb(
      server_.get(), [](evhttp_request* request, void* self) { static_cast<HttpServer*>(self)->Answer(request); },
      this);
  signal(SIGPIPE, SIG_IGN);
}

absl::StatusOr<std::string> HttpServer::Listen(const std::string& address) {
  absl::StatusOr<HostAndPort> at = Parse(address);
  if (!at.ok()) return at.status();
  errno = 0;
  evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(server_.get(), at->host.c_str(), at->port);
  if (bound == nullptr) return ErrnoStatus(errno == 0 ? EADDRNOTAVAIL : errno, "listen at", address);
  PauseAfterErrors(bound);
  return StrCat(address.substr(0, address.rfind(':')), ":", PortOf(evhttp_bound_socket_get_fd(bound)));
}

absl::Status HttpServer::ListenAtSocket(const std::string& path) {
  KERNIX_RETURN_IF_ERROR(CheckSocketPath(path));
  KERNIX_RETURN_IF_ERROR(RemoveStaleSocket(Env::Posix(), path));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t others = umask(0177);
  const SocketAddress address(path);
  const int bound = bind(socket.get(), address.get(), address.size());
  umask(others);
  if (bound != 0 || listen(socket.get(), kBacklog) != 0) return ErrnoStatus(errno, "listen at", path);
  evhttp_bound_socket* bound_socket = evhttp_accept_socket_with_handle(server_.get(), socket.get());
  if (bound_socket == nullptr) return ErrnoStatus(errno, "listen at", path);
  socket.release();
  PauseAfterErrors(bound_socket);
  return absl::OkStatus();
}

void HttpServer::Every(std::chrono::milliseconds period, std::function<void()> act) {
  acts_.push_back(std::make_unique<std::function<void()>>(std::move(act)));
  events_.emplace_back(event_new(
                           base_.get(), -1, EV_PERSIST,
                           [](evutil_socket_t, short, void* self) { (*static_cast<std::function<void()>*>(self))(); },
                           acts_.back().get()),
                       event_free);
  const timeval interval{period.count() / 1000, (period.count() % 1000) * 1000};
  event_add(events_.back().get(), &interval);
}

void HttpServer::Publish(std::string_view text) {
  for (const auto& [connection, request] : streams_) {
    const evbuffer* unread = bufferevent_get_output(evhttp_connection_get_bufferevent(connection));
    if (evbuffer_get_length(unread) < kMostUnread) evhttp_send_reply_chunk(request, BufferOf(text).get());
  }
}

void HttpServer::Run() { event_base_dispatch(base_.get()); }

// Without a descriptor for the next connection, the listener would be asked again at once. The callback's last argument
// is the listener's own: evhttp's.
void HttpServer::PauseAfterErrors(evhttp_bound_socket* bound) {
  evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), [](evconnlistener* listener, void*) {
    constexpr timeval kPause{1, 0};
    evconnlistener_disable(listener);
    event_base_once(
        evconnlistener_get_base(listener), -1, EV_TIMEOUT,
        [](evutil_socket_t, short, void* paused) { evconnlistener_enable(static_cast<evconnlistener*>(paused)); },
        listener, &kPause);
  });
}

void HttpServer::Answer(evhttp_request* request) {
  HttpResponse response = answer_(Read(request));
  if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
    response.stream = false;
    response.body.clear();  // libevent would send it, and the client take it for the next answer
  }
  if (response.stream && streams_.size() >= kMostStreams) response = {.status = 503, .body = "too many streams\n"};
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", response.type.c_str());
  for (const auto& [name, value] : response.headers) evhttp_add_header(headers, name.c_str(), value.c_str());
  if (response.stream) {
    StartStream(request, response);
  } else {
    evhttp_send_reply(request, response.status, nullptr, BufferOf(response.body).get());
  }
}

void HttpServer::StartStream(evhttp_request* request, const HttpResponse& response) {
  evhttp_connection* connection = evhttp_request_get_connection(request);
  streams_[connection] = request;
  evhttp_connection_set_timeout(connection, kStreamPatienceSeconds);
  evhttp_connection_set_closecb(
      connection, [](evhttp_connection* closed, void* self) { static_cast<HttpServer*>(self)->Forget(closed); }, this);
  evhttp_send_reply_start(request, response.status, nullptr);
  evhttp_send_reply_chunk(request, BufferOf(response.body).get());
}

void HttpServer::Forget(evhttp_connection* closed) {
  const auto stream = streams_.find(closed);
  if (stream == streams_.end()) return;
  // A client that leaves takes its request off the connection, and libevent lets go of it.
  if (evhttp_request_get_connection(stream->second) == nullptr) evhttp_request_free(stream->second);
  streams_.erase(stream);
}

}  // namespace kernix::ctl
