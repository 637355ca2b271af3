// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote/connection.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kernix::remote {

namespace {

constexpr std::string_view kUnix = "unix://";
constexpr std::string_view kPlain = "grpc://";
constexpr std::string_view kTls = "grpcs://";

absl::Status BadAddress(const std::string& address) {
  return MakeError(v1::ErrorDetail::INVALID_REQUEST,
                   StrCat("'", address, "' is not the address of an engine. Write grpc://HOST:PORT, grpcs://HOST:PORT ",
                          "for TLS, or unix:///PATH for a socket of this host."));
}

std::string_view HostOf(std::string_view place) { return place.substr(0, place.rfind(':')); }

bool IsPlace(std::string_view place) {
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || place.find_first_of("/@ \t,") != std::string_view::npos) {
    return false;
  }
  uint32_t port = 0;
  const std::string_view host = HostOf(place);
  const bool is_bare_ipv6 = host.find(':') != std::string_view::npos && host.front() != '[';
  return !is_bare_ipv6 && absl::SimpleAtoi(ToAbsl(place.substr(colon + 1)), &port) && port > 0 && port < 65536;
}

bool IsThisHost(std::string_view host) { return host == "localhost" || host == "[::1]" || host == "127.0.0.1"; }

}  // namespace

absl::StatusOr<EngineAddress> ParseEngineAddress(const std::string& address) {
  const std::string_view text = address;
  if (text.starts_with(kUnix)) {
    if (text.size() < kUnix.size() + 2 || text[kUnix.size()] != '/') return BadAddress(address);
    return EngineAddress{.target = address, .tls = false, .on_this_host = true};
  }
  const bool tls = text.starts_with(kTls);
  if (!tls && !text.starts_with(kPlain)) return BadAddress(address);
  const std::string_view place = text.substr(tls ? kTls.size() : kPlain.size());
  if (!IsPlace(place)) return BadAddress(address);
  return EngineAddress{.target = StrCat("dns:///", place), .tls = tls, .on_this_host = IsThisHost(HostOf(place))};
}

// --- Errors ----------------------------------------------------------------------------------------------------------

namespace {

// The meaning of a code of an engine, of gRPC or of a proxy in front of the engine.
struct Meaning {
  ErrorKind kind;
  std::string advice;
};

std::string WhyUnreachable(const grpc::Status& status, const UpstreamOptions& options) {
  if (absl::StrContains(status.error_message(), "certificate verify failed")) {
    return StrCat("Its certificate is not signed by ",
                  options.ca_file.empty() ? std::string("an authority that this machine trusts: set ca_file")
                                          : StrCat("the authority in ", options.ca_file),
                  ", or has expired, or is for another host name.");
  }
  return "Is the engine running, and is this its address?";
}

Meaning MeaningOf(const grpc::Status& status, const UpstreamOptions& options) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return {v1::ErrorDetail::UNREACHABLE, WhyUnreachable(status, options)};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {v1::ErrorDetail::UNREACHABLE, "It took longer than the timeout allows."};
    case grpc::StatusCode::CANCELLED:
      return {v1::ErrorDetail::UNREACHABLE, "The connection broke."};
    case grpc::StatusCode::UNAUTHENTICATED:
      return {v1::ErrorDetail::INVALID_REQUEST,
              options.token_file.empty() ? "It wants a token: set token_file."
                                         : StrCat("Is the token in ", options.token_file,
                                                  " right, still valid, and wanted in this header (token_header = \"",
                                                  options.token_header, "\")?")};
    case grpc::StatusCode::PERMISSION_DENIED:
      return {v1::ErrorDetail::INVALID_REQUEST,
              "The token or the client certificate does not give the right to do so."};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {v1::ErrorDetail::INVALID_REQUEST, StrCat("Does it have an instance '", options.instance, "'?")};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {v1::ErrorDetail::INVALID_REQUEST, "Does an engine of the Remote Execution API listen at this address?"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {v1::ErrorDetail::RESOURCE, "It has no room for this, or too much to do."};
    case grpc::StatusCode::INTERNAL:
      return {v1::ErrorDetail::INTERNAL, options.address.starts_with("grpcs://") && options.certificate_file.empty()
                                             ? "Does it want a client certificate? Set certificate_file and key_file."
                                             : ""};
    default:
      return {v1::ErrorDetail::INTERNAL, ""};
  }
}

std::string WordsOf(const grpc::Status& status) {
  std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
  return status.error_message().empty() ? code : StrCat(code, ": ", status.error_message());
}

}  // namespace

absl::Status EngineError(const grpc::Status& status, const UpstreamOptions& options, std::string_view asked) {
  const std::string what = StrCat("the engine at ", options.address, " did not ", asked, " (", WordsOf(status), ")");
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return absl::NotFoundError(what);
  const Meaning meaning = MeaningOf(status, options);
  return MakeError(meaning.kind, meaning.advice.empty() ? what : StrCat(what, ". ", meaning.advice),
                   static_cast<absl::StatusCode>(status.error_code()));
}

namespace {

constexpr Duration kFirstPause{50};
constexpr int kGrowth = 4;

}  // namespace

