// Random callers that take the first of random alternatives: each is charged what it was granted
// and nothing else, every grant is within every limit, and nobody waits for what is there.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

constexpr Word burst = 3;
constexpr Word rate = 2;  // a second
constexpr Word window_limit = 5;
constexpr Span window_span = 2s;
constexpr Word ledger_limit = 1'000'000;
constexpr const char* names[] = {"a", "b", "c"};

/// What one alternative claims, beside the same cost of the ledger.
struct Wanted {
  int bucket;  ///< of `names`; negative: none
  int window;
  Word cost;
  auto operator<=>(const Wanted&) const = default;
};

/// What a limit has charged, and when.
struct Charge {
  Time at;
  Word cost;
};

/// The most that was charged in any half-open interval of this length.
Word busiest(std::vector<Charge> charges, Span span) {
  std::sort(charges.begin(), charges.end(),
            [](const Charge& a, const Charge& b) { return a.at < b.at; });
  Word most = 0;
  Word sum = 0;
  std::size_t first = 0;
  for (const Charge& charge : charges) {
    sum += charge.cost;
    while (charges[first].at <= charge.at - span) sum -= charges[first++].cost;
    most = std::max(most, sum);
  }
  return most;
}

struct Caller {
  std::vector<Wanted> alternatives{};
  bool is_patient = true;
  bool is_cancelled = false;
  bool is_granted = false;
  std::shared_ptr<FirstOfProbe> probe{};
};

class Crowd {
 public:
  explicit Crowd(Random& random)
      : random_(random), late_(random.one_in(2)), has_windows_(random.one_in(2)) {
    if (late_) store_.fail_all(testing::Fault::none().late(20ms));
  }

  void act() {
    const std::uint64_t choice = random_.below(10);
    if (choice < 5) {
      arrive();
    } else if (choice < 9 || callers_.empty()) {
      clock_.advance(Span{random_.between(0, 700'000)});
    } else {
      Caller& caller = *callers_[random_.below(callers_.size())];
      caller.is_cancelled = true;
      caller.probe->cancel();
    }
    if (!late_ && !has_windows_) judge_oldest();
  }
  void end() {
    store_.heal();
    for (int i = 0; i < 2'000; ++i) clock_.advance(250ms);
  }
  void judge() {
    for (const auto& caller : callers_) {
      REQUIRE(caller->probe->times_over() == 1);
      if (!caller->is_cancelled && caller->is_patient) CHECK(caller->is_granted);
    }
    CHECK(ledger_limit - ledger_.peek("x").remaining == charged_);
    for (const Span span : {1ms, 500ms, 1'000ms, 3'700ms, 10'000ms}) {
      for (const auto& charges : spent_) {
        CHECK(busiest(charges, span) <= burst + rate * span / 1s + 1);
      }
    }
    for (const auto& charges : counted_) CHECK(busiest(charges, window_span) <= window_limit);
    for (const auto& [kind, order] : orders_) CHECK(std::is_sorted(order.begin(), order.end()));
  }

 private:
  void arrive() {
    auto caller = std::make_unique<Caller>();
    std::vector<std::vector<Claim>> alternatives;
    for (std::uint64_t i = 1 + random_.below(3); i > 0; --i) {
      const Wanted wanted{static_cast<int>(random_.below(3)),
                          has_windows_ ? static_cast<int>(random_.between(-2, 2)) : -1,
                          random_.between(1, 2)};
      std::vector<Claim> claims{{buckets_, names[wanted.bucket], wanted.cost}};
      if (wanted.window >= 0) claims.emplace_back(windows_, names[wanted.window], wanted.cost);
      claims.emplace_back(ledger_, "x", wanted.cost);
      caller->alternatives.push_back(wanted);
      alternatives.push_back(std::move(claims));
    }
    caller->is_patient = random_.one_in(2);
    const Deadline deadline =
        caller->is_patient ? Deadline::never() : Deadline(Span{random_.between(0, 5'000'000)});
    const std::size_t name = callers_.size();
    callers_.push_back(std::move(caller));
    callers_[name]->probe = wait_for(first_of(std::move(alternatives)), deadline,
                                     [this, name](std::error_code error, Grants grants) {
                                       if (!error && grants) granted(name, grants);
                                     });
  }
  void granted(std::size_t name, const Grants& grants) {
    Caller& caller = *callers_[name];
    caller.is_granted = true;
    const Wanted& wanted = caller.alternatives.at(grants.alternative());
    const Time at = grants.decision().at + grants.decision().retry_after;
    spent_[static_cast<std::size_t>(wanted.bucket)].push_back({at, wanted.cost});
    if (wanted.window >= 0) {
      counted_[static_cast<std::size_t>(wanted.window)].push_back({at, wanted.cost});
    }
    charged_ += wanted.cost;
    // A caller with a late answer may be overtaken by those whose requests are under way with it.
    if (!late_ && !has_windows_) orders_[caller.alternatives].push_back(name);
  }
  /// Nobody is before the oldest, where no call keeps its turn while it waits for another limit. Of
  /// two alternatives with one key, the second one waits behind the first.
  void judge_oldest() {
    const auto oldest = std::find_if(callers_.begin(), callers_.end(), [](const auto& caller) {
      return caller->probe->times_over() == 0;
    });
    if (oldest == callers_.end()) return;
    std::set<int> keys;
    for (const Wanted& wanted : (*oldest)->alternatives) {
      if (!keys.insert(wanted.bucket).second) continue;
      CHECK_FALSE(buckets_.peek(names[wanted.bucket], wanted.cost).allowed);
    }
  }

  Random& random_;
  bool late_;
  bool has_windows_;
  VirtualClock clock_;
  std::unique_ptr<Store> inner_ = make_virtual_store(clock_);
  testing::FaultyStore store_{*inner_};
  TokenBucket buckets_{store_, "b", Quota::per_second(rate).burst(burst)};
  SlidingWindow windows_{store_, "w", {{window_limit, window_span}}};
  FixedWindow ledger_{store_, "l", ledger_limit, Calendar::every(24h * 3650)};
  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<Charge> spent_[3];
  std::vector<Charge> counted_[3];
  Word charged_ = 0;
  std::map<std::vector<Wanted>, std::vector<std::size_t>> orders_;
};

}  // namespace

TEST_CASE("random calls take the first of random alternatives, and are charged for it alone",
          "[first_of]") {
  Random random("random calls take the first of random alternatives, and are charged for it alone");
  CAPTURE(random.repeat());
  for (std::size_t run = 0; run < scaled(100, 10); ++run) {
    Crowd crowd(random);
    for (int i = 0; i < 150; ++i) crowd.act();
    crowd.end();
    crowd.judge();
  }
}

}  // namespace sluice::test
