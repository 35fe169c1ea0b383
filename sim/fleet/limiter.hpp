// Limiter: the limiter of a scenario, whichever it is, for one process. Threading: the thread of
// the World.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/fleet/task.hpp"
#include "sluice/calls/claim.hpp"
#include "sluice/sim/scenario.hpp"
#include "sluice/sluice.hpp"

namespace sluice::sim::scenario {

/// What a limiter has said, and what is held until the end of the call.
struct Admission {
  std::error_code error;
  Decision decision;
  std::variant<std::monostate, Grants, Lease> held;
  std::optional<Reservation> learned;  ///< of a learned rate, which is told of a 429

  /// The lease of a place; null: there is none.
  [[nodiscard]] const Lease* lease();

  /// A grant that the store has charged.
  [[nodiscard]] bool is_charged() const noexcept {
    return decision.allowed && decision.source != Source::policy &&
           decision.source != Source::fallback;
  }
};

class Limiter {
 public:
  /// `share`: of the limit, 1 / share.
  Limiter(Store& store, const char* name, LimiterOptions::Kind kind, const LimiterOptions& options,
          Word share);

  [[nodiscard]] bool is_some() const noexcept {
    return !std::holds_alternative<std::monostate>(any_);
  }

  /// acquire() of the key, and of the gates.
  Task<Admission> acquire(const Key& key, Word cost, Deadline deadline, int priority);
  /// try_acquire().
  Task<Admission> ask(const Key& key, Word cost, bool critical);
  [[nodiscard]] bool has_places() const noexcept {
    return std::holds_alternative<ConcurrencyLimiter>(any_);
  }
  [[nodiscard]] bool learns() const noexcept { return std::holds_alternative<LearnedRate>(any_); }
  /// Tells a shedder how busy the API is.
  Task<> sample(Utilization busy);
  /// Reports a 429, as a Call does: a learned rate falls, and with a span the gate of the API is
  /// closed for the fleet. Returns from when on it is closed; none: it is not, or the store did not
  /// say.
  Task<std::optional<Time>> refused(const Key& key, const Admission& admission,
                                    std::optional<Span> closed);

 private:
  template <class L>
  static Task<Admission> acquire_one(const L& limiter, Key key, Word cost, Deadline deadline,
                                     int priority);
  Task<Admission> acquire_all(std::vector<Claim> claims, Deadline deadline, int priority);

  Store& store_;
  std::variant<std::monostate, TokenBucket, SlidingWindow, FixedWindow, SlidingWindowCounter,
               SlotLock, LearnedRate, ConcurrencyLimiter, UtilizationShedder>
      any_;
  std::optional<Gates> gates_;
  std::vector<Scope> scope_;
};

}  // namespace sluice::sim::scenario
