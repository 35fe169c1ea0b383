#include "sluice/sim/detail/loop_clock.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/sim/random.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim {
namespace {

constexpr std::uint64_t draws_of_the_library = 0x64726177;  // a purpose of stream()

template <std::size_t... purpose>
std::array<SeededRng, sizeof...(purpose)> streams(std::uint64_t seed,
                                                  std::index_sequence<purpose...>) {
  return {stream(seed, purpose, draws_of_the_library)...};
}

}  // namespace

LoopClock::LoopClock(World& world, boost::asio::execution_context& context, Time start,
                     std::uint64_t seed)
    : VirtualClock(start),
      TimedLoop(context),
      world_(world),
      draws_(streams(seed, std::make_index_sequence<draw_purposes>())) {}

std::uint64_t LoopClock::schedule(Time when, void (*action)(void*, std::uint64_t), void* what) {
  Timeline& timeline = world_.timeline_;
  if (to_word(when) > word_limit) return timeline.park(action, what).id();
  return timeline.at(std::max(when, timeline.now()), action, what).id();
}

TimerState LoopClock::set_timer(TimerCallback& timer, Time when) {
  timer.place = schedule(when, &ring_timer, &timer);
  return TimerState::set;
}

void LoopClock::ring_timer(void* context, std::uint64_t) {
  auto& timer = *static_cast<TimerCallback*>(context);
  timer.place = 0;
  timer.ring();
}

bool LoopClock::cancel_timer(TimerCallback& timer) noexcept {
  if (!world_.timeline_.cancel(Timeline::Timer(timer.place))) return false;
  timer.place = 0;
  return true;
}

bool LoopClock::calls_for(const boost::asio::any_io_executor& executor) const {
  const auto* const own = executor.target<World::Executor>();
  return own != nullptr && *own == world_.get_executor();
}

void LoopClock::set(Wait& wait, Time when) { wait.place = schedule(when, &finish_wait, &wait); }

void LoopClock::finish_soon(Wait& wait) {
  wait.place = 0;
  world_.timeline_.post(&finish_wait, &wait);
}

void LoopClock::finish_wait(void* context, std::uint64_t) {
  auto& wait = *static_cast<Wait*>(context);
  wait.place = 0;
  wait.finish(true);
}

void LoopClock::fetch(Timeline::Action action, void* context) {
  if (action != &finish_wait) return;
  constexpr std::uintptr_t line = 64;
  for (const std::uintptr_t address : static_cast<Wait*>(context)->near) {
    // A frame's head, and what it was doing when it was suspended.
    for (const std::uintptr_t part :
         {address - 2 * line, address - line, address, address + line}) {
      __builtin_prefetch(reinterpret_cast<const void*>(part));
    }
  }
}

bool LoopClock::cancel(Wait& wait) noexcept {
  if (!world_.timeline_.cancel(Timeline::Timer(wait.place))) return false;
  wait.place = 0;
  return true;
}

bool LoopClock::wait_until(Time when, ManualResetEvent& waker) {
  if (world_.loop_.running()) {
    throw std::logic_error(
        "a thread may not block on the clock of a World that runs: its time would stand still; use "
        "the asynchronous form");
  }
  const Time end = std::min(when, to_time(word_limit));
  while (!waker.is_awake() && now() < when) {
    if (world_.run_event(end) != 0) continue;
    if (to_word(when) > word_limit) {
      throw std::logic_error("nothing is left in a World that would end this wait");
    }
    world_.run_until(when);
  }
  return waker.is_awake();
}

}  // namespace sluice::sim
