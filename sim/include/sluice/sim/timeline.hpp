// Timeline: runs events in the order of their virtual times, and moves the clock of the rules.
// Threading: everything belongs to the thread that runs the timeline.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "sluice/sim/event_queue.hpp"
#include "sluice/sim/trace.hpp"
#include "sluice/virtual_clock.hpp"

namespace sluice::sim {

/// What a run throws if its time stands still: events cause one another at one instant, as those of
/// a loop that waits for nothing do.
class EndlessInstant : public std::runtime_error {
 public:
  EndlessInstant(Time at, std::uint64_t events);
  [[nodiscard]] Time at() const noexcept { return at_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }  ///< at this instant

 private:
  Time at_;
  std::uint64_t events_;
};

/// Events in virtual time, in whole microseconds. Events run in the order (time, order of
/// scheduling), so that every run is the same. Before an event runs, the clock shows its time: a
/// limiter on a virtual store with the same clock works as in production.
///
///     VirtualClock clock;
///     Timeline timeline{clock};
///     timeline.after<&Worker::wake>(5ms, worker, 42);   // calls worker.wake(42)
///     timeline.run_until(clock.now() + 1h);
///
/// Scheduling is O(1), amortised, and allocates only while the number of pending events is at a new
/// maximum. REQUIRES: the clock outlives the timeline, and nothing else moves it.
class Timeline {
 public:
  /// Called with the context and the value of the event.
  using Action = void (*)(void* context, std::uint64_t value);

  /// The id of a scheduled event; a default-constructed one has none.
  class Timer {
   public:
    Timer() = default;
    /// The Timer of the event with this id(); 0: none.
    explicit Timer(std::uint64_t id) noexcept : id_(id) {}
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    friend bool operator==(const Timer&, const Timer&) = default;

   private:
    std::uint64_t id_ = 0;
  };

  static constexpr std::size_t max_pending = std::size_t{1} << 24;
  static constexpr std::uint64_t standard_instant = 10'000'000;  ///< see limit_instant()

  /// Starts at the time of the clock.
  explicit Timeline(VirtualClock& clock) : clock_(clock), now_(to_word(clock.now())) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  [[nodiscard]] Time now() const noexcept { return to_time(now_); }
  [[nodiscard]] VirtualClock& clock() const noexcept { return clock_; }

  /// Schedules an event. Throws std::out_of_range if `when` is before now() or beyond word_limit,
  /// std::length_error if max_pending events are pending.
  Timer at(Time when, Action action, void* context, std::uint64_t value = 0);

  /// at(), counted from now().
  Timer after(Span delay, Action action, void* context, std::uint64_t value = 0) {
    return at(now() + delay, action, context, value);
  }

  /// The same for a member function: `at<&T::member>(when, object, value)`.
  template <auto Member, class T>
  Timer at(Time when, T& object, std::uint64_t value = 0) {
    return at(when, &call<Member, T>, &object, value);
  }
  template <auto Member, class T>
  Timer after(Span delay, T& object, std::uint64_t value = 0) {
    return at(now() + delay, &call<Member, T>, &object, value);
  }

  /// Schedules an event for now(), after all that are scheduled for now() already: at(now(), ...)
  /// in O(1), without a Timer. Throws std::length_error as at() does.
  void post(Action action, void* context, std::uint64_t value = 0);

  /// Registers an event that never runs, until it is cancelled or drained. Throws as at() does.
  Timer park(Action action, void* context, std::uint64_t value = 0);

  /// Cancels an event. True if it was pending. O(1), amortised.
  bool cancel(Timer timer) noexcept;

  /// From now on, an EndlessInstant is thrown behind the `most`-th event of one instant; at first
  /// `standard_instant`. A run that is continued throws it again behind as many. Throws
  /// std::invalid_argument if `most` is 0.
  void limit_instant(std::uint64_t most);

  /// Runs the next event; false if there is none up to and including `end`. Throws what the event
  /// throws, and EndlessInstant.
  bool step(Time end = to_time(word_limit));

  /// Runs every event up to and including `end`, then sets the clock to `end`. Throws as step(),
  /// and std::out_of_range if `end` is before now().
  void run_until(Time end);

  /// Removes every event and calls `visit(action, context, value)` instead of running it, in the
  /// order in which they would have run, parked ones last. Events scheduled meanwhile are removed,
  /// too. Time stands still.
  template <class Visit>
  void drain(Visit visit) {
    Word time = 0;
    for (Event event{}; take_next(word_limit, event, time) || take_parked(event);) {
      visit(event.action, event.context, event.value);
    }
  }

