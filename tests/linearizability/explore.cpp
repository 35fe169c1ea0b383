// The memory store under every order of a few short threads: each history must have an order that
// the kernels explain. Prints how many orders each scenario has; a violation is printed with its
// history, and ends the program with 1. The store is compiled with the explorer's atomics.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "backends/memory/engine.hpp"
#include "sluice/virtual_clock.hpp"
#include "tests/linearizability/explorer.hpp"
#include "tests/linearizability/history.hpp"
#include "tests/memory/rules.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr Word day = 86'400'000'000;
constexpr std::size_t unit = memory::Blocks::unit_bytes;

const Quota quota = Quota::per_hour(9);

Step acquire(std::string_view key, Word cost = 1) {
  Step step{&token_bucket_acquire, {key, "b"}, {}};
  detail::pack(step.args, TokenBucketRule::args(quota, cost));
  return step;
}
Step peek(std::string_view key) {
  Step step = acquire(key, 0);
  step.operation = &token_bucket_peek;
  return step;
}
/// Eight keys fill the table; what was asked with `moment` means nothing any more two minutes
/// later.
constexpr Word moment = 1'000;
Step push(std::string_view key, Word units, Word keep_us = day) {
  return asks(log_push, {key, "l"}, units, 40, keep_us);
}
Step pop(std::string_view key) { return asks(log_pop, {key, "l"}, 1, 40, day); }
Step add(std::string_view key, Word units, Word keep_us = day) {
  return asks(counter_add, {key, "c"}, units, 40, keep_us);
}

using Plans = std::vector<AskedPlan>;

AskedPlan call(std::vector<Step> steps) {
  AskedPlan result;
  result.steps = std::move(steps);
  return result;
}
AskedPlan call(const Step& step) { return call(std::vector<Step>{step}); }
AskedPlan once(std::uint64_t id, std::vector<Step> steps) {
  AskedPlan result = call(std::move(steps));
  result.id = RequestId{0, id};
  return result;
}

struct Scenario {
  const char* name;
  std::size_t preemptions;
  std::size_t blocks;  // so many of the smallest
  Plans before;        // then two minutes pass
  std::vector<Plans> threads;
  Plans after;
  bool may_be_full = false;
};

