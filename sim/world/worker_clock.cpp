// Waits on a WorkerClock are waits on the clock of the World, at converted times. Each has a slot,
// which is notified in its place and sets it anew when the conversion changes.
#include "sluice/sim/worker_clock.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/sim/random.hpp"

namespace sluice::sim {
namespace {

__extension__ using SignedWide = __int128;

constexpr Word most_drift = 100'000;
constexpr std::uint64_t worker_clocks = 0x776f726b;  // a purpose of stream()

template <std::size_t... purpose>
std::array<SeededRng, sizeof...(purpose)> streams(std::uint64_t seed,
                                                  std::index_sequence<purpose...>) {
  return {stream(seed, purpose, worker_clocks)...};
}

Word rate_of(Word drift_ppm) {
  if (drift_ppm < -most_drift || drift_ppm > most_drift) {
    throw std::invalid_argument("the drift of a clock must be -100000 to 100000 ppm, got " +
                                std::to_string(drift_ppm));
  }
  return 1'000'000 + drift_ppm;
}

/// a + b, for a in [0, word_limit]; beyond this range by at most 2 if it leads outside.
Word sum(Word a, Span b) { return a + std::clamp(b.count(), -a - 1, word_limit - a + 1); }

bool is_time(Word word) { return word >= 0 && word <= word_limit; }

}  // namespace

class WorkerClock::Pending final : public TimedLoop::Wait {
 public:
  Pending(WorkerClock& owner, std::size_t slot)
      : TimedLoop::Wait(&finish_wait),
        timer(&ring_callback, this, &end_callback),
        clock(owner),
        index(slot) {}

  TimerCallback timer;
  WorkerClock& clock;
  const std::size_t index;
  TimedLoop::Wait* wait = nullptr;  // one of these two is set while the slot is in use
  TimerCallback* callback = nullptr;
  Time when{};
  std::uint64_t sequence = 0;

