// SPDX-License-Identifier: Apache-2.0
//
// What kernix and the archives that it links call, and the oldest glibc of a wheel (cmake/KernixStaticPrograms.cmake)
// does not have. On x86-64, kernel and library have the same struct stat, and "64" in a name changes nothing.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdint>

namespace {

// The function of a newer glibc if this process has one, or nullptr. The symbols of this file are hidden.
template <typename Function>
Function* OfSystem(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

constexpr long kNanosPerSecond = 1'000'000'000;

timespec Now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now;
}

// A moment of `clock` as one of CLOCK_REALTIME.
timespec InRealTime(clockid_t clock, const timespec& moment) {
  const timespec there = Now(clock);
  timespec here = Now(CLOCK_REALTIME);
  here.tv_sec += moment.tv_sec - there.tv_sec;
  here.tv_nsec += moment.tv_nsec - there.tv_nsec;
  if (here.tv_nsec < 0) here = {here.tv_sec - 1, here.tv_nsec + kNanosPerSecond};
  if (here.tv_nsec >= kNanosPerSecond) here = {here.tv_sec + 1, here.tv_nsec - kNanosPerSecond};
  return here;
}

// Calls `act` with each descriptor of this process. False, with errno, if they cannot be listed.
template <typename Act>
bool ForEachOpen(const Act& act) {
  DIR* const open_ones = opendir("/proc/self/fd");
  if (open_ones == nullptr) return false;
  while (const dirent* entry = readdir(open_ones)) {
    int fd = -1;
    std::from_chars(entry->d_name, entry->d_name + strlen(entry->d_name), fd);
    if (fd >= 0 && fd != dirfd(open_ones)) act(fd);
  }
  closedir(open_ones);
  return true;
}

}  // namespace

// For kernels that lack close_range(). Returns as it does.
int CloseOneByOne(int first, unsigned last) {
  const bool listed = ForEachOpen([=](int fd) {
    if (fd >= first && static_cast<unsigned>(fd) <= last) close(fd);
  });
  return listed ? 0 : -1;
}

extern "C" {

// Distributions compile archives for programs, which may copy the variable `stderr`. The extension may not, so all that
// is linked gets another one (--wrap).
extern FILE* __real_stderr;
FILE* __wrap_stderr;
__attribute__((constructor(101))) static void TakeStderr() {  // before others may print
  __wrap_stderr = __real_stderr;
}

// 2.28
int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(fd, command, argument);
}

// 2.29. Without it, kernixd starts in its client's folder instead of "/", and keeps that busy.
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions, const char* path) noexcept {
  static const auto function = OfSystem(&posix_spawn_file_actions_addchdir_np, __func__);
  return function == nullptr ? 0 : function(actions, path);
}

// 2.30. Without it, a wait lasts longer or shorter if somebody sets the machine's clock.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* end) {
  static const auto function = OfSystem(&pthread_cond_clockwait, __func__);
  if (function != nullptr) return function(condition, mutex, clock, end);
  const timespec moment = InRealTime(clock, *end);
  return pthread_cond_timedwait(condition, mutex, &moment);
}

// 2.32: whether the process has never had a second thread. "False" is always safe.
char __libc_single_threaded = 0;

// 2.32
const char* strerrordesc_np(int number) noexcept {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strerror_l(number, plain);
}

// 2.33. Before, <sys/stat.h> had them inline.
int fstatat(int folder, const char* path, struct stat* result, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, result, flags));
}
int stat(const char* path, struct stat* result) noexcept { return fstatat(AT_FDCWD, path, result, 0); }
int lstat(const char* path, struct stat* result) noexcept {
  return fstatat(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, struct stat* result) noexcept { return static_cast<int>(syscall(SYS_fstat, fd, result)); }
int stat64(const char* path, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, 0));
}
int lstat64(const char* path, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW));
}
int fstat64(int fd, struct stat64* result) noexcept { return static_cast<int>(syscall(SYS_fstat, fd, result)); }

// 2.34. Linux has it from 5.9 on.
int close_range(unsigned first, unsigned last, int flags) noexcept {
  const auto result = static_cast<int>(syscall(SYS_close_range, first, last, flags));
  if (result == 0 || errno != ENOSYS || flags != 0) return result;
  return CloseOneByOne(static_cast<int>(first), last);
}

// 2.34. What another thread opens meanwhile is open with O_CLOEXEC.
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t* actions, int first) noexcept {
  static const auto function = OfSystem(&posix_spawn_file_actions_addclosefrom_np, __func__);
  if (function != nullptr) return function(actions, first);
  int error = 0;
  const bool listed = ForEachOpen([&](int fd) {
    if (fd >= first && error == 0) error = posix_spawn_file_actions_addclose(actions, fd);
  });
  return listed ? error : errno;
}

// 2.36
void arc4random_buf(void* bytes, size_t size) noexcept {
  for (size_t done = 0; done < size;) {
    const ssize_t got = getrandom(static_cast<char*>(bytes) + done, size - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
    if (got < 0 && errno != EINTR) abort();
  }
}
uint32_t arc4random() noexcept {
  uint32_t bits = 0;
  arc4random_buf(&bits, sizeof(bits));
  return bits;
}

}  // extern "C"
