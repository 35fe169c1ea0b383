// The virtual store: a map of states behind a mutex, and a clock that the program moves.
#include "sluice/virtual_store.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/extend/conclude.hpp"
#include "sluice/extend/idempotency_record.hpp"
#include "sluice/extend/subscription.hpp"

namespace sluice {
namespace {

struct Entry {
  StateKind kind{};
  std::vector<Word> state;
  Word idle_at = 0;  // the state expires at this time
};

class VirtualStore final : public Store {
 public:
  explicit VirtualStore(VirtualClock& clock) : clock_(clock), clock_life_(clock.Clock::life()) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    if (clock_life_.is_over()) return done.fail(Errc::shut_down);
    if (const PlanFault fault = find_fault(plan); fault.error) {
      return done.fail(fault.error, fault.step);
    }
    Answer answer;
    try {
      const std::lock_guard lock(mutex_);
      answer.at = to_word(clock_.now());
      if (plan.id()) {
        run_once(plan, answer);
      } else {
        run(plan.steps(), answer);
      }
    } catch (const std::bad_alloc&) {
      return done.fail(Errc::store_full);
    }
    conclude(plan.steps(), {answer.verdicts.data(), plan.steps().size()},
             {answer.output.data(), answer.output_count}, to_time(answer.at), Source::virtual_store,
             done);
  }

  [[nodiscard]] Clock& clock() noexcept override {
    return clock_life_.is_over() ? detail::ended_store().clock() : clock_;
  }
  void notify(const Key& key) noexcept override { watchers_.notify_key(key); }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override {
    return watchers_.subscribe_key(key, std::move(seen));
  }

 private:
  struct Answer {
    Word at = 0;
    std::array<Verdict, Plan::max_steps> verdicts;
    std::array<Word, Plan::max_steps * max_output> output;
    std::size_t output_count = 0;
  };
  struct Slot {
    std::string key;
    Effects effects;
    Word idle_at = 0;
  };

  /// Decides every step first, and writes only if none of them refused. True if it wrote.
  bool run(std::span<const Step> steps, Answer& answer) {
    bool all = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      answer.verdicts[i] = decide_step(steps[i], slots_[i], answer.at);
      for (const Word word : slots_[i].effects.output()) {
        answer.output[answer.output_count++] = word;
      }
      all = all && answer.verdicts[i].status == Verdict::allowed;
    }
    if (all) write(steps, answer.at);
    return all;
  }

  /// The recorded answer for the plan's id, or else a new one, which is recorded.
  void run_once(const Plan& plan, Answer& answer) {
    const auto name = record_name(*plan.id());
    const Key key{plan.steps()[0].key.tag(), {name.data(), name.size()}};
    const std::string rendered = render(key);
    const auto found = entries_.find(rendered);
    const auto is_known = [&](const Entry& entry) {
      return !entry.state.empty() && entry.state[0] + id_kept_for.count() > answer.at;
    };
    if (found != entries_.end() && is_known(found->second)) {
      if (const IdempotencyRecord record{found->second.state, plan.steps()}) {
        return recall(record, plan.steps().size(), answer);
      }
      answer.verdicts.fill(Verdict::failed(Errc::id_reused));
      return;
    }
    // Allocates first: once the plan is written, nothing may fail. Until then the entry is
    // unchanged: a refusal keeps even an expired record, as in every store.
    const auto [at, fresh] =
        entries_.try_emplace(rendered, Entry{StateKind::idempotency_record, {}, 0});
    Entry& place = at->second;
    place.state.reserve(IdempotencyRecord::max_words);
    const Word before =
        std::exchange(place.idle_at, answer.at + id_kept_for.count() + Operation::clock_slack);
    bool wrote = false;
    try {
      wrote = run(plan.steps(), answer);
    } catch (...) {
      place.idle_at = before;
      throw;
    }
    if (!wrote) {
      place.idle_at = before;
      if (fresh) entries_.erase(rendered);
      return;
    }
    const IdempotencyRecord record(answer.at, plan.steps(),
                                   {answer.verdicts.data(), plan.steps().size()},
                                   {answer.output.data(), answer.output_count});
    place.state.assign(record.words().begin(), record.words().end());
  }

  static void recall(const IdempotencyRecord& record, std::size_t steps, Answer& answer) {
    answer.at = record.at();
    for (std::size_t i = 0; i < steps; ++i) answer.verdicts[i] = record.verdict(i);
    std::copy(record.output().begin(), record.output().end(), answer.output.begin());
    answer.output_count = record.output().size();
  }

  Verdict decide_step(const Step& step, Slot& slot, Word now) {
    slot.key.clear();
    append_rendered(slot.key, step.key);
    slot.effects.clear();
    slot.idle_at = now + step.operation->ttl(step.args);
    const auto found = entries_.find(slot.key);
    const bool known = found != entries_.end();
    if (known && found->second.kind != step.operation->kind) {
      for (auto i = output_count(*step.operation, step.table.size()); i > 0; --i) {
        slot.effects.add_output(0);
      }
      return Verdict::wrong_kind(found->second.kind);
    }
    static constexpr StateWords absent{};
    const std::span<const Word> words = known ? found->second.state : std::span<const Word>(absent);
    return sluice::run(*step.operation, words, {step.args, step.table}, now, slot.effects);
  }

  void write(std::span<const Step> steps, Word now) {
    if (entries_.size() + steps.size() > sweep_at_) sweep(now);
    // Allocates for every step first: once the first is written, nothing may fail.
    std::array<Entry*, Plan::max_steps> places{};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Slot& slot = slots_[i];
      if (!slot.effects.changes()) continue;
      const std::size_t extent = std::max(slot.effects.extent(), cell_words);
      const auto found = entries_.find(slot.key);
      if (found == entries_.end()) {  // no entry without a state, wherever memory ends
        Entry made{steps[i].operation->kind, std::vector<Word>(extent), 0};
        places[i] = &entries_.try_emplace(slot.key, std::move(made)).first->second;
        continue;
      }
      places[i] = &found->second;
      if (places[i]->state.size() < extent) places[i]->state.resize(extent);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (places[i] == nullptr) continue;
      slots_[i].effects.make(places[i]->state);
      places[i]->idle_at = std::max(places[i]->idle_at, slots_[i].idle_at);
    }
  }

  /// Drops expired states. Doubling the threshold keeps the amortised cost of a write constant.
  void sweep(Word now) {
    std::erase_if(entries_, [now](const auto& item) { return item.second.idle_at <= now; });
    sweep_at_ = std::max(first_sweep, entries_.size() * 2);
  }

  static constexpr std::size_t first_sweep = 1024;

  VirtualClock& clock_;
  detail::Life::View clock_life_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::array<Slot, Plan::max_steps> slots_;  // reused, so that a decision allocates nothing
  std::size_t sweep_at_ = first_sweep;
  Subscriptions watchers_;
};

}  // namespace

NewStore<Store> make_virtual_store(VirtualClock& clock) {
  return std::unique_ptr<Store>(std::make_unique<VirtualStore>(clock));
}

}  // namespace sluice
