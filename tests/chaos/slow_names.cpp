#include "tests/chaos/slow_names.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <thread>

namespace sluice::chaos {
namespace {

std::atomic<std::chrono::microseconds::rep> delay_us{0};

}  // namespace

void delay_look_ups(std::chrono::microseconds delay) noexcept { delay_us = delay.count(); }

}  // namespace sluice::chaos

/// The program's own definition comes before that of the C library.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  std::this_thread::sleep_for(std::chrono::microseconds{sluice::chaos::delay_us});
  return real(node, service, hints, result);
}
