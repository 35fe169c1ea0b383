// Holders who race for one place over a network that delays and loses, against a server whose clock
// is another one: nobody is granted the place before every other holder's lost() is true, and whose
// lease is kept alive has been told by then. Threading: one thread.
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/extend/timer_callback.hpp"
#include "sluice/limiters/concurrency_limiter.hpp"
#include "sluice/limiters/lease_renewer.hpp"
#include "tests/catch.hpp"
#include "tests/support/distant_store.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

constexpr Span ttl = 10s;

/// What must have happened for the claim to mean anything.
struct Tally {
  int grants = 0;
  int taken_over = 0;  // from a holder who had not given it back
  int told = 0;
  int renewed = 0;
};

class Race {
 public:
  /// `key`: its own, because a state of an earlier race may be as far ahead as clocks are set back.
  Race(std::string key, Random& random, Store& server, VirtualClock& server_clock, Tally& tally)
      : key_(std::move(key)), random_(random), tally_(tally), store_(here_, server, server_clock) {
    store_.later = true;
    store_.keeps_deadlines = random_.one_in(2);
    store_.patience = ttl * 2;
    store_.draw = [this] { return draw_trip(); };
    store_.decided = [this](const Plan& plan, const Outcome& outcome) { decided(plan, outcome); };
    store_.step_server(Span{random_.between(-Span{1h}.count(), Span{1h}.count())});
    if (random_.one_in(2)) store_.slow_server(random_.between(1, 20'000));
    for (int i = 0; i < 4; ++i) workers_.emplace_back(*this);
  }
  ~Race() { over_ = true; }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  void run(Span span) {
    const Time end = here_.now() + span;
    for (Worker& worker : workers_) worker.act();
    while (here_.now() < end && here_.advance_to_next()) {
    }
    for (const Holding& one : holdings_) {
      CHECK((!one.kept || !one.taken_over_at || one.told || !one.lease));
    }
  }

 private:
  struct Worker;
  /// A grant, for as long as its holder might believe in it.
  struct Holding {
    Lease lease;
    Worker& owner;
    std::array<Word, 3> id;
    bool kept = false;
    bool told = false;
    std::optional<Time> taken_over_at{};
  };

  struct Worker {
    explicit Worker(Race& of) : race(of), renewer(of.here_, Renewing::by_hand) {}
    ~Worker() {
      race.here_.cancel_timer(wake);
      race.here_.cancel_timer(renewal);
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    Race& race;
    LeaseRenewer renewer;
    LeaseId id{};
    Holding* held = nullptr;
    bool asks = false;
    bool is_settled = true;
    Time asked_at{};
    TimerCallback wake{[](void* self) noexcept { static_cast<Worker*>(self)->act(); }, this};
    TimerCallback renewal{[](void* self) noexcept { static_cast<Worker*>(self)->renew_due(); },
                          this};

    void act() {
      race.store_.later = true;
      if (race.random_.one_in(60)) race.set_back();
      if (held != nullptr) {
        use();
      } else if (!asks) {
        ask();
      }
      race.ring(wake, race.some(ttl / 2));
    }

    void ask() {
      asks = true;
      // Where no answer came, perhaps under the same id.
      if (is_settled || race.random_.one_in(2)) id = LeaseId::draw(race.random_);
      asked_at = race.here_.now();
      race.store_.execute(race.jobs_.acquire_step(race.key_, id),
                          Completion(&Worker::answered, this));
    }
    static void answered(void* self, const Outcome& outcome) noexcept {
      auto& worker = *static_cast<Worker*>(self);
      worker.asks = false;
      worker.is_settled = !outcome.error;
      if (worker.race.over_ || outcome.error || !outcome.decision.allowed) return;
      Lease lease = worker.race.jobs_.adopt(worker.race.key_, worker.id, 1, outcome.decision,
                                            outcome.output, worker.asked_at);
      worker.held = &worker.race.holdings_.emplace_back(
          Holding{std::move(lease), worker, worker.race.words_of(worker.id)});
    }

    void use() {
      Holding& mine = *held;
      switch (race.random_.below(6)) {
        case 0:
          if (!mine.kept && !mine.lease.lost()) keep(mine);
          break;
        case 1: {  // and all others act meanwhile
          race.store_.later = false;
          std::error_code error;
          if (mine.lease.renew(error)) {
            ++race.tally_.renewed;
            CHECK_FALSE(mine.lease.lost());
          }
          race.store_.later = true;
          break;
        }
        case 2:
          mine.lease.release_later();
          held = nullptr;
          break;
        case 3:  // goes on in the belief that it holds the place, and asks for another
          if (race.random_.one_in(2) || mine.lease.lost()) held = nullptr;
          break;
        default:
          break;
      }
    }
    void keep(Holding& mine) {
      mine.kept = true;
      mine.lease.keep_alive(renewer, [this, &mine](const LeaseId&) {
        CHECK(mine.lease.lost());
        CHECK(mine.taken_over_at.value_or(race.here_.now()) == race.here_.now());
        mine.told = true;
        ++race.tally_.told;
      });
      race.here_.cancel_timer(renewal);
      renew_due();
    }
    void renew_due() {
      race.store_.later = true;
      const Time next = renewer.renew_due();
      if (next != Time::max()) race.ring(renewal, next - race.here_.now());
    }
  };

  /// Mostly quick; at times longer than a TTL, or lost.
  Trip draw_trip() {
    const Span longest = random_.one_in(4) ? ttl * 3 / 2 : random_.one_in(2) ? ttl / 4 : ttl / 100;
    Trip trip{some(longest), some(longest)};
    if (random_.one_in(10)) trip.lost = Trip::Lost::question;
    if (random_.one_in(10)) trip.lost = Trip::Lost::answer;
    return trip;
  }
  Span some(Span most) { return Span{random_.between(0, most.count())}; }

  void ring(TimerCallback& timer, Span after) {
    // Never at once, so that time goes on; an instant that was promised is in the future.
    here_.set_timer(timer, here_.now() + std::max(Span{1}, after));
  }

  /// By a minute in all: the store sits that out.
  void set_back() {
    const Span step = some(60s - set_back_);
    set_back_ += step;
    store_.step_server(-step);
  }

  [[nodiscard]] std::array<Word, 3> words_of(const LeaseId& id) const {
    const Step step = jobs_.acquire_step(key_, id);
    return {step.args[5], step.args[6], step.args[7]};
  }

  /// The place is another's from this instant on.
  void decided(const Plan& plan, const Outcome& outcome) {
    const Step& step = plan.steps().front();
    if (over_ || step.operation != &leases_acquire || outcome.error || !outcome.decision) return;
    ++tally_.grants;
    const std::array id{step.args[5], step.args[6], step.args[7]};
    for (Holding& one : holdings_) {
      if (!one.lease || one.id == id) continue;
      CHECK(one.lease.lost());
      if (!one.taken_over_at) {
        ++tally_.taken_over;
        if (!one.told) one.taken_over_at = here_.now();
      }
    }
  }

  const std::string key_;
  Random& random_;
  Tally& tally_;
  bool over_ = false;
  Span set_back_{0};
  VirtualClock here_;
  std::deque<Worker> workers_;  // outlives the store, which answers them as it ends
  DistantStore store_;
  const ConcurrencyLimiter jobs_{store_, "jobs", 1, {.ttl = ttl}};
  std::deque<Holding> holdings_;
};

}  // namespace

TEST_CASE("nobody is granted a place before every other holder's lease is lost, and told so",
          "[leases][C-034][C-035]") {
  Random random("nobody is granted a place before every other holder's lease is lost, and told so");
  CAPTURE(random.repeat());
  for_each_store([&](Store& server, VirtualClock& server_clock) {
    Tally tally;
    const std::size_t lives = scaled(20, 4);
    for (std::size_t i = 0; i < lives; ++i) {
      Race race("race" + std::to_string(i), random, server, server_clock, tally);
      race.run(20min);
      server_clock.set(VirtualClock::default_start);
    }
    CAPTURE(tally.grants, tally.taken_over, tally.told, tally.renewed);
    CHECK(tally.grants > static_cast<int>(lives) * 20);
    CHECK(tally.taken_over > static_cast<int>(lives));
    CHECK(tally.told > static_cast<int>(lives));
    CHECK(tally.renewed > static_cast<int>(lives));
  });
}
