// The model of limits of 0 and unlimited ones: limiters of one key whose limits are such or any,
// so that a limit changes with every call. Only what was granted under a limit counts.
// Threading: single-threaded.

#include "sluice/limiters/fixed_window.hpp"
#include "tests/models/driver.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

class ConstantModel final : public Model {
 public:
  explicit ConstantModel(Life& life) : life_(life) {
    for (const Word limit : {Word{0}, unlimited, life.random.between(1, 9)}) {
      windows_.emplace_back(life.store, life.name, limit, Calendar::every(1min));
    }
  }

  std::vector<Verb> verbs() override {
    return {{"acquire", 10, [this] { acquire(); }},
            {"peek", 3, [this] { peek(); }},
            {"settle", 4, [this] { settle(); }},
            {"penalize", 1, [this] { penalize(); }},
            {"reset", 1, [this] { reset(); }}};
  }
  Moves moves() const override { return {20s, 3min}; }
  void judge(const History& /*history*/) override {}

 private:
  const FixedWindow& draw() { return life_.draw("limiter", windows_); }
  Word draw_cost() const { return life_.random.between(0, 10); }
  [[nodiscard]] Word used() {
    const Word window = life_.tick() / 60'000'000;
    if (window != window_) used_ = 0;
    window_ = window;
    return used_;
  }

  void expect(const Decision& decision, Word limit, Word cost, Word charged) {
    CHECK(decision.limit == limit);
    if (limit == 0 && cost > 0) {
      REQUIRE_FALSE(decision.allowed);
      REQUIRE(decision.remaining == 0);
      REQUIRE(decision.retry_after == Decision::never);
      REQUIRE(decision.reset_after == 0us);
      return life_.saw("never");
    }
    if (limit == 0 || limit == unlimited) {
      REQUIRE(decision.allowed);
      REQUIRE(decision.remaining == limit);
      REQUIRE(decision.retry_after == 0us);
      REQUIRE(decision.reset_after == 0us);
      return life_.saw(limit == 0 ? "nothing asked of nothing" : "unlimited");
    }
    const bool fits = used() + cost <= limit;
    const Word end = 60'000'000 - life_.tick() % 60'000'000;
    life_.saw(fits ? "admitted" : "refused");
    const Word used_then = used() + (fits ? charged : 0);
    life_.require(decision, {.allowed = fits,
                             .remaining = std::max<Word>(0, limit - used_then),
                             .retry_after = fits ? 0 : end,
                             .reset_after = used_then > 0 ? end : 0});
    if (fits) used_ += charged;
  }

  void acquire() {
    const FixedWindow& window = draw();
    const Word limit = window.limit();
    const Word cost =
        limit == 0 || limit == unlimited ? draw_cost() : life_.random.between(0, limit);
    life_.tell("cost", cost);
    const Reservation grant = window.reserve("k", cost);
    expect(grant, limit, cost, cost);
    CHECK(grant.granted == (grant.allowed ? cost : 0));
    if (grant) grants_.emplace_back(grant, &window);
  }
  void peek() {
    const FixedWindow& window = draw();
    const Word cost = window.limit() == 0 ? draw_cost() : 1;
    expect(window.peek("k", cost), window.limit(), cost, 0);
  }

  /// Of a grant under no limit, nothing.
  void settle() {
    if (grants_.empty()) return;
    auto [grant, window] = grants_.back();
    grants_.pop_back();
    const bool counts = window->limit() != 0 && window->limit() != unlimited;
    const Word actual = draw_cost();
    const Word more = actual - grant.granted;
    const Settlement settled = window->settle("k", grant, actual);
    const bool present = to_word(grant.at) / 60'000'000 == life_.tick() / 60'000'000;
    if (!counts || !present) {
      REQUIRE(settled.charged == 0);
      REQUIRE(settled.refunded == 0);
      return life_.saw(counts ? "settled late" : "settled without effect");
    }
    const Word change = std::max(-used(), more);
    REQUIRE(settled.charged - settled.refunded == change);
    used_ += change;
    life_.saw("settled");
  }
  void penalize() {
    const FixedWindow& window = draw();
    const Decision decision = window.penalize("k", 1);
    REQUIRE(decision.allowed);
    if (window.limit() == 0 || window.limit() == unlimited) return;
    used_ = used() + 1;
  }
  void reset() {
    const FixedWindow& window = draw();
    window.reset("k");
    const bool counts = window.limit() != 0 && window.limit() != unlimited;
    life_.saw(counts ? "reset" : "reset without effect");
    if (!counts) return;
    used_ = 0;
    grants_.clear();  // they are not refunded afterwards
  }

  Life& life_;
  std::vector<FixedWindow> windows_;
  std::vector<std::pair<Reservation, const FixedWindow*>> grants_;
  Word window_ = 0;
  Word used_ = 0;
};

}  // namespace

TEST_CASE("a limit of 0 and an unlimited one answer alone, and leave what other limits count",
          "[model][constant]") {
  live<ConstantModel>({.outcomes = {"never", "nothing asked of nothing", "unlimited", "admitted",
                                    "refused", "settled", "settled late", "settled without effect",
                                    "reset", "reset without effect"},
                       .patient_in = 0});
}
