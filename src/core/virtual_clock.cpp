// The virtual clock: a heap of timers, and the threads that wait.
#include "sluice/virtual_clock.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/detail/uncancelled.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/timer_callback.hpp"

namespace sluice {
namespace {

bool in_range(Word us) noexcept { return us >= 0 && us <= word_limit; }

/// A wait looks so often, while its patience lasts, whether the clock has moved.
constexpr int looks = 20;

/// True if the process certainly has no other thread. It reads num_threads, the twentieth field of
/// /proc/self/stat: proc(5). (The list of /proc/self/task may end early while a thread ends.)
bool is_only_thread() noexcept {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen("/proc/self/stat", "r"), close);
  if (!file) return false;
  char bytes[512];
  const std::string_view text(bytes, std::fread(bytes, 1, sizeof bytes, file.get()));
  std::size_t at = text.rfind(')');  // of the second field, a name that may contain anything
  for (int field = 3; field <= 20 && at != text.npos; ++field) at = text.find(' ', at + 1);
  return at != text.npos && text.substr(at).starts_with(" 1 ");
}

}  // namespace

VirtualClock::VirtualClock(Time start) : now_(to_word(start)) {
  if (!in_range(to_word(start))) {
    throw std::invalid_argument("VirtualClock must start between 0 and 2^52 us, got " +
                                std::to_string(to_word(start)));
  }
}

Time VirtualClock::advance(Span span) {
  const std::lock_guard moving(moving_);
  const Word from = now_.load(std::memory_order_relaxed);
  // `from` is in [0, 2^52], so neither bound can overflow.
  if (span.count() > word_limit - from || span.count() < -from) {
    throw std::out_of_range("VirtualClock would leave 0 to 2^52 us: " + std::to_string(from) +
                            " us moved by " + std::to_string(span.count()) + " us");
  }
  note_mover();
  move_to(from + span.count());
  return to_time(from + span.count());
}

void VirtualClock::set(Time time) {
  if (!in_range(to_word(time))) {
    throw std::out_of_range("VirtualClock must stay between 0 and 2^52 us, got " +
                            std::to_string(to_word(time)));
  }
  const std::lock_guard moving(moving_);
  note_mover();
  move_to(to_word(time));
}

bool VirtualClock::advance_to_next() {
  const std::lock_guard moving(moving_);
  note_mover();
  return step_to_next();
}

/// REQUIRES: `moving_` is held.
bool VirtualClock::step_to_next() {
  Word next = 0;
  {
    const std::lock_guard lock(mutex_);
    if (heap_.empty() || heap_.front().time > word_limit) return false;
    next = heap_.front().time;
  }
  move_to(std::max(next, to_word(now())));
  return true;
}

void VirtualClock::note_mover() noexcept {
  const std::lock_guard lock(mutex_);
  const auto self = std::this_thread::get_id();
  if (mover_ == std::thread::id{}) mover_ = self;
  several_movers_ = several_movers_ || mover_ != self;
}

