// The memory store: two tables of slots, and the ways through them.
//
// A key that is known is decided without a lock (memory_store.cpp, rule.cpp). A new key that finds
// every slot of its sequence owned takes a short lock (crowded.cpp), and so does nobody else; a
// plan of several steps holds the slots that it uses (plan.cpp), and a state that lies in a block
// is used by who holds its slot (rule.cpp). Any thread may call any member.
#pragma once

#include <mutex>

#include "backends/memory/blocks.hpp"
#include "backends/memory/held.hpp"
#include "backends/memory/reading.hpp"
#include "backends/memory/spin.hpp"
#include "backends/memory/table.hpp"
#include "sluice/memory_store.hpp"

namespace sluice::memory {

/// Counters that many threads add to: a line each for a few of them.
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
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override;
  [[nodiscard]] Clock& clock() noexcept override { return *clock_; }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }
  void bind(const Key& key, Binding& binding) noexcept override;
  void notify(const Key& key) noexcept override { watchers_.notify_key(key); }
  [[nodiscard]] std::unique_ptr<Watch> watch(const Key& key,
                                             std::function<void()> seen) noexcept override {
    return watchers_.watch_key(key, std::move(seen));
  }
  [[nodiscard]] MemoryStats stats() const noexcept override;

  /// What a store with these options allocates.
  static std::size_t bytes_for(const MemoryOptions& options) noexcept;

 private:
  using Hash = std::array<std::uint64_t, 2>;
  friend class PlanRun;

  /// The state that a new owner of a slot starts with.
  struct Seed {
    StateWords state{};
    Quarter idle_at = 0;
  };

  /// How a try to decide by what was seen in a slot ended; unread if nothing fit was seen.
  enum class Try : std::uint8_t { unread, decided, unsettled, conflict };

  /// Where the answer to one step goes: straight into the caller's decision.
  struct Answer {
    Decision& decision;
    Word status = 0;

    void put(const Step& step, const Verdict& verdict, Word at) noexcept {
      status = verdict.status;
      if (status < 0) return;
      decision.allowed = verdict.status == Verdict::allowed;
      decision.source = Source::memory;
      decision.limit = step.args[0];
      decision.remaining = verdict.remaining;
      decision.retry_after = Span{verdict.retry_after};
      decision.reset_after = Span{verdict.reset_after};
      decision.at = to_time(at);
    }
    void fail(Errc code) noexcept { status = -static_cast<Word>(code); }
  };

  [[nodiscard]] Hash hash(const Key& key) const noexcept;
  [[nodiscard]] Mark mark_of(const Step& step) const noexcept;

  // memory_store.cpp
  /// One step by a rule in its fastest form.
  [[nodiscard]] static bool is_fast(const Plan& plan) noexcept {
    return plan.steps().size() == 1 && plan.steps().front().operation->apply != nullptr &&
           !plan.id();
  }
  [[nodiscard]] bool is_bound(const Step& step) const noexcept {
    return step.binding != nullptr && step.binding->owner == this;
  }
  void execute_other(const Plan& plan, Completion& done) noexcept;
  void execute_elsewhere(const Plan& plan, Completion& done) noexcept;
  Word decide_one(const Step& step, Decision& decision) noexcept;
  void hurry(const Step& step, const Decision& decision) const noexcept;
  Word decide_again(Slot& slot, const Step& step, Reading reading, Try first,
                    Decision& decision) noexcept;
  Word decide_named(const Step& step, Decision& decision) noexcept;
  [[gnu::noinline]] Word decide_further(const Step& step, Decision& decision, Hash hash,
                                        Word now) noexcept;
  [[nodiscard]] std::error_code error_of(Word status) const noexcept {
    return status >= 0 ? no_error_ : make_error_code(static_cast<Errc>(-status));
  }
  void decide(const Step& step, const Mark& mark, Reading& reading, Answer& answer) noexcept;
  bool decide_in(Slot& slot, const Step& step, const Mark& mark, Reading& reading,
                 Answer& answer) noexcept;
  Try try_in(Slot& slot, Slot::Snapshot& seen, const Step& step, const Mark& mark,
             const Reading& reading, Answer& answer) noexcept;
  bool decide_strange(Slot& slot, const Pair& identity, const Step& step, const Mark& mark,
                      const Reading& reading, Answer& answer) noexcept;
  bool change_kind(Slot& slot, const Mark& mark, Word now) noexcept;
  static void decide_absent(const Step& step, const StateWords& state, const Reading& reading,
                            Answer& answer) noexcept;
  Pair await(const Slot& slot, Pair before) const noexcept;
  static void remember(Binding& binding, Slot& slot) noexcept {
    if (binding.slot.load(std::memory_order_relaxed) != &slot) {  // a guess: see bind()
      binding.slot.store(&slot, std::memory_order_relaxed);       // a guess: see bind()
    }
  }

  // batch.cpp
  static constexpr std::size_t ahead = 32;  // decisions whose memory is asked for at once
  [[nodiscard]] Mark prefetch(const Step& step) const noexcept;
  Word decide_at(const Step& step, const Mark& mark, Reading& reading, Decision& decision) noexcept;
  void execute_run(std::span<const Plan> plans, std::span<Completion> done) noexcept;

  // rule.cpp
  /// What a rule that leaves effects made of a state at an instant.
  struct Ruling {
    Verdict verdict;
    Word at = 0;
    Effects effects;

    void decide(const Step& step, std::span<const Word> words) noexcept;
    [[nodiscard]] bool changes() const noexcept {
      return verdict.status == Verdict::allowed && effects.changes();
    }
    [[nodiscard]] Quarter kept_until(const Engine& engine, const Step& step) const noexcept {
      return engine.quarter_after(at + step.operation->keep(step.args));
    }
  };
  void execute_rule(const Plan& plan, Completion& done) noexcept;
  void decide_rule(const Step& step, const Mark& mark, Ruling& ruling) noexcept;
  Slot* claim(const Step& step, const Mark& mark, bool room, Ruling& ruling) noexcept;
  bool rule_in_cell(Slot& slot, const Step& step, const Mark& mark, Ruling& ruling) noexcept;
  bool rule_in_block(Slot& slot, const Step& step, const Mark& mark, Ruling& ruling) noexcept;
  bool rule_strange(Slot& slot, const Pair& identity, const Mark& mark, Ruling& ruling) noexcept;
  [[nodiscard]] bool secure(Held& held, std::size_t words, Word now) noexcept;
  bool reclaim(Word now) noexcept;

  // plan.cpp
  void execute_plan(const Plan& plan, Completion& done) noexcept;

  // crowded.cpp
  void decide_crowded(const Step& step, const Mark& mark, Reading& reading,
                      Answer& answer) noexcept;
  void decide_shared(const Step& step, const Mark& shared, Reading& reading,
                     Answer& answer) noexcept;
  [[nodiscard]] Mark shared_mark(const Step& step, const Mark& mark) const noexcept;
  [[nodiscard]] Seed first_state(const Step& step, const Mark& mark, Word now) const noexcept;
  [[nodiscard]] Seed seed(const Mark& shared, Word now) const noexcept;
  Slot* find_shared(const Mark& shared, Word now) noexcept;
  Slot* take_over(const Mark& mark, const Seed& first, Word now) noexcept;
  [[nodiscard]] std::size_t stripe_of(const Mark& mark) const noexcept {
    return mark.hash[1] % stripes_.size();
  }

  // Instants in quarters of a second since the store was made.
  [[nodiscard]] std::int64_t quarter(Word now) const noexcept {
    const Word since = now - start_;
    return since >= 0 ? since / quarter_us : -((quarter_us - 1 - since) / quarter_us);
  }
  /// The last instant of a quarter, also of "never", which is then 34 years ahead.
  [[nodiscard]] Word instant(Quarter quarter) const noexcept {
    return start_ + Word{quarter} * quarter_us;
  }
  [[nodiscard]] Quarter quarter_after(Word instant) const noexcept {
    const Word since = instant - start_;
    if (since <= 0) return 0;
    return since > Word{never - 1} * quarter_us
               ? never
               : static_cast<Quarter>((since + quarter_us - 1) / quarter_us);
  }
  /// How long a new owner keeps its slot before it has written a state.
  [[nodiscard]] Quarter soon(Word now) const noexcept {
    return quarter_after(now + 2 * quarter_us);
  }

  Counters& counters() const noexcept;
  void count(std::atomic<std::uint64_t> Counters::*what, std::uint64_t by = 1) const noexcept {
    (counters().*what).fetch_add(by, std::memory_order_relaxed);  // a figure
  }
  void count(const Meetings& meetings) const noexcept {
    if (meetings.conflicts != 0) count(&Counters::conflicts, meetings.conflicts);
    if (meetings.waits != 0) count(&Counters::waits, meetings.waits);
  }

  Table table_;
  Table overflow_;
  Blocks blocks_;
  Clock* clock_;
  std::unique_ptr<Clock> own_clock_;
  bool coarse_;
  Word start_;
  Hash secret_;
  std::error_code no_error_;    // copied, since making one calls into the standard library
  SpinLock overflow_lock_;      // who gets a slot of a full overflow table; taken after a stripe
  SpinLock reclaim_lock_;       // who looks for blocks to free
  std::size_t reclaim_at_ = 0;  // guarded by reclaim_lock_
  std::array<SpinLock, 256> stripes_;  // who gets a slot of a full sequence, by key
  mutable std::array<Counters, 8> counters_;
  Watchers watchers_;
};

}  // namespace sluice::memory
