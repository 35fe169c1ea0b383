// A timeline runs events in the order of their virtual times and moves the clock that the rules
// see. Threading: everything belongs to the thread that runs the timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/virtual_clock.hpp"

namespace sluice::sim {

/// Events in virtual time, in whole microseconds. Events run in the order (time, order of being
/// scheduled), so that a run is the same always. Before an event runs, the clock shows its time:
/// a limiter on a virtual store with the same clock works as it does in production.
///
///     VirtualClock clock;
///     Timeline timeline{clock};
///     timeline.after<&Worker::wake>(5ms, worker, 42);   // calls worker.wake(42)
///     timeline.run_until(clock.now() + 1h);
///
/// Scheduling is O(log pending) and allocates only while the number of pending events is at a new
/// maximum. REQUIRES: the clock outlives the timeline, and nobody else moves it meanwhile.
class Timeline {
 public:
  /// Receives the context and the value that the event was scheduled with.
  using Action = void (*)(void* context, std::uint64_t value);

  /// Names a scheduled event; a default one names none.
  class Timer {
   public:
    Timer() = default;
    friend bool operator==(const Timer&, const Timer&) = default;

   private:
    friend class Timeline;
    explicit Timer(std::uint64_t id) noexcept : id_(id) {}
    std::uint64_t id_ = 0;
  };

  static constexpr std::size_t max_pending = std::size_t{1} << 24;

  /// Starts at what the clock shows.
  explicit Timeline(VirtualClock& clock) : clock_(clock), now_(to_word(clock.now())) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  [[nodiscard]] Time now() const noexcept { return to_time(now_); }
  [[nodiscard]] VirtualClock& clock() const noexcept { return clock_; }

  /// Schedules an event. Throws std::out_of_range if `when` lies before now() or beyond word_limit,
  /// std::length_error if max_pending events are pending.
  Timer at(Time when, Action action, void* context, std::uint64_t value = 0);

  /// at(), counted from now().
  Timer after(Span delay, Action action, void* context, std::uint64_t value = 0) {
    return at(now() + delay, action, context, value);
  }

  /// The same with a member function: `at<&T::member>(when, object, value)`.
  template <auto Member, class T>
  Timer at(Time when, T& object, std::uint64_t value = 0) {
    return at(when, &call<Member, T>, &object, value);
  }
  template <auto Member, class T>
  Timer after(Span delay, T& object, std::uint64_t value = 0) {
    return at(now() + delay, &call<Member, T>, &object, value);
  }

  /// True if the event was pending and now never runs. O(1), amortised.
  bool cancel(Timer timer);

  /// Runs the next event; false if there is none.
  bool step();

  /// Runs every event up to and including `end`, then stands at `end`. Throws what an event
  /// throws, and std::out_of_range if `end` lies before now().
  void run_until(Time end);

  /// Events that have run.
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// Events that are yet to run.
  [[nodiscard]] std::size_t pending() const noexcept { return slots_.size() - free_.size(); }

 private:
  struct Node {
    Word time;
    std::uint64_t id;  // sequence number, then slot: the order among equal times
    [[nodiscard]] bool before(const Node& other) const noexcept {
      return time != other.time ? time < other.time : id < other.id;
    }
  };
  struct Slot {
    Action action;
    void* context;
    std::uint64_t value;
    std::uint64_t id;  // 0: free
  };

  static constexpr unsigned slot_bits = 24;
  static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;

  template <auto Member, class T>
  static void call(void* object, std::uint64_t value) {
    (static_cast<T*>(object)->*Member)(value);
  }

  [[nodiscard]] bool is_stale(const Node& node) const noexcept {
    return slots_[node.id & slot_mask].id != node.id;
  }
  [[nodiscard]] std::uint32_t take_slot();
  void release(std::uint64_t id) noexcept;
  void drop_stale() noexcept;
  void drop_all_stale();
  void run_top();
  void pop() noexcept;
  void sift_up(std::size_t hole, const Node& node) noexcept;
  void sift_down(std::size_t hole, const Node& node) noexcept;
  void move_to(Word time);

  VirtualClock& clock_;
  Word now_;
  std::uint64_t sequence_ = 0;
  std::uint64_t events_ = 0;
  std::size_t stale_ = 0;   // cancelled events whose node is still in the heap
  std::vector<Node> heap_;  // four children a node
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sluice::sim
