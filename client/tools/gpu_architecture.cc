// SPDX-License-Identifier: Apache-2.0
#include "client/tools/gpu_architecture.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/base/error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/os/fork_safety.h"

namespace kernix {
namespace {

absl::Status NoGpu(std::string_view reason) {
  return MakeError(v1::ErrorDetail::TOOLCHAIN,
                   StrCat("there is no GPU to compile for: ", reason,
                          ". Pass the architecture of the GPU that will run the kernel, for example "
                          "compute_capability=\"sm_90\" (or several: \"sm_80,sm_90\")."));
}

std::string ArchitectureName(int major, int minor) { return StrCat("sm_", major * 10 + minor); }

// A library of the driver. Closed on destruction.
class DriverLibrary {
 public:
  explicit DriverLibrary(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL), &Close) {}

  bool is_open() const { return handle_ != nullptr; }

  // Null if the library has no such function.
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_.get(), name));
  }

 private:
  static void Close(void* handle) {
    if (handle != nullptr) dlclose(handle);
  }
  std::unique_ptr<void, decltype(&Close)> handle_;
};

struct Gpu {
  std::string uuid;
  std::string architecture;
};

// All GPUs, in PCI bus order. Returns nullopt if NVML does not work here. Its functions return 0 for success; see its
// reference manual.
std::optional<std::vector<Gpu>> ListGpus(const DriverLibrary& nvml) {
  auto* init = nvml.Find<int()>("nvmlInit_v2");
  auto* shutdown = nvml.Find<int()>("nvmlShutdown");
  auto* count_of = nvml.Find<int(unsigned*)>("nvmlDeviceGetCount_v2");
  auto* by_index = nvml.Find<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  auto* uuid_of = nvml.Find<int(void*, char*, unsigned)>("nvmlDeviceGetUUID");
  auto* capability_of = nvml.Find<int(void*, int*, int*)>("nvmlDeviceGetCudaComputeCapability");
  if (!init || !shutdown || !count_of || !by_index || !uuid_of || !capability_of || init() != 0) return std::nullopt;
  unsigned count = 0;
  bool answers = count_of(&count) == 0;
  std::vector<Gpu> gpus;
  for (unsigned i = 0; answers && i < count; ++i) {
    void* device = nullptr;
    char uuid[96] = {};
    int major = 0, minor = 0;
    answers = by_index(i, &device) == 0 && uuid_of(device, uuid, sizeof(uuid)) == 0 &&
              capability_of(device, &major, &minor) == 0;
    gpus.push_back({uuid, ArchitectureName(major, minor)});
  }
  shutdown();
  return answers ? std::optional(std::move(gpus)) : std::nullopt;
}

bool AllAlike(const std::vector<Gpu>& gpus) {
  return std::all_of(gpus.begin(), gpus.end(), [&](const Gpu& g) { return g.architecture == gpus[0].architecture; });
}

// The architecture of the one of `gpus` (in PCI order) that CUDA would show first. Empty: all of them are hidden.
// Nullopt: only CUDA can tell.
std::optional<std::string> ArchitectureOfFirst(const std::vector<Gpu>& gpus, const GpuSystem& system) {
  const std::string visible = system.visible_devices.value_or("0");
  const std::string first(absl::StripAsciiWhitespace(visible.substr(0, visible.find(','))));
  int index = 0;
  if (absl::SimpleAtoi(first, &index)) {
    if (index < 0 || static_cast<size_t>(index) >= gpus.size()) return "";
    // By default, CUDA counts the fastest GPU first, and only CUDA knows which one that is.
    if (!AllAlike(gpus) && system.device_order != "PCI_BUS_ID") return std::nullopt;
    return gpus[index].architecture;
  }
  if (absl::StartsWith(first, "GPU-")) {
    const auto found =
        std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& g) { return absl::StartsWith(g.uuid, first); });
    return found == gpus.end() ? "" : found->architecture;
  }
  if (!absl::StartsWith(first, "MIG-")) return "";
  if (gpus.empty() || !AllAlike(gpus)) return std::nullopt;
  return gpus[0].architecture;
}

