// SPDX-License-Identifier: Apache-2.0
//
// Measures how many hits a second a kernixd serves: processes of a C++ program ask for one kernel again and again, as
// processes do that load kernels which others have compiled; then for many kernels, each with a header of its own; then
// for one while another process builds. Prints a Markdown table, with the median of some rounds:
//
//   hits [PROCESSES [SECONDS]]        default: 8 processes, 3 seconds a round
//
// Exits with 1 if a row misses its bar.
// It starts a kernixd of its own ($KERNIXD, or the one beside this build) on a store that it removes.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
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
constexpr double kBar = 15'000;    // hits a second
constexpr double kShareBar = 0.8;  // of the hits of the row that is compared
constexpr int kKernels = 300;

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

// The kernel, after the lines of `head`, which may include headers of `folder`.
absl::StatusOr<PreparedLoad> Prepare(const std::string& head, const std::string& folder) {
  const GetEnv get_env = ProcessGetEnv;
  const std::vector<std::string> no_packages;
  const LoadSurroundings surroundings{
      .env = Env::Posix(), .get_env = get_env, .site_packages = no_packages, .header_folder = [] { return ""; }};
  LoadOptions options;
  options.include_paths = {folder};
  return PrepareLoad(surroundings, v1::LANGUAGE_CPP, "bench_hits", {{.text = head + kSource}}, options);
}

absl::StatusOr<v1::LoadResult> Ask(Client& client, const v1::LoadRequest& request) {
  const BlobProvider none = [](const Digest&) { return absl::NotFoundError("kernixd has the headers"); };
  return dynamic_cast<DaemonClient&>(client).SendLoad(request, none, {});
}

// Has kernixd build `count` kernels, each with a header of its own in `folder`. Returns their requests.
absl::StatusOr<std::vector<v1::LoadRequest>> BuildKernels(Client& client, int count, const std::string& folder) {
  std::vector<v1::LoadRequest> requests;
  for (int i = 0; i < count; ++i) {
    const std::string header = StrCat("bench_", i, ".h");
    KERNIX_RETURN_IF_ERROR(Env::Posix().WriteFile(StrCat(folder, "/", header), StrCat("enum { k", i, " };\n"), 0644));
    KERNIX_ASSIGN_OR_RETURN(const PreparedLoad load, Prepare(StrCat("#include \"", header, "\"\n"), folder));
    const BlobProvider blobs = [&](const Digest& digest) { return load.headers.Read(Env::Posix(), digest); };
    KERNIX_RETURN_IF_ERROR(dynamic_cast<DaemonClient&>(client).SendLoad(load.request, blobs, {}).status());
    requests.push_back(load.request);
  }
  return requests;
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

using Requests = std::vector<v1::LoadRequest>;

int AskUntilStopped(const std::string& store, const Requests& requests, Shared& shared) {
  const auto client = Connect(store);
  ++shared.ready;
  while (!shared.go) usleep(1000);
  const int64_t before = OwnProcessorTimeUs();
  uint64_t hits = 0;
  while (client.ok() && !shared.stop) {
    const auto answer = Ask(**client, requests[hits % requests.size()]);
    if (!answer.ok() || !answer->cache_hit()) return ++shared.failures, 1;
    ++hits;
  }
  shared.hits += hits;
  shared.clients_us += OwnProcessorTimeUs() - before;
  return 0;
}

// What another process does meanwhile.
enum class Beside { kNothing, kCompiles, kBuilds };

// By itself, without kernixd.
void CompileUntilStopped(Shared& shared) {
  constexpr char kCommand[] = "c++ -std=c++17 -O3 -include vector -x c++ -c -o /dev/null /dev/null";
  while (!shared.stop) {
    if (std::system(kCommand) != 0) ++shared.failures;
  }
}

void BuildUntilStopped(const std::string& store, const std::string& folder, Shared& shared) {
  const auto client = Connect(store);
  while (client.ok() && !shared.stop) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto load = Prepare(StrCat("const long k", now, " = 0;\n"), folder);
    if (!load.ok() || !Ask(**client, load->request).ok()) ++shared.failures;
  }
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

struct Scene {
  std::string store;
  std::string folder;  // of headers
  int64_t daemon = 0;  // its pid
  int processes = 0;
  double seconds = 0;
};

absl::StatusOr<Rates> MeasureRound(const Scene& scene, const Requests& requests, Beside beside) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::InternalError("no memory to share");
  Shared& shared = *new (memory) Shared;
  std::vector<pid_t> children;
  const auto start = [&](auto run) {
    children.push_back(fork());
    if (children.back() == 0) {
      run();
      _exit(0);
    }
  };
  for (int i = 0; i < scene.processes; ++i) start([&] { AskUntilStopped(scene.store, requests, shared); });
  if (beside == Beside::kCompiles) start([&] { CompileUntilStopped(shared); });
  if (beside == Beside::kBuilds) start([&] { BuildUntilStopped(scene.store, scene.folder, shared); });
  while (shared.ready < scene.processes) usleep(1000);
  const double before = ProcessorTime(scene.daemon);
  const auto begin = std::chrono::steady_clock::now();
  shared.go = true;
  usleep(static_cast<useconds_t>(scene.seconds * 1e6));
  shared.stop = true;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double used = ProcessorTime(scene.daemon) - before;
  for (const pid_t child : children) waitpid(child, nullptr, 0);  // not kernixd, which is a child, too
  if (shared.failures > 0)
    return absl::InternalError(StrCat(shared.failures.load(), " loads or compiles failed, or were no hits"));
  const auto hits = static_cast<double>(shared.hits);
  const Rates rates{hits / took.count(), 1e6 * used / hits, static_cast<double>(shared.clients_us) / hits};
  munmap(memory, sizeof(Shared));
  return rates;
}

