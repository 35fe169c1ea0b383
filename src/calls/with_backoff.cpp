#include "sluice/calls/with_backoff.hpp"

#include <stdexcept>
#include <string>

namespace sluice::detail {

BackoffCall::BackoffCall(const Gates& gates, std::span<const Scope> scopes,
                         const BackoffOptions& options)
    : gates_(gates),
      scopes_(scopes),
      options_(options),
      deadline_(options.deadline.on(gates.store().clock())),
      backoff_(options.base, options.cap, options.jitter) {
  if (options.attempts < 1) {
    throw std::invalid_argument("BackoffOptions::attempts must be 1 or more, got " +
                                std::to_string(options.attempts));
  }
  if (scopes.empty()) throw std::invalid_argument("with_backoff: there must be a scope");
  if (options_.budget != nullptr) options_.budget->note_call();
}

void BackoffCall::passed(const Decision& decision) const {
  if (!decision) throw NotGranted("\"" + gates_.name() + "\" did not open in time", decision);
}

BackoffCall::Closure BackoffCall::closure(const RateLimited& refusal) {
  if (refusal.scope() >= scopes_.size()) {
    throw std::out_of_range("RateLimited: scope " + std::to_string(refusal.scope()) + " of " +
                            std::to_string(scopes_.size()));
  }
  Rng& rng =
      options_.rng != nullptr ? *options_.rng : rng_of(gates_.store().clock(), DrawFor::backoff);
  // Drawn in any case, so that waits also grow after refusals with a time.
  const Span drawn = backoff_.next(rng);
  return {scopes_[refusal.scope()], refusal.retry_after().value_or(drawn)};
}

bool BackoffCall::may_retry() {
  if (calls_ >= options_.attempts) return false;
  ++calls_;
  return options_.budget == nullptr || options_.budget->take_retry();
}

}  // namespace sluice::detail
