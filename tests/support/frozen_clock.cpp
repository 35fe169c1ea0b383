// Preloaded into a redis-server, it answers every question for the wall clock from eight bytes of
// a file, so that a test drives the server's time; the file is named by SLUICE_FROZEN_CLOCK. Or the
// clock runs, set wrong by SLUICE_CLOCK_SHIFT microseconds. Monotonic clocks stay real: the
// server's own timers go on.
// It runs inside of the server's allocator too, so it allocates nothing and looks nothing up.
// Threading: any; the file is read anew each time.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t us_per_s = 1'000'000;

const std::int64_t* page = nullptr;
std::int64_t shift_us = 0;

[[gnu::constructor]] void open_page() {
  const char* const shift = std::getenv("SLUICE_CLOCK_SHIFT");
  if (shift != nullptr) shift_us = std::atoll(shift);
  const char* const path = std::getenv("SLUICE_FROZEN_CLOCK");
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) std::abort();
  void* const memory = ::mmap(nullptr, sizeof *page, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::abort();
  ::close(fd);
  page = static_cast<const std::int64_t*>(memory);
}

/// Microseconds of Unix time; real ones, but for the shift, until the file is open.
std::int64_t now_us() {
  if (page != nullptr) return __atomic_load_n(page, __ATOMIC_ACQUIRE);
  timespec real{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
  return real.tv_sec * us_per_s + real.tv_nsec / 1'000 + shift_us;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* out) noexcept {
  if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
    return static_cast<int>(::syscall(SYS_clock_gettime, id, out));
  }
  const std::int64_t us = now_us();
  *out = {us / us_per_s, us % us_per_s * 1'000};
  return 0;
}

int gettimeofday(timeval* out, void* /*zone*/) noexcept {
  const std::int64_t us = now_us();
  *out = {us / us_per_s, us % us_per_s};
  return 0;
}

time_t time(time_t* out) noexcept {
  const time_t seconds = now_us() / us_per_s;
  if (out != nullptr) *out = seconds;
  return seconds;
}
}
