// SPDX-License-Identifier: Apache-2.0
//
// Measures how many hits a second a kernixd serves: processes of a C++ program ask for one kernel again and again, as
// processes do that load kernels which others have compiled. Prints a Markdown table, with the median of some rounds:
//
//   hits [PROCESSES [SECONDS]]        default: 8 processes, 3 seconds a round
//
// Exits with 1 if fewer hits than the bar are served.
// It starts a kernixd of its own ($KERNIXD, or the one beside this build) on a store that it removes.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "client/connection/daemon_client.h"
#include "client/load/load_request.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "kernix/client.h"
#include "kernix/load.h"

namespace kernix {
namespace {

constexpr int kRounds = 3;
constexpr double kBar = 15'000;  // hits a second

constexpr char kSource[] = R"(
#include "brainevent/common.h"
// @BE add_one arg ret
void add_one(const BE::Tensor x, BE::Tensor y) {
  for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = x.data_ptr<const float>()[i] + 1;
}
)";

absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& store) {
  ClientOptions options;
  options.store_directory = store;
  options.start_timeout = std::chrono::minutes(1);
  return Client::Create(options);
}

absl::StatusOr<v1::LoadRequest> Request() {
  const GetEnv get_env = ProcessGetEnv;
  const std::vector<std::string> no_packages;
  const LoadSurroundings surroundings{
      .env = Env::Posix(), .get_env = get_env, .site_packages = no_packages, .header_folder = [] { return ""; }};
  KERNIX_ASSIGN_OR_RETURN(const PreparedLoad load, PrepareLoad(surroundings, v1::LANGUAGE_CPP, "bench_hits",
                                                               {{.text = kSource}}, LoadOptions()));
  return load.request;
}

absl::StatusOr<v1::LoadResult> Ask(Client& client, const v1::LoadRequest& request) {
  const BlobProvider none = [](const Digest&) { return absl::NotFoundError("the kernel has no headers"); };
  return dynamic_cast<DaemonClient&>(client).SendLoad(request, none, {});
}

// What the processes share.
struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> hits{0};
  std::atomic<int64_t> clients_us{0};  // processor time
  std::atomic<uint64_t> failures{0};
};

int64_t OwnProcessorTimeUs() {
  struct rusage used {};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{1'000'000} * (used.ru_utime.tv_sec + used.ru_stime.tv_sec) + used.ru_utime.tv_usec +
         used.ru_stime.tv_usec;
}

int AskUntilStopped(const std::string& store, const v1::LoadRequest& request, Shared& shared) {
  const auto client = Connect(store);
  ++shared.ready;
  while (!shared.go) usleep(1000);
  const int64_t before = OwnProcessorTimeUs();
  uint64_t hits = 0;
  while (client.ok() && !shared.stop) {
    const auto answer = Ask(**client, request);
    if (!answer.ok() || !answer->cache_hit()) return ++shared.failures, 1;
    ++hits;
  }
  shared.hits += hits;
  shared.clients_us += OwnProcessorTimeUs() - before;
  return 0;
}

// Processor time of a process so far, in seconds.
double ProcessorTime(int64_t pid) {
  const std::string stat = Env::Posix().ReadFile(StrCat("/proc/", pid, "/stat")).value_or("");
  unsigned long user = 0, system = 0;  // after 11 fields that follow the program's name
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos ||
      sscanf(stat.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) !=
          2) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Of one round.
struct Rates {
  double hits = 0;       // a second
  double daemon_us = 0;  // processor time of a hit
  double client_us = 0;
};

absl::StatusOr<Rates> MeasureRound(const std::string& store, const v1::LoadRequest& request, int64_t daemon,
                                   int processes, double seconds) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::InternalError("no memory to share");
  Shared& shared = *new (memory) Shared;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() == 0) _exit(AskUntilStopped(store, request, shared));
  }
  while (shared.ready < processes) usleep(1000);
  const double before = ProcessorTime(daemon);
  const auto begin = std::chrono::steady_clock::now();
  shared.go = true;
  usleep(static_cast<useconds_t>(seconds * 1e6));
  shared.stop = true;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double used = ProcessorTime(daemon) - before;
  for (const pid_t child : children) waitpid(child, nullptr, 0);  // not kernixd, which is a child, too
  if (shared.failures > 0) return absl::InternalError(StrCat(shared.failures.load(), " processes got no hit"));
  const auto hits = static_cast<double>(shared.hits);
  const Rates rates{hits / took.count(), 1e6 * used / hits, static_cast<double>(shared.clients_us) / hits};
  munmap(memory, sizeof(Shared));
  return rates;
}

absl::Status Measure(const std::string& store, int processes, double seconds) {
  KERNIX_ASSIGN_OR_RETURN(const auto client, Connect(store));
  KERNIX_ASSIGN_OR_RETURN(const v1::LoadRequest request, Request());
  KERNIX_RETURN_IF_ERROR(Ask(*client, request).status());
  KERNIX_ASSIGN_OR_RETURN(const DaemonInfo daemon, client->Info(false));
  std::vector<Rates> rounds;
  for (int i = 0; i < kRounds; ++i) {
    KERNIX_ASSIGN_OR_RETURN(const Rates rates, MeasureRound(store, request, daemon.pid, processes, seconds));
    rounds.push_back(rates);
  }
  std::sort(rounds.begin(), rounds.end(), [](const Rates& a, const Rates& b) { return a.hits < b.hits; });
  const Rates& median = rounds[rounds.size() / 2];
  printf("| | hits a second | range | bar | processor time of a hit in kernixd | in the client |\n");
  printf("|---|---:|---:|---:|---:|---:|\n");
  printf("| %d processes | %.0f | %.0f to %.0f | ≥ %.0f | %.1f µs | %.1f µs |\n", processes, median.hits,
         rounds.front().hits, rounds.back().hits, kBar, median.daemon_us, median.client_us);
  KERNIX_RETURN_IF_ERROR(client->Shutdown(std::chrono::seconds(5)));
  if (median.hits < kBar) return absl::ResourceExhaustedError("below the bar");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const int processes = argc > 1 ? std::atoi(argv[1]) : 8;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 3;
  const auto store = Env::Posix().CreateTempDirectory(std::filesystem::temp_directory_path() / "bench-hits-");
  const absl::Status status = store.ok() ? Measure(*store, processes, seconds) : store.status();
  if (store.ok()) std::filesystem::remove_all(*store);
  if (status.ok()) return 0;
  fprintf(stderr, "hits: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace kernix

int main(int argc, char** argv) { return kernix::Main(argc, argv); }
