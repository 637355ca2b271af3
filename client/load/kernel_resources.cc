// SPDX-License-Identifier: Apache-2.0
#include "client/load/kernel_resources.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/elf_image.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace kernix {
namespace {

// --- Fat binaries ----------------------------------------------------------------------------------------------------

// What a section holds: for each unit a header, then entries up to its end. Multiples of 8 bytes.
struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t size;  // of all entries
};

struct EntryHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_size;
  uint64_t size;  // of what follows the header
  uint32_t compressed_size;
  uint32_t options_offset;
  uint32_t code_version;  // of PTX, the version of its ISA: 0x80004 for 8.4
  uint32_t architecture;  // 90
  uint64_t name;
  uint64_t flags;
};

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint16_t kPtx = 1;
constexpr uint16_t kMachineCode = 2;
constexpr uint64_t kArchitectureSpecific = 0x100000;  // sm_90a
constexpr uint64_t kFamilySpecific = 0x200000;        // sm_100f
constexpr size_t kAlignment = 8;

template <typename T>
std::optional<T> ReadAt(std::string_view bytes, size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

uint32_t WordAt(std::string_view bytes, size_t offset) { return ReadAt<uint32_t>(bytes, offset).value_or(0); }

std::string ArchitectureOf(const EntryHeader& entry) {
  const char* suffix = (entry.flags & kArchitectureSpecific) != 0 ? "a"
                       : (entry.flags & kFamilySpecific) != 0     ? "f"
                                                                  : "";
  return StrCat("sm_", entry.architecture, suffix);
}

// PTX, or machine code.
struct FatBinaryEntry {
  uint16_t kind = 0;
  uint32_t version = 0;
  MachineCode code;
};

absl::Status ReadEntries(std::string_view entries, std::vector<FatBinaryEntry>& found) {
  while (!entries.empty()) {
    const auto entry = ReadAt<EntryHeader>(entries, 0);
    const bool fits = entry.has_value() && entry->header_size >= sizeof(EntryHeader) &&
                      entry->header_size <= entries.size() && entry->size <= entries.size() - entry->header_size;
    if (!fits) return absl::DataLossError("an entry of the fat binary ends outside of it");
    const std::string_view bytes = entries.substr(entry->header_size, entry->size);
    const bool is_elf = bytes.starts_with(std::string_view(ELFMAG, SELFMAG));
    found.push_back({entry->kind, entry->code_version, {ArchitectureOf(*entry), bytes, !is_elf}});
    entries.remove_prefix(entry->header_size + entry->size);
  }
  return absl::OkStatus();
}

// --- Spills ----------------------------------------------------------------------------------------------------------

constexpr size_t kInstruction = 16;  // bytes

struct Mark {
  uint32_t kind;
  uint32_t offset;  // of the instruction
};

constexpr uint32_t kSpill = 1;

// The size of the marks is a number of 16 bits. ptxas drops the marks of a multiple of this many instructions, the last
// ones, if there are more.
constexpr size_t kDropped = (size_t{1} << 16U) / sizeof(Mark);

// Nullopt unless the instruction at `offset` accesses local memory.
std::optional<Spills> LocalAccess(std::string_view code, size_t offset) {
  constexpr uint32_t kStoreLocal = 0x387;
  constexpr uint32_t kLoadLocal = 0x983;
  constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 8, 16, 0};  // by the three bits that say the size
  if (offset > code.size() || code.size() - offset < kInstruction) return std::nullopt;
  const uint32_t operation = WordAt(code, offset) & 0xfffU;
  const uint64_t bytes = kBytes[(WordAt(code, offset + 8) >> 9U) & 7U];
  if (operation == kStoreLocal) return Spills{.stored = bytes};
  if (operation == kLoadLocal) return Spills{.loaded = bytes};
  return std::nullopt;
}

void Add(const Spills& more, Spills& all) {
  all.stored += more.stored;
  all.loaded += more.loaded;
}

// Adds the spills behind the last mark, if marks were dropped. Accesses to the kernel's own arrays look the same: if
// there are some among those instructions, nobody knows, and this returns nullopt.
std::optional<Spills> WithDropped(std::string_view code, size_t last_mark, Spills spills) {
  Spills rest;
  size_t count = 0;
  for (size_t offset = last_mark + kInstruction; offset < code.size(); offset += kInstruction) {
    const std::optional<Spills> access = LocalAccess(code, offset);
    if (!access) continue;
    Add(*access, rest);
    ++count;
  }
  if (count < kDropped) return spills;
  if (count % kDropped != 0) return std::nullopt;
  Add(rest, spills);
  return spills;
}