bool MayWorkLater(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:  // of one try
    case grpc::StatusCode::CANCELLED:          // not by us: the caller looks at that first
      return true;
    case grpc::StatusCode::INTERNAL:  // a stream that broke in the middle
      return absl::StrContains(status.error_message(), "RST_STREAM");
    default:
      return false;
  }
}

std::optional<Duration> AskedPause(const grpc::Status& status) {
  google::rpc::Status rpc;
  if (!rpc.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : rpc.details()) {
    google::rpc::RetryInfo info;
    if (!any.UnpackTo(&info) || info.retry_delay().seconds() < 0 || info.retry_delay().nanos() < 0) continue;
    return std::chrono::seconds(std::min<int64_t>(info.retry_delay().seconds(), 86'400)) +
           Duration(info.retry_delay().nanos() / 1'000'000);
  }
  return std::nullopt;
}

Duration PauseBeforeRetry(int retry) {
  Duration longest = kFirstPause;
  for (int i = 1; i < retry; ++i) longest *= kGrowth;
  return Jittered(longest);
}

// --- The token -------------------------------------------------------------------------------------------------------

namespace {

// gRPC ends the process over other characters in a header.
bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

constexpr std::string_view kBasic = "Basic";

// Names that begin with "grpc-" or end with "-bin" have a meaning of their own in gRPC.
bool IsHeaderName(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
  return plain && !name.empty() && !name.starts_with("grpc-") && !name.ends_with("-bin");
}

absl::Status Unusable(std::string message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, std::move(message)); }

}  // namespace

absl::StatusOr<TokenHeader> ParseTokenHeader(std::string_view text) {
  const size_t colon = text.find(':');
  TokenHeader header{.name = std::string(text.substr(0, colon)),
                     .scheme = colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1))};
  absl::StripAsciiWhitespace(&header.name);
  absl::StripAsciiWhitespace(&header.scheme);
  absl::AsciiStrToLower(&header.name);
  if (absl::EqualsIgnoreCase(header.scheme, ToAbsl(kBasic))) header.scheme = kBasic;
  if (IsHeaderName(header.name) && IsHeaderText(header.scheme)) return header;
  return Unusable(StrCat("token_header: \"", text,
                         "\" is no header for a token. Write its name, and the word before the token if there is one: ",
                         "\"authorization: Bearer\", \"authorization: Basic\", \"x-buildbuddy-api-key\"."));
}

absl::StatusOr<std::string> TokenFile::Read() const {
  absl::StatusOr<std::string> text = env_.ReadFile(path_);
  if (!text.ok()) return Unusable(StrCat("cannot read the token for the engine: ", text.status().message()));
  absl::StripAsciiWhitespace(&*text);
  if (header_.scheme == kBasic) {
    if (!absl::StrContains(*text, ':')) {
      return Unusable(StrCat(path_, " must hold USER:PASSWORD for the engine, because token_header says Basic"));
    }
    text = absl::Base64Escape(*text);
  }
  if (text->empty() || !IsHeaderText(*text)) {
    return Unusable(StrCat(path_, " must hold a token for the engine, and nothing else"));
  }
  return header_.scheme.empty() ? *std::move(text) : StrCat(header_.scheme, " ", *text);
}

absl::StatusOr<std::string> TokenFile::Value() {
  const MutexLock lock(mutex_);
  WatchedFile now = StateOf(env_, path_);
  if (!value_.empty() && settled_ && now == seen_) return value_;
  absl::StatusOr<std::string> value = Read();
  if (!value.ok() && value_.empty()) return value.status();
  if (!value.ok() && now != seen_) {
    Log(LogLevel::kWarning, "upstream_token_kept", {{"path", path_}, {"message", value.status().message()}});
  }
  if (value.ok()) value_ = *std::move(value);
  settled_ = !now.identity || now.identity->SettledAt(env_.UnixMillis());
  seen_ = std::move(now);
  return value_;
}

// --- Calls -----------------------------------------------------------------------------------------------------------

namespace {

absl::Status BadOption(std::string_view message) { return MakeError(v1::ErrorDetail::INVALID_REQUEST, message); }

absl::Status CheckOptions(const UpstreamOptions& options, const EngineAddress& address) {
  const bool names_tls_files =
      !options.ca_file.empty() || !options.certificate_file.empty() || !options.key_file.empty();
  if (names_tls_files && !address.tls) {
    return BadOption(StrCat(options.address, " does not use TLS, so ca_file, certificate_file and key_file say ",
                            "nothing. Write grpcs:// for TLS."));
  }
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return BadOption("A client certificate needs both certificate_file and key_file.");
  }
  if (!options.token_file.empty() && !address.tls && !address.on_this_host) {
    return BadOption(StrCat("The token would travel to ", options.address, " for everybody to read. Use grpcs://."));
  }
  return absl::OkStatus();
}

