// Several nodes behind one breaker decide as if each were a store of its own, with a breaker of its
// own: the same random calls, outages and comebacks go to both. And many threads at once.
#include <atomic>
#include <functional>
#include <thread>

#include "sluice/memory_store.hpp"
#include "tests/fallback/nodes.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr unsigned node_count = 4;

/// The answers of one side, by the number of the call; those that have not come have no source.
class Answers {
 public:
  using Answer = std::pair<std::error_code, Source>;

  /// The completion of a call.
  Completion expect(std::size_t call) {
    Slot& slot = slots_.emplace_back(*this, call);
    all_.resize(std::max(all_.size(), call + 1));
    return {&Slot::keep, &slot};
  }
  [[nodiscard]] const std::vector<Answer>& all() const noexcept { return all_; }

 private:
  struct Slot {
    Slot(Answers& answers, std::size_t number) : owner(answers), call(number) {}
    static void keep(void* context, const Outcome& outcome) noexcept {
      const auto& slot = *static_cast<Slot*>(context);
      slot.owner.all_[slot.call] = {outcome.error, outcome.decision.source};
    }
    Answers& owner;
    std::size_t call;
  };

  std::deque<Slot> slots_;
  std::vector<Answer> all_;
};

/// All nodes behind one breaker, and each as a store of its own, which has one part.
class Sides {
 public:
  explicit Sides(Random& random) : random_(random) {
    for (unsigned i = 0; i < node_count; ++i) alone_.push_back(std::make_unique<NodesRig>(1U));
  }

