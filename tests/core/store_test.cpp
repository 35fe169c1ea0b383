// What every store is made of: completions, faults of plans, the conclusion of verdicts.
// Threading: single-threaded.
#include "sluice/store.hpp"

#include <vector>

#include "sluice/extend/conclude.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

/// Keeps what a completion delivered.
struct Heard {
  int times = 0;
  std::error_code error;
  Decision decision;
  std::vector<Decision> steps;

  static void hear(void* self, const Outcome& outcome) noexcept {
    auto& heard = *static_cast<Heard*>(self);
    ++heard.times;
    heard.error = outcome.error;
    heard.decision = outcome.decision;
    heard.steps.assign(outcome.steps.begin(), outcome.steps.end());
  }
  Completion completion() { return {&Heard::hear, this}; }
};

Step step_of(std::string_view tag, std::string_view name, Word cost = 1) {
  Step step{&token_bucket_acquire, Key{tag, name}, {}};
  detail::pack(step.args, TokenBucketRule::args(Quota::per_second(10).burst(5), 1));
  step.args[4] = cost;
  return step;
}

/// The conclusion of these verdicts over steps whose limits are 100, 101, 102...
Heard concluded(const std::vector<Verdict>& verdicts) {
  std::vector<Step> steps(verdicts.size(), step_of("t", "n"));
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].args[0] = 100 + static_cast<Word>(i);
  Heard heard;
  Completion done = heard.completion();
  conclude(std::span<const Step>(steps), verdicts, {}, to_time(77), Source::other, done);
  CHECK_FALSE(done);
  return heard;
}

Verdict admitted(Word remaining) { return {Verdict::allowed, remaining, 0, 5}; }
Verdict refused(Word retry_after) { return {Verdict::refused, 0, retry_after, retry_after + 9}; }

}  // namespace

TEST_CASE("a completion delivers its outcome once, and shut_down if it is destroyed unused",
          "[core][store]") {
  Heard used;
  Heard unused;
  {
    const Completion never_called = unused.completion();
    Completion done = used.completion();
    CHECK(done);
    Outcome outcome;
    outcome.decision.remaining = 3;
    done(outcome);
    CHECK_FALSE(done);
  }
  CHECK(used.times == 1);
  CHECK(used.decision.remaining == 3);
  CHECK(unused.times == 1);
  CHECK(unused.error == Errc::shut_down);
  CHECK(unused.error == Failure::not_executed);
}

TEST_CASE("a completion that was moved from delivers nothing", "[core][store]") {
  Heard first;
  Heard second;
  {
    Completion a = first.completion();
    Completion b = std::move(a);
    CHECK_FALSE(a);  // NOLINT(bugprone-use-after-move): what is tested
    CHECK(b);
    Completion c = second.completion();
    c = std::move(b);
    c.fail(Errc::queue_full, 3);
    CHECK(first.times == 1);
    CHECK(first.error == Errc::queue_full);
    CHECK(first.decision.step == 3);
  }
  CHECK(first.times == 1);
  CHECK(second.times == 1);
  CHECK(second.error == Errc::shut_down);
}

TEST_CASE("a plan's fault is found before any state is looked at, and names its step",
          "[core][plan]") {
  const std::string large(Key::max_part_bytes + 1, 'x');
  std::vector<std::string> names;
  for (std::size_t i = 0; i < Plan::max_steps; ++i) names.push_back(std::to_string(i));
  std::vector<Step> most;
  for (const std::string& name : names) most.push_back(step_of("a", name));
  std::vector<Step> too_many = most;
  too_many.push_back(step_of("a", "n"));
  const Step sound = step_of("a", "n");
  const Step other = step_of("b", "n");
  for (const auto& steps : {std::vector{sound}, {sound, step_of("a", "m"), other}, most}) {
    CHECK_FALSE(find_fault(Plan(std::span(steps))).error);
  }
  struct Faulty {
    std::vector<Step> steps;
    Errc error;
    int step;
  };
  for (const auto& [steps, error, step] :
       {Faulty{{}, Errc::invalid_plan, 0},
        {too_many, Errc::invalid_plan, 0},
        {{step_of("", "n")}, Errc::invalid_key, 0},
        {{sound, step_of("a", "")}, Errc::invalid_key, 1},
        {{sound, other, step_of(large, "n")}, Errc::invalid_key, 2},
        {{sound, sound}, Errc::duplicate_key, 1},
        {{sound, other, other}, Errc::duplicate_key, 2},
        {{sound, step_of("b", "n", -1)}, Errc::invalid_cost, 1},
        {{step_of("a", "n", 6)}, Errc::cost_exceeds_capacity, 0}}) {
    const PlanFault fault = find_fault(Plan(std::span(steps)));
    CHECK(fault.error == error);
    CHECK(fault.step == step);
  }
}

