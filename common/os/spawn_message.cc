// SPDX-License-Identifier: Apache-2.0
#include "common/os/spawn_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace kernix::spawn {
namespace {

// Far above the kernel's limit for the arguments of a program.
constexpr uint32_t kMostBytes = 16 << 20;

// Of the message with which a job comes; a socket takes no larger ones by default.
constexpr size_t kMostOfAJob = 128 << 10;
constexpr size_t kDescriptors = 2;

class Writer {
 public:
  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void operator()(const T& number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<uint32_t>(text.size()));
    text_ += text;
  }
  void operator()(const std::vector<std::string>& texts) {
    (*this)(static_cast<uint32_t>(texts.size()));
    for (const std::string& text : texts) (*this)(text);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void operator()(T& number) {
    const std::string_view bytes = Next(sizeof(number));
    if (ok_) std::memcpy(&number, bytes.data(), sizeof(number));
  }
  void operator()(std::string& text) {
    uint32_t size = 0;
    (*this)(size);
    text = Next(size);
  }
  void operator()(std::vector<std::string>& texts) {
    uint32_t count = 0;
    (*this)(count);
    for (uint32_t i = 0; i < count && ok_; ++i) (*this)(texts.emplace_back());
  }
  // Whether all was there, and nothing else.
  bool IsWhole() const { return ok_ && text_.empty(); }

 private:
  std::string_view Next(size_t size) {
    ok_ = ok_ && size <= text_.size();
    if (!ok_) return {};
    const std::string_view next = text_.substr(0, size);
    text_.remove_prefix(size);
    return next;
  }

  std::string_view text_;
  bool ok_ = true;
};

// The fields of each message, in the order in which they are sent.
template <typename E>
auto Fields(E& e) requires(std::is_same_v<std::remove_const_t<E>, Enclosure>) {
  return std::tie(e.rung, e.readable, e.scratch);
}

template <typename C>
auto Fields(C& c) requires(std::is_same_v<std::remove_const_t<C>, Command>) {
  return std::tie(c.argv, c.environment, c.working_directory, c.folders, c.writable, c.max_file_bytes,
                  c.max_folder_bytes, c.max_address_space_bytes, c.max_cpu_seconds, c.max_processes, c.niceness);
}

template <typename E>
auto Fields(E& e) requires(std::is_same_v<std::remove_const_t<E>, JobEnd>) {
  return std::tie(e.kind, e.status, e.error_number, e.max_rss_bytes, e.processor_us, e.problem);
}

template <typename Message>
std::string EncodeFields(const Message& message) {
  Writer writer;
  std::apply([&](const auto&... field) { (writer(field), ...); }, Fields(message));
  return writer.Take();
}

template <typename Message>
bool DecodeFields(std::string_view text, Message& message) {
  Reader reader(text);
  std::apply([&](auto&... field) { (reader(field), ...); }, Fields(message));
  return reader.IsWhole();
}

// A message of `size` bytes, with room for its descriptors.
struct Envelope {
  Envelope(char* bytes, size_t size) : data{bytes, size} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = space;
    header.msg_controllen = sizeof(space);
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  struct iovec data;
  alignas(struct cmsghdr) char space[CMSG_SPACE(kDescriptors * sizeof(int))] = {};
  struct msghdr header = {};
};

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool ReceiveAll(int socket, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t got = recv(socket, bytes, size, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::string Encode(const Enclosure& enclosure) { return EncodeFields(enclosure); }
std::string Encode(const Command& command) { return EncodeFields(command); }
std::string Encode(const JobEnd& end) { return EncodeFields(end); }

bool Decode(std::string_view text, Enclosure& enclosure) { return DecodeFields(text, enclosure); }
bool Decode(std::string_view text, Command& command) { return DecodeFields(text, command); }
bool Decode(std::string_view text, JobEnd& end) { return DecodeFields(text, end); }

bool SendMessage(int socket, std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string framed(reinterpret_cast<const char*>(&size), sizeof(size));
  framed += message;
  return SendAll(socket, framed);
}

bool ReceiveMessage(int socket, std::string& message) {
  uint32_t size = 0;
  if (!ReceiveAll(socket, reinterpret_cast<char*>(&size), sizeof(size)) || size > kMostBytes) return false;
  message.resize(size);
  return ReceiveAll(socket, message.data(), size);
}

bool HandOver(int socket, std::string_view message, int connection, int output) {
  const int fds[kDescriptors] = {connection, output};
  Envelope envelope(const_cast<char*>(message.data()), message.size());
  struct cmsghdr* const control = CMSG_FIRSTHDR(&envelope.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(fds));
  std::memcpy(CMSG_DATA(control), fds, sizeof(fds));
  while (sendmsg(socket, &envelope.header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::optional<Handed> ReceiveJob(int socket) {
  int fds[kDescriptors] = {-1, -1};
  std::string message(kMostOfAJob, '\0');
  Envelope envelope(message.data(), message.size());
  ssize_t size = 0;
  while ((size = recvmsg(socket, &envelope.header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (size <= 0) return std::nullopt;
  message.resize(static_cast<size_t>(size));
  const struct cmsghdr* const control = CMSG_FIRSTHDR(&envelope.header);
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS && control->cmsg_len == CMSG_LEN(sizeof(fds))) {
    std::memcpy(fds, CMSG_DATA(control), sizeof(fds));
  }
  return Handed{std::move(message), UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace kernix::spawn
