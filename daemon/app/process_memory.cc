// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/process_memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace kernix::server {
namespace {

// The start and builds have run much code that an idle process does not need. What is needed again is mapped again.
// Segments that can be written are left alone, since they hold addresses that the loader has put there.
int ReleaseCode(dl_phdr_info* image, size_t, void*) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < image->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = image->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = (image->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const uintptr_t end = image->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

// By default, there are up to eight arenas for each processor, and a little that is in use keeps whole pages of each.
// Allocating is not what kernixd's threads do all day.
void LimitArenas() { mallopt(M_ARENA_MAX, 1); }

void ReturnMemory() {
  malloc_trim(/*pad=*/0);
  dl_iterate_phdr(ReleaseCode, nullptr);
}

}  // namespace kernix::server