// --- Cubins ----------------------------------------------------------------------------------------------------------

// The C++ name of a kernel's symbol, "add(float const*, float*, int)". A symbol that is not mangled stays as it is.
std::string KernelName(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // __cxa_demangle() reads "f" as the type float
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return name != nullptr ? name.get() : symbol;
}

using Sections = std::map<std::string_view, ElfImage::NamedSection>;

constexpr unsigned char kEntryPoint = 0x10;  // in a symbol's st_other

// Attributes of .nv.info.
constexpr uint8_t kFrameSize = 0x11;
constexpr uint8_t kLargestStack = 0x12;  // with what the functions that are called need
constexpr uint8_t kRegisters = 0x2f;
constexpr uint8_t kCudaVersion = 0x37;
constexpr uint8_t kBarriers = 0x4c;
constexpr uint8_t kAnnotations = 0x55;

constexpr uint32_t kFirstAnnotating = 126;      // from CUDA 12.6 on, each such instruction has one
constexpr uint64_t kSharedForTheSystem = 1024;  // .nv.shared counts it from sm_90 on
constexpr unsigned kFirstCountingIt = 90;

struct Attribute {
  uint8_t id = 0;
  uint16_t value = 0;  // if it has no payload
  std::string_view payload;
};

// An attribute is a format, an id and two bytes: a value, or the size of the payload that follows.
absl::Status ForEachAttribute(std::string_view info, const std::function<void(const Attribute&)>& use) {
  constexpr uint8_t kHasPayload = 4;
  constexpr size_t kHeader = 4;
  size_t at = 0;
  while (at + kHeader <= info.size()) {
    const uint32_t word = WordAt(info, at);
    const auto value = static_cast<uint16_t>(word >> 16U);
    Attribute attribute{.id = static_cast<uint8_t>(word >> 8U), .value = value, .payload = {}};
    at += kHeader;
    if ((word & 0xffU) == kHasPayload) {
      if (info.size() - at < value) return absl::DataLossError("an attribute of the machine code is cut off");
      attribute.payload = info.substr(at, value);
      at += (value + kHeader - 1) / kHeader * kHeader;
    }
    use(attribute);
  }
  return absl::OkStatus();
}

// Attributes of the whole cubin, by the index of the kernel's symbol.
struct Numbers {
  std::map<uint32_t, uint64_t> registers;
  std::map<uint32_t, uint64_t> frame;
  std::map<uint32_t, uint64_t> largest_stack;
};

absl::StatusOr<Numbers> ReadNumbers(const Sections& sections) {
  Numbers numbers;
  const auto info = sections.find(".nv.info");
  if (info == sections.end()) return numbers;
  KERNIX_RETURN_IF_ERROR(ForEachAttribute(info->second.bytes, [&](const Attribute& attribute) {
    const uint32_t symbol = WordAt(attribute.payload, 0);
    const uint32_t value = WordAt(attribute.payload, sizeof(uint32_t));
    if (attribute.id == kRegisters) numbers.registers[symbol] = value;
    if (attribute.id == kFrameSize) numbers.frame[symbol] = value;
    if (attribute.id == kLargestStack) numbers.largest_stack[symbol] = value;
  }));
  return numbers;
}

std::string_view BytesOf(const Sections& sections, const std::string& name) {
  const auto section = sections.find(name);
  return section == sections.end() ? std::string_view() : section->second.bytes;
}

// Attributes of one kernel.
absl::Status ReadKernel(const Sections& sections, bool has_stack, KernelResources& kernel) {
  bool is_known = !has_stack;  // nothing is spilled without a stack
  std::optional<Spills> spills = Spills{};
  KERNIX_RETURN_IF_ERROR(
      ForEachAttribute(BytesOf(sections, ".nv.info." + kernel.symbol), [&](const Attribute& attribute) {
        if (attribute.id == kBarriers) kernel.barriers = attribute.value;
        if (attribute.id == kCudaVersion && WordAt(attribute.payload, 0) >= kFirstAnnotating) is_known = true;
        if (attribute.id != kAnnotations) return;
        is_known = true;
        spills = SpillsOf(BytesOf(sections, ".text." + kernel.symbol), attribute.payload);
      }));
  if (is_known && spills) {
    kernel.spill_stores = spills->stored;
    kernel.spill_loads = spills->loaded;
  }
  return absl::OkStatus();
}

