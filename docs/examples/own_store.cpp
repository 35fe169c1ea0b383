// A store of your own, and the call that checks that it keeps every promise of a Store.
#include <sluice/extend/conclude.hpp>
#include <sluice/extend/idempotency_record.hpp>
#include <sluice/sluice.hpp>
#include <sluice/testing/conformance.hpp>

#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

using namespace sluice;

/// Keeps the states in a map behind a mutex. It never forgets a key, so it is for few keys only.
class MapStore final : public Store {
 public:
  explicit MapStore(Clock& clock) : clock_(clock) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    if (const PlanFault fault = find_fault(plan); fault.error) {
      return done.fail(fault.error, fault.step);
    }
    Answer answer;
    try {
      const std::lock_guard lock(mutex_);
      const Word now = to_word(clock_.now());
      answer = plan.id() ? decide_once(plan, now) : decide_steps(plan.steps(), now);
    } catch (const std::bad_alloc&) {
      return done.fail(Errc::store_full);
    }
    conclude(plan.steps(), answer.verdicts, answer.output, to_time(answer.at), Source::other, done);
  }

  Clock& clock() noexcept override { return clock_; }

 private:
  struct Entry {
    StateKind kind{};  // none until something is written
    std::vector<Word> words = std::vector<Word>(cell_words);
  };
  struct Answer {
    Word at = 0;
    std::vector<Verdict> verdicts;
    std::vector<Word> output;
    bool allowed = true;
  };

  /// Decides every step first, and changes the states only if every step is allowed.
  Answer decide_steps(std::span<const Step> steps, Word now) {
    Answer answer{now, {}, {}};
    std::vector<Entry*> entries;
    std::vector<Effects> effects(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Operation& operation = *steps[i].operation;
      Entry& entry = states_[render(steps[i].key)];
      const bool fits = entry.kind == StateKind{} || entry.kind == operation.kind;
      answer.verdicts.push_back(
          fits ? run(operation, entry.words, {steps[i].args, steps[i].table}, now, effects[i])
               : Verdict::wrong_kind(entry.kind));
      answer.allowed = answer.allowed && answer.verdicts[i].status == Verdict::allowed;
      for (const Word word : effects[i].output()) answer.output.push_back(word);
      entries.push_back(&entry);
    }
    if (!answer.allowed) return answer;
    // Makes room for all first: once the first is changed, nothing may fail.
    for (std::size_t i = 0; i < steps.size(); ++i) {
      entries[i]->words.resize(std::max(entries[i]->words.size(), effects[i].extent()));
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!effects[i].changes()) continue;
      entries[i]->kind = steps[i].operation->kind;
      effects[i].make(entries[i]->words);
    }
    return answer;
  }

  /// The answer that was given under the plan's id, or a new one, which is kept if it admits.
  Answer decide_once(const Plan& plan, Word now) {
    const auto name = record_name(*plan.id());
    std::vector<Word>& kept =
        records_[render({plan.steps()[0].key.tag(), {name.data(), name.size()}})];
    kept.reserve(IdempotencyRecord::max_words);
    if (kept.empty() || now >= kept[0] + id_kept_for.count()) {
      Answer answer = decide_steps(plan.steps(), now);
      const IdempotencyRecord given(now, plan.steps(), answer.verdicts, answer.output);
      if (answer.allowed) kept.assign(given.words().begin(), given.words().end());
      return answer;
    }
    const IdempotencyRecord record(kept, plan.steps());
    Answer answer{record ? record.at() : now, {}, {}};
    for (std::size_t i = 0; i < plan.steps().size(); ++i) {
      answer.verdicts.push_back(record ? record.verdict(i) : Verdict::failed(Errc::id_reused));
    }
    for (const Word word : record.output()) answer.output.push_back(word);
    return answer;
  }

  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Entry> states_;
  std::map<std::string, std::vector<Word>> records_;
};

int main() {
  VirtualClock clock;
  MapStore store(clock);
  const auto report = testing::check_conformance(store, {.clock = &clock});
  std::cout << report.text();
  return report ? 0 : 1;
}