  /// From now on, events of one instant run in an order drawn from `seed`, the same for the same
  /// seed, which reveals dependences on an unspecified order. post() then costs as much as at().
  /// REQUIRES: no event is pending.
  void shuffle_ties(std::uint64_t seed) noexcept;

  /// Sets a function `fetch(action, context)` that is called for events that run soon and are
  /// probably not in the cache: it may only prefetch what they access. The context itself is
  /// already prefetched.
  void fetch_ahead(void (*fetch)(Action action, void* context)) noexcept { fetch_ = fetch; }

  /// A hash of the run so far: of each event's time and place in the order of scheduling, and of
  /// the notes. Two runs of one program with equal seeds have equal traces, whatever compiled it;
  /// runs that differ in the order, the time or the number of their events have different ones.
  [[nodiscard]] std::uint64_t trace() const noexcept { return trace_.value(); }

  /// Adds to the trace what a model has done, such as a call or its answer, so that runs whose
  /// events are alike but whose decisions are not have different traces.
  void note(std::uint32_t entity, std::uint32_t kind, std::uint64_t value) {
    trace_.fold(now(), entity, kind, value);
    if (observer_ != nullptr) show({now(), true, 0, entity, kind, value, 0});
  }

  /// From now on, `observer(context, step)` is called with each step of the trace; null: none. It
  /// may not use the timeline.
  void observe(TraceObserver observer, void* context) noexcept {
    observer_ = observer;
    observer_context_ = context;
  }

  /// The number of events that have run.
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// The number of events that have not run.
  [[nodiscard]] std::size_t pending() const noexcept {
    return slots_.size() - free_.size() + bare_;
  }

 private:
  struct Event {
    Action action;
    void* context;
    std::uint64_t value;
    std::uint64_t id;  // of the slot; 0: no slot, or free
  };

  // An id is a mark, an order and the index of a slot.
  static constexpr unsigned slot_bits = 24;
  static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;
  static constexpr std::uint64_t parked_mark = std::uint64_t{1} << 63;

  /// The events posted for now: a ring.
  class Posted {
   public:
    void push(const Event& event) {
      if (size_ == ring_.size()) grow();
      ring_[(first_ + size_++) & (ring_.size() - 1)] = event;
    }
    Event pop() noexcept {
      const Event event = ring_[first_];
      first_ = (first_ + 1) & (ring_.size() - 1);
      --size_;
      return event;
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

   private:
    void grow();
    std::vector<Event> ring_;  // a power of two
    std::size_t first_ = 0;
    std::size_t size_ = 0;
  };

  template <auto Member, class T>
  static void call(void* object, std::uint64_t value) {
    (static_cast<T*>(object)->*Member)(value);
  }

  [[nodiscard]] std::uint64_t take_slot(const Event& event);
  void release(std::uint64_t id) noexcept;
  [[nodiscard]] bool is_stale(std::uint64_t id) const noexcept {
    return slots_[id & slot_mask].id != id;
  }
  void drop_stale() noexcept;
  [[nodiscard]] bool take_next(Word end, Event& event, Word& time);
  [[nodiscard]] bool take_queued(Word end, Event& event, Word& time);
  [[nodiscard]] bool take_posted(Event& event) noexcept;
  [[nodiscard]] bool take_parked(Event& event) noexcept;
  void take_live(std::uint64_t id, Event& event) noexcept;
  void fetch_coming() noexcept;
  void move_to(Word time);
  void begin_instant() noexcept;
  [[noreturn]] void end_instant();
  void show(TraceStep step);

  VirtualClock& clock_;
  Word now_;
  bool shuffled_ = false;
  bool instant_done_ = false;  // the queue has no event for now
  std::uint64_t sequence_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t instant_limit_ = standard_instant;
  std::uint64_t instant_end_ = standard_instant;  // of events_, at which an instant is endless
  std::size_t stale_ = 0;  // cancelled events that are still in the queue or the ring
  TraceHash trace_;
  TraceObserver observer_ = nullptr;
  void* observer_context_ = nullptr;
  void (*fetch_)(Action action, void* context) = nullptr;
  std::size_t parked_ = 0;
  std::size_t bare_ = 0;  // posted events without a slot
  EventQueue queue_;
  Posted posted_;  // events scheduled for an instant while it runs: after all of the queue
  std::vector<Event> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sluice::sim