unsigned NumberOf(const std::string& architecture) {
  const size_t begin = architecture.find('_') + 1;
  size_t end = begin;
  while (end < architecture.size() && std::isdigit(static_cast<unsigned char>(architecture[end])) != 0) ++end;
  unsigned number = 0;
  return absl::SimpleAtoi(ToAbsl(std::string_view(architecture).substr(begin, end - begin)), &number) ? number : 0;
}

// The resources from the sizes and flags of the kernel's sections.
void ReadSizes(const Sections& sections, KernelResources& kernel) {
  constexpr uint64_t kBarriersShift = 20;  // of the flags of .text, before CUDA 13
  constexpr uint64_t kBarriersMask = 0x7f;
  if (const auto text = sections.find(".text." + kernel.symbol); text != sections.end()) {
    kernel.barriers = (text->second.flags >> kBarriersShift) & kBarriersMask;
  }
  if (const auto shared = sections.find(".nv.shared." + kernel.symbol); shared != sections.end()) {
    const bool counts = NumberOf(kernel.architecture) >= kFirstCountingIt && shared->second.size >= kSharedForTheSystem;
    kernel.shared_memory = shared->second.size - (counts ? kSharedForTheSystem : 0);
  }
  constexpr char kLastBank = '9';
  for (char bank = '0'; bank <= kLastBank; ++bank) {
    const auto constants = sections.find(StrCat(".nv.constant", std::string(1, bank), ".", kernel.symbol));
    if (constants != sections.end()) kernel.constant_memory += constants->second.size;
  }
}

uint64_t ValueOf(const std::map<uint32_t, uint64_t>& values, uint32_t symbol) {
  const auto found = values.find(symbol);
  return found == values.end() ? 0 : found->second;
}

// The kernels of `cubin`, in the order of its symbols. A kernel's spills include those of its device functions, if they
// were compiled into its section. Returns kInvalidArgument or kDataLoss if `cubin` is none or is damaged.
absl::StatusOr<std::vector<KernelResources>> KernelsInCubin(std::string_view cubin, const std::string& architecture) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::ParseCubin(cubin));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::NamedSection> all, image.Sections());
  KERNIX_ASSIGN_OR_RETURN(const std::vector<ElfImage::Symbol> symbols, image.Symbols());
  Sections sections;
  for (const ElfImage::NamedSection& section : all) sections.emplace(section.name, section);
  KERNIX_ASSIGN_OR_RETURN(const Numbers numbers, ReadNumbers(sections));
  std::vector<KernelResources> kernels;
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].type != STT_FUNC || (symbols[i].other & kEntryPoint) == 0) continue;
    KernelResources& kernel = kernels.emplace_back();
    kernel.symbol = symbols[i].name;
    kernel.name = KernelName(kernel.symbol);
    kernel.architecture = architecture;
    kernel.registers = ValueOf(numbers.registers, i);
    kernel.stack_frame = ValueOf(numbers.frame, i);
    ReadSizes(sections, kernel);
    const bool has_stack = kernel.stack_frame > 0 || ValueOf(numbers.largest_stack, i) > 0;
    KERNIX_RETURN_IF_ERROR(ReadKernel(sections, has_stack, kernel));
  }
  return kernels;
}

// Units follow each other in the file, and each has all architectures.
void SortByArchitecture(std::vector<KernelResources>& kernels) {
  std::vector<std::string> order;
  for (const KernelResources& kernel : kernels) {
    if (std::find(order.begin(), order.end(), kernel.architecture) == order.end()) order.push_back(kernel.architecture);
  }
  const auto place = [&](const KernelResources& kernel) {
    return std::find(order.begin(), order.end(), kernel.architecture) - order.begin();
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const KernelResources& a, const KernelResources& b) { return place(a) < place(b); });
}

// --- The report of ptxas ---------------------------------------------------------------------------------------------

