// The memory store: two tables of slots, and the paths of a decision.
//
// A key in the table is decided without a lock (engine.cpp, rule.cpp). Only a new key that
// finds every slot of its sequence owned takes a short lock (overflow.cpp). A plan of several steps
// locks its slots (plan.cpp), and a state in a block is used by the thread that has locked its slot
// (rule.cpp). Any thread may call any member.
#pragma once

#include <mutex>

#include "backends/memory/blocks.hpp"
#include "backends/memory/locked_slot.hpp"
#include "backends/memory/names.hpp"
#include "backends/memory/spin.hpp"
#include "backends/memory/table.hpp"
#include "sluice/detail/blocked_call.hpp"
#include "sluice/extend/binding.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/memory_store.hpp"
#include "src/core/state_file.hpp"

namespace sluice::memory {

/// Counters of many threads: a cache line for each few threads.
struct alignas(64) Counters {
  std::atomic<std::uint64_t> evicted_idle{0};
  std::atomic<std::uint64_t> overflowed{0};
  std::atomic<std::uint64_t> rejected{0};
  std::atomic<std::uint64_t> conflicts{0};
  std::atomic<std::uint64_t> waits{0};
};

class Engine final : public MemoryStore {
 public:
  explicit Engine(const MemoryOptions& options);

  void execute(const Plan& plan, Completion done) noexcept override;
  Decision decide_one(const Step& step, std::error_code& error) noexcept override;
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  [[nodiscard]] Clock& clock() noexcept override {
    return clock_life_.is_over() ? detail::ended_store().clock() : *clock_;
  }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }
  void bind(const Key& key, Binding& binding) noexcept override;
  void notify(const Key& key) noexcept override { watchers_.notify_key(key); }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override {
    return watchers_.subscribe_key(key, std::move(seen));
  }
  [[nodiscard]] MemoryStats stats() const noexcept override;
  std::size_t copy_states(std::vector<detail::SavedState>& states) override;
  void restore_state(const detail::SavedState& state, const Key& key, Word now,
                     LoadedStates& counts) noexcept override;

  /// The bytes that a store with these options allocates.
  static std::size_t bytes_for(const MemoryOptions& options) noexcept;

 private:
  using Hash = std::array<std::uint64_t, 2>;
  friend class PlanRun;

  /// The initial state of a new owner of a slot.
  struct Seed {
    StateWords state{};
    IdleTick idle_at = 0;
  };

  /// The result of one attempt to decide in a slot. elsewhere: another path must decide.
  enum class Try : std::uint8_t { decided, unsettled, conflict, elsewhere };

  /// REQUIRES: the verdict is allowed or refused.
  [[nodiscard]] static Decision decision_of(const Step& step, const Verdict& verdict,
                                            Word at) noexcept {
    return {.allowed = verdict.status == Verdict::allowed,
            .source = Source::memory,
            .limit = step.args[0],
            .remaining = verdict.remaining,
            .retry_after = Span{verdict.retry_after},
            .reset_after = Span{verdict.reset_after},
            .at = to_time(at)};
  }

  /// The destination of the answer to one step: the caller's decision.
  struct Answer {
    Decision& decision;
    Word status = 0;

    void put(const Step& step, const Verdict& verdict, Word at) noexcept {
      status = verdict.status;
      if (status < 0) return fail_as(verdict);
      decision = decision_of(step, verdict, at);
    }
    void fail(Errc code) noexcept { fail_as(Verdict::failed(code)); }
    void fail_as(const Verdict& verdict) noexcept {
      status = verdict.status;
      decision.part = static_cast<std::uint16_t>(verdict.remaining);  // see Verdict::wrong_kind()
    }
  };

  [[nodiscard]] Hash hash(const Key& key) const noexcept;
  [[nodiscard]] SlotId id_of(const Step& step) const noexcept;

