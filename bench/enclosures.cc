// SPDX-License-Identifier: Apache-2.0
//
// bench_enclosures [ROUNDS]: what an enclosure costs a tool. Runs each tool on each rung in turn, and prints the median
// time of each, and what the rung adds to it. Exits with 1 if a rung adds more than the bar to a tool that does
// nothing.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/os/env.h"

namespace kernix {
namespace {

constexpr double kBarMs = 1.0;
constexpr char kSource[] = "#include <vector>\nint f(const std::vector<int>& v) { return v.at(1); }\n";

struct Tool {
  std::string name;
  std::vector<std::string> argv;
};

struct Rung {
  std::string name;
  spawn::Enclosure enclosure;
};

double TimeOf(const Tool& tool, const Rung& rung, const std::string& folder) {
  const ProcessSpec spec{.argv = tool.argv,
                         .environment = {{"PATH", "/usr/bin:/bin"}, {"TMPDIR", folder}},
                         .working_directory = folder,
                         .enclosure = rung.enclosure,
                         .writable = "run"};
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<ProcessResult> result = Env::Posix().RunProcess(spec, nullptr, nullptr);
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  if (result.ok() && result->exit_code == 0) return wall.count();
  std::fprintf(stderr, "%s, %s: %s\n", tool.name.c_str(), rung.name.c_str(),
               result.ok() ? result->output.c_str() : std::string(result.status().message()).c_str());
  std::exit(2);
}

double Median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Returns how much the dearest rung adds, in milliseconds.
double Measure(const Tool& tool, const std::vector<Rung>& rungs, const std::string& folder, int rounds) {
  std::vector<std::vector<double>> times(rungs.size());
  for (int round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < rungs.size(); ++i) {
      const double time = TimeOf(tool, rungs[i], folder);
      if (round > 0) times[i].push_back(time);  // the first one makes the enclosure
    }
  }
  double most = 0;
  for (size_t i = 0; i < rungs.size(); ++i) {
    const double added = Median(times[i]) - Median(times[0]);
    most = std::max(most, added);
    std::printf("%-10s %-22s %8.2f ms  %+6.2f ms\n", tool.name.c_str(), rungs[i].name.c_str(), Median(times[i]), added);
  }
  return most;
}

int Main(int rounds) {
  const absl::StatusOr<std::string> made = Env::Posix().CreateTempDirectory("/var/tmp/bench-enclosures-");
  if (!made.ok()) return 2;
  const std::string scratch = Env::Posix().RealPath(*made).value_or(*made);
  const std::string folder = scratch + "/run";
  mkdir(folder.c_str(), 0755);
  if (!Env::Posix().WriteFile(folder + "/a.cc", kSource, 0644).ok()) return 2;
  const std::vector<Rung> rungs = {
      {"none", {}},
      {"wall, toolchain", {.rung = spawn::Rung::kWall, .readable = {}, .scratch = scratch}},
      {"wall, machine", {.rung = spawn::Rung::kWall, .readable = {"/"}, .scratch = scratch}},
      {"landlock, toolchain", {.rung = spawn::Rung::kLandlock, .readable = {}, .scratch = scratch}}};
  const double added = Measure({"true", {"/bin/true"}}, rungs, folder, 10 * rounds);
  Measure({"g++ -c", {"/usr/bin/g++", "-c", "-o", "a.o", "a.cc"}}, rungs, folder, rounds);
  Measure({"g++ link", {"/usr/bin/g++", "-shared", "-o", "a.so", "a.o"}}, rungs, folder, rounds);
  static_cast<void>(Env::Posix().RemoveTree(scratch));
  return added <= kBarMs ? 0 : 1;
}

}  // namespace
}  // namespace kernix

int main(int argc, char** argv) { return kernix::Main(argc > 1 ? std::atoi(argv[1]) : 21); }