// The text between `before` and the next `end`, or the end of the line.
std::optional<std::string_view> TextAfter(std::string_view line, std::string_view before, char end) {
  const size_t found = line.find(before);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(found + before.size());
  return rest.substr(0, rest.find(end));
}

// The number at the end of `text`.
uint64_t LastNumber(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
  uint64_t number = 0;
  return absl::SimpleAtoi(ToAbsl(text.substr(begin)), &number) ? number : 0;
}

// A part is "Used 255 registers, used 2 barriers, 1024+0 bytes smem, 380 bytes cmem[0]" or "48 bytes stack frame, ...".
// Each item has a number before or between its words.
void ReadPart(std::string_view part, KernelResources& kernel) {
  const auto read = [part](std::string_view words, auto& value) {
    const size_t found = part.find(words);
    if (found == std::string_view::npos) return;
    const std::string_view before = part.substr(0, found);
    // Older releases print static and dynamic shared memory as "1024+0".
    value = LastNumber(before.substr(0, before.find('+')));
  };
  read(" bytes stack frame", kernel.stack_frame);
  read(" bytes spill stores", kernel.spill_stores);
  read(" bytes spill loads", kernel.spill_loads);
  read(" registers", kernel.registers);
  read(" bytes smem", kernel.shared_memory);
  read(" barriers", kernel.barriers);
  if (const size_t bank = part.find(" bytes cmem["); bank != std::string_view::npos) {
    kernel.constant_memory += LastNumber(part.substr(0, bank));
  }
}

// --- The warning -----------------------------------------------------------------------------------------------------

constexpr size_t kMostNamed = 3;

uint64_t SpilledBytes(const KernelResources& kernel) {
  return kernel.spill_stores.value_or(0) + kernel.spill_loads.value_or(0);
}

std::string Described(const KernelResources& kernel) {
  return StrCat(kernel.name, " on ", kernel.architecture, " (", kernel.spill_stores.value_or(0), " bytes stored, ",
                kernel.spill_loads.value_or(0), " loaded, ", kernel.registers, " registers)");
}

// The toolkit of a PTX ISA, as the PTX ISA's release notes have it.
unsigned CudaVersionOf(uint32_t ptx_version) {
  constexpr uint32_t kIsaOfCuda12_7 = 0x80006;  // there was none of 12.6
  const uint32_t major = ptx_version >> 16U, minor = ptx_version & 0xffffU;
  const bool is_later_12 = ptx_version >= kIsaOfCuda12_7 && major == kIsaOfCuda12_7 >> 16U;
  return 1000 * (major + 4) + 10 * (minor + (is_later_12 ? 1 : 0));
}

// `most`: of the fat binaries.
absl::StatusOr<std::vector<FatBinaryEntry>> EntriesIn(std::string_view section, size_t most = SIZE_MAX) {
  std::vector<FatBinaryEntry> found;
  size_t at = 0;
  for (size_t count = 0; count < most;) {
    const auto header = ReadAt<FatBinaryHeader>(section, at);
    if (!header) break;
    if (header->magic != kMagic) {  // between two of them
      at += kAlignment;
      continue;
    }
    const size_t left = section.size() - at;
    if (header->header_size < sizeof(FatBinaryHeader) || header->header_size > left ||
        header->size > left - header->header_size) {
      return absl::DataLossError("a fat binary ends outside its section");
    }
    KERNIX_RETURN_IF_ERROR(ReadEntries(section.substr(at + header->header_size, header->size), found));
    at += header->header_size + header->size;
    ++count;
  }
  return found;
}

// Empty if the artifact has no code for GPUs.
absl::StatusOr<std::string_view> FatBinariesIn(const ElfImage& image) {
  absl::StatusOr<std::string_view> section = image.SectionNamed(".nv_fatbin");
  if (absl::IsNotFound(section.status())) return std::string_view();
  return section;
}

}  // namespace

absl::StatusOr<std::vector<MachineCode>> MachineCodeIn(std::string_view section) {
  KERNIX_ASSIGN_OR_RETURN(const std::vector<FatBinaryEntry> entries, EntriesIn(section));
  std::vector<MachineCode> codes;
  for (const FatBinaryEntry& entry : entries) {
    if (entry.kind == kMachineCode) codes.push_back(entry.code);
  }
  return codes;
}