void VirtualClock::set_patience(Span real_time) noexcept {
  patience_ = std::max(Word{1'000}, real_time.count());
}

std::size_t VirtualClock::timers() const {
  const std::lock_guard lock(mutex_);
  return heap_.size();
}

/// REQUIRES: `moving_` is held. If a timer moves the clock further, it stays there.
void VirtualClock::move_to(Word time) noexcept {
  moves_.fetch_add(1);
  std::unique_lock lock(mutex_);
  if (time < now_.load(std::memory_order_relaxed)) {
    now_.store(time, std::memory_order_release);
    return;
  }
  while (!heap_.empty() && heap_.front().time <= time) ring_next(lock);
  show_at_least(time);
}

void VirtualClock::show_at_least(Word time) noexcept {
  if (time > now_.load(std::memory_order_relaxed)) now_.store(time, std::memory_order_release);
}

void VirtualClock::ring_next(std::unique_lock<std::mutex>& lock) noexcept {
  const Node next = heap_.front();
  remove(0);
  show_at_least(next.time);
  const Ringing here{next.timer, ringing_};
  ringing_ = &here;
  ringer_ = std::this_thread::get_id();
  lock.unlock();
  next.timer->ring();
  lock.lock();
  ringing_ = here.outer;
  rung_.notify_all();
}

TimerState VirtualClock::set_timer(TimerCallback& timer, Time when) {
  const std::lock_guard lock(mutex_);
  // A move runs the timers that are due before it stores its time under the lock.
  if (to_word(when) <= now_.load(std::memory_order_relaxed)) return TimerState::due;
  heap_.emplace_back();
  any_timer_.store(true, std::memory_order_relaxed);
  sift_up(heap_.size() - 1, {to_word(when), order_++, &timer});
  return TimerState::set;
}

bool VirtualClock::cancel_timer(TimerCallback& timer) noexcept {
  std::unique_lock lock(mutex_);
  if (timer.place != 0) {
    remove(timer.place - 1);
    return true;
  }
  if (ringing_ != nullptr && ringer_ == std::this_thread::get_id()) return false;
  const detail::Uncancelled uncancelled;
  rung_.wait(lock, [&] {
    const Ringing* ringing = ringing_;
    while (ringing != nullptr && ringing->timer != &timer) ringing = ringing->outer;
    return ringing == nullptr;
  });
  return false;
}

bool VirtualClock::wait_until(Time when, ManualResetEvent& waker) {
  return wait(when, waker, nullptr) == WaitEnd::woken;
}

WaitEnd VirtualClock::wait_or_tell(Time when, ManualResetEvent& waker, std::string& why) {
  return wait(when, waker, &why);
}

/// `why`: null if the wait may last for ever.
WaitEnd VirtualClock::wait(Time when, ManualResetEvent& waker, std::string* why) {
  TimerCallback timer(
      [](void* self) noexcept {
        static_cast<ManualResetEvent*>(self)->raise(&ManualResetEvent::due_);
      },
      &waker);
  if (waker.is_awake()) return WaitEnd::woken;
  if (set_timer(timer, when) == TimerState::due) return WaitEnd::due;
  {
    const std::lock_guard lock(waker.mutex_);
    if (!waker.awake_ && !waker.due_ && KnownThread::is_here(*this)) {
      waker.counted_by_ = this;
      waker.leave_ = &leave;
      const std::lock_guard counting(mutex_);
      ++waiting_;
    }
  }
  move_while_all_wait();
  bool has_ended = true;
  {
    std::unique_lock lock(waker.mutex_);
    if (why == nullptr) {
      waker.changed_.wait(lock, [&] { return waker.awake_ || waker.due_; });
    } else if (has_ended = ends(lock, waker); !has_ended) {
      *why = what_is_missing(when);
      if (std::exchange(waker.counted_by_, nullptr) != nullptr) leave(*this);
    }
  }
  cancel_timer(timer);
  const std::lock_guard lock(waker.mutex_);
  const bool is_due = std::exchange(waker.due_, false);
  if (waker.awake_) return WaitEnd::woken;
  return has_ended || is_due ? WaitEnd::due : WaitEnd::never;
}

/// Waits. False: nobody can end the wait. REQUIRES: the lock is that of the event.
bool VirtualClock::ends(std::unique_lock<std::mutex>& lock, ManualResetEvent& waker) {
  const auto is_over = [&] { return waker.awake_ || waker.due_; };
  if (is_over()) return true;
  if (is_only_thread()) return false;
  const Word patience = patience_;
  if (patience == Span::max().count()) return waker.changed_.wait(lock, is_over), true;
  std::uint64_t moves = moves_;
  for (int still = 0; still < looks || may_move(); ++still) {
    if (waker.changed_.wait_for(lock, Span{patience / looks}, is_over)) return true;
    if (moves != moves_) still = -1;
    moves = moves_;
  }
  return false;
}

/// True if a thread may exist that moves the clock. REQUIRES: the calling thread waits.
bool VirtualClock::may_move() const noexcept {
  const std::lock_guard lock(mutex_);
  if (moved_by_itself_ > 0 && !KnownThread::is_here(*this)) return false;
  const bool never_moved = mover_ == std::thread::id{};
  const bool by_others = !never_moved && (several_movers_ || mover_ != std::this_thread::get_id());
  return by_others || waiting_ < known_;
}

std::string VirtualClock::what_is_missing(Time when) const {
  const std::lock_guard lock(mutex_);
  const bool is_known = KnownThread::is_here(*this);
  const std::string until =
      to_word(when) > word_limit ? "for ever" : "until " + std::to_string(to_word(when)) + " us";
  return "the virtual clock stands still at " + std::to_string(to_word(now())) +
         " us, and this thread waits " + until + "; the clock knows " + std::to_string(known_) +
         " threads, of which " + std::to_string(waiting_) + " wait, and " +
         (is_known ? "" : "not ") + "this thread; it " +
         (moved_by_itself_ > 0 ? "moves by itself when all threads that it knows wait"
                               : "does not move by itself") +
         "; allowed: a VirtualClock::AutoAdvance, with a KnownThread in each further thread that "
         "waits, or another thread that moves the clock";
}

void VirtualClock::leave(Clock& clock) noexcept {
  auto& self = static_cast<VirtualClock&>(clock);
  const std::lock_guard lock(self.mutex_);
  --self.waiting_;
}

void VirtualClock::thread_begins() noexcept {
  const std::lock_guard lock(mutex_);
  ++known_;
}

void VirtualClock::thread_ends() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --known_;
  }
  move_while_all_wait();  // this thread may have been the last running one
}

bool VirtualClock::moves_by_itself() const noexcept {
  const std::lock_guard lock(mutex_);
  return moved_by_itself_ > 0 && waiting_ > 0 && waiting_ >= known_;
}

void VirtualClock::move_while_all_wait() noexcept {
  if (!moves_by_itself()) return;
  const std::lock_guard moving(moving_);
  while (moves_by_itself() && step_to_next()) {
  }
}

VirtualClock::AutoAdvance::AutoAdvance(VirtualClock& clock) noexcept
    : clock_(clock), known_(clock) {
  const std::lock_guard lock(clock_.mutex_);
  ++clock_.moved_by_itself_;
}

VirtualClock::AutoAdvance::~AutoAdvance() {
  const std::lock_guard lock(clock_.mutex_);
  --clock_.moved_by_itself_;
}

void VirtualClock::place(std::size_t at, const Node& node) noexcept {
  heap_[at] = node;
  node.timer->place = at + 1;
}

void VirtualClock::sift_up(std::size_t at, const Node& node) noexcept {
  while (at > 0 && node.before(heap_[(at - 1) / 2])) {
    place(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(at, node);
}

void VirtualClock::sift_down(std::size_t at, const Node& node) noexcept {
  for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(node)) break;
    place(at, heap_[child]);
    at = child;
  }
  place(at, node);
}

void VirtualClock::remove(std::size_t at) noexcept {
  heap_[at].timer->place = 0;
  const Node last = heap_.back();
  heap_.pop_back();
  any_timer_.store(!heap_.empty(), std::memory_order_relaxed);
  if (at == heap_.size()) return;
  if (at > 0 && last.before(heap_[(at - 1) / 2])) {
    sift_up(at, last);
  } else {
    sift_down(at, last);
  }
}

}  // namespace sluice