TEST_CASE("a refused plan is decided by the step that must be waited for longest", "[core][plan]") {
  const Heard heard = concluded({refused(10), admitted(0), refused(30), refused(30), refused(20)});
  CHECK(heard.times == 1);
  CHECK_FALSE(heard.error);
  CHECK_FALSE(heard.decision.allowed);
  CHECK(heard.decision.step == 2);  // the first of equals
  CHECK(heard.decision.limit == 102);
  CHECK(heard.decision.retry_after == 30us);
  CHECK(heard.decision.reset_after == 39us);
  CHECK(heard.decision.at == to_time(77));
  REQUIRE(heard.steps.size() == 5);
  CHECK(heard.steps[1].allowed);
  CHECK(heard.steps[4].step == 4);
  CHECK(heard.steps[4].retry_after == 20us);
  CHECK(concluded({admitted(9), refused(1)}).decision.step == 1);
}

TEST_CASE("an admitted plan is decided by the step with the least remaining", "[core][plan]") {
  const Heard heard = concluded({admitted(5), admitted(2), admitted(2), admitted(4)});
  CHECK(heard.decision.allowed);
  CHECK(heard.decision.step == 1);
  CHECK(heard.decision.remaining == 2);
  CHECK(heard.decision.retry_after == 0us);
  CHECK(heard.decision.source == Source::other);
}

TEST_CASE("a plan with a failed step fails, and names the first one", "[core][plan]") {
  const Heard heard = concluded(
      {refused(10), Verdict::failed(Errc::corrupt_state), Verdict::failed(Errc::wrong_type)});
  CHECK(heard.times == 1);
  CHECK(heard.error == Errc::corrupt_state);
  CHECK(heard.decision.step == 1);
  CHECK_FALSE(heard.decision.allowed);
  CHECK(heard.steps.empty());
}

TEST_CASE("a plan keeps its deadline and its stop token", "[core][plan]") {
  std::stop_source stop;
  const Step step = step_of("a", "n");
  const Plan plan = Plan(step).within(20ms).cancelled_by(stop.get_token());
  CHECK(plan.timeout() == 20ms);
  CHECK(plan.steps().size() == 1);
  CHECK_FALSE(plan.stop().stop_requested());
  stop.request_stop();
  CHECK(plan.stop().stop_requested());
  CHECK(Plan(step).timeout() == 0us);
  for (const Span none : {Span{0}, Span{-1}, Span::min()}) {
    CHECK(Plan(step).within(none).timeout() < 0us);
  }
  CHECK_FALSE(Plan(step).stop().stop_possible());
}

TEST_CASE("a limiter puts its name where a key has none, and refuses a name that cannot be",
          "[core][limiter]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket api{*store, "api", Quota::per_second(1).burst(2)};
  const TokenBucket other{*store, "other", Quota::per_second(1).burst(2)};
  CHECK(api.acquire_step("alice").key == Key("alice", "api").with_unit("1/s"));
  CHECK(api.acquire_step(Key{"alice", "uploads"}).key == Key("alice", "uploads").with_unit("1/s"));
  CHECK(api.try_acquire("alice", 2));
  CHECK_FALSE(api.try_acquire("alice"));
  CHECK(other.try_acquire("alice"));
  CHECK(api.try_acquire(Key{"alice", "uploads"}));
  CHECK(&api.store() == store.get());
  CHECK(api.quota() == Quota::per_second(1).burst(2));
  const std::string longest(Key::max_part_bytes, 'x');
  CHECK_NOTHROW(TokenBucket{*store, longest, Quota::per_second(1)});
  CHECK_THROWS_AS((TokenBucket{*store, "", Quota::per_second(1)}), std::invalid_argument);
  CHECK_THROWS_AS((TokenBucket{*store, longest + "x", Quota::per_second(1)}),
                  std::invalid_argument);
}

TEST_CASE("a limiter bound to a key spends that key's tokens, in every form", "[core][limiter]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket bucket{*store, "api", Quota::per_second(1).burst(5)};
  BoundTokenBucket alice = bucket.at("alice");
  CHECK(alice.try_acquire().remaining == 4);
  CHECK(bucket.try_acquire("alice").remaining == 3);
  const BoundTokenBucket moved = std::move(alice);
  CHECK(moved.future_try_acquire().get().remaining == 2);
  Word left = 0;
  moved.try_acquire_then(1, [&](std::error_code, const Decision& d) { left = d.remaining; });
  CHECK(left == 1);
  std::error_code error = Errc::unknown;
  CHECK(moved.try_acquire(1, error).remaining == 0);
  CHECK_FALSE(error);
  CHECK_FALSE(moved.try_acquire(error).allowed);
  CHECK_FALSE(moved.peek());
  CHECK(moved.peek(0, error).allowed);
  CHECK_THROWS_AS(bucket.at(""), std::system_error);
  CHECK_FALSE(moved.try_acquire(6, error).allowed);
  CHECK(error == Errc::cost_exceeds_capacity);
  CHECK_THROWS_AS(moved.try_acquire(-1), std::system_error);
}
