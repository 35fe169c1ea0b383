// Estimator: what it learns, exactly and within its error; classes; and calls that teach it.
// Threading: one thread, but for the tests of several.
#include "sluice/calls/estimator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/memory/threads.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

TEST_CASE("an estimate is the given one until enough costs are known", "[estimator]") {
  Estimator estimator({.least = 3});
  const LearnedEstimate estimate = estimator.of("model", 1400);
  CHECK(estimate.cost().value() == 1400);
  estimate.learn(10);
  estimate.learn(20);
  CHECK(estimate.cost().value() == 1400);
  estimate.learn(30);
  CHECK(estimate.cost().value() == 30);
  // Another look at the class, with another default.
  CHECK(estimator.of("model", 7).cost().value() == 30);
  CHECK(estimator.of("other", 7).cost().value() == 7);
  CHECK(estimator.classes() == 2);
}

TEST_CASE("an estimate is the quantile of the costs, at most a sixteenth too high", "[estimator]") {
  Random random("an estimate is the quantile of the costs, at most a sixteenth too high");
  CAPTURE(random.repeat());
  for (int run = 0; run < 50; ++run) {
    const double quantile = static_cast<double>(random.between(1, 100)) / 100;
    Estimator estimator({.quantile = quantile, .window = 1000, .least = 1});
    const LearnedEstimate estimate = estimator.of("model", 1);
    const Word most = Word{1} << random.between(0, 40);
    std::vector<Word> costs;
    for (std::size_t i = 0; i < 300; ++i) {
      costs.push_back(random.between(0, most));
      estimate.learn(costs.back());
      if (i % 37 != 0) continue;
      auto sorted = costs;
      std::ranges::sort(sorted);
      std::size_t rank = 1;
      while (static_cast<double>(rank) < quantile * static_cast<double>(sorted.size())) ++rank;
      const Word exact = sorted[rank - 1];
      const Word told = estimate.cost().value();
      CAPTURE(exact, told, quantile);
      CHECK(told >= exact);
      CHECK(told <= exact + exact / 16);
      if (exact < 32) CHECK(told == exact);
    }
  }
}

TEST_CASE("a change of the costs is learned after as many calls as are remembered", "[estimator]") {
  Estimator estimator({.quantile = 0.95, .window = 100});
  const LearnedEstimate estimate = estimator.of("model", 1);
  for (int i = 0; i < 1000; ++i) estimate.learn(1000);
  CHECK(estimate.cost().value() == 1023);
  int calls = 0;
  for (; estimate.cost().value() > 20 && calls < 2000; ++calls) estimate.learn(20);
  CHECK(calls >= 100);
  CHECK(calls <= 600);
  // Upwards, once a twentieth of the calls cost more.
  for (calls = 0; estimate.cost().value() < 1000 && calls < 2000; ++calls) estimate.learn(1000);
  CHECK(calls <= 12);
}