absl::StatusOr<GpuTargets> TargetsInArtifact(std::string_view artifact) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(artifact));
  KERNIX_ASSIGN_OR_RETURN(const std::string_view section, FatBinariesIn(image));
  // The linker puts the module's own code before that of libraries, and all units have the same targets.
  KERNIX_ASSIGN_OR_RETURN(const std::vector<FatBinaryEntry> entries, EntriesIn(section, /*most=*/1));
  GpuTargets targets;
  for (const FatBinaryEntry& entry : entries) {
    if (entry.kind == kMachineCode) targets.machine_code.push_back(entry.code.architecture);
    if (entry.kind != kPtx) continue;
    targets.ptx.push_back(entry.code.architecture);
    targets.cuda_version = CudaVersionOf(entry.version);
  }
  return targets;
}

std::optional<Spills> SpillsOf(std::string_view code, std::string_view marks) {
  if (marks.empty() || marks.size() % sizeof(Mark) != 0) return std::nullopt;
  Spills spills;
  size_t last = 0;
  for (size_t at = 0; at < marks.size(); at += sizeof(Mark)) {
    Mark mark;
    std::memcpy(&mark, marks.data() + at, sizeof(mark));
    const std::optional<Spills> access = LocalAccess(code, mark.offset);
    if (mark.kind != kSpill || mark.offset < last || !access) return std::nullopt;
    Add(*access, spills);
    last = mark.offset;
  }
  return WithDropped(code, last, spills);
}

absl::StatusOr<std::vector<KernelResources>> KernelsInArtifact(std::string_view artifact) {
  KERNIX_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(artifact));
  std::vector<KernelResources> kernels;
  KERNIX_ASSIGN_OR_RETURN(const std::string_view section, FatBinariesIn(image));
  KERNIX_ASSIGN_OR_RETURN(const std::vector<MachineCode> codes, MachineCodeIn(section));
  for (const MachineCode& code : codes) {
    if (code.compressed) return absl::UnimplementedError("the machine code is compressed");
    KERNIX_ASSIGN_OR_RETURN(std::vector<KernelResources> read, KernelsInCubin(code.bytes, code.architecture));
    std::move(read.begin(), read.end(), std::back_inserter(kernels));
  }
  SortByArchitecture(kernels);
  return kernels;
}

std::vector<KernelResources> ReadPtxasReport(std::string_view report, const std::string& architecture) {
  std::vector<KernelResources> kernels;
  KernelResources* current = nullptr;
  for (const absl::string_view absl_line : absl::StrSplit(ToAbsl(report), '\n')) {
    const std::string_view line = ToStd(absl_line);
    if (const auto symbol = TextAfter(line, "Compiling entry function '", '\'')) {
      const std::string name(*symbol);
      current = &kernels.emplace_back(
          KernelResources{.name = KernelName(name), .symbol = name, .architecture = architecture});
    } else if (const auto function = TextAfter(line, "Function properties for ", ' ')) {
      // Lines about a device function may appear between the lines about a kernel.
      const auto known = std::find_if(kernels.begin(), kernels.end(),
                                      [&](const KernelResources& kernel) { return kernel.symbol == *function; });
      current = known == kernels.end() ? nullptr : &*known;
    } else if (current != nullptr) {
      for (const absl::string_view part : absl::StrSplit(absl_line, ',')) ReadPart(ToStd(part), *current);
    }
  }
  return kernels;
}

std::optional<std::string> SpillWarning(const std::string& name, const std::vector<KernelResources>& kernels) {
  std::vector<KernelResources> spilling;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(spilling),
               [](const KernelResources& kernel) { return SpilledBytes(kernel) > 0; });
  if (spilling.empty()) return std::nullopt;
  std::stable_sort(spilling.begin(), spilling.end(), [](const KernelResources& a, const KernelResources& b) {
    return SpilledBytes(a) > SpilledBytes(b);
  });
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(kMostNamed, spilling.size()); ++i) named.push_back(Described(spilling[i]));
  return StrCat("module \"", name, "\": each thread spills registers to local memory, which is slow, in ",
                absl::StrJoin(named, ", "),
                spilling.size() > kMostNamed ? StrCat(" and ", spilling.size() - kMostNamed, " more like this") : "",
                ". Keep fewer values at once, or let the kernel have more registers (__launch_bounds__, "
                "-maxrregcount).");
}

}  // namespace kernix