  // engine.cpp
  /// One step by a rule with apply().
  [[nodiscard]] static bool is_fast(const Plan& plan) noexcept {
    return plan.steps().size() == 1 && plan.steps().front().operation->apply != nullptr &&
           !plan.id();
  }
  [[nodiscard]] bool is_bound(const Step& step) const noexcept {
    return step.binding != nullptr && step.binding->owner == this;
  }
  /// Where a bound key probably is, or null. REQUIRES, here and below: is_bound(step).
  [[nodiscard]] static Slot* slot_of(const Step& step) noexcept {
    return static_cast<Slot*>(
        step.binding->slot.load(std::memory_order_relaxed));  // a hint: see bind()
  }
  /// Word by word, which the compiler does not do by itself. If the hash was just written, a load
  /// across both stores stalls until they have left the processor's store buffer, after all that
  /// the last decision waits for; and the prefetch depends on it.
  [[nodiscard]] static SlotId bound_id(const Step& step, StateKind kind) noexcept {
    const auto word = [&step](std::size_t i) noexcept {
      return __atomic_load_n(&step.binding->hash[i], __ATOMIC_RELAXED);  // see bind()
    };
    return {{word(0), word(1)}, kind};
  }
  void execute_other(const Plan& plan, Completion& done) noexcept;
  [[nodiscard]] std::error_code error_of(Word status) const noexcept {
    return status >= 0 ? no_error_ : make_error_code(static_cast<Errc>(-status));
  }
  void decide(const Step& step, const SlotId& id, Word now, Answer& answer) noexcept;
  bool decide_in(Slot& slot, const Step& step, const SlotId& id, Word now, Answer& answer) noexcept;
  bool decide_on_mismatch(Slot& slot, const Pair& identity, const Step& step, const SlotId& id,
                          Word now, Answer& answer) noexcept;
  bool change_kind(Slot& slot, const SlotId& id, Word now) noexcept;
  static void decide_absent(const Step& step, const StateWords& state, Word now,
                            Answer& answer) noexcept;
  Pair await(const Slot& slot, Pair before) const noexcept;
  static void remember(Binding& binding, Slot& slot) noexcept {
    if (binding.slot.load(std::memory_order_relaxed) != &slot) {  // a hint: see bind()
      binding.slot.store(&slot, std::memory_order_relaxed);       // a hint: see bind()
    }
  }

  // decide_one.cpp
  template <Word lag>
  Try attempt(Slot& slot, const Step& step, const SlotId& id, Word now, Verdict& verdict) noexcept;
  Decision acquire_coarse(const Step& step, std::error_code& error) noexcept;
  [[gnu::noinline]] Decision acquire_fine(const Step& step, std::error_code& error) noexcept;
  [[gnu::noinline]] Decision acquire_named(const Step& step, std::error_code& error) noexcept;
  [[gnu::noinline]] Decision decide_after(Try tried, const Step& step, std::uint64_t hash_low,
                                          std::uint64_t hash_high, Word now,
                                          std::error_code& error) noexcept;

  // batch.cpp
  static constexpr std::size_t ahead = 32;  // decisions whose memory is prefetched together
  [[nodiscard]] SlotId prefetch(const Step& step) const noexcept;
  Word decide_at(const Step& step, const SlotId& id, Word now, Decision& decision) noexcept;
  void deliver(const Step& step, const SlotId& id, Word now, Completion& done) noexcept;
  void execute_run(std::span<const Plan> plans, std::span<Completion> done) noexcept;

  // rule.cpp
  /// The result of a rule with effects on a state at a time.
  struct RuleResult {
    Verdict verdict;
    Word at = 0;
    Effects effects;

    void decide(const Step& step, std::span<const Word> words) noexcept;
    [[nodiscard]] bool changes() const noexcept {
      return verdict.status == Verdict::allowed && effects.changes();
    }
    [[nodiscard]] IdleTick kept_until(const Engine& engine, const Step& step) const noexcept {
      return engine.tick_after(at + step.operation->ttl(step.args));
    }
  };
  void execute_rule(const Plan& plan, Completion& done) noexcept;
  void decide_rule(const Step& step, const SlotId& id, RuleResult& result) noexcept;
  Slot* claim(const Step& step, const SlotId& id, bool room, RuleResult& result) noexcept;
  bool rule_in_cell(Slot& slot, const Step& step, const SlotId& id, RuleResult& result) noexcept;
  bool rule_in_block(Slot& slot, const Step& step, const SlotId& id, RuleResult& result) noexcept;
  bool rule_on_mismatch(Slot& slot, const Pair& identity, const SlotId& id,
                        RuleResult& result) noexcept;
  [[nodiscard]] bool secure(LockedSlot& locked_slot, std::size_t words, Word now) noexcept;
  bool reclaim(Word now) noexcept;

