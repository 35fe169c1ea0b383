// Gates against the lists of all closures and all calls that passed: random spans, passes, openings
// and corrected clocks, on several scopes at once. Threading: single-threaded.
#include <algorithm>
#include <vector>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using sluice::test::Random;
using sluice::test::scaled;

namespace {

/// The definition, taken literally.
class Oracle {
 public:
  explicit Oracle(GateOptions options) : options_(std::move(options)) {}

  void close(Time now, Span span) {
    if (span <= 0us) return;
    const Time before = until();
    closed_until_.push_back(now + std::min(span, options_.cap));
    if (until() > before) passed_.clear();  // another ramp will come
  }
  /// Only what passes within a ramp counts.
  bool pass(Time now) {
    if (closed_until_.empty() || now >= until() + options_.ramp) return false;
    passed_.push_back(now);
    return true;
  }
  void open() {
    closed_until_.clear();
    passed_.clear();
  }

  [[nodiscard]] Time until() const {
    return closed_until_.empty() ? Time{} : *std::ranges::max_element(closed_until_);
  }
  /// May a call pass at this instant?
  [[nodiscard]] bool lets_pass(Time at) const {
    if (closed_until_.empty() || at >= until() + options_.ramp) return true;
    if (at < until()) return false;
    return std::ranges::none_of(
        passed_, [&](Time before) { return before >= until() && before + options_.spacing > at; });
  }
  /// The first instant from `now` on at which one may: it is where one of the conditions changes.
  [[nodiscard]] Time first_pass(Time now) const {
    std::vector<Time> candidates{now, until(), until() + options_.ramp};
    for (const Time before : passed_) candidates.push_back(before + options_.spacing);
    std::ranges::sort(candidates);
    for (const Time at : candidates) {
      if (at >= now && lets_pass(at)) return at;
    }
    return Time::max();
  }

 private:
  GateOptions options_;
  std::vector<Time> closed_until_;
  std::vector<Time> passed_;
};

}  // namespace

TEST_CASE("every pass is what the lists of closures and passes say", "[oracle][gate]") {
  Random random("every pass is what the lists of closures and passes say");
  CAPTURE(random.repeat());
  std::size_t passed = 0;
  std::size_t refused = 0;
  std::size_t ramps = 0;
  for (std::size_t history = 0; history < scaled(400); ++history) {
    VirtualClock clock;
    const auto store = make_virtual_store(clock);
    GateOptions options;
    options.cap = Span{random.between(1, 100'000'000)};
    options.ramp = Span{random.one_in(5) ? 0 : random.between(0, 20'000'000)};
    options.spacing = Span{random.between(0, options.ramp.count() / (random.one_in(3) ? 1 : 20))};
    const Gates gates(*store, "g", {"a", "b"}, options);
    const std::array scopes{gates.scope("a", "1"), gates.scope("a", "2"), gates.scope("b", "1")};
    std::vector<Oracle> oracles(scopes.size(), Oracle(options));
    Time latest = clock.now();
    Span hint{0};
    for (int i = 0; i < 120; ++i) {
      if (random.one_in(2)) clock.advance(hint - Span{random.between(0, hint > 0us ? 1 : 0)});
      if (random.one_in(4)) clock.advance(Span{random.between(0, options.ramp.count() / 4)});
      if (random.one_in(10)) {
        clock.set(std::max(latest - 60s, clock.now() - Span{random.between(0, 60'000'000)}));
      }
      latest = std::max(latest, clock.now());
      const Time now = clock.now();
      const std::size_t one = random.below(scopes.size());
      if (random.one_in(12)) {
        const Span span{random.between(-5, 2 * options.cap.count())};
        gates.close(scopes[one], span);
        oracles[one].close(now, span);
        continue;
      }
      if (random.one_in(60)) {
        gates.open(scopes[one]);
        oracles[one].open();
        continue;
      }
      const std::size_t first = random.below(scopes.size());
      const std::size_t count = 1 + random.below(scopes.size() - first);
      const std::span<const Scope> asked(&scopes[first], count);
      const bool peeks = random.one_in(4);
      const Decision d = peeks ? gates.peek(asked) : gates.pass(asked);
      // All or none: one refusal refuses the call, and the longest of the waits counts.
      Time due = now;
      for (std::size_t s = first; s < first + count; ++s) {
        due = std::max(due, oracles[s].first_pass(now));
      }
      INFO("history " << history << ", call " << i);
      REQUIRE(d.allowed == (due == now));
      REQUIRE(d.retry_after == due - now);
      if (!d.allowed) REQUIRE(oracles[first + d.step].first_pass(now) == due);
      hint = d.retry_after;
      refused += d.allowed ? 0 : 1;
      if (!d.allowed || peeks) continue;
      ++passed;
      for (std::size_t s = first; s < first + count; ++s) {
        if (oracles[s].pass(now)) ++ramps;
      }
    }
  }
  CHECK(passed > 1000);
  CHECK(refused > 1000);
  CHECK(ramps > 200);
}
