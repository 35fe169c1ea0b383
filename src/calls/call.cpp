// The tries of a Call.
#include "sluice/calls/call.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sluice/calls/with_backoff.hpp"
#include "sluice/decide.hpp"
#include "sluice/detail/uncancelled.hpp"
#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/extend/operation.hpp"
#include "sluice/limiters/learned_rate.hpp"
#include "sluice/observer.hpp"
#include "src/calls/leases_of.hpp"
#include "src/waiting/acquire.hpp"

namespace sluice::detail {
namespace {

/// Waits for an instant of the clock; a stop request ends the wait.
void wait_until(Clock& clock, Time when, const StopToken& stop) {
  const Uncancelled uncancelled;
  ManualResetEvent stopped;
  const auto wake = [&stopped] { stopped.wake(); };
  const StopCallback<decltype(wake)> wakes(stop, wake);
  std::string why;
  switch (clock.wait_or_tell(when, stopped, why)) {
    case WaitEnd::woken:
      throw std::system_error(make_error_code(Errc::cancelled));
    case WaitEnd::never:
      throw std::system_error(make_error_code(Errc::would_deadlock), why);
    case WaitEnd::due:
      return;
  }
}

Store& store_of(const FirstOf& alternatives) {
  return alternatives.claims(0).front().limit().store();
}

bool has_estimate(const FirstOf& alternatives) {
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    for (const Claim& claim : alternatives.claims(i)) {
      if (claim.is_estimate()) return true;
    }
  }
  return false;
}

bool is_gate(const Claim& claim) { return claim.limit().close_step(Span{0}).has_value(); }

}  // namespace

const BackoffOptions& checked(const BackoffOptions& options) {
  (void)Backoff(options.base, options.cap, options.jitter);
  if (options.attempts >= 1) return options;
  throw std::invalid_argument("BackoffOptions::attempts must be 1 or more, got " +
                              std::to_string(options.attempts));
}

CallTries::CallTries(const FirstOf& alternatives, const BackoffOptions& options, bool settles)
    : alternatives_(alternatives),
      options_(options),
      end_(options.end_by.on(store_of(alternatives).clock())),
      deadline_(std::min(end_, options.deadline.on(store().clock()))),
      backoff_(options.base, options.cap, options.jitter) {
  if (settles && !has_estimate(alternatives)) {
    throw std::invalid_argument("Call: the function reports a cost, but no claim is an Estimate");
  }
  if (options_.budget != nullptr) options_.budget->note_call();
}

void CallTries::begin() const {
  Decision late;
  late.at = store().clock().now();
  if (late.at < end_) return;
  throw NotGranted("\"" + claims().front().limit().name() +
                       "\" was not asked: the call would begin at BackoffOptions::end_by or later",
                   late);
}

void CallTries::granted(const Grants& grants) {
  alternative_ = grants.alternative();
  if (grants) {
    arrival_ = grants.arrival();
    for_each_lease(grants, [this](Lease& lease, const ClaimedLimit&) { lease.renew_until(end_); });
    return;
  }
  const Claim& claim = claims()[std::min<std::size_t>(grants.decision().step, claims().size() - 1)];
  const bool is_never = grants.decision().retry_after == Decision::never;
  throw NotGranted("\"" + claim.limit().name() + "\" " +
                       (is_never         ? "has a limit of 0, and grants no call"
                        : is_gate(claim) ? "did not open in time"
                                         : "did not grant the call in time"),
                   grants.decision());
}

std::size_t CallTries::next_estimate(std::size_t claim) const noexcept {
  while (claim < claims().size() && !claims()[claim].is_estimate()) ++claim;
  return claim;
}

std::error_code settle_error(std::error_code error, const Decision& settled) noexcept {
  // The window of the grant has ended: there is nothing to settle.
  if (error == make_error_code(Errc::outside_calendar)) return {};
  // A policy has answered an additional charge, which the store has not made.
  if (!error && is_degraded(settled.source)) return Errc::circuit_open;
  return error;
}

std::string text_of_loss(const Grants& grants) {
  std::string text;
  for_each_lease(grants, [&](const Lease& lease, const ClaimedLimit& limit) {
    if (text.empty() && lease.lost()) {
      text = "\"" + limit.name() + "\": the lease was lost during the call";
    }
  });
  return text;
}

std::optional<std::system_error> store_failure(const std::exception_ptr& thrown) {
  if (!thrown) return {};
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& why) {
    return why;
  }
}