TEST_CASE("the class that was asked for least recently is forgotten", "[estimator]") {
  Estimator estimator({.least = 1, .max_classes = 2});
  const LearnedEstimate a = estimator.of("a", 1);
  a.learn(5);
  estimator.of("b", 1).learn(6);
  CHECK(estimator.of("a", 1).cost().value() == 5);
  CHECK(estimator.of("c", 1).cost().value() == 1);  // in the place of b
  CHECK(estimator.classes() == 2);
  CHECK(estimator.of("b", 1).cost().value() == 1);  // in the place of a
  CHECK(estimator.of("a", 2).cost().value() == 2);
  a.learn(7);  // of the class that was forgotten
  CHECK(a.cost().value() == 7);
  for (int i = 0; i < 10'000; ++i) (void)estimator.of(std::to_string(i), 1);
  CHECK(estimator.classes() == 2);
}

TEST_CASE("calls are charged what is learned, and teach it", "[estimator][calls]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const TokenBucket tokens(*store, "tokens", Quota::per_hour(1000), {.refund = Refund::in_full});
  Estimator estimator({.least = 2});
  const Call call({{tokens, "key", estimator.of("model", 100)}});
  std::vector<Word> granted;
  for (const Word actual : {30, 20, 25, 400}) {
    const Word got = call([&](Grants& grants) {
      granted.push_back(grants.get<Reservation>(0).granted);
      return Costed<Word>{actual, actual};
    });
    CHECK(got == actual);
  }
  CHECK(granted == std::vector<Word>{100, 100, 30, 30});
  CHECK(tokens.peek("key").remaining == 1000 - 30 - 20 - 25 - 400);
  CHECK(estimator.of("model", 1).cost().value() == 400 + 15);  // the top of its bucket
}

TEST_CASE("a learned estimate above what a limiter grants at once is charged as that",
          "[estimator][calls]") {
  VirtualClock clock;
  const VirtualClock::AutoAdvance moving(clock);
  const auto store = make_virtual_store(clock);
  const auto table = std::make_shared<QuotaTable>(LimitList(Quota::per_minute(70)));
  const TokenBucket tokens(*store, "tokens", Quota::per_hour(100));
  const TokenBucket by_table(*store, "by table", table);
  const SlidingWindow windows(*store, "windows", {{80, 1h}, {60, 1min}});
  const SlidingWindowCounter counter(*store, "counter", {50, 1h});
  const FixedWindow window(*store, "window", 40, Calendar::every(1h));
  const TokenBucket free(*store, "free", Quota::unlimited());
  Estimator estimator({.least = 1});
  const LearnedEstimate learned = estimator.of("model", 30);
  const Call call({{tokens, "key", learned},
                   {by_table, "key", learned},
                   {windows, "key", learned},
                   {counter, "key", learned},
                   {window, "key", learned},
                   {free, "key", learned}});
  const auto granted = [&](Word actual) {
    std::vector<Word> units;
    (void)call([&](Grants& grants) {
      for (std::size_t i = 0; i < 6; ++i) units.push_back(grants.get<Reservation>(i).granted);
      return Costed<Word>{actual, actual};
    });
    return units;
  };
  CHECK(granted(1000) == std::vector<Word>{30, 30, 30, 30, 30, 30});
  const Word estimate = learned.cost().value();
  REQUIRE(estimate >= 1000);
  CHECK(granted(1000) == std::vector<Word>{100, 70, 60, 50, 40, estimate});
  CHECK(granted(20) == std::vector<Word>{100, 70, 60, 50, 40, estimate});
}

TEST_CASE("a learned estimate passes no limit of 0, and above a limit of the store it is an error",
          "[estimator][calls]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const FixedWindow denied(*store, "denied", 0, Calendar::every(1h));
  const SharedTokenBucket shared(*store, "shared");
  (void)shared.configure("key", Quota::per_hour(100));
  Estimator estimator({.least = 1});
  const LearnedEstimate learned = estimator.of("model", 1000);
  CHECK_THROWS_AS(Call({{denied, "key", learned}})([] { FAIL("called"); }), NotGranted);
  try {
    Call({{shared, "key", learned}})([] { FAIL("called"); });
  } catch (const std::system_error& failure) {
    CHECK(failure.code() == Errc::cost_exceeds_capacity);
  }
}

TEST_CASE("what several threads teach is all learned, in whatever order", "[estimator]") {
  Random random("what several threads teach is all learned, in whatever order");
  CAPTURE(random.repeat());
  constexpr std::size_t learners = 3;
  constexpr std::size_t each = 60'000;
  // None is forgotten by halving before the end of the test.
  const EstimatorOptions options{.quantile = 0.5, .window = learners * each, .least = 1};
  const std::array<std::string, 2> names{"model", "other"};
  constexpr std::size_t block = each / 2;
  const auto name_of = [&](std::size_t index) { return names[index / block % 2]; };
  std::vector<Word> costs(learners * each);
  for (Word& cost : costs) cost = random.between(1, 31);  // these are told apart exactly

  Estimator estimator(options);
  std::atomic<std::size_t> learning{learners};
  std::atomic<int> impossible{0};
  together(learners + 1, [&](std::size_t thread) {
    if (thread < learners) {
      for (std::size_t i = 0; i < each; i += block) {
        const LearnedEstimate estimate = estimator.of(name_of(i), 7);
        for (std::size_t k = i; k < i + block; ++k) estimate.learn(costs[thread * each + k]);
      }
      --learning;
      return;
    }
    do {
      for (const std::string& name : names) {
        const Word told = estimator.of(name, 7).cost().value();
        if (told < 1 || told > 31) ++impossible;
      }
    } while (learning > 0);
  });
  CHECK(impossible == 0);
  CHECK(estimator.classes() == names.size());

  // One that has learned the same in order says the same, also while both learn that calls cost
  // nothing: how many it takes to lower the median tells how many of each cost are known.
  Estimator in_order(options);
  for (std::size_t i = 0; i < costs.size(); ++i) in_order.of(name_of(i), 7).learn(costs[i]);
  for (const std::string& name : names) {
    CAPTURE(name);
    const LearnedEstimate taught = estimator.of(name, 7);
    const LearnedEstimate expected = in_order.of(name, 7);
    std::size_t differences = 0;
    for (std::size_t zeros = 0; expected.cost().value() > 0; ++zeros) {
      if (zeros > costs.size()) FAIL("the median does not fall");
      if (taught.cost().value() != expected.cost().value()) ++differences;
      taught.learn(0);
      expected.learn(0);
    }
    CHECK(differences == 0);
    CHECK(taught.cost().value() == 0);
  }
}

TEST_CASE("threads that ask for more classes than are known forget some, and use what they hold",
          "[estimator]") {
  Estimator estimator({.least = 1, .max_classes = 2});
  constexpr std::size_t threads = 3;
  std::atomic<int> wrong{0};
  together(threads, [&](std::size_t thread) {
    for (int i = 0; i < 2'000; ++i) {
      const std::string name = std::to_string(thread) + "-" + std::to_string(i);
      const LearnedEstimate mine = estimator.of(name, 5);  // nobody else learns of it
      if (mine.cost().value() != 5) ++wrong;
      mine.learn(9);
      if (mine.cost().value() != 9) ++wrong;
      if (estimator.classes() > 2) ++wrong;
    }
  });
  CHECK(wrong == 0);
  CHECK(estimator.classes() == 2);
}

TEST_CASE("costs and options out of range are named, and nothing is learned", "[estimator]") {
  const auto says = [](const EstimatorOptions& options) {
    try {
      const Estimator estimator(options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(says({.quantile = 0}) ==
        "EstimatorOptions::quantile must be above 0, up to 1, got 0.000000");
  CHECK(says({.quantile = 1.01}).ends_with("got 1.010000"));
  CHECK(says({.quantile = std::numeric_limits<double>::quiet_NaN()}).ends_with("got nan"));
  CHECK(says({.window = 99}) == "EstimatorOptions::window must be 100 to 1,000,000, got 99");
  CHECK(says({.least = 0}) == "EstimatorOptions::least must be 1 to the window, got 0");
  CHECK(says({.window = 100, .least = 101}).ends_with("got 101"));
  CHECK(says({.max_classes = 10'000'000}) ==
        "EstimatorOptions::max_classes must be 1 to 100,000, got 10000000");
  CHECK(says({.max_classes = 0}).ends_with("got 0"));

  Estimator estimator({.least = 1});
  const LearnedEstimate estimate = estimator.of("model", 9);
  constexpr Word most = LearnedEstimate::max_cost;
  for (const Word cost : {Word{-1}, most + 1, Word{1} << 50}) {
    try {
      estimate.learn(cost);
      FAIL("learned");
    } catch (const std::system_error& error) {
      CHECK(error.code() == Errc::invalid_cost);
      CHECK(std::string(error.what())
                .find("LearnedEstimate::learn: cost " + std::to_string(cost) +
                      ", allowed 0 to 1099511627776: ") == 0);
    }
    CHECK(estimate.cost().value() == 9);
  }
  estimate.learn(most);
  CHECK(estimate.cost().value() == most);
}
