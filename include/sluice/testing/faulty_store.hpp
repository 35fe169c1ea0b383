// FaultyStore: injects faults into the calls to another store.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/detail/in_flight.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/rng.hpp"
#include "sluice/testing/detail/late_answers.hpp"
#include "sluice/testing/fault_script.hpp"

namespace sluice::testing {

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
  explicit FaultyStore(Store& inner) : StoreWrapper(inner), late_(inner.clock()) {}
  ~FaultyStore() override { end(); }

  /// Affects every call, until heal().
  void fail_all(const Fault& fault) {
    const std::lock_guard lock(mutex_);
    outage_ = fault;
  }
  /// Affects the next calls, one after the other. Replaces an earlier script.
  void play(FaultScript script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  /// Affects the `n`-th call from now, once: 1 is the next. Throws std::invalid_argument if n is 0.
  void fail_call(std::uint64_t n, const Fault& fault) {
    const std::lock_guard lock(mutex_);
    once_ = counted("fail_call", n, fault);
  }
  /// Affects every `n`-th call from now. Throws std::invalid_argument if n is 0.
  void fail_every(std::uint64_t n, const Fault& fault) {
    const std::lock_guard lock(mutex_);
    every_ = counted("fail_every", n, fault);
  }
  /// Affects each call with this probability, by draws from `rng`. Throws std::invalid_argument if
  /// it is not in [0, 1]. REQUIRES: the generator lives until heal() and has no other user.
  void fail_some(double probability, const Fault& fault, Rng& rng) {
    if (!(probability >= 0 && probability <= 1)) {
      throw std::invalid_argument("fail_some: a probability lies in [0, 1], got " +
                                  std::to_string(probability));
    }
    const std::lock_guard lock(mutex_);
    some_ = {probability, fault, &rng};
  }

  /// Drops all wake-ups of Store::notify(), until heal().
  void lose_wake_ups() {
    const std::lock_guard lock(mutex_);
    no_wake_ups_ = true;
  }

  /// Ends all faults; the counts stay. Late answers stay late.
  void heal() {
    const std::lock_guard lock(mutex_);
    forget();
  }
  /// heal(), and resets the counts.
  void reset() {
    const std::lock_guard lock(mutex_);
    forget();
    counts_ = {};
  }

  [[nodiscard]] FaultCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  /// The number of answers that are delayed now.
  [[nodiscard]] std::size_t held_back() const { return late_.size(); }

  void execute(const Plan& plan, Completion done) noexcept override {
    const Fault fault = next();
    if (!fault.is_fault()) return inner().execute(plan, std::move(done));
    if (!fault.executed) return answer(fault, std::move(done), {fault.error, {}, {}, {}});
    std::unique_ptr<sluice::detail::PassedCall> call;
    try {
      call = std::make_unique<Call>(*this, fault);
      call->done = std::move(done);
      inner().execute(plan, in_flight_.pass(call));
    } catch (const std::bad_alloc&) {
      Completion& left = call ? call->done : done;
      left.fail(Errc::queue_full);
    }
  }

  void notify(const Key& key) noexcept override {
    if (!loses_wake_ups()) StoreWrapper::notify(key);
  }

 private:
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

    bool is_next() const {
      constexpr std::uint64_t steps = std::uint64_t{1} << 53;  // exact in a double
      return rng != nullptr &&
             static_cast<double>(rng->next() >> 11) < probability * static_cast<double>(steps);
    }
  };

  class Call final : public sluice::detail::PassedCall {
   public:
    Call(FaultyStore& store, const Fault& fault) : store_(store), fault_(fault) {}
    void answered(const Outcome& outcome) noexcept override {
      Outcome replaced;
      replaced.error = fault_.error;
      // A call that the inner store did not execute keeps its own error.
      const bool lost = fault_.error && !(outcome.error == Failure::not_executed);
      store_.answer(fault_, std::move(done), lost ? replaced : outcome);
    }

   private:
    FaultyStore& store_;
    Fault fault_;
  };

  static Counted counted(const char* what, std::uint64_t n, const Fault& fault) {
    if (n == 0) throw std::invalid_argument(std::string(what) + ": n must be 1 or more, got 0");
    return {n, 0, fault};
  }

  void forget() noexcept {
    outage_.reset();
    script_ = {};
    once_ = every_ = {};
    some_ = {};
    no_wake_ups_ = false;
  }
  [[nodiscard]] bool loses_wake_ups() const noexcept {
    const std::lock_guard lock(mutex_);
    return no_wake_ups_;
  }

  /// Every kind counts and draws for every call, so that one does not shift another.
  Fault next() noexcept {
    const std::lock_guard lock(mutex_);
    const Fault scripted = script_.next();
    const bool once = once_.is_next();
    const bool every = every_.is_next();
    if (every) every_.calls = 0;
    const bool some = some_.is_next();
    const Fault fault = outage_               ? *outage_
                        : scripted.is_fault() ? scripted
                        : once                ? once_.fault
                        : every               ? every_.fault
                        : some                ? some_.fault
                                              : Fault::none();
    ++counts_.calls;
    ++(fault.executed ? counts_.executed : counts_.failed);
    if (fault.executed && fault.error) ++counts_.lost;
    if (fault.delay > Span{0}) ++counts_.delayed;
    return fault;
  }

  void answer(const Fault& fault, Completion done, const Outcome& outcome) noexcept {
    if (fault.delay > Span{0}) return late_.deliver(std::move(done), outcome, fault.delay);
    done(outcome);
  }

  mutable std::mutex mutex_;
  std::optional<Fault> outage_;
  FaultScript script_;
  Counted once_;
  Counted every_;
  Some some_;
  bool no_wake_ups_ = false;
  FaultCounts counts_;
  detail::LateAnswers late_;
  sluice::detail::InFlight in_flight_;  // the last member: no call is delayed after its destruction
};

}  // namespace sluice::testing
