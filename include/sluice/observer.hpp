// Observer: who is told what limiters decide, who waits, and what goes wrong.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>

#include "sluice/circuit_breaker.hpp"
#include "sluice/decision.hpp"
#include "sluice/plan.hpp"

namespace sluice {

/// What a store has decided for one call. A call of several limits is one event, of the limit that
/// decided: the one that refused, or of a grant the one that has the least left.
struct DecisionEvent {
  const Step& step;          ///< the limit's
  const Decision& decision;  ///< meaningless, but for its step, if there is an error
  std::error_code error{};   ///< why the store could not decide
  std::string_view store{};  ///< ObservedStore::name()
  /// The call waits, and asks again after a refusal: see WaitEvent for its end.
  bool is_of_wait = false;
  /// How long the store took, by its own clock; zero of stores in memory.
  Span took{0};
  /// A ShadowStore let it go ahead: the decision is the refusal, or the error why there is none.
  bool is_shadow = false;
  /// The part of the store that was asked, a node of a Redis cluster: StorePart::index. 0 where
  /// the time is not measured.
  unsigned part = 0;

  /// The name of the limiter, or that of the key if it has one of its own; the name of Gates.
  [[nodiscard]] std::string_view limiter() const noexcept;
  /// For whom it was asked: the tag of the key; of Gates, the scope.
  [[nodiscard]] std::string_view key() const noexcept;
  [[nodiscard]] Word cost() const noexcept;
};

/// A call that waits: acquire() in all its forms, and each try of a Call.
struct WaitEvent {
  enum class Result : std::uint8_t { begun, granted, refused, cancelled, failed };

  const void* call;  ///< the same of the begin and the end of a wait
  Result result = Result::begun;
  std::string_view limiter{};     ///< of the first claim
  std::string_view key{};         ///< ...
  std::string_view waited_for{};  ///< the limiter that refused it last; empty: none, or several
  Span waited{0};                 ///< until now, by the clock of the store
  std::error_code error{};        ///< of a wait that was cancelled or has failed
};

/// A lease of a ConcurrencyLimiter or a FleetShedder.
struct LeaseEvent {
  enum class Change : std::uint8_t {
    granted,
    renewal_failed,  ///< the store has not answered in time, or with an error; it is asked again
    released,
    lost,  ///< it was not renewed in time, or the store knows it no longer
  };
  Change change = Change::granted;
  std::string_view limiter{};
  std::string_view key{};
  Word units = 1;
};

/// Gates::close() or open() of one scope, also by a Call.
struct GateEvent {
  std::string_view gates{};  ///< their name
  std::string_view scope{};  ///< as "account=acme"
  bool is_closed = true;
  Time until{};  ///< closed at least until then, by the clock of the store
};

/// A try of a Call whose function has thrown RateLimited or Transient.
struct FailedTryEvent {
  enum class Reason : std::uint8_t { rate_limited, transient };
  std::string_view limiter{};  ///< of the first claim
  Reason reason = Reason::transient;
  bool is_retried = false;  ///< false: attempts, time or budget of the Call are used up
  int tries = 1;            ///< of this Call until now
  Span pause{0};            ///< until the next one, at least
};

/// A part of a service behind a CircuitBreaker; see observe_breaker().
struct BreakerEvent {
  std::string_view store{};
  unsigned part = 0;
  CircuitBreaker::State from{};
  CircuitBreaker::State to{};
};

/// A connection to a server; see observe_connections() in sluice/redis/redis_store.hpp.
struct ConnectionEvent {
  enum class Change : std::uint8_t { connected, failed, lost, other_server };
  std::string_view store{};
  std::string_view server{};
  Change change = Change::connected;
  std::string_view cause{};  ///< empty if nothing failed
  std::error_code error{};
};

/// Is told what happens on the stores that it observes: see ObservedStore. Override what you want
/// to know. Each function is called by the thread on which it happens, at once, while no lock of
/// the library is held. Keep it short: a call waits for it, and where a store completes calls on a
/// thread of its own, as Redis does on the I/O thread, all its other calls and the renewals of its
/// leases wait as well, and fail after their timeouts. It may use limiters, but must not block
/// there on this store; it must not destroy the store. What it throws is ignored. Views in events
/// are valid during the call.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void decided(const DecisionEvent& /*event*/) {}
  virtual void wait_changed(const WaitEvent& /*event*/) {}
  virtual void lease_changed(const LeaseEvent& /*event*/) {}
  virtual void gate_changed(const GateEvent& /*event*/) {}
  virtual void try_failed(const FailedTryEvent& /*event*/) {}
  virtual void breaker_changed(const BreakerEvent& /*event*/) {}
  virtual void connection_changed(const ConnectionEvent& /*event*/) {}
};

[[nodiscard]] std::string_view to_string(WaitEvent::Result result) noexcept;
[[nodiscard]] std::string_view to_string(FailedTryEvent::Reason reason) noexcept;

/// For the last argument of a CircuitBreaker: tells the observer of each change of its state, as
/// that of the store of this name. REQUIRES: the observer outlives the breaker.
///
///     CircuitBreaker breaker(clock, {}, observe_breaker(metrics, "redis"));
[[nodiscard]] CircuitBreaker::OnPartChange observe_breaker(Observer& observer,
                                                           std::string_view store);

namespace detail {
/// Calls an observer; what it throws is ignored.
void tell(Observer& observer, const DecisionEvent& event) noexcept;
void tell(Observer& observer, const WaitEvent& event) noexcept;
void tell(Observer& observer, const LeaseEvent& event) noexcept;
void tell(Observer& observer, const GateEvent& event) noexcept;
void tell(Observer& observer, const FailedTryEvent& event) noexcept;
}  // namespace detail

}  // namespace sluice
