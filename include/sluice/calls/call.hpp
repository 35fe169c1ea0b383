// Call: a call of an API that stands under limits and gates.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/calls/backoff.hpp"
#include "sluice/calls/claim.hpp"
#include "sluice/calls/errors.hpp"
#include "sluice/calls/first_of.hpp"
#include "sluice/calls/grants.hpp"
#include "sluice/wait_options.hpp"

namespace sluice {

struct BackoffOptions {
  /// The latest time to begin a call, by the store's clock.
  Deadline deadline = Deadline::never();
  /// The time by which a call must have ended, by the store's clock: waits and retries end by then,
  /// the function is told by its stop token, a coroutine is cancelled, and renewers renew its
  /// leases no longer. So a place is held until then and one TTL longer at most, whatever the
  /// function does.
  Deadline end_by = Deadline::never();
  /// The most calls, including the first. 1 or more.
  int attempts = 8;
  /// The waits after failed calls whose answer has no time; see Backoff.
  Span base = std::chrono::seconds{1};
  Span cap = std::chrono::minutes{1};
  Jitter jitter = Jitter::full;
  /// The budget of all calls to the API; null: only `attempts` limits retries.
  RetryBudget* budget = nullptr;
  /// The generator of the waits; null: rng_of() the store's clock.
  Rng* rng = nullptr;
  /// Of the waits: WaitOptions::priority, flow and weight. A Call keeps a copy of the name.
  int priority = 0;
  std::string_view flow{};
  int weight = 1;
};
// So that it may be made inside a co_await, as sluice::asio::AsyncWaitOptions.
static_assert(std::is_trivially_destructible_v<BackoffOptions>);

namespace detail {
/// The options. Throws std::invalid_argument if attempts, base or cap is out of its range.
const BackoffOptions& checked(const BackoffOptions& options);
}  // namespace detail

/// The result of a function that learns its cost during the call.
template <class T>
struct Costed {
  T value;
  Word cost;  ///< in units of the limiter, 0 to LearnedEstimate::max_cost (2^40)
};

/// A call of an API, with all that it stands under: limits, places and gates.
///
///     const Call ask({{requests, "alice"}, {tokens, "alice", Estimate{800}}, {gates, account}},
///                    {.deadline = 30s, .budget = &budget});
///     const std::string text = ask([&] {
///       const auto answer = model.ask(prompt);
///       if (answer.status == 429) throw RateLimited(answer.feedback.wait());
///       return Costed<std::string>{answer.text, answer.tokens};
///     });
///
/// It waits until all claims are granted at one instant (see acquire()), calls the function, and
/// ends as the function does:
/// - It returns: the result is returned, also behind BackoffOptions::end_by. The cost of a Costed
///   result is charged for each Estimate instead of what was estimated. Leases are released. If the
///   cost cannot be charged, the result is in the exception, NotSettled: the store failed, the cost
///   is out of its range, or the function has settled an Estimate itself. In the last two cases,
///   nothing is settled, and no estimate learns.
/// - It throws RateLimited: the API did not serve the call. The gate that it names, by its number
///   among the claims that are gates, is closed for all clients, for the time that the API gives or
///   else a growing, jittered one; all else is refunded. The call then waits again, at its place in
///   the queue, until a try succeeds. Without a gate this call alone pauses.
/// - It throws Transient: what was granted stays charged or is refunded, as Served says, leases are
///   released, and this call alone pauses in the same way before it waits again.
/// - It throws anything else: leases are released, and all else stays charged, because the API may
///   have served the call.
///
/// If a lease was lost meanwhile, LeaseLost is thrown instead of the result, and has it.
///
/// The function may take the grants, a stop token, or both: `[](Grants& granted) { ... }`,
/// `[](const StopToken& stop) { ... }`, `[](Grants& granted, const StopToken& stop) { ... }`. The
/// token is stopped at BackoffOptions::end_by, when a lease of the call is lost, and by the
/// caller's own; on a thread that finds it out, which may be one of a store, of a renewer or of
/// this call. One that ignores it goes on, while its place expires. A function with a token, under
/// a time or a lease, costs a thread for as long as it runs, except on a VirtualClock.
///
/// A coroutine does not compile here: see asio::async_call(). Immutable: one object serves any
/// number of calls and threads. It keeps copies of the limiters. The stores must outlive it.
class Call {
 public:
  /// Throws std::invalid_argument for attempts, base or cap out of their ranges, for 0 or more than
  /// 16 claims, and for claims of several stores.
  explicit Call(std::span<const Claim> claims, const BackoffOptions& options = {})
      : Call(FirstOf(claims), options) {}
  Call(std::initializer_list<Claim> claims, const BackoffOptions& options = {})
      : Call(std::span(claims.begin(), claims.size()), options) {}
  /// Under the claims of the first alternative that is granted. A refusal of the API closes the
  /// gate of that alternative: the next try waits for all of them again.
  explicit Call(FirstOf alternatives, const BackoffOptions& options = {})
      : alternatives_(std::move(alternatives)),
        options_(detail::checked(options)),
        flow_(options.flow) {}

  /// Throws NotGranted if the claims are not granted by the deadline or `end_by`, the last
  /// RateLimited or Transient if the attempts, the budget or the time are used up (the gate is
  /// closed nevertheless), std::system_error if the store failed or there can be no thread,
  /// NotSettled if the cost cannot be charged, LeaseLost, and what else the function throws. `stop`
  /// cancels the waits and stops the token.
  template <class Function>
  auto operator()(Function&& function, const StopToken& stop = {}) const;

  /// One, unless the call was made of several.
  [[nodiscard]] const FirstOf& alternatives() const noexcept { return alternatives_; }
  /// The name of the flow is that of this object.
  [[nodiscard]] BackoffOptions options() const noexcept {
    BackoffOptions options = options_;
    options.flow = flow_;
    return options;
  }

 private:
  FirstOf alternatives_;
  BackoffOptions options_;
  std::string flow_;
};

}  // namespace sluice

#include "sluice/detail/call_tries.hpp"
