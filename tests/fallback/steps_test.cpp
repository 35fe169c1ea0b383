// Which step of a caller's plan a decision without the store is about, when some of its steps are
// waved through and the local store is asked the others.
#include <algorithm>
#include <string>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/rules/fixed_window.hpp"
#include "sluice/rules/leases.hpp"
#include "sluice/rules/sliding_window.hpp"
#include "sluice/rules/wait_line.hpp"
#include "tests/fallback/rig.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {
namespace {

constexpr Word clients = 2;

/// What was told of a plan.
struct Told {
  std::error_code error;
  Decision decision;
  std::vector<Decision> each;
  std::vector<Word> output;
};

Told ask(Store& store, std::span<const Step> steps) {
  Told told;
  decide_then(store, steps, [&](const Outcome& outcome) {
    told = {outcome.error,
            outcome.decision,
            {outcome.steps.begin(), outcome.steps.end()},
            {outcome.output.begin(), outcome.output.end()}};
  });
  return told;
}

/// A plan whose steps are added one by one, each with a key of its own.
class Mixed {
 public:
  explicit Mixed(std::size_t size) : names_(size), tables_(size) { steps_.reserve(size); }

  /// A question that is waved through: what stands before us in a line.
  void add_waved(Word limit) { add(wait_line_peek, {limit}); }
  /// A window of `share` units for this client.
  void add_window(Word share, Word cost) {
    const Word limit = share * clients;
    add(sliding_window_acquire, {limit, cost, 0, 10'000'000});
    auto& table = tables_[steps_.size() - 1];
    table = {limit, 10'000'000};
    steps_.back().table = table;
  }
  /// A bucket of `share` tokens for this client, who gets one more in `every`.
  void add_bucket(Word share, Word cost, Span every = 1s) {
    const Word capacity = share * clients;
    const Word period = every.count() / clients;
    add(token_bucket_acquire, {capacity, 1, period, capacity * period, cost});
  }
  [[nodiscard]] std::span<const Step> steps() const { return steps_; }
  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  void add(const Operation& operation, const Arguments& args) {
    std::string& name = names_[steps_.size()];
    name = "step" + std::to_string(steps_.size());
    steps_.push_back({&operation, {"tag", name}, args});
  }
  std::vector<std::string> names_;
  std::vector<std::array<Word, 2>> tables_;
  std::vector<Step> steps_;
};

bool is_waved(const Step& step) { return step.operation == &wait_line_peek; }

}  // namespace