std::vector<Scenario> scenarios() {
  // Six keys that stay, so that two slots are left for the scenario.
  const auto filled = [](Plans more) {
    static const std::array<std::string, 6> names{"s0", "s1", "s2", "s3", "s4", "s5"};
    for (const auto& name : names) more.push_back(call(add(name, 1)));
    return more;
  };
  // A refused plan leaves slots without a state.
  const auto claimed = [](std::vector<Step> steps) {
    steps.push_back(pop("claimed"));
    return call(std::move(steps));
  };
  return {
      {"a known bucket",
       3,
       0,
       {call(acquire("a"))},
       {{call(acquire("a", 2)), call(acquire("a"))}, {call(acquire("a", 4)), call(peek("a"))}},
       {call(peek("a"))}},
      {"a bucket that refuses",
       3,
       0,
       {call(acquire("a", 5))},
       {{call(acquire("a", 2)), call(acquire("a", 3))}, {call(acquire("a", 4))}},
       {call(peek("a"))}},
      {"a new key",
       2,
       0,
       {},
       {{call(acquire("a"))}, {call(acquire("a", 2))}, {call(peek("a"))}},
       {call(peek("a"))}},
      {"two new keys for one empty slot",
       2,
       0,
       filled({call(acquire("x"))}),
       {{call(add("a", 1))}, {call(add("a", 2))}, {call(peek("x"))}},
       {call(add("a", 0))}},
      {"a cell by a rule with effects",
       3,
       0,
       {call(add("a", 1))},
       {{call(add("a", 2)), call(add("a", 3))}, {call(add("a", 4)), call(add("a", 0))}},
       {call(add("a", 0))}},
      {"a state in a block",
       3,
       64,
       {call(push("a", 2))},
       {{call(push("a", 1)), call(pop("a"))}, {call(push("a", 4)), call(push("a", 0))}},
       {call(push("a", 0))}},
      {"a new state in a block",
       2,
       64,
       {},
       {{call(push("a", 1))}, {call(push("a", 2))}, {call(push("a", 0))}},
       {call(push("a", 0))}},
      {"a slot that changes hands, absent states",
       2,
       0,
       filled({claimed({add("a", 1)})}),
       {{call(add("a", 1)), call(add("a", 1))}, {call(add("b", 2)), call(add("b", 1))}},
       {call(add("a", 0)), call(add("b", 0))}},
      {"a slot that changes hands, idle states",
       2,
       0,
       filled({call(add("a", 7, moment)), call(add("x", 7, moment))}),
       {{call(add("a", 1, moment)), call(add("a", 1, moment))},
        {call(add("b", 2)), call(add("b", 1))}},
       {call(add("a", 0, moment)), call(add("b", 0))}},
      {"a slot that changes hands, a bucket",
       2,
       0,
       filled({
           claimed({acquire("a")}),
       }),
       {{call(acquire("a")), call(acquire("a"))}, {call(acquire("b", 2)), call(acquire("b"))}},
       {call(peek("a")), call(peek("b"))}},
      {"a slot that changes hands, blocks",
       2,
       64,
       filled({call(push("a", 7, moment)), call(push("x", 7, moment))}),
       {{call(push("a", 1, moment)), call(push("a", 1, moment))},
        {call(push("b", 2)), call(push("b", 1))}},
       {call(push("a", 0, moment)), call(push("b", 0))}},
      {"an idle block that another key needs",
       3,
       2,
       {call(push("a", 7, moment))},
       {{call(push("a", 2, moment)), call(push("a", 1, moment))}, {call(push("b", 7))}},
       {call(push("a", 0, moment)), call(push("b", 0))},
       true},
      {"an idle block that another key needs, which grows",
       3,
       4,
       {call(push("a", 3, moment))},
       {{call(push("a", 2, moment)), call(push("a", 9, moment))}, {call(push("b", 7))}},
       {call(push("a", 0, moment)), call(push("b", 0))},
       true},
      {"plans in opposite orders",
       3,
       64,
       {call(acquire("a")), call(push("b", 1))},
       {{call({acquire("a"), push("b", 1)})}, {call({push("b", 2), acquire("a", 2)})}},
       {call(peek("a")), call(push("b", 0))}},
      {"a plan and its parts",
       3,
       64,
       {},
       {{call({acquire("a"), add("b", 1), push("c", 1)})}, {call(add("b", 2)), call(peek("a"))}},
       {call(peek("a")), call(add("b", 0)), call(push("c", 0))}},
      {"a plan that is refused and its parts",
       2,
       64,
       {call(acquire("a"))},
       {{call({acquire("a"), push("c", 1), acquire("b", 9)})},
        {call(acquire("b")), call(push("c", 2))}},
       {call(peek("a")), call(peek("b")), call(push("c", 0))}},
      {"plans and a slot that changes hands",
       2,
       64,
       filled({call(add("x", 7, moment)), call(push("y", 7, moment))}),
       {{call({add("x", 1, moment), push("y", 1, moment)})}, {call(add("z", 1))}},
       {call(add("x", 0, moment))},
       true},
      {"one id, twice",
       3,
       64,
       {},
       {{once(1, {acquire("a")})}, {once(1, {acquire("a")})}},
       {call(peek("a"))}},
      {"one id, twice, on a block",
       2,
       64,
       {},
       {{once(1, {push("a", 1)})}, {once(1, {push("a", 1)}), call(push("a", 0))}},
       {call(push("a", 0))}},
  };
}

/// One run: the store as it is before, the threads, and what they leave.
class Run {
 public:
  explicit Run(const Scenario& scenario) : scenario_(scenario) {
    store_ = make_memory_store(
        {.max_keys = 1,
         .max_bytes = memory::Engine::bytes_for({.max_keys = 1}) + scenario.blocks * (unit + 1),
         .clock = &clock_,
         .rng = &rng_});
    lanes_.reserve(scenario.threads.size() + 2);
    go(scenario.before);
    clock_.advance(2min);
    for (const Plans& plans : scenario.threads) {
      bodies_.push_back([this, &lane = lanes_.emplace_back(plans)] { ask(lane); });
    }
  }

