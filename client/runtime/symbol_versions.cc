// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/symbol_versions.h"

#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/base/strings.h"
#include "common/base/symbol_version.h"

namespace kernix {
namespace {

// The loader adds the base address to some pointers of a loaded dynamic section and leaves others as in the file.
const char* Address(const dl_phdr_info& object, ElfW(Addr) value) {
  return reinterpret_cast<const char*>(value >= object.dlpi_addr ? value : object.dlpi_addr + value);
}

struct VersionTable {
  const char* definitions = nullptr;
  const char* strings = nullptr;
  uint64_t count = 0;
};

VersionTable FindVersionTable(const dl_phdr_info& object) {
  VersionTable table;
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_VERDEF) table.definitions = Address(object, entry->d_un.d_ptr);
      if (entry->d_tag == DT_VERDEFNUM) table.count = entry->d_un.d_val;
      if (entry->d_tag == DT_STRTAB) table.strings = Address(object, entry->d_un.d_ptr);
    }
  }
  return table;
}

bool IsRuntimeLibrary(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const char* prefix : {"libc.so", "libm.so", "libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so"}) {
    if (absl::StartsWith(ToAbsl(name), prefix)) return true;
  }
  return false;
}

int AddVersionsOf(dl_phdr_info* object, size_t, void* versions) {
  if (object->dlpi_name == nullptr || !IsRuntimeLibrary(object->dlpi_name)) return 0;
  const VersionTable table = FindVersionTable(*object);
  if (table.definitions == nullptr || table.strings == nullptr) return 0;
  const char* at = table.definitions;
  for (uint64_t i = 0; i < table.count; ++i) {
    const auto* definition = reinterpret_cast<const ElfW(Verdef)*>(at);
    const auto* name = reinterpret_cast<const ElfW(Verdaux)*>(at + definition->vd_aux);
    static_cast<RuntimeVersions*>(versions)->libraries.emplace(table.strings + name->vda_name, object->dlpi_name);
    at += definition->vd_next;
  }
  return 0;
}

// The newest version of a family that exists here, or nullopt if there is none.
std::optional<SymbolVersion> NewestOf(const std::string& family, const RuntimeVersions& runtime) {
  if (family == "GLIBC") return SymbolVersion::Parse(StrCat("GLIBC_", runtime.libc_version));
  std::optional<SymbolVersion> newest;
  for (const auto& [name, path] : runtime.libraries) {
    const std::optional<SymbolVersion> version = SymbolVersion::Parse(name);
    if (!version || version->family != family) continue;
    if (!newest || newest->number < version->number) newest = version;
  }
  return newest;
}

// If `required` is missing, the newest existing version of its family.
std::optional<SymbolVersion> InsteadOf(const std::string& required, const RuntimeVersions& runtime) {
  const std::optional<SymbolVersion> wanted = SymbolVersion::Parse(required);
  if (runtime.libraries.contains(required) || !wanted) return std::nullopt;
  std::optional<SymbolVersion> newest = NewestOf(wanted->family, runtime);
  if (newest && wanted->family == "GLIBC" && wanted->number <= newest->number) return std::nullopt;
  return newest;
}

std::string Describe(const SymbolVersion& version, const RuntimeVersions& runtime) {
  const auto found = runtime.libraries.find(version.name);
  return found == runtime.libraries.end() ? version.name : StrCat(version.name, " (", found->second, ")");
}

}  // namespace

RuntimeVersions LoadedRuntimeVersions() {
  RuntimeVersions versions;
  versions.libc_version = gnu_get_libc_version();
  dl_iterate_phdr(AddVersionsOf, &versions);
  return versions;
}

absl::Status CheckSymbolVersions(const std::vector<std::string>& required, const RuntimeVersions& runtime) {
  std::vector<std::string> missing;
  for (const std::string& version : required) {
    const std::optional<SymbolVersion> instead = InsteadOf(version, runtime);
    if (instead) missing.push_back(StrCat(version, " where this process has ", Describe(*instead, runtime)));
  }
  if (missing.empty()) return absl::OkStatus();
  return MakeError(v1::ErrorDetail::LOAD,
                   StrCat("the compiled kernel needs a newer C or C++ runtime than this process has loaded: ",
                          absl::StrJoin(missing, "; "),
                          ". Compile it with a compiler that fits this environment (set CXX), or run it with the newer "
                          "libstdc++ and glibc (in a conda environment: conda install -c conda-forge libstdcxx-ng)."));
}

}  // namespace kernix
