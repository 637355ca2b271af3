// SPDX-License-Identifier: Apache-2.0
#include "client/kernixctl/web/answers.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/kernixctl/format.h"
#include "client/kernixctl/reports.h"
#include "client/load/trace.h"
#include "common/base/digest.h"
#include "common/base/elf_image.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/flags/languages.h"
#include "common/os/env.h"
#include "common/wire/artifact_texts.h"

namespace kernix::ctl {
namespace {

// After an error that has taken this long, kernixd is not asked again for a while: all the requests of a page wait
// once.
constexpr std::chrono::seconds kLong{1};
constexpr std::chrono::seconds kNotAgain{2};
constexpr size_t kMostSamples = 720;  // an hour, if one is taken every five seconds
constexpr char kJson[] = "application/json";

// One line: the reports end with a line feed, which would end a field of an event.
std::string OneLine(std::string json) {
  while (json.ends_with('\n')) json.pop_back();
  return json;
}

HttpResponse JsonResponse(std::string json) { return {.type = kJson, .body = std::move(json)}; }

int HttpStatusOf(const absl::Status& status) {
  if (absl::IsNotFound(status)) return 404;
  if (absl::IsInvalidArgument(status)) return 400;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ? 503 : 500;
}

HttpResponse ErrorResponse(int status, std::string_view path, const std::string& message) {
  if (!path.starts_with("/api/")) return {.status = status, .body = message + "\n"};
  return {.status = status, .type = kJson, .body = JsonObject().Text("error", message).Str()};
}

// The page runs its own script, and nothing else; it cannot be put into another page's frame.
std::string PagePolicy() {
  const std::string_view page = WebPage();
  const size_t begin = page.find("<script>") + std::string_view("<script>").size();
  const std::string script = DigestOf(page.substr(begin, page.rfind("</script>") - begin)).Raw();
  return StrCat("default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-",
                absl::Base64Escape(script), "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

std::string WithoutPort(const std::string& address) {
  return address.ends_with(']') ? address : address.substr(0, address.rfind(':'));
}

// "127.0.0.1.example.com" is a name of somebody's.
bool IsLoopback(const std::string& name) {
  const std::string host = absl::AsciiStrToLower(name);
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return (is_address && host.starts_with("127.")) || host == "[::1]" || host == "localhost";
}

HttpResponse PageResponse() {
  static const std::string& policy = *new std::string(PagePolicy());
  return {.type = "text/html; charset=utf-8",
          .body = std::string(WebPage()),
          .headers = {{"Content-Security-Policy", policy}}};
}

std::string NameOf(v1::KeptText::Kind kind) { return absl::AsciiStrToLower(v1::KeptText::Kind_Name(kind)); }

std::string Json(const v1::ArtifactTexts& texts) {
  const auto unit_json = [](const v1::GeneratedUnit& unit) {
    return JsonObject()
        .Json("sources", JsonOfTexts(unit.source()))
        .Text("language", TraitsOf(unit.language()).id)
        .Text("text", unit.text())
        .Str();
  };
  const auto kept_json = [](const v1::KeptText& kept) {
    return FieldsOf(kept).Text("kind", NameOf(kept.kind())).Text("text", kept.text()).Str();
  };
  return JsonObject()
      .Json("units", JsonOfAll(texts.unit(), unit_json))
      .Json("kept", JsonOfAll(texts.kept(), kept_json))
      .Text("compiler_output", texts.compiler_output())
      .Str();
}

}  // namespace

WebAnswers::WebAnswers(DaemonClient& client, std::string token, const std::string& at)
    : client_(client), token_(std::move(token)), host_(IsLoopback(WithoutPort(at)) ? WithoutPort(at) : "") {}

HttpResponse WebAnswers::Answer(const HttpRequest& request) {
  if (!IsForUs(request)) return ErrorResponse(403, request.path, StrCat("this is not ", request.host));
  if (!MayAsk(request)) {
    return ErrorResponse(401, request.path, "open the page with the address that kernixctl web has printed");
  }
  absl::StatusOr<HttpResponse> found =
      request.path == "/" ? PageResponse() : Asked<HttpResponse>([&] { return Find(request); });
  HttpResponse response =
      found.ok() ? *std::move(found)
                 : ErrorResponse(HttpStatusOf(found.status()), request.path, GetErrorDetail(found.status()).message());
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  return response;
}

// A web site can lead its own name to this machine, and would then ask as a page of ours. Browsers always name a host;
// a probe that speaks HTTP/1.0 names none.
bool WebAnswers::IsForUs(const HttpRequest& request) const {
  if (request.host.empty()) return true;
  const std::string host = WithoutPort(request.host);
  return host_.empty() || host == host_ || IsLoopback(host);
}

bool WebAnswers::MayAsk(const HttpRequest& request) const {
  if (token_.empty() || !request.path.starts_with("/api/")) return true;
  constexpr absl::string_view kScheme = "Bearer ";
  const std::string& given = request.authorization;
  return absl::StartsWithIgnoreCase(given, kScheme) && given.size() == kScheme.size() + token_.size() &&
         CRYPTO_memcmp(given.data() + kScheme.size(), token_.data(), token_.size()) == 0;
}

template <typename T>
absl::StatusOr<T> WebAnswers::Asked(const std::function<absl::StatusOr<T>()>& ask) {
  const MonotonicTime began = std::chrono::steady_clock::now();
  if (!hangs_.ok() && began < ask_again_) return hangs_;
  absl::StatusOr<T> answer = ask();
  const MonotonicTime now = std::chrono::steady_clock::now();
  hangs_ = now - began >= kLong ? answer.status() : absl::OkStatus();
  ask_again_ = now + kNotAgain;
  return answer;
}

absl::StatusOr<HttpResponse> WebAnswers::Find(const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/metrics") return MetricsFor(request);
  if (path == "/healthz" || path == "/readyz") return Health(path == "/readyz");
  if (path == "/api/events") return Stream();
  const auto key = request.query.find("key");
  const std::string of = key == request.query.end() ? "" : key->second;
  absl::StatusOr<std::string> json = absl::NotFoundError(StrCat("there is no ", path));
  if (path == "/api/status.json") json = Now();
  if (path == "/api/kernel.json") json = Kernel(of);
  if (path == "/api/trace.json") json = Trace(of);
  if (path == "/api/entries.json") {
    KERNIX_ASSIGN_OR_RETURN(const auto found, client_.Ask<v1::ListCacheResponse>("ListCache", v1::ListCacheRequest()));
    json = EntriesJson(found.entry());
  }
  if (!json.ok()) return json.status();
  return JsonResponse(*std::move(json));
}

absl::StatusOr<std::string> WebAnswers::Now() {
  KERNIX_ASSIGN_OR_RETURN(std::string status, StatusJson(client_));
  KERNIX_ASSIGN_OR_RETURN(std::string cache, CacheStatsJson(client_, /*start=*/false));
  return JsonObject()
      .Number("unix_ms", Env::Posix().UnixMillis())
      .Json("status", OneLine(std::move(status)))
      .Json("cache", OneLine(std::move(cache)))
      .Str();
}

std::string WebAnswers::NowEvent() {
  const absl::StatusOr<std::string> now = Asked<std::string>([this] { return Now(); });
  const auto failed = [&] {
    return JsonObject()
        .Number("unix_ms", Env::Posix().UnixMillis())
        .Text("error", GetErrorDetail(now.status()).message())
        .Str();
  };
  return StrCat("event: now\ndata: ", now.ok() ? *now : failed(), "\n\n");
}

absl::StatusOr<std::string> WebAnswers::NewSample() {
  KERNIX_ASSIGN_OR_RETURN(const DaemonInfo info, client_.Info(/*start=*/false));
  KERNIX_ASSIGN_OR_RETURN(const v1::GetCacheStatsResponse stats, client_.Stats(/*start=*/false));
  of_private_daemon_ = !info.shared;
  return JsonObject()
      .Number("unix_ms", Env::Posix().UnixMillis())
      .Number("hits", stats.hits())
      .Number("misses", stats.misses())
      .Number("builds", stats.builds())
      .Number("running_jobs", uint64_t{info.running_jobs})
      .Number("queued_jobs", uint64_t{info.queued_jobs})
      .Str();
}

void WebAnswers::Sample() {
  absl::StatusOr<std::string> sample = Asked<std::string>([this] { return NewSample(); });
  if (!sample.ok()) return;
  samples_.push_back(*std::move(sample));
  if (samples_.size() > kMostSamples) samples_.pop_front();
}

HttpResponse WebAnswers::Stream() {
  const std::string samples = JsonArray({samples_.begin(), samples_.end()});
  return {.type = "text/event-stream",
          .body = StrCat("event: history\ndata: ", samples, "\n\n", NowEvent()),
          .stream = true};
}

absl::StatusOr<HttpResponse> WebAnswers::Health(bool ready) {
  KERNIX_ASSIGN_OR_RETURN(const DaemonInfo info, client_.Info(/*start=*/false));
  if (ready && info.draining) return absl::UnavailableError("kernixd is stopping");
  return HttpResponse{.body = "ok\n"};
}

absl::StatusOr<HttpResponse> WebAnswers::MetricsFor(const HttpRequest& request) {
  KERNIX_ASSIGN_OR_RETURN(std::string text, Metrics(client_));
  if (request.accept.find("application/openmetrics-text") == std::string::npos) {
    return HttpResponse{.type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)};
  }
  return HttpResponse{.type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
                      .body = ToOpenMetrics(text)};
}

absl::StatusOr<v1::ArtifactTexts> WebAnswers::TextsOf(const v1::CacheEntry& entry) {
  v1::LoadResult artifact;
  artifact.set_artifact_digest(entry.artifact_digest());
  artifact.set_artifact_size(entry.size());
  artifact.set_artifact_path(entry.detail().artifact_path());
  KERNIX_ASSIGN_OR_RETURN(const std::string path, client_.LocalArtifact(artifact));
  KERNIX_ASSIGN_OR_RETURN(const std::string bytes, Env::Posix().ReadFile(path));
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(bytes));
  return ReadTexts(image);
}

absl::StatusOr<std::string> WebAnswers::Trace(const std::string& key) {
  KERNIX_ASSIGN_OR_RETURN(const v1::BuildTrace trace, client_.Trace(key, /*start=*/false));
  return ChromeTrace(trace, key);
}

// {"entry", "trace", "texts"}: as `kernixctl cache show --json` and `kernixctl trace --json` print them, and the
// compiled units with what compilers made of them. Without a trace or texts, null.
absl::StatusOr<std::string> WebAnswers::Kernel(const std::string& key) {
  KERNIX_ASSIGN_OR_RETURN(const Digest digest, Digest::FromHex(key));
  v1::ListCacheRequest request;
  request.set_key_prefix(digest.Hex());
  KERNIX_ASSIGN_OR_RETURN(const auto found, client_.Ask<v1::ListCacheResponse>("ListCache", request));
  if (found.entry().empty()) return absl::NotFoundError(StrCat("no entry of yours has the key ", key));
  const v1::CacheEntry& entry = found.entry(0);
  const absl::StatusOr<std::string> trace = Trace(digest.Hex());
  const absl::StatusOr<v1::ArtifactTexts> texts = TextsOf(entry);
  return JsonObject()
      .Json("entry", OneLine(EntryJson(found.entry())))
      .Json("trace", trace.ok() ? *trace : "null")
      .Json("texts", texts.ok() ? Json(*texts) : "null")
      .Str();
}

std::string ToOpenMetrics(std::string_view metrics) {
  constexpr std::string_view kTotal = "_total";
  std::string text;
  for (const absl::string_view piece : absl::StrSplit(ToAbsl(metrics), '\n', absl::SkipEmpty())) {
    const std::string_view line = ToStd(piece);
    const size_t name = line.find(' ', 2);  // after "# HELP", "# TYPE"
    const size_t end = line.find(' ', name + 1);
    const bool of_counter = line.starts_with('#') && line.substr(0, end).ends_with(kTotal);
    StrAppend(&text, of_counter ? line.substr(0, end - kTotal.size()) : line, of_counter ? line.substr(end) : "", "\n");
  }
  return text + "# EOF\n";
}

}  // namespace kernix::ctl