TEST_CASE("a plan without the store names the step that decides, and tells each step's own words",
          "[fallback][steps]") {
  Random random(
      "a plan without the store names the step that decides, and tells each step's own words");
  CAPTURE(random.repeat());
  std::size_t refusals = 0;
  for (std::size_t round = 0; round < scaled(600, 60); ++round) {
    Rig rig(clients);
    rig.trip();
    const auto size = static_cast<std::size_t>(random.between(1, 16));
    const auto certain = random.below(size);                 // is asked
    const Word unknown = random.one_in(2) ? 7 : word_limit;  // the limit of what is waved through
    const bool may_refuse = random.one_in(2);
    Mixed plan(size);
    std::vector<Span> waits(size);
    std::vector<Word> left(size, word_limit);  // of the steps that are asked
    for (std::size_t i = 0; i < size; ++i) {
      if (i != certain && random.one_in(2)) {
        plan.add_waved(unknown);
        continue;
      }
      const Word share = random.between(5, 500);
      const Word cost = random.between(1, 5);
      const Span every{random.between(1, 1000) * 1'000};
      const bool is_spent = may_refuse && random.one_in(2);
      is_spent || random.one_in(2) ? plan.add_bucket(share, is_spent ? share : cost, every)
                                   : plan.add_window(share, cost);
      left[i] = is_spent ? 0 : share - cost;
      if (!is_spent) continue;
      REQUIRE(decide(rig.store, plan.steps()[i]).allowed);
      waits[i] = every * share;
    }
    const Told told = ask(rig.store, plan.steps());
    REQUIRE_FALSE(told.error);
    CHECK(told.decision.source == Source::fallback);
    REQUIRE(told.each.size() == size);
    const auto longest = std::ranges::max_element(waits);
    const bool is_allowed = *longest == 0us;
    const auto decides =
        is_allowed ? std::ranges::min_element(left) - left.begin() : longest - waits.begin();
    CHECK(told.decision.allowed == is_allowed);
    CHECK(told.decision.step == static_cast<std::size_t>(decides));
    CHECK(told.decision.retry_after == *longest);
    if (is_allowed) CHECK(told.decision.remaining == left[told.decision.step]);
    refusals += is_allowed ? 0 : 1;
    std::size_t read = 0;
    for (std::size_t i = 0; i < size; ++i) {
      CAPTURE(i);
      const Step& step = plan.steps()[i];
      CHECK(told.each[i].step == i);
      CHECK(told.each[i].source == Source::fallback);
      CHECK(told.each[i].at == rig.clock.now());
      CHECK(told.each[i].allowed == (waits[i] == 0us));
      CHECK(told.each[i].retry_after == waits[i]);
      CHECK(told.each[i].limit == (is_waved(step) ? unknown : step.args[0] / clients));
      CHECK(told.each[i].remaining == (is_waved(step) ? unknown : left[i]));
      const std::size_t words = output_count(*step.operation, step.table.size());
      REQUIRE(read + words <= told.output.size());
      const auto own = std::span(told.output).subspan(read, words);
      if (is_waved(step)) CHECK(std::ranges::count(own, 0) == std::ssize(own));
      if (is_allowed && step.operation == &sliding_window_acquire) CHECK(own[3] == left[i]);
      read += words;
    }
    CHECK(read == told.output.size());
  }
  CHECK(refusals > 0);
}

TEST_CASE("an error of the local store names the caller's step", "[fallback][steps]") {
  for (std::size_t at = 0; at < 6; ++at) {
    for (std::size_t waved = 0; waved < 64; ++waved) {
      if ((waved >> at & 1) != 0) continue;
      CAPTURE(at, waved);
      Rig rig(clients);
      rig.trip();
      Mixed plan(6);
      for (std::size_t i = 0; i < 6; ++i) {
        (waved >> i & 1) != 0 ? plan.add_waved(7) : plan.add_bucket(3, 1);
      }
      // Another limiter has the key there.
      const std::string name = "step" + std::to_string(at);
      const Step other{&leases_acquire, {"tag", name}, {1, 1, 60'000'000, 0, 0, 1, 2, 3}};
      REQUIRE(decide(*rig.local, other).allowed);
      const Told told = ask(rig.store, plan.steps());
      CHECK(told.error == Errc::wrong_kind);
      CHECK(told.decision.step == at);
      CHECK(told.decision.part == static_cast<std::uint16_t>(StateKind::leases));
    }
  }
}

TEST_CASE("a key of another kind is told with both kinds, by the primary and without it",
          "[fallback][steps][errors]") {
  for (const bool with_primary : {true, false}) {
    CAPTURE(with_primary);
    Rig rig(clients);
    if (!with_primary) rig.trip();
    const TokenBucket bucket(rig.store, "rpm", Quota::per_minute(10));
    // Another limiter has the key there.
    const Key key = bucket.acquire_step("acme").key;
    const Step other{&leases_acquire, key, {1, 1, 60'000'000, 0, 0, 1, 2, 3}};
    REQUIRE(decide(with_primary ? *rig.whole : *rig.local, other).allowed);

    const std::string kinds = "\"{acme}:rpm:10/min\" holds leases and was asked as a token bucket";
    const auto told_by = [](auto call) -> std::string {
      try {
        static_cast<void>(call());
      } catch (const std::system_error& error) {
        CHECK(error.code() == Errc::wrong_kind);
        return error.what();
      }
      return "no error";
    };
    CHECK_THAT(told_by([&] { return bucket.try_acquire("acme"); }),
               contains_text("TokenBucket::try_acquire: " + kinds));
    CHECK_THAT(
        told_by([&] {
          return decide(rig.store, {bucket.acquire_step("fresh"), bucket.acquire_step("acme")});
        }),
        contains_text("step 1: " + kinds));
  }
}

TEST_CASE("a step of which this client has no share is named, and others are not charged",
          "[fallback][steps]") {
  for (std::size_t at = 0; at < 4; ++at) {
    for (const bool is_waved_first : {true, false}) {
      CAPTURE(at, is_waved_first);
      Rig rig(clients);
      rig.trip();
      Mixed plan(5);
      if (is_waved_first) plan.add_waved(7);
      while (plan.size() < 5) {
        const bool is_the_one = plan.size() == at + (is_waved_first ? 1 : 0);
        plan.add_bucket(3, is_the_one ? 4 : 1);
      }
      const std::size_t named = at + (is_waved_first ? 1 : 0);
      const auto refusals = rig.store.stats().degraded_refusals;
      const Told told = ask(rig.store, plan.steps());
      CHECK(rig.store.stats().degraded_refusals == refusals + 1);
      REQUIRE_FALSE(told.error);
      CHECK_FALSE(told.decision.allowed);
      CHECK(told.decision.source == Source::policy);
      CHECK(told.decision.step == named);
      CHECK(told.decision.retry_after == rig.breaker.wait());
      for (std::size_t i = 0; i < plan.size(); ++i) {
        CHECK(told.each[i].allowed == (i != named));
        if (i == named || is_waved(plan.steps()[i])) continue;
        CHECK(decide(rig.store, plan.steps()[i]).remaining == 2);
      }
    }
  }
}

TEST_CASE("a step that has no answer is named, behind steps that are waved through",
          "[fallback][steps]") {
  for (const PolicyKind kind : every_policy) {
    Rig rig(kind, clients);
    rig.trip();
    Mixed plan(3);
    plan.add_waved(7);
    plan.add_bucket(3, 1);
    plan.add_waved(7);
    std::vector<Step> steps(plan.steps().begin(), plan.steps().end());
    steps.push_back({&leases_reset, {"tag", "leases"}, {5}});
    const Told told = ask(rig.store, steps);
    CHECK(told.error == Errc::circuit_open);
    CHECK(told.decision.step == 3);
    // Windows of a calendar that is over.
    steps.back() = {&fixed_window_acquire, {"tag", "past"}, {4, 0, 1, 2, 3, 4, 5, 1}};
    const Told past = ask(rig.store, steps);
    CHECK(past.error == Errc::outside_calendar);
    CHECK(past.decision.step == 3);
  }
}

TEST_CASE("an open door names what has the least left of what it knows", "[fallback][steps]") {
  Rig rig(FailurePolicy::open());
  rig.trip();
  Mixed plan(4);
  plan.add_waved(word_limit);
  plan.add_bucket(30, 1);
  plan.add_bucket(20, 1);
  plan.add_waved(word_limit);
  const Told told = ask(rig.store, plan.steps());
  CHECK(told.decision.allowed);
  CHECK(told.decision.step == 2);
  CHECK(told.decision.remaining == 39);
  CHECK(told.each[3].remaining == word_limit);
}

}  // namespace sluice::test