 private:
  // Each frees the slot first: what is notified may set its next wait, or destroy the World.
  static void finish_wait(TimedLoop::Wait& self, bool complete) {
    auto& pending = static_cast<Pending&>(self);
    TimedLoop::Wait& wait = *pending.wait;
    wait.place = 0;
    pending.clock.release(pending);
    wait.finish(complete);
  }
  static void ring_callback(void* self) noexcept { take_callback(self).ring(); }
  static void end_callback(void* self) noexcept { take_callback(self).end(); }
  static TimerCallback& take_callback(void* self) noexcept {
    auto& pending = *static_cast<Pending*>(self);
    TimerCallback& callback = *pending.callback;
    callback.place = 0;
    pending.clock.release(pending);
    return callback;
  }
};

WorkerClock::WorkerClock(World& world, std::uint64_t number, const ClockError& error)
    : TimedLoop(world),
      world_(world),
      draws_(streams(stream(world.seed(), number, worker_clocks).next(),
                     std::make_index_sequence<draw_purposes>())),
      since_(to_word(world.now())),
      shown_(sum(since_, error.offset)),
      rate_(rate_of(error.drift_ppm)) {
  if (is_time(shown_)) return;
  throw std::invalid_argument("a clock in a World at " + std::to_string(since_) +
                              " us cannot have an offset of " +
                              std::to_string(error.offset.count()) + " us");
}

WorkerClock::~WorkerClock() = default;

Time WorkerClock::shown_at(Time world) const noexcept {
  const Word passed = std::max(to_word(world) - since_, Word{0});
  const auto gained = static_cast<Word>(SignedWide{passed} * rate_ / million);
  return to_time(std::min(shown_ + gained, word_limit));
}

/// floor(passed * rate / 10^6) >= ahead if and only if passed >= ahead * 10^6 / rate.
Time WorkerClock::world_time(Time when) const noexcept {
  if (when <= now()) return world_.now();
  if (to_word(when) > word_limit) return Time::max();
  const Word ahead = to_word(when) - shown_;
  const auto passed = static_cast<Word>((SignedWide{ahead} * million + rate_ - 1) / rate_);
  return passed > word_limit - since_ ? Time::max() : to_time(since_ + passed);
}

void WorkerClock::step(Span by) {
  const Word shown = sum(to_word(now()), by);
  if (!is_time(shown)) {
    throw std::out_of_range("a clock that shows " + std::to_string(to_word(now())) +
                            " us cannot step by " + std::to_string(by.count()) + " us");
  }
  change(shown, rate_);
}

void WorkerClock::step_at(Time when, Span by) {
  world_.timeline().at(when, &step_now, this, static_cast<std::uint64_t>(by.count()));
}

void WorkerClock::step_now(void* clock, std::uint64_t by) {
  auto& self = *static_cast<WorkerClock*>(clock);
  const Word shown = sum(to_word(self.now()), Span{static_cast<Word>(by)});
  self.change(std::clamp(shown, Word{0}, word_limit), self.rate_);
}

void WorkerClock::set_drift(Word ppm) {
  const Word rate = rate_of(ppm);
  change(to_word(now()), rate);
}

/// Sets the pending waits anew, in the order in which they were set.
void WorkerClock::change(Word shown, Word rate) {
  since_ = to_word(world_.now());
  shown_ = shown;
  rate_ = rate;
  std::vector<Pending*> waits;
  for (const auto& slot : slots_) {
    if (slot->wait != nullptr || slot->callback != nullptr) waits.push_back(slot.get());
  }
  std::sort(waits.begin(), waits.end(),
            [](const Pending* a, const Pending* b) { return a->sequence < b->sequence; });
  for (Pending* const pending : waits) {
    if (disarm(*pending)) arm(*pending);
  }
}

WorkerClock::Pending& WorkerClock::take_slot(Time when) {
  if (free_.empty()) {
    slots_.push_back(std::make_unique<Pending>(*this, slots_.size()));
    free_.reserve(slots_.capacity());  // so that release() does not allocate
    free_.push_back(slots_.size() - 1);
  }
  Pending& pending = *slots_[free_.back()];
  free_.pop_back();
  pending.when = when;
  pending.sequence = sequence_++;
  return pending;
}

void WorkerClock::release(Pending& pending) noexcept {
  pending.wait = nullptr;
  pending.callback = nullptr;
  free_.push_back(pending.index);
}

void WorkerClock::arm(Pending& pending) {
  const Time when = world_time(pending.when);
  if (pending.wait != nullptr) return world_.clock().loop()->set(pending, when);
  world_.clock().set_timer(pending.timer, when);
}

void WorkerClock::arm_or_release(Pending& pending) {
  try {
    arm(pending);
  } catch (...) {
    release(pending);
    throw;
  }
}

bool WorkerClock::give_up(std::uint64_t& place) noexcept {
  if (place == 0) return false;
  Pending& pending = *slots_[std::exchange(place, 0) - 1];
  disarm(pending);
  release(pending);
  return true;
}

bool WorkerClock::disarm(Pending& pending) noexcept {
  if (pending.wait != nullptr) return world_.clock().loop()->cancel(pending);
  return world_.clock().cancel_timer(pending.timer);
}

void WorkerClock::set(Wait& wait, Time when) {
  Pending& pending = take_slot(when);
  pending.wait = &wait;
  pending.near = wait.near;
  arm_or_release(pending);
  wait.place = pending.index + 1;
}

bool WorkerClock::cancel(Wait& wait) noexcept { return give_up(wait.place); }

TimerState WorkerClock::set_timer(TimerCallback& timer, Time when) {
  Pending& pending = take_slot(when);
  pending.callback = &timer;
  arm_or_release(pending);
  timer.place = pending.index + 1;
  return TimerState::set;
}

bool WorkerClock::cancel_timer(TimerCallback& timer) noexcept { return give_up(timer.place); }

bool WorkerClock::calls_for(const boost::asio::any_io_executor& executor) const {
  return world_.clock().loop()->calls_for(executor);
}

/// A timer of this clock, which steps move, ends the wait of the World.
bool WorkerClock::wait_until(Time when, ManualResetEvent& waker) {
  struct End {
    ManualResetEvent& waker;
    bool rang = false;
    static void ring(void* self) noexcept {
      auto& end = *static_cast<End*>(self);
      if (end.waker.is_awake()) return;
      end.rang = true;
      end.waker.wake();
    }
  } end{waker};
  if (waker.is_awake() || now() >= when) return waker.is_awake();
  struct Timer {
    Timer(WorkerClock& owner, End& e) : clock(owner), callback(&End::ring, &e) {}
    ~Timer() { clock.cancel_timer(callback); }
    WorkerClock& clock;
    TimerCallback callback;
  } timer(*this, end);
  set_timer(timer.callback, when);
  world_.clock().wait_until(Time::max(), waker);
  if (end.rang) waker.reset();
  return !end.rang;
}

namespace {

/// Owns the clocks of a World. Asio destroys it after all waits.
class WorkerClocks final : public boost::asio::execution_context::service {
 public:
  static inline boost::asio::execution_context::id id;
  explicit WorkerClocks(boost::asio::execution_context& context) : service(context) {}
  void shutdown() noexcept override {}

  std::vector<std::unique_ptr<WorkerClock>> clocks;
};

}  // namespace

WorkerClock& make_worker_clock(World& world, const ClockError& error) {
  auto& clocks = boost::asio::use_service<WorkerClocks>(world).clocks;
  std::unique_ptr<WorkerClock> clock(new WorkerClock(world, clocks.size(), error));
  clocks.push_back(std::move(clock));
  return *clocks.back();
}

}  // namespace sluice::sim