  void act() {
    const unsigned node = draw_node();
    switch (random_.between(0, 9)) {
      case 0:
        return change(node);
      case 1:
        return advance(Span{random_.between(1, 300'000)});
      case 2:
        return batch();
      default:
        advance(Span{random_.between(0, 5'000)});
        return call(node);
    }
  }
  void compare() const {
    CHECK(of_together_.all() == of_alone_.all());
    CircuitBreaker::Stats sum;
    std::uint64_t primary = 0;
    for (unsigned node = 0; node < node_count; ++node) {
      const CircuitBreaker& own = alone_[node]->breaker;
      CHECK(together_.breaker.state(node) == own.state());
      CHECK(together_.breaker.wait(node) == own.wait());
      sum.trips += own.stats().trips;
      sum.probes += own.stats().probes;
      sum.denied += own.stats().denied;
      primary += alone_[node]->store.stats().primary;
    }
    const auto stats = together_.breaker.stats();
    CHECK(stats.trips == sum.trips);
    CHECK(stats.probes == sum.probes);
    CHECK(stats.denied == sum.denied);
    CHECK(together_.store.stats().primary == primary);
  }
  [[nodiscard]] CircuitBreaker::Stats stats() const { return together_.breaker.stats(); }

 private:
  unsigned draw_node() { return static_cast<unsigned>(random_.between(0, node_count - 1)); }

  void advance(Span span) {
    together_.clock.advance(span);
    for (const auto& rig : alone_) rig->clock.advance(span);
  }
  void change(unsigned node) {
    const Span delay{random_.between(1, 30'000)};
    const std::array faults{dead, Fault::request_lost().late(delay), Fault::none().late(delay),
                            Fault::not_executed(Errc::wrong_type)};
    const auto fault = faults[static_cast<std::size_t>(random_.between(0, 3))];
    const bool heals = random_.one_in(2);
    const bool comes_back = random_.one_in(2);
    const auto change_at = [&](NodesStore& nodes, unsigned place) {
      if (heals) nodes.at(place).heal();
      if (!heals) nodes.at(place).fail_all(fault);
      if (comes_back) nodes.reach(place);
    };
    change_at(together_.nodes, node);
    change_at(alone_[node]->nodes, 0);
  }
  void call(unsigned node) {
    NodesRig& own = *alone_[node];
    const std::size_t number = calls_++;
    together_.store.execute(together_.bucket.acquire_step(node), of_together_.expect(number));
    own.store.execute(own.bucket.acquire_step(0), of_alone_.expect(number));
  }
  void batch() {
    std::vector<Step> steps;
    std::vector<Completion> done;
    std::array<std::vector<Step>, node_count> own_steps;
    std::array<std::vector<Completion>, node_count> own_done;
    for (auto left = random_.between(1, 8); left > 0; --left) {
      const unsigned node = draw_node();
      steps.push_back(together_.bucket.acquire_step(node));
      own_steps[node].push_back(alone_[node]->bucket.acquire_step(0));
      done.push_back(of_together_.expect(calls_));
      own_done[node].push_back(of_alone_.expect(calls_));
      ++calls_;
    }
    together_.store.execute_batch(std::vector<Plan>(steps.begin(), steps.end()), done);
    for (unsigned node = 0; node < node_count; ++node) {
      const std::vector<Plan> plans(own_steps[node].begin(), own_steps[node].end());
      if (!plans.empty()) alone_[node]->store.execute_batch(plans, own_done[node]);
    }
  }

  Random& random_;
  std::size_t calls_ = 0;
  Answers of_together_;  // outlives the stores, which answer what is pending
  Answers of_alone_;
  NodesRig together_{node_count};
  std::vector<std::unique_ptr<NodesRig>> alone_;
};

}  // namespace

TEST_CASE("nodes behind one breaker decide as stores of their own", "[fallback][parts][C-036]") {
  Random random("nodes behind one breaker decide as stores of their own");
  CAPTURE(random.repeat());
  std::uint64_t probes = 0;
  for (std::size_t round = 0; round < scaled(60, 10); ++round) {
    Sides sides(random);
    for (int i = 0; i < 400; ++i) sides.act();
    sides.compare();
    probes += sides.stats().probes;
  }
  CHECK(probes > 0);
}

TEST_CASE("many threads ask nodes that come and go", "[fallback][parts]") {
  constexpr unsigned count = 3;
  constexpr unsigned callers = 4;
  const auto server = make_memory_store();
  const auto local = make_memory_store();
  VirtualClock time;
  NodesStore nodes(*server, count);
  std::array<std::atomic<int>, count> opened{};
  CircuitBreaker breaker(time, {.failures = 3, .first_pause = 1ms, .longest_pause = 1ms},
                         [&](unsigned part, State, State to) {
                           if (to == State::open) ++opened[part];
                         });
  const FailurePolicy policy = FailurePolicy::local(*local, 2);
  FallbackStore first(nodes, breaker, policy);
  FallbackStore second(nodes, breaker, policy);

  const std::size_t each = scaled(15'000, 500);
  std::atomic<std::size_t> answered{0}, errors{0};
  std::atomic<unsigned> over{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      const TokenBucket bucket(i == 0 ? second : first, "b", Quota::per_second(1'000).burst(100));
      for (std::size_t call = 0; call < each; ++call) {
        decide_then(bucket.store(), bucket.acquire_step((call + i) % count),
                    [&](const std::error_code& error, const Decision&) {
                      ++answered;
                      if (error) ++errors;
                    });
      }
      ++over;
    });
  }
  const TokenBucket bucket(first, "b", Quota::per_second(1'000).burst(100));
  std::uint64_t outages = 0;
  for (; over < callers || outages < 2; ++outages) {
    for (unsigned node = 0; node < count; ++node) {
      nodes.at(node).fail_all(dead);
      for (int i = 0; i < 20; ++i) (void)bucket.try_acquire(node);
    }
    for (unsigned node = 0; node < count; ++node) nodes.at(node).heal();
    for (unsigned node = 0; node < count; ++node) {
      while (breaker.state(node) != State::closed) {
        // Without a comeback no pause would end: the time stands still.
        for (unsigned other = 0; other < count; ++other) nodes.reach(other);
        (void)bucket.try_acquire(node);
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(answered == callers * each);
  CHECK(errors == 0);
  std::uint64_t calls = 0;
  for (unsigned node = 0; node < count; ++node) {
    CHECK(opened[node] >= 2);
    CHECK(breaker.state(node) == State::closed);
    calls += nodes.at(node).counts().calls;
  }
  CHECK(first.stats().primary + second.stats().primary == calls);
  CHECK(breaker.stats().trips >= count * outages);
}

}  // namespace sluice::test
