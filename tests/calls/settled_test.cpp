// What a settlement or a refund gives back goes at once to a caller that waits. Threading:
// everything on the thread that moves the clock.
#include <list>
#include <optional>

#include "sluice/sluice.hpp"
#include "sluice/testing.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// Callers of a model who claim what a call may cost, and learn after it what it has cost.
class Callers {
 public:
  Callers(std::size_t count, Random& random) : random_(random) {
    for (std::size_t i = 0; i < count; ++i) callers_.emplace_back(*this);
  }
  ~Callers() {
    for (Caller& caller : callers_) time.cancel_timer(caller.timer);
    window.cancel_waits();
  }
  /// What was charged in the end, as a share of the limit.
  double run(Span length) {
    for (Caller& caller : callers_) ask(caller);
    const Time end = time.now() + length;
    while (time.now() < end && time.advance_to_next()) {
    }
    return static_cast<double>(spent_) / (100'000.0 * static_cast<double>(length / 1min));
  }

  VirtualClock time;
  std::unique_ptr<Store> store = make_virtual_store(time);
  FixedWindow window{*store, "tokens", 100'000, Calendar::every(1min)};

 private:
  struct Caller {
    explicit Caller(Callers& owner) : model(owner) {}
    static void ended(void* self) noexcept {
      Caller& caller = *static_cast<Caller*>(self);
      caller.model.settle(caller);
    }
    Callers& model;
    std::optional<Grants> grants{};
    std::shared_ptr<Probe<Several>> probe{};
    TimerCallback timer{&Caller::ended, this};
  };

  void ask(Caller& caller) {
    caller.probe = wait_for(Several{}, detail::limits_of(std::array{Claim(window, "a", 1'400)}),
                            Deadline::never(), [&](std::error_code error, Grants grants) {
                              if (error || !grants) return;
                              caller.grants.emplace(std::move(grants));
                              const Span call{random_.between(5'000'000, 15'000'000)};
                              time.set_timer(caller.timer, time.now() + call);
                            });
  }
  void settle(Caller& caller) {
    const Word actual = random_.between(300, 1'100);
    spent_ += actual;
    caller.grants->settle(0, actual);
    caller.grants.reset();
    ask(caller);
  }

  Random& random_;
  std::list<Caller> callers_;
  Word spent_ = 0;
};

}  // namespace

TEST_CASE("300 callers whose calls cost half of what they claim use a window up", "[claims]") {
  Random random("300 callers whose calls cost half of what they claim use a window up");
  CAPTURE(random.repeat());
  Callers callers(300, random);
  CHECK(callers.run(10min) >= 0.97);
}

TEST_CASE("what a refund of several limits gives back is granted at once", "[claims]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  const FixedWindow first(*store, "first", 5, Calendar::every(1h));
  const FixedWindow second(*store, "second", 5, Calendar::every(1h));
  Grants held = acquire({{first, "a", 5}, {second, "a", 5}}, 0s);
  REQUIRE(held);
  int granted = 0;
  const auto count = [&](std::error_code error, const Decision& grant) {
    if (!error && grant) ++granted;
  };
  const auto one = wait_for(first, {"a", 5}, Deadline::never(), count);
  const auto other = wait_for(second, {"a", 5}, Deadline::never(), count);
  CHECK(granted == 0);
  held.refund();
  CHECK(granted == 2);
}

TEST_CASE("what gives nothing back wakes nobody, and a lease wakes once it is released",
          "[claims][leases]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  testing::FaultyStore counting(*store);
  const auto operations = [&] { return counting.counts().calls; };
  const FixedWindow window(counting, "w", 5, Calendar::every(1h));
  Grants dear = acquire({{window, "a", 4}}, 0s);
  const auto ignore = [](std::error_code, const auto&) {};
  const auto waits = wait_for(window, {"a", 2}, Deadline::never(), ignore);
  std::uint64_t before = operations();
  dear.settle(0, 5);
  CHECK(operations() == before + 1);

  const ConcurrencyLimiter jobs(counting, "jobs", 1, {.ttl = 1h});
  Grants held = acquire({{jobs, "a"}}, 0s);
  std::vector<Lease> granted;
  const auto keep = [&](std::error_code error, Lease lease) {
    if (!error && lease) granted.push_back(std::move(lease));
  };
  const auto request = [&] { return request_of(jobs, "a", 1); };
  const auto one = wait_for(jobs, request(), Deadline::never(), keep);
  const auto other = wait_for(jobs, request(), Deadline::never(), keep);
  before = operations();
  held.refund();
  CHECK(granted.size() == 1);
  CHECK(operations() == before + 3);  // the release, the grant, and a refusal of the other
  other->cancel();
  waits->cancel();
}

}  // namespace sluice::test
