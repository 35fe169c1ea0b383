#include "sim/fleet/limiter.hpp"

#include <algorithm>

#include "sim/scenario/effects.hpp"
#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"

namespace sluice::sim::scenario {
namespace {

UtilizationOptions shedding_of(const LimiterOptions& options) {
  UtilizationOptions shedding;
  shedding.good = options.good;
  shedding.bad = options.bad;
  shedding.grace = options.grace;
  shedding.full_after = options.full_after;
  shedding.rest_after = options.rest_after;
  shedding.max_gap = options.period * 5 / 2;
  return shedding;
}

/// The defaults of LearnedRateOptions, around another initial rate.
LearnedRateOptions learning_of(const Rate& limit, Word share) {
  const auto& [events, per] = limit;
  return {.initial = Quota::per(events, per * share),
          .least = Quota::per(events, per * share * 100),
          .most = Quota::per(events * 100, per * share)};
}

/// At least 1.
Word part(Word whole, Word share) { return std::max<Word>(whole / share, 1); }

}  // namespace

const Lease* Admission::lease() {
  if (auto* const lease = std::get_if<Lease>(&held)) return *lease ? lease : nullptr;
  auto* const grants = std::get_if<Grants>(&held);
  return grants != nullptr && *grants ? &grants->get<Lease>(0) : nullptr;
}

Limiter::Limiter(Store& store, const char* name, LimiterOptions::Kind kind,
                 const LimiterOptions& options, Word share)
    : store_(store) {
  using Kind = LimiterOptions::Kind;
  const auto& [events, per] = options.limit;
  const WindowLimit window{part(events, share), per};
  switch (kind) {
    case Kind::none:
    case Kind::ideal:
      break;
    case Kind::token_bucket:
      any_.emplace<TokenBucket>(
          store, name, Quota::per(events, per * share).burst(part(burst_of(options), share)));
      break;
    case Kind::sliding_window:
      any_.emplace<SlidingWindow>(store, name, std::vector{window});
      break;
    case Kind::fixed_window:
      any_.emplace<FixedWindow>(store, name, window.limit, Calendar::every(per));
      break;
    case Kind::sliding_window_counter:
      any_.emplace<SlidingWindowCounter>(store, name, window);
      break;
    case Kind::slot_lock:
      any_.emplace<SlotLock>(store, name, per * share / events);
      break;
    case Kind::learned_rate:
      any_.emplace<LearnedRate>(store, name, learning_of(options.limit, share));
      break;
    case Kind::concurrency:
      any_.emplace<ConcurrencyLimiter>(store, name, part(burst_of(options), share));
      break;
    case Kind::utilization_shedder:
      any_.emplace<UtilizationShedder>(store, name, shedding_of(options));
      break;
  }
  if (options.gates) {
    GateOptions gating;
    if (learns())
      gating.ramp = gating.spacing = Span{0};  // the rate itself spaces the calls behind a closure
    gates_.emplace(store, "gates", std::vector<std::string>{"api"}, gating);
    scope_.push_back(gates_->scope("api", "all"));
  }
  // The store of one process has no line.
  const bool is_shared = options.scope == LimiterOptions::Scope::shared;
  const WaitQueueOptions queue{.across_processes = options.fleet_order && is_shared};
  std::visit(
      [&queue](const auto& limiter) {
        if constexpr (requires { limiter.set_wait_queue(queue); }) limiter.set_wait_queue(queue);
      },
      any_);
}

Task<Admission> Limiter::acquire(const Key& key, Word cost, Deadline deadline, int priority) {
  return std::visit(
      [&]<class L>(const L& limiter) {
        constexpr bool waits = requires { typename L::Grant; };
        if constexpr (waits) {
          if (!gates_) return acquire_one(limiter, key, cost, deadline, priority);
        }
        std::vector<Claim> claims;
        if constexpr (waits) claims.emplace_back(limiter, key, cost);
        for (const Scope& scope : scope_) claims.emplace_back(*gates_, scope);
        return acquire_all(std::move(claims), deadline, priority);
      },
      any_);
}

/// As acquire_all() of one claim, which would cost more.
template <class L>
Task<Admission> Limiter::acquire_one(const L& limiter, Key key, Word cost, Deadline deadline,
                                     int priority) {
  auto [error, grant] =
      co_await asio::async_acquire(limiter, key, cost, deadline, asio::AsyncWaitOptions{priority},
                                   boost::asio::as_tuple(boost::asio::deferred));
  Admission result;
  result.error = std::error_code(error);
  result.decision = ::sluice::detail::decision_of(grant);
  if constexpr (std::is_same_v<L, LearnedRate>) result.learned = grant;
  if constexpr (std::is_same_v<L, ConcurrencyLimiter>) result.held = std::move(grant);
  co_return result;
}

Task<Admission> Limiter::acquire_all(std::vector<Claim> claims, Deadline deadline, int priority) {
  Admission result;
  if (claims.empty()) {
    result.decision.allowed = true;
    co_return result;
  }
  auto [error, grants] =
      co_await asio::async_acquire(claims, deadline, asio::AsyncWaitOptions{priority},
                                   boost::asio::as_tuple(boost::asio::deferred));
  result.error = std::error_code(error);
  result.decision = grants.decision();
  if (learns() && grants) result.learned = grants.get<Reservation>(0);
  result.held = std::move(grants);
  co_return result;
}

namespace {

template <class L>
concept CountsUnits = std::same_as<L, TokenBucket> || std::same_as<L, SlidingWindow> ||
    std::same_as<L, FixedWindow> || std::same_as<L, SlidingWindowCounter>;

/// try_acquire(), or what comes nearest to it.
template <class L>
Task<Admission> ask_one(const L& limiter, Key key, Word cost, bool critical) {
  Admission result;
  constexpr auto token = boost::asio::as_tuple(boost::asio::deferred);
  if constexpr (CountsUnits<L>) {
    const auto [error, decision] = co_await asio::async_try_acquire(limiter, key, cost, token);
    result.error = std::error_code(error);
    result.decision = decision;
  } else if constexpr (std::same_as<L, LearnedRate>) {
    const auto [error, grant] = co_await asio::async_reserve(limiter, key, cost, token);
    result.error = std::error_code(error);
    result.decision = ::sluice::detail::decision_of(grant);
    result.learned = grant;
  } else if constexpr (std::same_as<L, ConcurrencyLimiter>) {
    auto [error, lease] = co_await asio::async_try_acquire(limiter, key, cost, token);
    result.error = std::error_code(error);
    result.decision = lease.decision();
    result.held = std::move(lease);
  } else if constexpr (std::same_as<L, UtilizationShedder>) {
    const auto& tiers = limiter.options().most_critical_first;
    const auto tier = limiter.tier(critical ? tiers.front() : tiers.back());
    const auto [error, decision] = co_await asio::async_try_acquire(limiter, tier, token);
    result.error = std::error_code(error);
    result.decision = decision;
  } else {
    result.decision.allowed = true;
  }
  co_return result;
}

}  // namespace

Task<Admission> Limiter::ask(const Key& key, Word cost, bool critical) {
  return std::visit([&](const auto& limiter) { return ask_one(limiter, key, cost, critical); },
                    any_);
}

Task<> Limiter::sample(Utilization busy) {
  const auto* const shedder = std::get_if<UtilizationShedder>(&any_);
  if (shedder == nullptr) co_return;
  const Step step = shedder->sample_step(shedder->whole(), busy);
  (void)co_await asio::async_decide(store_, step, boost::asio::as_tuple(boost::asio::deferred));
}

Task<std::optional<Time>> Limiter::refused(const Key& key, const Admission& admission,
                                           std::optional<Span> closed) {
  std::vector<Step> steps;
  if (gates_ && closed) steps.push_back(gates_->close_step(scope_.front(), *closed));
  const bool closes = !steps.empty();
  if (const auto* const rate = std::get_if<LearnedRate>(&any_); rate != nullptr) {
    if (admission.learned) steps.push_back(rate->limited_step(key, *admission.learned));
  }
  if (steps.empty()) co_return std::nullopt;
  const auto [error, decision] =
      co_await asio::async_decide(store_, steps, boost::asio::as_tuple(boost::asio::deferred));
  if (!closes || error || is_degraded(decision.source)) co_return std::nullopt;
  co_return decision.at;
}

}  // namespace sluice::sim::scenario
