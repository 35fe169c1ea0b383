// FaultyStore: injects faults into the calls to another store. FaultScript: the faults of
// successive calls, as values or as text.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "sluice/detail/arguments.hpp"
#include "sluice/detail/in_flight.hpp"
#include "sluice/error.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/rng.hpp"
#include "sluice/time.hpp"

namespace sluice::testing {

namespace detail {
class LateAnswers;
}  // namespace detail

/// The fault of one call.
struct Fault {
  std::error_code error{};  ///< the caller's error; none: the true answer
  bool executed = true;     ///< whether the inner store executes the call
  Span delay{0};            ///< the delay of the answer, by the store's clock

  /// No fault.
  [[nodiscard]] static Fault none() noexcept { return {}; }
  /// The call fails with `error`, and is not executed.
  [[nodiscard]] static Fault not_executed(std::error_code error = Errc::timed_out) noexcept {
    return {error, false, Span{0}};
  }
  /// The call is executed, and its answer is lost.
  [[nodiscard]] static Fault answer_lost(std::error_code error = Errc::unknown) noexcept {
    return {error, true, Span{0}};
  }
  /// The request is lost: the call is not executed, and the caller cannot know.
  [[nodiscard]] static Fault request_lost() noexcept { return {Errc::unknown, false, Span{0}}; }
  /// The same fault with the answer `span` later.
  [[nodiscard]] Fault late(Span span) const noexcept {
    Fault fault = *this;
    fault.delay = span;
    return fault;
  }

  [[nodiscard]] bool is_fault() const noexcept { return error || delay > Span{0}; }
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// A list of faults for successive calls:
///
///     FaultScript script("ok ok timeout unknown ok*3 delay(50ms)");
///
/// The words are `ok`; the name of an Errc, such as `not_connected`: the call is not executed,
/// except after `unknown`, `server_error` and `protocol_error`, where it is executed and the answer
/// is lost; `timeout` for `timed_out`; `dropped`: Errc::unknown, and the request never arrived;
/// `delay(50ms)`: the true answer 50 ms late; `delay(50ms,unknown)`: another answer that late. `*3`
/// repeats a word three times, `*` for ever. After the last word there are no faults. A plain
/// value.
class FaultScript {
 public:
  /// An empty script: no faults.
  FaultScript() = default;
  /// Parses a script. Throws std::invalid_argument with the column and the reason.
  explicit FaultScript(sluice::detail::TextArg given);

  /// The fault of the next call.
  Fault next() noexcept;

  /// True if no faults are left.
  [[nodiscard]] bool is_over() const noexcept { return place_ == parts_.size(); }

 private:
  struct Part {
    Fault fault;
    std::uint64_t times;
  };

  void add(std::string_view word);

  std::vector<Part> parts_;
  std::size_t place_ = 0;
  std::uint64_t done_ = 0;  // calls of parts_[place_]
};

/// The calls through a FaultyStore since it was made or reset().
struct FaultCounts {
  std::uint64_t calls = 0;     ///< all
  std::uint64_t executed = 0;  ///< passed on, whatever the caller's answer
  std::uint64_t failed = 0;    ///< not passed on
  std::uint64_t lost = 0;      ///< passed on, and the answer replaced
  std::uint64_t delayed = 0;   ///< answered late

  friend bool operator==(const FaultCounts&, const FaultCounts&) = default;
};

/// Passes calls to another store, except those with an injected fault. Works in front of any store,
/// for blocking and asynchronous calls; the inner store rejects plans that can never be executed.
///
///     FaultyStore store(*inner);
///     store.play(FaultScript("ok timeout unknown"));   // the next three calls
///     store.fail_every(10, Fault::answer_lost());
///     store.fail_all(Fault::not_executed(Errc::not_connected));   // an outage, until heal()
///
/// Several kinds of faults may be set at once; the first in this order that affects a call is used:
/// fail_all, play, fail_call, fail_every, fail_some. Each counts calls from when it was set. A
/// timer of the clock delivers a late answer, on the thread that moves the clock. If the clock
/// moves by itself because this thread waits (VirtualClock::AutoAdvance), or has no timers, as the
/// system clock, the calling thread waits. The destructor fails pending calls with Errc::unknown.
/// Thread-safe. REQUIRES: the inner store and its clock outlive it.
class FaultyStore final : public StoreWrapper {
 public:
  explicit FaultyStore(Store& inner);
  ~FaultyStore() override;

  /// Affects every call, until heal().
  void fail_all(const Fault& fault);
  /// Affects the next calls, one after the other. Replaces an earlier script.
  void play(FaultScript script);
  /// Affects the `n`-th call from now, once: 1 is the next. Throws std::invalid_argument if n is 0.
  void fail_call(std::uint64_t n, const Fault& fault);
  /// Affects every `n`-th call from now. Throws std::invalid_argument if n is 0.
  void fail_every(std::uint64_t n, const Fault& fault);
  /// Affects each call with this probability, by draws from `rng`. Throws std::invalid_argument if
  /// it is not in [0, 1]. REQUIRES: the generator lives until heal() and has no other user.
  void fail_some(double probability, const Fault& fault, Rng& rng);
  /// Drops all wake-ups of Store::notify(), until heal().
  void lose_wake_ups();

  /// Ends all faults; the counts stay. Late answers stay late.
  void heal();
  /// heal(), and resets the counts.
  void reset();

  [[nodiscard]] FaultCounts counts() const;
  /// The number of answers that are delayed now.
  [[nodiscard]] std::size_t held_back() const;

  void execute(const Plan& plan, Completion done) noexcept override;
  void notify(const Key& key) noexcept override;

 private:
  class Call;
  struct Counted {
    std::uint64_t n = 0;  // 0: none
    std::uint64_t calls = 0;
    Fault fault{};

    bool is_next() noexcept { return n != 0 && ++calls == n; }
  };
  struct Some {
    double probability = 0;
    Fault fault{};
    Rng* rng = nullptr;

    [[nodiscard]] bool is_next() const;
  };

  void forget() noexcept;
  Fault next() noexcept;
  void answer(const Fault& fault, Completion done, const Outcome& outcome) noexcept;

  mutable std::mutex mutex_;
  std::optional<Fault> outage_;
  FaultScript script_;
  Counted once_;
  Counted every_;
  Some some_;
  bool no_wake_ups_ = false;
  FaultCounts counts_;
  std::unique_ptr<detail::LateAnswers> late_;
  sluice::detail::InFlight in_flight_;  // the last member: no call is delayed after its destruction
};

}  // namespace sluice::testing
