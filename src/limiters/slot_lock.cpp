// The slot lock: construction, permits, calls, and how one waits for it.
#include "sluice/limiters/slot_lock.hpp"

#include <algorithm>
#include <stdexcept>

#include "src/limiters/or_throw.hpp"
#include "src/waiting/claim_of.hpp"

namespace sluice {
namespace {

std::invalid_argument out_of_range(const char* what, Span least, Span most, Span given) {
  return std::invalid_argument(std::string(what) + " must be " + std::to_string(least.count()) +
                               " to " + std::to_string(most.count()) + " us, got " +
                               std::to_string(given.count()) + " us");
}

/// The time before a call, if its answer does not have it.
Time before(Store& store) noexcept {
  return store.stamps_by_clock() ? Time{} : store.clock().now();
}

}  // namespace

SlotLock::SlotLock(const StoreHandle& store, detail::TextArg name, Span interval,
                   SlotLockOptions options)
    : Waitable(store.address()),
      store_(store),
      name_(detail::valid_name(name)),
      interval_(interval),
      slack_(options.slack.value_or(interval)) {
  if (interval < Span{1} || interval > max_interval) {
    throw out_of_range("the interval between slots", Span{1}, max_interval, interval);
  }
  if (slack_ < Span{0} || slack_ > interval) {
    throw out_of_range("the slack of a slot", Span{0}, interval, slack_);
  }
}

SlotPermit SlotLock::granted(const char* verb, const Key& key, Span max_wait) const {
  const Time asked = before(*store_);
  return permit(decide_as(verb, acquire_step(key, max_wait)), asked);
}

SlotLock::Verbs::Reserve SlotLock::Verbs::reserve(const SlotLock& lock, const Key& key,
                                                  Span max_wait) {
  return {lock.store(), lock.acquire_step(key, max_wait), {&lock, before(lock.store())}};
}

SlotPermit SlotLock::reserve(const KeyArg& key, SpanArg max_wait,
                             std::error_code& error) const noexcept {
  return detail::run(Verbs::reserve(*this, key, max_wait), error);
}

Step SlotLock::reset_step(const Key& key) const noexcept {
  return {&slot_lock_reset, named(key), {1}};
}

SlotPermit SlotLock::permit(const Decision& decision, Time asked) const noexcept {
  SlotPermit permit{decision, {}, {}};
  if (!decision.allowed) return permit;
  // The store's `now` was between these two readings.
  const bool stamped = store_->stamps_by_clock();
  permit.not_before = (stamped ? decision.at : store_->clock().now()) + decision.retry_after;
  permit.not_after = (stamped ? decision.at : asked) + decision.retry_after + slack_;
  return permit;
}

Word SlotLock::cancel(const KeyArg& key, const SlotPermit& permit,
                      std::error_code& error) const noexcept {
  return detail::run(Verbs::cancel(*this, key, permit), error);
}

Word SlotLock::cancel(const KeyArg& key, const SlotPermit& permit) const {
  return detail::or_throw(
      {type_name, "cancel"}, [&] { return cancel_step(key, permit); },
      [&](auto& error) { return cancel(key, permit, error); });
}

void SlotLock::reset(const KeyArg& key, std::error_code& error) const noexcept {
  detail::run(Verbs::reset(*this, key), error);
}

void SlotLock::reset(const KeyArg& key) const {
  detail::or_throw(
      {type_name, "reset"}, [&] { return reset_step(key); },
      [&](auto& error) { return detail::run(Verbs::reset(*this, key), error); });
}

struct SlotLock::Verbs::Claimed final : detail::ClaimOf<SlotLock, Claimed> {
  using ClaimOf::ClaimOf;

  Key key() const noexcept override { return limiter().named(own_key()); }
  const std::shared_ptr<detail::WaitQueues>& queues() const noexcept override {
    return limiter().queues();
  }
  Step step() const noexcept override { return limiter().acquire_step(own_key()); }
  Span time_for(Word /*first*/, Word further) const noexcept override {
    const Span interval = limiter().interval();
    return interval * std::min(further, word_limit / interval.count());
  }
  Grant grant_of(const Outcome& outcome, Time asked) const noexcept {
    return limiter().permit(outcome.decision, asked);
  }
  void refund_grant(const Grant& grant, Completion done) noexcept {
    execute_refund(limiter().cancel_step(own_key(), grant), std::move(done));
  }
};

std::unique_ptr<detail::ClaimedLimit> SlotLock::Verbs::claim(const SlotLock& lock, const Key& key,
                                                             Cost /*cost*/) {
  return std::make_unique<Claimed>(lock, key, 1);
}

SlotPermit SlotLock::acquire(const KeyArg& key, const Deadline& deadline,
                             const WaitOptions& options) const {
  return detail::acquire_one(*this, key, 1, deadline, options);
}
SlotPermit SlotLock::acquire(const KeyArg& key, const Deadline& deadline,
                             const WaitOptions& options, std::error_code& error) const noexcept {
  return detail::acquire_one(*this, key, 1, deadline, options, error);
}

}  // namespace sluice
