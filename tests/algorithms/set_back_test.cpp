// A clock that goes ahead and is set back by up to a minute: what a store has dropped meanwhile is
// not missed. On every store, a Redis server whose keys expire by that clock above all.
// Threading: single-threaded.
#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "sluice/sluice.hpp"
#include "src/testing/model.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using namespace sluice::testing::detail;
using sluice::test::for_each_store;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

constexpr Span minute{Operation::clock_slack};

/// What is asked when.
struct Asked {
  Time at;
  Step step;
};

/// Everything about an answer but whose it is.
struct Told {
  std::error_code error;
  Decision decision;
  std::vector<Word> output;
  friend bool operator==(const Told&, const Told&) = default;
};

Told ask(Store& store, const Step& step) {
  Told told;
  told.output.resize(output_count(*step.operation, step.table.size()));
  told.decision = decide(store, step, told.error, {}, told.output);
  told.decision.source = Source::other;
  return told;
}

/// Calls in a second or so, some by a clock that was set back; a look when the key has expired, or
/// nearly; and calls by a clock that was set back since.
std::vector<Asked> draw_history(Random& random, Subject& subject) {
  std::vector<Asked> history;
  Time now = VirtualClock::default_start + 1h;
  Time kept = now;
  for (int i = 0; i < 4; ++i) {
    const Step step = subject.draw(random);
    history.push_back({now, step});
    // Not beyond what the server can tell: a state that is kept for years is not to expire here.
    kept = std::max(kept, now + std::min(Span{step.operation->ttl(step.args)}, Span{24h * 3650}));
    now += Span{random.between(0, 400'000)};
    if (random.one_in(4)) now -= Span{random.between(0, minute.count())};
  }
  now = kept + Span{random.between(-2'000'000, 2'000'000)};
  for (const Operation* row : rows_of(subject.generator->kind)) {
    if (!row->writes) history.push_back({now, subject.draw(random, *row)});
  }
  now -= random.one_in(2) ? minute : Span{random.between(0, minute.count())};
  for (int i = 0; i < 4; ++i) {
    history.push_back({now, subject.draw(random)});
    now += Span{random.between(0, 400'000)};
  }
  return history;
}

/// What the rule answers for this state, which it changes: the verdict and its output.
std::vector<Word> answer_for(std::vector<Word>& state, const Asked& asked) {
  const Step& step = asked.step;
  Effects effects;
  const Verdict verdict =
      run(*step.operation, state, {step.args, step.table}, to_word(asked.at), effects);
  if (verdict.status == Verdict::allowed && effects.changes()) {
    state.resize(std::max(state.size(), effects.extent()));
    effects.make(state);
  }
  std::vector<Word> told{verdict.status, verdict.remaining, verdict.retry_after,
                         verdict.reset_after};
  const auto output = effects.output();
  told.insert(told.end(), output.begin(), output.end());
  return told;
}

/// A state after some calls, and until when it is kept. Its clock is set back at times.
struct Lived {
  std::vector<Word> state = std::vector<Word>(cell_words);
  Word kept = 0;

  Lived(Random& random, Subject& subject) {
    Time now = VirtualClock::default_start + 1h;
    for (int i = 0; i < 5; ++i) {
      const Step step = subject.draw(random);
      answer_for(state, {now, step});
      kept = std::max(kept, to_word(now) + step.operation->ttl(step.args));
      now += Span{random.between(0, Word{1} << random.between(0, 36))};
      if (random.one_in(4)) now -= Span{random.between(0, minute.count())};
    }
  }
};

}  // namespace

TEST_CASE("each rule answers for a state that had its time as for none", "[C-035]") {
  Random random("each rule answers for a state that had its time as for none");
  CAPTURE(random.repeat());
  for (const Generator& generator : generators()) {
    if (generator.kind == StateKind::constant) continue;  // by the clock of who asks
    for (std::size_t i = 0; i < scaled(10'000); ++i) {
      Subject subject("tag", "name", generator, generator.any(random));
      Lived lived(random, subject);
      constexpr Word latest = Word{1} << 40;
      if (lived.kept > word_limit - 2 * latest) continue;
      Time now = to_time(lived.kept) - minute + Span{random.between(0, latest >> random.below(40))};
      std::vector<Word> none(cell_words);
      for (int call = 0; call < 4; ++call) {
        const Asked asked{now, subject.draw(random)};
        INFO(describe(asked.step) << " at " << to_word(asked.at));
        REQUIRE(answer_for(lived.state, asked) == answer_for(none, asked));
        now += Span{random.between(0, 400'000)};
      }
    }
  }
}

TEST_CASE("an id that was admitted is known to a clock that was set back", "[once][C-035]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const TokenBucket bucket(store, "api", Quota::per_hour(2));
    const Time start = clock.now();
    const std::array steps{bucket.acquire_step("a")};
    const Decision first = decide(store, Plan(steps).idempotent({1, 2}));
    clock.set(start + id_kept_for + 2s);
    CHECK(bucket.peek("a").remaining == 1);
    clock.set(start + id_kept_for - 1us);
    CHECK(decide(store, Plan(steps).idempotent({1, 2})) == first);
    CHECK(bucket.peek("a").remaining == 1);
  });
}

TEST_CASE("a bucket refilled each day that had its time begins anew, also where it was not dropped",
          "[C-035]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Time midnight = VirtualClock::default_start + 24h;
    const auto bucket = [&store](Word initial) {
      BucketOptions options;
      options.refill = Refill::per_interval(24h);
      options.initial = initial;
      return TokenBucket(store, "api", Quota::per_hour(10), options);
    };
    clock.set(midnight);
    CHECK(bucket(10).try_acquire("a", 10));
    const Step step = bucket(10).acquire_step("a");
    const Time over = midnight + Span{step.operation->ttl(step.args)};
    clock.set(over - 24h);
    CHECK(bucket(3).peek("a").remaining == 0);
    clock.set(over - 2s);
    CHECK(bucket(3).peek("a").remaining == 3);
    clock.set(over + 2s);
    CHECK(bucket(3).peek("a").remaining == 3);
  });
}

TEST_CASE("stores agree on a key that had its time and a clock that is set back by up to a minute",
          "[C-035]") {
  Random random(
      "stores agree on a key that had its time and a clock that is set back by up to a minute");
  CAPTURE(random.repeat());
  std::deque<Subject> subjects;
  std::vector<std::vector<Asked>> histories;
  for (const Generator& generator : generators()) {
    if (generator.kind == StateKind::constant) continue;  // by the clock of who asks
    for (std::size_t i = 0; i < scaled(60); ++i) {
      Subject& subject = subjects.emplace_back("tag" + std::to_string(subjects.size()), "name",
                                               generator, generator.any(random));
      histories.push_back(draw_history(random, subject));
    }
  }
  std::vector<Told> expected;
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::vector<Told> answers;
    for (const auto& history : histories) {
      for (const Asked& asked : history) {
        clock.set(asked.at);
        answers.push_back(ask(store, asked.step));
        if (expected.size() < answers.size()) continue;
        INFO(describe(asked.step) << " at " << to_word(asked.at));
        const Told& other = expected[answers.size() - 1];
        CHECK(answers.back().error == other.error);
        CHECK(answers.back().decision.allowed == other.decision.allowed);
        CHECK(answers.back().decision.retry_after == other.decision.retry_after);
        CHECK(answers.back() == other);
      }
    }
    if (expected.empty()) expected = std::move(answers);
  });
}