  // plan.cpp
  void execute_plan(const Plan& plan, Completion& done) noexcept;

  // overflow.cpp
  void decide_overflow(const Step& step, const SlotId& id, Word now, Answer& answer) noexcept;
  void decide_shared(const Step& step, const SlotId& shared, Word now, Answer& answer) noexcept;
  [[nodiscard]] SlotId shared_id(const Step& step, const SlotId& id) const noexcept;
  [[nodiscard]] Seed first_state(const Step& step, const SlotId& id, Word now) const noexcept;
  [[nodiscard]] Seed seed(const SlotId& shared, Word now) const noexcept;
  Slot* find_shared(const SlotId& shared, Word now) noexcept;
  Slot* take_over(const SlotId& id, const Seed& first, Word now) noexcept;
  [[nodiscard]] std::size_t stripe_of(const SlotId& id) const noexcept {
    return id.hash[1] % stripes_.size();
  }

  // states.cpp
  [[nodiscard]] bool copy_state(std::size_t index, Word now, std::span<Word> buffer,
                                detail::SavedState& state);
  [[nodiscard]] std::string name_in(std::size_t index, std::uint64_t hash) const;
  void restore_in(LockedSlot& mine, const detail::SavedState& state, Word now,
                  LoadedStates& counts) noexcept;
  /// Notes whose state is in a slot that was claimed.
  void name(const Slot& slot, const SlotId& id, const Key& key) noexcept {
    if (names_) [[unlikely]] {
      names_->put(table_.index_of(slot), slot, id, key);
    }
  }

  // Times in quarters of a second since the store was made.
  [[nodiscard]] std::int64_t tick(Word now) const noexcept {
    const Word since = now - start_;
    return since >= 0 ? since / tick_us : -((tick_us - 1 - since) / tick_us);
  }
  /// The last time of a tick; of "never", it is 34 years ahead.
  [[nodiscard]] Word instant(IdleTick tick) const noexcept { return start_ + Word{tick} * tick_us; }
  [[nodiscard]] IdleTick tick_after(Word instant) const noexcept {
    const Word since = instant - start_;
    if (since <= 0) return 0;
    return since > Word{never - 1} * tick_us
               ? never
               : static_cast<IdleTick>((since + tick_us - 1) / tick_us);
  }
  /// How long a new owner keeps its slot before its first write.
  [[nodiscard]] IdleTick soon(Word now) const noexcept { return tick_after(now + 2 * tick_us); }

  Counters& counters() const noexcept;
  void count(std::atomic<std::uint64_t> Counters::*what, std::uint64_t by = 1) const noexcept {
    (counters().*what).fetch_add(by, std::memory_order_relaxed);  // statistics
  }
  void count(const ContentionStats& contention) const noexcept {
    if (contention.conflicts != 0) count(&Counters::conflicts, contention.conflicts);
    if (contention.waits != 0) count(&Counters::waits, contention.waits);
  }

  Table table_;
  Table overflow_;
  Blocks blocks_;
  std::unique_ptr<Names> names_;  // of the slots of table_, or null
  Clock* clock_;
  detail::Life::View clock_life_;  // of a given clock
  std::unique_ptr<Clock> own_clock_;
  bool coarse_;
  Word start_;
  Hash secret_;
  std::error_code no_error_;           // copied, because making one calls into the standard library
  SpinLock overflow_lock_;             // for slots of a full overflow table; taken after a stripe
  SpinLock reclaim_lock_;              // for freeing blocks
  std::size_t reclaim_at_ = 0;         // guarded by reclaim_lock_
  std::array<SpinLock, 256> stripes_;  // for slots of a full sequence, by key
  mutable std::array<Counters, 8> counters_;
  Subscriptions watchers_;
};

}  // namespace sluice::memory
