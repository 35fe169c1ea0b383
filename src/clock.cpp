// The only place in the library that reads a real clock.
#include "sluice/clock.hpp"

#include <ctime>
#include <stdexcept>
#include <string>

namespace sluice {
namespace {

Word monotonic_us() noexcept {
  return std::chrono::duration_cast<Span>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool in_range(Word us) noexcept { return us >= 0 && us <= word_limit; }

}  // namespace

SystemClock::SystemClock() noexcept
    : offset_(std::chrono::duration_cast<Span>(std::chrono::system_clock::now().time_since_epoch())
                  .count() -
              monotonic_us()) {}

Time SystemClock::now() const noexcept { return to_time(monotonic_us() + offset_); }

Time SystemClock::coarse_now() const noexcept {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec ts{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &ts) == 0) {
    return to_time(Word{ts.tv_sec} * 1'000'000 + ts.tv_nsec / 1'000 + offset_);
  }
#endif
  return now();
}

VirtualClock::VirtualClock(Time start) : now_(to_word(start)) {
  if (!in_range(to_word(start))) {
    throw std::invalid_argument("VirtualClock must start between 0 and 2^52 us, got " +
                                std::to_string(to_word(start)));
  }
}

Time VirtualClock::advance(Span span) {
  Word from = now_.load(std::memory_order_relaxed);
  for (;;) {
    // `from` is in [0, 2^52], so neither bound can overflow.
    if (span.count() > word_limit - from || span.count() < -from) {
      throw std::out_of_range("VirtualClock would leave 0 to 2^52 us: " + std::to_string(from) +
                              " us moved by " + std::to_string(span.count()) + " us");
    }
    const Word to = from + span.count();
    if (now_.compare_exchange_weak(from, to, std::memory_order_acq_rel)) return to_time(to);
  }
}

void VirtualClock::set(Time time) {
  if (!in_range(to_word(time))) {
    throw std::out_of_range("VirtualClock must stay between 0 and 2^52 us, got " +
                            std::to_string(to_word(time)));
  }
  now_.store(to_word(time), std::memory_order_release);
}

}  // namespace sluice
