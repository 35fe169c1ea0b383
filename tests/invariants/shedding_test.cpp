// Histories of the utilization shedder: what it may never shed, and that asking changes nothing.
// Threading: single-threaded.
#include "sluice/limiters/utilization_shedder.hpp"
#include "tests/catch.hpp"
#include "tests/invariants/fleet.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

UtilizationOptions draw_options(Random& random) {
  UtilizationOptions options;
  options.grace = Span{random.between(10'000'000, 40'000'000)};
  options.full_after = Span{random.between(20'000'000, 200'000'000)};
  options.max_gap = Span{random.between(1'000'000, 10'000'000)};
  options.tiers = {"test", "batch", "user", "payment"};
  return options;
}

/// One service under a load that wanders, and the same one again, which is asked much more often.
class Service {
 public:
  Service(Store& store, VirtualClock& clock, Random& random, const std::string& name)
      : clock_(clock), random_(random), shedder_(store, name, draw_options(random)) {
    for (const auto& tier : shedder_.options().tiers) tiers_.push_back(shedder_.tier(tier));
  }

  /// An overloaded one is busy all the time, so that it sheds whatever its options are.
  void live(std::size_t moments, bool overloaded) {
    for (std::size_t i = 0; i < moments; ++i) {
      clock_.advance(Span{random_.between(0, 6'000'000)});
      poll();
      if (random_.one_in(20)) busy_ = !busy_;
      const Word percent = overloaded ? 100 : random_.between(busy_ ? 80 : 0, busy_ ? 100 : 85);
      const Utilization u = Utilization::ratio(static_cast<double>(percent), 100);
      const Decision sampled = shedder_.sample("plain", u);
      CHECK(shedder_.sample("polled", u) == sampled);
      poll();
      ask();
    }
  }

  [[nodiscard]] const std::vector<Looked>& refusals() const { return refusals_; }

 private:
  [[nodiscard]] Decision ask(const char* key, std::size_t tier, Word draw) const {
    return decide(shedder_.store(), shedder_.acquire_step(key, tiers_[tier], draw));
  }

  /// One draw for all tiers: who is less important is shed first, the last never.
  void ask() {
    const Word draw = random_.between(0, shedder_.options().full_after.count() - 1);
    bool admits = false;
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      const Decision plain = ask("plain", tier, draw);
      REQUIRE(ask("polled", tier, draw) == plain);
      CHECK((plain.remaining >= 0 && plain.remaining <= plain.limit));
      CHECK((plain.allowed || !admits));
      admits = plain.allowed;
    }
    CHECK(admits);
  }

  void poll() {
    for (Word times = random_.between(0, 3); times > 0; --times) {
      const std::size_t tier = random_.below(tiers_.size());
      Looked looked;
      looked.before = shedder_.peek("polled", tiers_[tier]);
      looked.answer = ask("polled", tier, 0);
      looked.after = shedder_.peek("polled", tiers_[tier]);
      (void)shedder_.report("polled");
      if (!looked.answer.allowed) refusals_.push_back(looked);
    }
  }

  VirtualClock& clock_;
  Random& random_;
  UtilizationShedder shedder_;
  std::vector<UtilizationShedder::Tier> tiers_;
  std::vector<Looked> refusals_;
  bool busy_ = false;
};

}  // namespace

TEST_CASE(
    "histories of a shedder keep the order of its tiers, and polls change none, on every store",
    "[invariants][utilization][S5]") {
  Random random(
      "histories of a shedder keep the order of its tiers, and polls change none, on every store");
  CAPTURE(random.repeat());
  for_each_store([&](Store& store, VirtualClock& clock) {
    std::size_t refused = 0;
    for (std::size_t i = 0; i < lives(); ++i) {
      Service service(store, clock, random, "service" + std::to_string(i));
      service.live(150, i == 0);
      check_kept(check_refusals(service.refusals()));
      refused += service.refusals().size();
    }
    CHECK(refused > 0);
  });
}