std::exception_ptr settled(const CallTries& tries, Grants& grants, Cost actual) {
  try {
    tries.settle(grants, actual);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

Span CallTries::pause_after(const Retriable& failure) {
  Rng& rng = options_.rng != nullptr ? *options_.rng : rng_of(store().clock(), DrawFor::backoff);
  // Drawn in any case, so that waits also grow after failures with a time.
  const Span drawn = std::max(backoff_.next(rng), Span{1});
  return failure.retry_after().value_or(drawn);
}

CallTries::Failed CallTries::failed(const RateLimited& refusal) {
  Failed result{.limited = true, .pause = pause_after(refusal)};
  std::size_t gates = 0;
  bool learns = false;
  for (const Claim& claim : claims()) {
    learns = learns || claim.limit().learns();
    if (!is_gate(claim)) continue;
    if (gates++ == refusal.scope()) result.close = claim.limit().close_step(result.pause);
  }
  if (!result.close && (gates > 0 || refusal.scope() > 0)) {
    throw std::out_of_range("RateLimited: scope " + std::to_string(refusal.scope()) + " of " +
                            std::to_string(gates));
  }
  if (learns && !refusal.retry_after()) {  // the rate that falls says when the next try is due
    result.close.reset();
    result.pause = Span{0};
  }
  decide_retry(result);
  return result;
}

CallTries::Failed CallTries::failed(const Transient& failure) {
  Failed result{.refunds = failure.served() == Served::no, .pause = pause_after(failure)};
  decide_retry(result);
  return result;
}

void CallTries::decide_retry(Failed& failed) {
  const int tries = tries_;
  failed.retries = may_retry();
  Observer* const observer = store().observer();
  if (observer == nullptr) return;
  using Reason = FailedTryEvent::Reason;
  tell(*observer,
       FailedTryEvent{.limiter = claims().front().limit().name(),
                      .reason = failed.limited ? Reason::rate_limited : Reason::transient,
                      .is_retried = failed.retries,
                      .tries = tries,
                      .pause = failed.pause});
}

std::vector<Step> CallTries::reports(const Failed& failed, const Grants& grants) {
  std::vector<Step> steps;
  if (failed.close) steps.push_back(*failed.close);
  if (!failed.limited) return steps;
  for (const auto& limit : grants.limits()) {
    if (const auto step = limit->limited_step()) steps.push_back(*step);
  }
  return steps;
}

std::system_error CallTries::failed_report(const std::error_code& error, const Step& first) {
  const bool closes = first.operation->kind == StateKind::gate;
  return closes ? failed_call({Gates::type_name, "close"}, error, first)
                : failed_call({LearnedRate::type_name, "limited"}, error, first);
}

bool CallTries::may_retry() {
  if (tries_ >= options_.attempts || store().clock().now() >= end_) return false;
  ++tries_;
  return options_.budget == nullptr || options_.budget->take_retry();
}

Grants CallTries::acquire(const StopToken& stop) {
  begin();
  const WaitOptions waits{options_.priority, options_.flow, options_.weight, stop};
  const CallName name{"sluice", "acquire"};
  Grants grants = alternatives_.size() == 1
                      ? block(name, limits_of(claims()), deadline_, waits, arrival_)
                      : block(name, alternatives_.limits(), deadline_, waits, arrival_);
  granted(grants);
  return grants;
}

void CallTries::learn(const Grants& grants, Cost actual) const {
  // What every limiter can charge.
  static_assert(LearnedEstimate::max_cost <= LearnedRateRule::max_cost);
  constexpr Word most = LearnedEstimate::max_cost;
  const CallName call{"Grants", "settle"};
  if (actual.value() < 0 || actual.value() > most) {
    throw failed_with(call, Errc::invalid_cost, not_allowed("cost", actual.value(), 0, most));
  }
  for (auto i = next_estimate(0); i < claims().size(); i = next_estimate(i + 1)) {
    const ClaimedLimit& limit = *grants.limits()[i];
    if (!limit.is_settled()) continue;
    throw failed_with(call, Errc::invalid_argument,
                      "\"" + limit.name() + "\" was settled before, by the function");
  }
  for (const Claim& claim : claims()) claim.learn(actual);
}

void CallTries::settle(Grants& grants, Cost actual) const {
  learn(grants, actual);
  for (auto i = next_estimate(0); i < claims().size(); i = next_estimate(i + 1)) {
    grants.settle(i, actual);
  }
}

bool CallTries::retry_after(const Failed& failed, Grants grants, const StopToken& stop) const {
  std::error_code error;
  std::optional<std::system_error> untold;
  {
    const std::vector<Step> steps = reports(failed, grants);
    if (!steps.empty()) (void)decide(store(), steps, error);
    if (error) untold = failed_report(error, steps.front());
  }
  if (failed.refunds) grants.refund();
  grants = {};  // its leases are free during the pause
  if (untold) throw *untold;
  if (failed.close || !failed.retries) return failed.retries;
  Clock& clock = store().clock();
  const Time now = clock.now();
  if (failed.pause > deadline_ - now) return false;
  wait_until(clock, now + failed.pause, stop);
  return true;
}

std::vector<Claim> gate_claims(const Gates& gates, std::span<const Scope> scopes) {
  if (scopes.empty()) throw std::invalid_argument("with_backoff: there must be a scope");
  std::vector<Claim> claims;
  for (const Scope& scope : scopes) claims.emplace_back(gates, scope);
  return claims;
}

}  // namespace sluice::detail
