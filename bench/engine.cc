// SPDX-License-Identifier: Apache-2.0
//
// Measures what an engine of the Remote Execution API costs kernixd. Prints rows of a Markdown table, each with the
// median of its runs, the fastest and the slowest. Large blobs also go by a plain client, which neither checks nor
// keeps what it gets: its rates are the engine's limit on this machine.
//
//   bench_engine ADDRESS [INSTANCE]       grpc://HOST:PORT or unix:///PATH
//
// It leaves some 1,600 MB of random blobs and a few results on the engine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/wire/grpc_status.h"
#include "daemon/remote/blob_transfer.h"
#include "daemon/remote/connection.h"
#include "daemon/remote/upstream.h"
#include "google/bytestream/bytestream.grpc.pb.h"

namespace kernix::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMiB = size_t{1} << 20;
constexpr uint64_t kNoLimit = uint64_t{1} << 40;

// Different in each run of this program, so that the engine does not have it.
Blob RandomBlob(size_t size) {
  static std::independent_bits_engine<std::mt19937, 8, uint32_t> random(std::random_device{}());
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  const exec::BlobDigest digest = exec::BlobDigestOf(bytes);
  return {digest, exec::MakeContent(std::move(bytes))};
}

// How long `work` takes. Ends the program if it fails.
double Seconds(const std::function<absl::Status()>& work) {
  const Clock::time_point begin = Clock::now();
  const absl::Status status = work();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (status.ok()) return seconds;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(EXIT_FAILURE);
}

std::vector<double> Measure(int runs, const std::function<absl::Status(int)>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) seconds.push_back(Seconds([&] { return work(i); }));
  return seconds;
}

void PrintMillis(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("| %s | %.2f ms | %.2f to %.2f |\n", what, seconds[seconds.size() / 2] * 1e3, seconds.front() * 1e3,
              seconds.back() * 1e3);
}

void PrintRate(const char* what, size_t bytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto rate = [&](double time) { return static_cast<double>(bytes) / kMiB / time; };
  std::printf("| %s | %.0f MiB/s | %.0f to %.0f |\n", what, rate(seconds[seconds.size() / 2]), rate(seconds.back()),
              rate(seconds.front()));
}

void MeasureSmall(Upstream& upstream) {
  const Blob artifact = RandomBlob(100'000);
  std::vector<Blob> others;
  for (int i = 0; i < 50; ++i) others.push_back(RandomBlob(100'000));
  const exec::BlobDigest action = RandomBlob(100).digest;
  PrintMillis("first call, with the connection", Measure(1, [&](int) { return upstream.Facts().status(); }));
  PrintMillis("a result that is not there", Measure(200, [&](int) { return upstream.FindResult(action).status(); }));
  PrintMillis("upload of a new artifact, 100 kB", Measure(50, [&](int i) { return upstream.Write({others[i]}); }));
  PrintMillis("an artifact that is there already", Measure(50, [&](int) { return upstream.Write({artifact}); }));
  PrintMillis("a result put", Measure(50, [&](int) { return upstream.PutResult(action, {{"a", artifact.digest}}); }));
  PrintMillis("a hit: result and artifact, 100 kB", Measure(200, [&](int) {
                const auto found = upstream.FindResult(action);
                return found.ok() ? upstream.Read({artifact.digest}, kNoLimit).status() : found.status();
              }));
}

// The least that a client of streams does.
class PlainClient {
 public:
  PlainClient(google::bytestream::ByteStream::Stub& streams, std::string instance)
      : streams_(streams), instance_(std::move(instance)) {}

  absl::Status Write(const Blob& blob) {
    grpc::ClientContext context;
    google::bytestream::WriteResponse response;
    const auto writer = streams_.Write(&context, &response);
    google::bytestream::WriteRequest request;
    request.set_resource_name(UploadName(instance_, blob.digest));
    const std::string_view bytes = *blob.content;
    for (size_t at = 0; at < bytes.size(); at += kMiB) {
      request.set_write_offset(static_cast<int64_t>(at));
      request.set_data(bytes.data() + at, std::min(kMiB, bytes.size() - at));
      request.set_finish_write(at + kMiB >= bytes.size());
      if (!writer->Write(request)) break;
      request.clear_resource_name();
    }
    writer->WritesDone();
    return FromGrpcStatus(writer->Finish(), "the engine");
  }

  absl::Status Read(const Blob& blob) {
    grpc::ClientContext context;
    google::bytestream::ReadRequest request;
    request.set_resource_name(DownloadName(instance_, blob.digest));
    const auto reader = streams_.Read(&context, request);
    google::bytestream::ReadResponse response;
    while (reader->Read(&response)) {
    }
    return FromGrpcStatus(reader->Finish(), "the engine");
  }

 private:
  google::bytestream::ByteStream::Stub& streams_;
  const std::string instance_;
};

void MeasureLarge(Upstream& upstream, PlainClient& plain) {
  constexpr size_t kSize = 200 * kMiB;
  constexpr int kRuns = 4;
  std::vector<Blob> ours, others;
  for (int i = 0; i < kRuns; ++i) {
    ours.push_back(RandomBlob(kSize));
    others.push_back(RandomBlob(kSize));
  }
  std::vector<double> up, plain_up, down, plain_down;
  for (int i = 0; i < kRuns; ++i) {  // in turn
    up.push_back(Seconds([&] { return upstream.Write({ours[i]}); }));
    plain_up.push_back(Seconds([&] { return plain.Write(others[i]); }));
    down.push_back(Seconds([&] { return upstream.Read({ours[i].digest}, kNoLimit).status(); }));
    plain_down.push_back(Seconds([&] { return plain.Read(others[i]); }));
  }
  PrintRate("upload of 200 MiB", kSize, up);
  PrintRate("the same by a plain client", kSize, plain_up);
  PrintRate("download of 200 MiB", kSize, down);
  PrintRate("the same by a plain client", kSize, plain_down);
}

absl::Status Run(const UpstreamOptions& options) {
  KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<Upstream> upstream, Upstream::Open(Env::Posix(), options));
  KERNIX_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection, Connection::Open(Env::Posix(), options));
  PlainClient plain(connection->streams(), options.instance);
  std::printf("| what | median | from, to |\n|---|---|---|\n");
  MeasureSmall(*upstream);
  MeasureLarge(*upstream, plain);
  return absl::OkStatus();
}

}  // namespace
}  // namespace kernix::remote

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s ADDRESS [INSTANCE]\n", argv[0]);
    return 2;
  }
  const absl::Status status = kernix::remote::Run({.address = argv[1], .instance = argc > 2 ? argv[2] : ""});
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
