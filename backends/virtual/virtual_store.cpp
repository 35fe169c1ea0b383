// The virtual store: a map of states behind a mutex, and a clock that somebody else moves.
#include "sluice/virtual_store.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

namespace sluice {
namespace {

struct Entry {
  StateKind kind{};
  StateWords state{};
  Word idle_at = 0;  // from this instant the state means the same as none
};

class VirtualStore final : public Store {
 public:
  explicit VirtualStore(VirtualClock& clock) : clock_(clock) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    if (const PlanFault fault = find_fault(plan); fault.error) {
      return done.fail(fault.error, fault.step);
    }
    std::array<Verdict, Plan::max_steps> verdicts;
    Time now;
    try {
      const std::lock_guard lock(mutex_);
      now = clock_.now();
      run(plan.steps(), verdicts, to_word(now));
    } catch (const std::bad_alloc&) {
      return done.fail(Errc::store_full);
    }
    conclude(plan.steps(), {verdicts.data(), plan.steps().size()}, now, Source::virtual_store,
             done);
  }

  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  struct Slot {
    std::string key;
    Entry next;
    bool write = false;
  };

  /// Decides every step first, and writes only if none of them refused.
  void run(std::span<const Step> steps, std::span<Verdict> verdicts, Word now) {
    bool all = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      verdicts[i] = decide_step(steps[i], slots_[i], now);
      all = all && verdicts[i].status == Verdict::allowed;
    }
    if (!all) return;
    if (entries_.size() + steps.size() > sweep_at_) sweep(now);
    // Room for every step first: once the first is written, nothing may fail.
    std::array<Entry*, Plan::max_steps> places{};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (slots_[i].write)
        places[i] =
            &entries_.try_emplace(slots_[i].key, Entry{slots_[i].next.kind, {}, 0}).first->second;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (places[i] != nullptr) *places[i] = slots_[i].next;
    }
  }

  Verdict decide_step(const Step& step, Slot& slot, Word now) {
    slot.key.clear();
    append_rendered(slot.key, step.key);
    const auto found = entries_.find(slot.key);
    slot.next = found != entries_.end() ? found->second : Entry{step.operation->kind, {}, 0};
    if (slot.next.kind != step.operation->kind) return Verdict::failed(Errc::wrong_kind);
    const StateWords before = slot.next.state;
    const Verdict verdict = step.operation->apply(slot.next.state, step.args, now);
    slot.write = slot.next.state != before;
    slot.next.idle_at = now + step.operation->keep(step.args);
    return verdict;
  }

  /// Drops what means nothing any more. Doubling the threshold keeps the cost per write constant.
  void sweep(Word now) {
    std::erase_if(entries_, [now](const auto& item) { return item.second.idle_at <= now; });
    sweep_at_ = std::max(first_sweep, entries_.size() * 2);
  }

  static constexpr std::size_t first_sweep = 1024;

  VirtualClock& clock_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::array<Slot, Plan::max_steps> slots_;  // scratch, so that a decision allocates nothing
  std::size_t sweep_at_ = first_sweep;
};

}  // namespace

std::unique_ptr<Store> make_virtual_store(VirtualClock& clock) {
  return std::make_unique<VirtualStore>(clock);
}

}  // namespace sluice
