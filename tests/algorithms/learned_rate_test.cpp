// How the learned rate behaves, in exact integers, on every store. Threading: single-threaded.
#include "sluice/limiters/learned_rate.hpp"

#include <stdexcept>
#include <string>

#include "sluice/memory_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr const char* accepted = "nothing was thrown";

std::string rejected(const LearnedRateOptions& options) {
  const auto store = make_memory_store();
  return refusal([&] { LearnedRate(*store, "rate", options); });
}

}  // namespace

TEST_CASE("what an API tells is heeded, and what contradicts itself changes nothing",
          "[learned_rate]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const LearnedRate rate(store, "api", {.initial = Quota::per_second(100)});
    CHECK(rate.told("k", {.limit = 600, .span = 1min, .remaining = 3, .reset = 2s}).remaining == 2);
    CHECK(rate.learned("k").rate == 10'000'000);
    CHECK(rate.try_acquire("k", 3));
    CHECK(rate.try_acquire("k").retry_after == 2s);
    for (const ToldLimit& told :
         {ToldLimit{.limit = 5, .span = 1s, .remaining = 6}, ToldLimit{.limit = 5},
          ToldLimit{.limit = 0, .span = 1s}, ToldLimit{.limit = -5, .span = 1s},
          ToldLimit{.limit = 5, .span = -1s}, ToldLimit{.remaining = -1},
          ToldLimit{.remaining = word_limit}, ToldLimit{.remaining = 0, .reset = -1s}}) {
      std::error_code error;
      (void)rate.told("k", told, error);
      CHECK(error == Errc::invalid_argument);
      CHECK_THROWS_AS(rate.told("k", told), std::system_error);
    }
    CHECK(rate.learned("k").rate == 10'000'000);
    clock.advance(2s - 1us);
    CHECK(rate.try_acquire("k").retry_after == 1us);
    clock.advance(1us);
    CHECK(rate.try_acquire("k"));
    CHECK(rate.told("k", {.remaining = 0, .reset = 2 * LearnedRate::max_block}));
    CHECK(rate.peek("k").retry_after == LearnedRate::max_block);
    rate.reset("k");
    CHECK(rate.learned("k").rate == 100'000'000);
  });
}

TEST_CASE("a cost is granted whatever it is, once the rate has brought it", "[learned_rate]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const LearnedRate rate(store, "api", {.initial = Quota::per_second(10)});
    CHECK(rate.try_acquire("k", 1'000));
    CHECK(rate.try_acquire("k", 1'000));
    const Decision refused = rate.try_acquire("k", 1'000);
    CHECK(refused.retry_after == 100s);
    clock.advance(refused.retry_after - 1us);
    CHECK_FALSE(rate.try_acquire("k", 1'000));
    clock.advance(1us);
    CHECK(rate.try_acquire("k", 1'000));
    std::error_code error;
    for (const Word cost : {Word{-1}, (Word{1} << 40) + 1, Word{1} << 40}) {
      (void)rate.try_acquire("k", cost, error);
      CHECK(error == (cost < 0 ? Errc::invalid_cost : Errc::cost_exceeds_capacity));
    }
    Reservation grant = rate.reserve("j", 100);
    CHECK(rate.settle("j", grant, 150).charged == 50);
    Reservation other = rate.reserve("i", 100);
    CHECK(rate.cancel("i", other) == 100);
  });
}

TEST_CASE("bounds that contradict each other are refused, and named", "[learned_rate]") {
  const auto second = [](Word n) { return Quota::per_second(n); };
  CHECK(rejected({}) == accepted);
  CHECK(rejected({.initial = second(5), .least = second(10)}).find("least 10/s") !=
        std::string::npos);
  CHECK(rejected({.initial = second(50), .most = second(10)}).find("initial 50/s") !=
        std::string::npos);
  CHECK(rejected({.initial = second(5), .least = second(9), .most = second(8)}).find("most 8/s") !=
        std::string::npos);
  CHECK(rejected({.most = second(1'000'001)}) != accepted);
  for (const Quota& none : {Quota::never(), Quota::unlimited()}) {
    const std::string rule =
        " must be a rate, 1 to 10^12 millionths a second, got " + to_string(none);
    CHECK(rejected({.initial = none, .most = second(1'000'000)}) == "learned rate: initial" + rule);
    CHECK(rejected({.initial = second(1'000'000), .least = none, .most = second(1'000'000)}) ==
          "learned rate: least" + rule);
    CHECK(rejected({.most = none}) == "learned rate: most" + rule);
  }
  CHECK(rejected({.least = Quota::per(1, 24h * 365)}) != accepted);
  CHECK(rejected({.forget = 1min - 1us}) != accepted);
  CHECK(rejected({.forget = 365 * 24h + 1us}) != accepted);
  CHECK(rejected({.most = second(1'000'000), .forget = 365 * 24h}) == accepted);
}