// Prints a row, and returns its hits a second.
absl::StatusOr<double> MeasureRow(const Scene& scene, const std::string& what, const Requests& requests, Beside beside,
                                  double bar) {
  std::vector<Rates> rounds;
  for (int i = 0; i < kRounds; ++i) {
    KERNIX_ASSIGN_OR_RETURN(const Rates rates, MeasureRound(scene, requests, beside));
    rounds.push_back(rates);
  }
  std::sort(rounds.begin(), rounds.end(), [](const Rates& a, const Rates& b) { return a.hits < b.hits; });
  const Rates& median = rounds[rounds.size() / 2];
  printf("| %d processes, %s | %.0f | %.0f to %.0f | %s | %.1f µs | %.1f µs |\n", scene.processes, what.c_str(),
         median.hits, rounds.front().hits, rounds.back().hits, bar > 0 ? StrCat("≥ ", std::lround(bar)).c_str() : "",
         median.daemon_us, median.client_us);
  fflush(stdout);
  if (median.hits < bar) return absl::ResourceExhaustedError(StrCat(what, ": below the bar"));
  return median.hits;
}

absl::Status Measure(const std::string& store, const std::string& folder, int processes, double seconds) {
  KERNIX_ASSIGN_OR_RETURN(const auto client, Connect(store));
  KERNIX_ASSIGN_OR_RETURN(const PreparedLoad one, Prepare("", folder));
  KERNIX_RETURN_IF_ERROR(Ask(*client, one.request).status());
  KERNIX_ASSIGN_OR_RETURN(const DaemonInfo daemon, client->Info(false));
  const Scene scene{store, folder, daemon.pid, processes, seconds};
  printf("| | hits a second | range | bar | processor time of a hit in kernixd | in the client |\n");
  printf("|---|---:|---:|---:|---:|---:|\n");
  KERNIX_ASSIGN_OR_RETURN(const double quiet, MeasureRow(scene, "one kernel", {one.request}, Beside::kNothing, kBar));
  KERNIX_ASSIGN_OR_RETURN(const Requests many, BuildKernels(*client, kKernels, folder));
  KERNIX_RETURN_IF_ERROR(
      MeasureRow(scene, StrCat(kKernels, " kernels with a header each"), many, Beside::kNothing, kShareBar * quiet)
          .status());
  // Compilers take a processor from whoever is beside them.
  KERNIX_ASSIGN_OR_RETURN(const double busy,
                          MeasureRow(scene, "one kernel, and one that compiles", {one.request}, Beside::kCompiles, 0));
  KERNIX_RETURN_IF_ERROR(
      MeasureRow(scene, "one kernel, and one that builds", {one.request}, Beside::kBuilds, kShareBar * busy).status());
  return client->Shutdown(std::chrono::seconds(5));
}

int Main(int argc, char** argv) {
  const int processes = argc > 1 ? std::atoi(argv[1]) : 8;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 3;
  const auto folder = Env::Posix().CreateTempDirectory(std::filesystem::temp_directory_path() / "bench-hits-");
  const absl::Status status = folder.ok() ? Measure(*folder + "/store", *folder, processes, seconds) : folder.status();
  if (folder.ok()) std::filesystem::remove_all(*folder);
  if (status.ok()) return 0;
  fprintf(stderr, "hits: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace kernix

int main(int argc, char** argv) { return kernix::Main(argc, argv); }