// The text of a PEM file; of an empty path, an empty text.
absl::StatusOr<std::string> ReadPem(Env& env, std::string_view option, const std::string& path) {
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> text = env.ReadFile(path);
  if (!text.ok()) return BadOption(StrCat(option, ": ", text.status().message()));
  if (!absl::StrContains(*text, "-----BEGIN ")) {
    return BadOption(StrCat(option, ": ", path, " is not a PEM file: nothing in it says '-----BEGIN'."));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(Env& env, const UpstreamOptions& options,
                                                                          const EngineAddress& address) {
  if (!address.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  KERNIX_ASSIGN_OR_RETURN(tls.pem_root_certs, ReadPem(env, "ca_file", options.ca_file));
  KERNIX_ASSIGN_OR_RETURN(tls.pem_cert_chain, ReadPem(env, "certificate_file", options.certificate_file));
  KERNIX_ASSIGN_OR_RETURN(tls.pem_private_key, ReadPem(env, "key_file", options.key_file));
  return grpc::SslCredentials(tls);
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // Two objects for one address are two connections: one may have another client certificate.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // By default, gRPC waits a second and up to two minutes before it connects again. We have pauses of our own.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // how long one attempt to connect may take
  // Notices a dead engine while a command runs. By default, servers take a ping each five minutes at most.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 360'000);
  // Each retry is counted, and each has the rest of the operation's time.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetUserAgentPrefix("kernixd");
  return arguments;
}

// Reads the files that `options` names for TLS. Does not connect. INVALID_REQUEST if one cannot be read, or does not go
// with the others or with the address.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(Env& env, const UpstreamOptions& options,
                                                           const EngineAddress& address) {
  KERNIX_RETURN_IF_ERROR(CheckOptions(options, address));
  KERNIX_ASSIGN_OR_RETURN(const auto credentials, MakeCredentials(env, options, address));
  return grpc::CreateCustomChannel(address.target, credentials, Arguments());
}

Duration TimeLeft(Env& env, const Limits& limits) {
  return std::max(Duration(0), std::chrono::duration_cast<Duration>(limits.deadline - env.Now()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(Env& env, UpstreamOptions options) {
  KERNIX_ASSIGN_OR_RETURN(const EngineAddress address, ParseEngineAddress(options.address));
  KERNIX_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(env, options, address));
  KERNIX_ASSIGN_OR_RETURN(TokenHeader header, ParseTokenHeader(options.token_header));
  std::unique_ptr<Connection> connection(new Connection(env, std::move(options), std::move(header), channel));
  if (connection->token_ != nullptr) KERNIX_RETURN_IF_ERROR(connection->token_->Value().status());
  return connection;
}

Connection::Connection(Env& env, UpstreamOptions options, TokenHeader header,
                       const std::shared_ptr<grpc::Channel>& channel)
    : env_(env),
      options_(std::move(options)),
      token_(options_.token_file.empty() ? nullptr
                                         : std::make_unique<TokenFile>(env, options_.token_file, std::move(header))),
      action_cache_(reapi::ActionCache::NewStub(channel)),
      storage_(reapi::ContentAddressableStorage::NewStub(channel)),
      capabilities_(reapi::Capabilities::NewStub(channel)),
      streams_(google::bytestream::ByteStream::NewStub(channel)),
      execution_(reapi::Execution::NewStub(channel)),
      operations_(google::longrunning::Operations::NewStub(channel)) {}

absl::Status Connection::Call(const Limits& limits, std::string_view asked, const Attempt& attempt) {
  for (int tries = 1;; ++tries) {
    // Half of the time: a try that hangs leaves time for another.
    const Duration left = TimeLeft(env_, limits);
    const grpc::Status status = Try(limits, tries == kMaxTries ? left : left / 2, attempt);
    if (status.ok()) return absl::OkStatus();
    if (limits.IsCancelled()) return MakeError(v1::ErrorDetail::CANCELLED, StrCat("cancelled: ", asked));
    if (!MayWorkLater(status) || tries == kMaxTries || !WaitToRetry(limits, tries, status)) {
      if (limits.IsCancelled()) return MakeError(v1::ErrorDetail::CANCELLED, StrCat("cancelled: ", asked));
      return EngineError(status, options_, tries == 1 ? std::string(asked) : StrCat(asked, " in ", tries, " tries"));
    }
  }
}

grpc::Status Connection::TryOnce(const Limits& limits, const Attempt& attempt) {
  return Try(limits, TimeLeft(env_, limits), attempt);
}

grpc::Status Connection::Try(const Limits& limits, Duration time, const Attempt& attempt) {
  if (time <= Duration(0)) return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no time was left to ask");
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_millis(time.count(), GPR_TIMESPAN));
  if (token_ != nullptr) {
    const absl::StatusOr<std::string> value = token_->Value();
    if (!value.ok())
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(ToStd(value.status().message())));
    context.AddMetadata(token_->header_name(), *value);
  }
  const ScopedOnCancel on_cancel(limits.cancellation, [&context] { context.TryCancel(); });
  return attempt(context);
}

bool Connection::WaitToRetry(const Limits& limits, int tries, const grpc::Status& status) {
  const Duration pause = std::max(PauseBeforeRetry(tries), AskedPause(status).value_or(Duration(0)));
  if (pause >= TimeLeft(env_, limits)) return false;
  counters_.retries.Add();
  return Pause(pause, limits.cancellation);
}

}  // namespace kernix::remote
