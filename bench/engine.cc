// SPDX-License-Identifier: Apache-2.0
//
// Measures what an engine of the Remote Execution API costs kernixd. Prints rows of a Markdown table, each with the
// median of its runs, the fastest and the slowest:
//
//   bench_engine ADDRESS [INSTANCE]       grpc://HOST:PORT or unix:///PATH
//
// It leaves some 800 MB of random blobs and a few results on the engine.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/remote/upstream.h"

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
  return {digest, std::make_shared<const std::string>(std::move(bytes))};
}

// Seconds of each run of `work`, sorted. Ends the program if one fails.
std::vector<double> Measure(int runs, const std::function<absl::Status(int)>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const Clock::time_point begin = Clock::now();
    const absl::Status status = work(i);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(EXIT_FAILURE);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

void PrintMillis(const char* what, const std::vector<double>& seconds) {
  std::printf("| %s | %.2f ms | %.2f to %.2f |\n", what, seconds[seconds.size() / 2] * 1e3, seconds.front() * 1e3,
              seconds.back() * 1e3);
}

void PrintRate(const char* what, size_t bytes, const std::vector<double>& seconds) {
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

void MeasureLarge(Upstream& upstream) {
  constexpr size_t kSize = 200 * kMiB;
  constexpr int kRuns = 3;
  std::vector<Blob> blobs;
  for (int i = 0; i < kRuns; ++i) blobs.push_back(RandomBlob(kSize));
  PrintRate("upload of 200 MiB", kSize, Measure(kRuns, [&](int i) { return upstream.Write({blobs[i]}); }));
  PrintRate("download of 200 MiB", kSize,
            Measure(kRuns, [&](int i) { return upstream.Read({blobs[i].digest}, kNoLimit).status(); }));
}

int Run(UpstreamOptions options) {
  const auto upstream = Upstream::Open(Env::Posix(), std::move(options));
  if (!upstream.ok()) {
    std::fprintf(stderr, "%s\n", upstream.status().ToString().c_str());
    return EXIT_FAILURE;
  }
  std::printf("| what | median | from, to |\n|---|---|---|\n");
  MeasureSmall(**upstream);
  MeasureLarge(**upstream);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace kernix::remote

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s ADDRESS [INSTANCE]\n", argv[0]);
    return 2;
  }
  return kernix::remote::Run({.address = argv[1], .instance = argc > 2 ? argv[2] : ""});
}
