// PrefetchStore: bound keys, of which every thread has a credit of its own.
#include <algorithm>

#include "sluice/detail/blocked_call.hpp"
#include "sluice/extend/binding.hpp"
#include "sluice/rules/token_bucket.hpp"
#include "src/stores/prefetch_impl.hpp"

namespace sluice {

void PrefetchStore::Impl::bind(const Key& key, Binding& binding) const noexcept {
  if (!is_valid(key)) return;
  binding.owner = &owner_;
  binding.hash = hash_of(key);
}

/// The entry of a bound key, once it has been used.
PrefetchStore::Impl::Entry* PrefetchStore::Impl::bound_entry(const Step& step) const noexcept {
  if (step.binding == nullptr || step.binding->owner != &owner_) return nullptr;
  // Acquire: the entry was made by another thread.
  return static_cast<Entry*>(step.binding->slot.load(std::memory_order_acquire));
}

/// Answers from the calling thread's credit; false: there is not enough.
bool PrefetchStore::Impl::spend_credit(const Plan& plan, Completion& done) noexcept {
  const auto steps = plan.steps();
  if (steps.size() != 1 || steps[0].operation != &token_bucket_acquire) return false;
  const Step& step = steps[0];
  Entry* const entry = bound_entry(step);
  if (entry == nullptr || plan.id() || plan.timeout() < Span{0} || is_forked()) return false;
  const Word cost = step.args[4];
  if (cost < 1 || step.args[0] != entry->credit->limit) return false;
  prefetch::Credit& credit = entry->credit->threads;
  const Time now = inner().clock().coarse_now();
  const Word left = credit.spend(cost, now);
  if (left < 0) return false;
  const auto fill_in = [&](Decision& decision) {
    decision.allowed = true;
    decision.source = Source::prefetched;
    decision.limit = step.args[0];
    const Word elsewhere = credit.remaining.load(std::memory_order_relaxed);  // for information
    decision.remaining = std::min(step.args[0], left + elsewhere);
    const Word clear_at = credit.clear_at.load(std::memory_order_relaxed);  // for information
    decision.reset_after = Span{std::max(Word{0}, clear_at - to_word(now))};
    decision.at = now + Span{credit.ahead.load(std::memory_order_relaxed)};  // the same
  };
  if (auto* const blocked = detail::BlockedCall::of(done)) {
    fill_in(*blocked->decision);
    blocked->finish(done, {});
    return true;
  }
  Answer answer;
  fill_in(answer.decision);
  answer.done = std::move(done);
  answer.deliver();
  return true;
}

/// After a grant to a bound key: the thread gets a part of what is held. REQUIRES: the lock.
void PrefetchStore::Impl::give_credit(Entry& entry, const Step& step, Time now) noexcept {
  const bool bound = step.binding != nullptr && step.binding->owner == &owner_;
  // By the coarse clock, a shorter time may always be over.
  const bool lasts = options_.hold > 2 * Clock::coarse_lag;
  if (!bound || !lasts || step.operation != &token_bucket_acquire) return;
  if (!entry.credit) {
    entry.credit.reset(new (std::nothrow) Bound{step.args[0], {}});
    if (!entry.credit) return;
  }
  if (entry.credit->limit != step.args[0]) return;
  // Release: the entry and its credit, for bound_entry().
  step.binding->slot.store(&entry, std::memory_order_release);
  prefetch::Credit& credit = entry.credit->threads;
  const prefetch::Account::Part part = entry.account.take_part(prefetch::Credit::max_units, now);
  if (part.units == 0) return;
  credit.remaining.store(entry.account.remaining(now), std::memory_order_relaxed);      // as above
  credit.clear_at.store(to_word(entry.account.clear_at()), std::memory_order_relaxed);  // as above
  const Time seen = entry.account.store_time(now);
  credit.ahead.store((seen - now).count(), std::memory_order_relaxed);  // as above
  counts_.local += static_cast<std::uint64_t>(part.units);
  const prefetch::Credit::Units before = credit.give({part.units, part.until}, now);
  counts_.lapsed +=
      static_cast<std::uint64_t>(entry.account.put_back(before.count, before.until, now));
}

/// Takes the credit of all threads back. REQUIRES: the lock.
void PrefetchStore::Impl::take_credits(Entry& entry, Time now) noexcept {
  if (!entry.credit) return;
  for (std::size_t i = 0; i < prefetch::Credit::cells; ++i) {
    const prefetch::Credit::Units units = entry.credit->threads.take(i);
    counts_.lapsed +=
        static_cast<std::uint64_t>(entry.account.put_back(units.count, units.until, now));
  }
}

}  // namespace sluice