  /// In the explorer's next order. False if there is none.
  bool run(Explorer& explorer) {
    if (!explorer.run(bodies_)) return false;
    if (!explorer.stuck()) go(scenario_.after);
    return true;
  }

  [[nodiscard]] Plans calls() const {
    Plans calls;
    for (const Plans& lane : lanes_) calls.insert(calls.end(), lane.begin(), lane.end());
    return calls;
  }

 private:
  void go(const Plans& plans) { ask(lanes_.emplace_back(plans)); }
  void ask(Plans& lane) {
    for (AskedPlan& call : lane) call.ask(*store_, [this] { return instant_++; });
  }

  const Scenario& scenario_;
  VirtualClock clock_;
  SeededRng rng_{1};
  std::unique_ptr<MemoryStore> store_;
  std::uint64_t instant_ = 0;
  std::vector<Plans> lanes_;
  std::vector<std::function<void()>> bodies_;
};

/// What is wrong with a history, if anything.
std::string fault(const Scenario& scenario, const Plans& calls) {
  for (const AskedPlan& call : calls) {
    if (call.error && !(scenario.may_be_full && call.error == Errc::store_full)) {
      return "an error that cannot be";
    }
  }
  return linearizes(calls) ? "" : "no order explains it";
}

bool explore(const Scenario& scenario) {
  Explorer explorer(scenario.preemptions);
  std::unordered_set<std::string> known;  // histories that are in order
  std::size_t orders = 0;
  for (;; ++orders) {
    Run run(scenario);
    if (!run.run(explorer)) break;
    const Plans calls = run.calls();
    std::string history = text(calls);
    if (!explorer.stuck() && known.contains(history)) continue;
    const std::string wrong = explorer.stuck() ? "threads never end" : fault(scenario, calls);
    if (!wrong.empty()) {
      std::printf("violation: %s, in \"%s\", order %zu (%s)\n%s", wrong.c_str(), scenario.name,
                  orders, explorer.order().c_str(), history.c_str());
      return false;
    }
    known.insert(std::move(history));
  }
  std::printf("%8zu orders, %5zu histories: %s\n", orders, known.size(), scenario.name);
  return true;
}

/// A reader beside a thread that holds a slot twice, in every order: a look at a cell takes no
/// lock, and so must see a state that was there, or that it is locked.
bool explore_holding() {
  Explorer explorer(5);
  const memory::SlotId id{{1, 0}, StateKind::token_bucket};
  const std::array<StateWords, 3> states{StateWords{5, 100}, {6, 101}, {7, 102}};
  std::size_t orders = 0;
  for (;; ++orders) {
    memory::Slot slot;
    slot.identity.publish({id.low(), id.high(memory::never)});
    slot.state.publish(memory::state::make(states[0], 0));
    memory::Slot::Snapshot seen;
    const bool more = explorer.run({[&] {
                                      memory::ContentionStats contention;
                                      for (std::size_t i = 1; i < states.size(); ++i) {
                                        memory::LockedSlot locked_slot{&slot, id};
                                        if (!locked_slot.hold(contention)) return;
                                        locked_slot.words = states[i];
                                        locked_slot.let_go_changed();
                                      }
                                    },
                                    [&] { seen = slot.snapshot(); }});
    if (!more) break;
    const StateWords words = memory::state::words(seen.state);
    if (memory::state::is_special(seen.state) ||
        std::find(states.begin(), states.end(), words) != states.end()) {
      continue;
    }
    std::printf("violation: a reader saw {%lld, %lld}, order %zu (%s)\n",
                static_cast<long long>(words[0]), static_cast<long long>(words[1]), orders,
                explorer.order().c_str());
    return false;
  }
  std::printf("%8zu orders: a slot that is locked_slot and looked at\n", orders);
  return true;
}

}  // namespace

int main() {
  if (!explore_holding()) return 1;
  for (const Scenario& scenario : scenarios()) {
    if (!explore(scenario)) return 1;
  }
  return 0;
}
