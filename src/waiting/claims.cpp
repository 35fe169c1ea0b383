// The claims of one call.
#include <atomic>
#include <new>
#include <stdexcept>
#include <string>

#include "sluice/calls/claim.hpp"
#include "sluice/detail/limit_of.hpp"
#include "sluice/limiters/waitable.hpp"
#include "src/util/quoted.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {
namespace {

/// Counts refunds, and completes after the last one.
struct RefundCount {
  RefundCount(std::size_t refunds, Completion completion) noexcept
      : left(refunds), done(std::move(completion)) {}

  static void refunded(void* self, const Outcome&) noexcept {
    auto* const all = static_cast<RefundCount*>(self);
    // Acquire and release: the last one deletes what the others have used.
    if (all->left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::unique_ptr<RefundCount> owned(all);
    owned->done(Outcome{});
  }

  std::atomic<std::size_t> left;
  Completion done;
};

/// Delivers the decision on a refund.
struct Deliver {
  void operator()(const std::error_code& error, const Decision& decision) noexcept {
    done({error, decision, {}, {}});
  }
  Completion done;
};

/// The mutex is compared as well: stores that have ended are all the same.
bool share_store(const ClaimedLimit& a, const ClaimedLimit& b) {
  return &a.store() == &b.store() && &a.queues()->mutex() == &b.queues()->mutex();
}

}  // namespace

ClaimedLimits fresh_limits(const ClaimedLimits& limits) {
  ClaimedLimits fresh;
  fresh.reserve(limits.size());
  for (const auto& limit : limits) fresh.push_back(limit->fresh(limit->units()));
  return fresh;
}

Alternatives fresh_limits(const Alternatives& alternatives) {
  Alternatives fresh{{}, alternatives.order};
  for (const ClaimedLimits& limits : alternatives.limits) {
    fresh.limits.push_back(fresh_limits(limits));
  }
  return fresh;
}

void refund_all(std::span<const std::unique_ptr<ClaimedLimit>> limits, Completion done) noexcept {
  auto* const count = new (std::nothrow) RefundCount(limits.size(), std::move(done));
  if (count == nullptr) return;  // `done` was not moved, and fails
  for (const auto& limit : limits) limit->refund({&RefundCount::refunded, count});
}

void ClaimedLimit::execute_refund(const Step& step, Completion done) const noexcept try {
  Running<Settle, Deliver>::start(detail::give_back<>(WakeUp(queues().get(), key()), store(), step),
                                  std::move(done));
} catch (const std::bad_alloc&) {  // the first waiter asks again by its own timer
  if (done) store().execute(step, std::move(done));
}

bool ClaimedLimit::is_constant() const noexcept {
  return !condition() && detail::is_constant(Plan(step()));
}

std::system_error ClaimedLimit::failed(const CallName& call, const std::error_code& error) const {
  return failed_call(call, error, step());
}

void require_one_store(std::span<const Claim> claims) {
  if (claims.empty() || claims.size() > Plan::max_steps) {
    throw std::invalid_argument(std::to_string(claims.size()) + " claims, allowed 1 to " +
                                std::to_string(Plan::max_steps));
  }
  std::size_t steps = 0;
  for (const Claim& claim : claims) steps += claim.limit().step_count();
  if (steps > Plan::max_steps) {
    throw std::invalid_argument(std::to_string(claims.size()) + " claims of " +
                                std::to_string(steps) + " steps, allowed 1 to " +
                                std::to_string(Plan::max_steps) + " steps");
  }
  const ClaimedLimit& first = claims.front().limit();
  for (const Claim& claim : claims) {
    if (share_store(claim.limit(), first)) continue;
    throw std::invalid_argument("claims of one call must be on one store; " +
                                quoted(claim.limit().name()) + " is on another than " +
                                quoted(first.name()));
  }
}

ClaimedLimits limits_of(std::span<const Claim> claims) {
  require_one_store(claims);
  ClaimedLimits limits;
  limits.reserve(claims.size());
  for (const Claim& claim : claims) limits.push_back(claim.fresh());
  return limits;
}

}  // namespace sluice::detail