absl::StatusOr<std::string> AskCuda(const GpuSystem& system) {
  constexpr int kMajorAttribute = 75, kMinorAttribute = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  const DriverLibrary library(system.cuda);
  if (!library.is_open())
    return NoGpu(StrCat("the NVIDIA driver's ", system.nvml, " and ", system.cuda, " cannot be opened"));
  auto* init = library.Find<int(unsigned)>("cuInit");
  auto* get = library.Find<int(int*, int)>("cuDeviceGet");
  auto* attribute = library.Find<int(int*, int, int)>("cuDeviceGetAttribute");
  if (!init || !get || !attribute) return NoGpu(StrCat(system.cuda, " is not the NVIDIA driver's"));
  if (const int error = init(0); error != 0)
    return NoGpu(StrCat("the CUDA driver cannot be initialised (cuInit: error ", error, ")"));
  int device = 0, major = 0, minor = 0;
  if (get(&device, 0) != 0 || attribute(&major, kMajorAttribute, device) != 0 ||
      attribute(&minor, kMinorAttribute, device) != 0) {
    return NoGpu("the CUDA driver shows no GPU to this process");
  }
  return ArchitectureName(major, minor);
}

bool HasDriver(Env& env, const GpuSystem& system) {
  return std::any_of(system.device_files.begin(), system.device_files.end(),
                     [&](const std::string& file) { return env.Stat(file).ok(); });
}

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The answers, by the variables that they depend on.
struct KnownAnswers {
  using Key = std::pair<std::optional<std::string>, std::optional<std::string>>;
  ForkSafeMutex mutex;
  std::map<Key, std::string> architectures ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<std::string> DetectGpuArchitecture(Env& env, const GpuSystem& system) {
  if (!HasDriver(env, system)) return NoGpu("this machine has no NVIDIA driver, or this container no access to it");
  const DriverLibrary library(system.nvml);
  const std::optional<std::vector<Gpu>> gpus = library.is_open() ? ListGpus(library) : std::nullopt;
  if (!gpus) return AskCuda(system);
  const std::optional<std::string> architecture = ArchitectureOfFirst(*gpus, system);
  if (!architecture) return AskCuda(system);
  if (!architecture->empty()) return *architecture;
  return NoGpu(system.visible_devices ? StrCat("CUDA_VISIBLE_DEVICES=\"", *system.visible_devices, "\" hides all ",
                                               gpus->size(), " of them")
                                      : std::string("the NVIDIA driver finds no GPU"));
}

unsigned CudaDriverVersion(Env& env, const GpuSystem& system) {
  if (!HasDriver(env, system)) return 0;
  const DriverLibrary library(system.cuda);
  auto* get = library.is_open() ? library.Find<int(int*)>("cuDriverGetVersion") : nullptr;
  int version = 0;
  return get != nullptr && get(&version) == 0 ? static_cast<unsigned>(version) : 0;
}

absl::StatusOr<std::string> DetectGpuArchitecture() {
  auto& known = PerProcess<KnownAnswers>::Get();
  GpuSystem system;
  system.visible_devices = Variable("CUDA_VISIBLE_DEVICES");
  system.device_order = Variable("CUDA_DEVICE_ORDER");
  const KnownAnswers::Key key(system.visible_devices, system.device_order);
  {
    MutexLock lock(known.mutex);
    if (const auto found = known.architectures.find(key); found != known.architectures.end()) return found->second;
  }
  KERNIX_ASSIGN_OR_RETURN(std::string architecture, DetectGpuArchitecture(Env::Posix(), system));
  MutexLock lock(known.mutex);
  return known.architectures.emplace(key, std::move(architecture)).first->second;
}

}  // namespace kernix
