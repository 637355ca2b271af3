// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/gpu_targets.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "common/base/strings.h"

namespace kernix {
namespace {

struct Target {
  int major = 0;
  int minor = 0;
  char letter = 0;  // 'a' or 'f'
  auto operator<=>(const Target&) const = default;
};

// All zero for other texts.
Target TargetOf(std::string_view text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  Target target;
  int number = 0;
  for (const char c : text) {
    if (c == '.') continue;
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number = number * 10 + (c - '0');
    } else {
      target.letter = c;
    }
  }
  target.major = number / 10;
  target.minor = number % 10;
  return target;
}

// Families are those of the PTX ISA's ".target": 10.1 is one of its own.
bool MachineCodeRuns(const Target& code, const Target& gpu) {
  const auto is_10_1 = [](const Target& target) { return target.major == 10 && target.minor == 1; };
  if (code.major != gpu.major || is_10_1(code) != is_10_1(gpu)) return false;
  return code.letter == 'a' ? code.minor == gpu.minor : code.minor <= gpu.minor;
}

bool PtxRuns(const Target& ptx, const Target& gpu) {
  if (ptx.letter != 0) return MachineCodeRuns(ptx, gpu);
  return ptx.major < gpu.major || (ptx.major == gpu.major && ptx.minor <= gpu.minor);
}

}  // namespace

int FitFor(const GpuTargets& targets, const std::string& gpu) {
  constexpr int kMachineCode = 10'000;  // above all PTX
  const Target here = TargetOf(gpu);
  int best = 0;
  for (const std::string& text : targets.machine_code) {
    const Target code = TargetOf(text);
    if (MachineCodeRuns(code, here)) best = std::max(best, kMachineCode + 2 * code.minor + (code.letter != 0 ? 1 : 0));
  }
  for (const std::string& text : targets.ptx) {
    const Target ptx = TargetOf(text);
    if (PtxRuns(ptx, here)) best = std::max(best, 1 + 10 * ptx.major + ptx.minor);
  }
  return best;
}

unsigned DriverFor(const GpuTargets& targets, const std::string& gpu) {
  const Target here = TargetOf(gpu);
  const bool has_machine_code =
      std::any_of(targets.machine_code.begin(), targets.machine_code.end(),
                  [&](const std::string& text) { return MachineCodeRuns(TargetOf(text), here); });
  constexpr unsigned kMajor = 1000;
  return has_machine_code ? targets.cuda_version / kMajor * kMajor : targets.cuda_version;
}

bool HasEach(const GpuTargets& targets, const std::vector<std::string>& asked) {
  return std::all_of(asked.begin(), asked.end(), [&](const std::string& text) {
    const Target target = TargetOf(text);
    return std::any_of(targets.machine_code.begin(), targets.machine_code.end(),
                       [&](const std::string& code) { return TargetOf(code) == target; });
  });
}

}  // namespace kernix
