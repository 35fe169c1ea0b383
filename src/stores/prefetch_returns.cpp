// PrefetchStore: units that are not needed any more go back, also at its end.
#include <algorithm>
#include <new>

#include "src/stores/prefetch_impl.hpp"

namespace sluice {

PrefetchStore::Impl::~Impl() {
  {
    const std::lock_guard open(gate_->mutex);
    gate_->object = nullptr;
  }
  closing_ = true;
  ticker_.reset();
  if (is_forked()) return;
  Queue waiting;
  for (Shard& shard : shards_) {
    give_back(shard, false);
    const std::lock_guard lock(shard.mutex);
    for (auto& [hash, entry] : shard.entries) fail(*entry, Errc::unknown, waiting);
  }
  for (Waiting& one : waiting) one.answer.deliver();
}

void PrefetchStore::Impl::give_back_idle() noexcept {
  bool more = false;
  for (Shard& shard : shards_) {
    give_back(shard, true);
    const std::lock_guard lock(shard.mutex);
    for (const auto& [hash, entry] : shard.entries) {
      more = more || entry->under_way || entry->account.has_lots();
    }
  }
  if (more) ticker_->arm();
}

/// Returns what idle keys hold, or what all keys hold.
void PrefetchStore::Impl::give_back(Shard& shard, bool idle_only) noexcept {
  if (inner_life_.is_over() || clock_life_.is_over()) return;
  std::vector<OwnedPlan> refunds;
  {
    const std::lock_guard lock(shard.mutex);
    for (auto& [hash, entry] : shard.entries) {
      const Time now = read_clock(*entry);
      if (idle_only && (entry->under_way || !entry->account.is_idle(now))) continue;
      give_back(*entry, now, refunds);
    }
  }
  const Completion::Function ignore = [](void*, const Outcome&) noexcept {};
  for (const OwnedPlan& refund : refunds) inner().execute(refund.view(), {ignore, nullptr});
}

/// Takes what an entry holds; without memory, that lapses.
void PrefetchStore::Impl::give_back(Entry& entry, Time now,
                                    std::vector<OwnedPlan>& refunds) noexcept {
  take_credits(entry, now);
  const Step pattern = entry.account.pattern();
  const Word store_now = to_word(entry.account.store_time(now));
  for (prefetch::Lot& lot : entry.account.lots()) {
    const Word units = std::exchange(lot.units, 0);
    if (units == 0) continue;
    const auto step = prefetch::refund_step(pattern, lot.taken, lot.granted, units, lot.at,
                                            std::max(Word{0}, store_now - lot.at));
    if (!step) {
      counts_.lapsed += static_cast<std::uint64_t>(units);
      continue;
    }
    try {
      refunds.emplace_back(*step);
      counts_.returned += static_cast<std::uint64_t>(units);
    } catch (const std::bad_alloc&) {
      counts_.lapsed += static_cast<std::uint64_t>(units);
    }
  }
  entry.account.forget_lots();
}

}  // namespace sluice
