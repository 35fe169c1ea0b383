// A store of one's own, and the line that checks that it keeps every promise of a Store.
#include <sluice/sluice.hpp>
#include <sluice/testing/conformance.hpp>

#include <iostream>
#include <map>
#include <mutex>
#include <string>

using namespace sluice;

/// Keeps the states in a map behind a mutex. It never forgets a key, so it is for few keys only.
class MapStore final : public Store {
 public:
  explicit MapStore(Clock& clock) : clock_(clock) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    if (const PlanFault fault = find_fault(plan); fault.error) {
      return done.fail(fault.error, fault.step);
    }
    const auto steps = plan.steps();
    std::array<Verdict, Plan::max_steps> verdicts;
    Time now;
    try {
      const std::lock_guard lock(mutex_);
      now = clock_.now();
      decide_all(steps, verdicts, to_word(now));
    } catch (const std::bad_alloc&) {
      return done.fail(Errc::store_full);
    }
    conclude(steps, {verdicts.data(), steps.size()}, now, Source::other, done);
  }

  Clock& clock() noexcept override { return clock_; }

 private:
  struct Entry {
    StateKind kind{};
    StateWords state{};
  };

  /// Decides on copies of the states, and writes them back only if every step is allowed.
  void decide_all(std::span<const Step> steps, std::span<Verdict> verdicts, Word now) {
    std::array<Entry*, Plan::max_steps> entries{};
    std::array<StateWords, Plan::max_steps> next{};
    bool all = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Operation& operation = *steps[i].operation;
      entries[i] =
          &states_.try_emplace(render(steps[i].key), Entry{operation.kind, {}}).first->second;
      next[i] = entries[i]->state;
      verdicts[i] = entries[i]->kind == operation.kind
                        ? operation.apply(next[i], steps[i].args, now)
                        : Verdict::failed(Errc::wrong_kind);
      all = all && verdicts[i].status == Verdict::allowed;
    }
    for (std::size_t i = 0; all && i < steps.size(); ++i) entries[i]->state = next[i];
  }

  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Entry> states_;
};

int main() {
  VirtualClock clock;
  MapStore store(clock);
  const auto report = testing::check_conformance(store, {.clock = &clock});
  std::cout << report.text();
  return report ? 0 : 1;
}
