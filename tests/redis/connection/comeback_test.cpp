// How soon a default FallbackStore decides with its server again, behind a client that connects at
// the pace of the Redis store: both parts of the documented bound together, in virtual time.
// Threading: single-threaded.
#include <list>
#include <optional>

#include "backends/redis/connection/reconnect_pace.hpp"
#include "sluice/decide.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/timer_callback.hpp"
#include "sluice/fallback_store.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/redis/redis_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;
using redis_detail::ReconnectPace;

namespace {

/// A client whose server is away or there. Attempts to connect end at once, and follow each other
/// as those of the Redis store do. A call waits for a connection until its plan's time has passed.
class ConnectingStore final : public Store {
 public:
  /// `tells`: whether part_of() counts the connections.
  ConnectingStore(VirtualClock& clock, Store& server, std::uint64_t seed, bool tells)
      : clock_(clock),
        server_(server),
        tells_(tells),
        pace_(RedisOptions{}.reconnect_min, RedisOptions{}.reconnect_max, seed) {
    connect();
  }
  ~ConnectingStore() override { clock_.cancel_timer(attempt_); }

  void execute(const Plan& plan, Completion done) noexcept override {
    if (connected_) {
      pace_.decided();
      return server_.execute(plan, std::move(done));
    }
    Call& call = calls_.emplace_back(*this, plan, std::move(done));
    call.self = std::prev(calls_.end());
    set(call.end, clock_.now() + plan.timeout());
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }
  [[nodiscard]] StorePart part_of(const Key&) const noexcept override {
    return {0, tells_ ? connections_ : 0};
  }
  [[nodiscard]] bool may_block() const noexcept override { return false; }

  void leave() {
    away_ = true;
    if (!connected_) return;
    connected_ = false;
    pace_.ended(clock_.now());
    set(attempt_, clock_.now() + pace_.pause(clock_.now()));
  }
  void come_back() noexcept { away_ = false; }
  [[nodiscard]] std::uint64_t attempts() const noexcept { return attempts_; }

 private:
  struct Call {
    Call(ConnectingStore& store, const Plan& what, Completion answer)
        : owner(store), plan(what), done(std::move(answer)) {}

    ConnectingStore& owner;
    OwnedPlan plan;
    Completion done;
    std::list<Call>::iterator self{};
    TimerCallback end{[](void* call) noexcept {
                        auto& ended = *static_cast<Call*>(call);
                        Completion told = std::move(ended.done);
                        ended.owner.calls_.erase(ended.self);
                        told.fail(Errc::not_connected);
                      },
                      this};
  };

  void connect() noexcept {
    ++attempts_;
    pace_.attempt(clock_.now());
    if (away_) return set(attempt_, clock_.now() + pace_.pause(clock_.now()));
    pace_.connected(clock_.now());
    connected_ = true;
    ++connections_;
    while (!calls_.empty()) {
      Call& call = calls_.front();
      clock_.cancel_timer(call.end);
      pace_.decided();
      server_.execute(call.plan.view(), std::move(call.done));
      calls_.pop_front();
    }
  }
  void set(TimerCallback& timer, Time when) noexcept {
    if (clock_.set_timer(timer, when) != TimerState::set) timer.ring();
  }

  VirtualClock& clock_;
  Store& server_;
  bool tells_;
  ReconnectPace pace_;
  bool away_ = false;
  bool connected_ = false;
  std::uint64_t attempts_ = 0;
  std::uint64_t connections_ = 0;
  std::list<Call> calls_;
  TimerCallback attempt_{
      [](void* self) noexcept { static_cast<ConnectingStore*>(self)->connect(); }, this};
};

}  // namespace

TEST_CASE(
    "a default FallbackStore before a default client is back within 600 ms, or 250 ms if told",
    "[pace][fallback][C-036]") {
  Random random(
      "a default FallbackStore before a default client is back within 600 ms, or 250 ms if told");
  CAPTURE(random.repeat());
  const bool tells = GENERATE(false, true);
  CAPTURE(tells);
  constexpr Span step = 1ms;  // between two calls
  Span longest{0};
  for (const Span length : {Span{200ms}, Span{3s}, Span{1min}}) {
    const auto rounds = length > 3s ? scaled(3) : scaled(150, 20);
    for (std::size_t round = 0; round < rounds; ++round) {
      CAPTURE(length.count(), round);
      VirtualClock clock;
      const auto server = make_virtual_store(clock);
      ConnectingStore client(clock, *server, random.next(), tells);
      SeededRng rng{random.next()};
      CircuitBreaker breaker(clock, {.rng = &rng});
      FallbackStore store(client, breaker, FailurePolicy::closed());
      const TokenBucket bucket(store, "b", Quota::per_second(1'000'000).burst(1'000'000));
      std::optional<Time> decided;
      const auto ask = [&] {
        clock.advance(step);
        decide_then(store, bucket.acquire_step("a"),
                    [&](const std::error_code&, const Decision& answer) {
                      if (!is_degraded(answer.source) && !decided) decided = clock.now();
                    });
      };
      const auto ask_for = [&](Span span) {
        for (const Time end = clock.now() + span; clock.now() < end;) ask();
      };
      ask_for(50ms);
      REQUIRE(decided);
      client.leave();
      ask_for(1ms);
      decided.reset();
      ask_for(length);
      REQUIRE_FALSE(decided);
      CHECK(breaker.stats().trips == 1);
      // The price that the page states: 8 attempts a second on average.
      if (length == 1min) CHECK(client.attempts() < 2 * 8 * 60);
      client.come_back();
      const Time back = clock.now();
      // A call from before the trip may be decided first, which is no probe.
      const auto is_closed = [&] { return breaker.state() == CircuitBreaker::State::closed; };
      while (!is_closed() && clock.now() < back + 1min) ask();
      REQUIRE(is_closed());
      REQUIRE(decided);
      longest = std::max(longest, clock.now() - back);
    }
  }
  CHECK(longest <= (tells ? Span{250ms} + step : Span{600ms}));
  CHECK(longest > 100ms);  // pauses were met
}
