// How long a client stays away from a server, and how soon a default FallbackStore decides with it
// again: both parts of the documented bound together, in virtual time. Threading: single-threaded.
#include <array>
#include <functional>
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

constexpr Time start = to_time(1'000'000'000);
constexpr Span never_longer = 160ms;

ReconnectPace pace_of(std::uint64_t seed) { return {10ms, never_longer, seed}; }

/// The longest and the shortest of many pauses, each behind what `before` does.
struct Drawn {
  Span longest{0};
  Span shortest{1h};

  explicit Drawn(const auto& before) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      ReconnectPace pace = pace_of(seed);
      const Span pause = pace.pause(before(pace));
      longest = std::max(longest, pause);
      shortest = std::min(shortest, pause);
    }
  }
  /// Uniform below `cap`: 500 draws leave out neither end.
  [[nodiscard]] bool are_below(Span cap) const {
    return longest < cap && longest > cap * 9 / 10 && shortest < cap / 10;
  }
};

/// Attempts that fail at once.
void fail(ReconnectPace& pace, int times) {
  for (int i = 0; i < times; ++i) {
    pace.attempt(start);
    static_cast<void>(pace.pause(start));
  }
}

/// A connection that ends behind `held`.
Time lose(ReconnectPace& pace, Span held, bool decides, bool is_left = false) {
  pace.attempt(start);
  pace.connected(start);
  if (decides) pace.decided();
  pace.ended(start + held, is_left);
  return start + held;
}

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

TEST_CASE("pauses are drawn below a cap that doubles with each failure", "[pace]") {
  const std::array<Span, 7> caps{10ms, 20ms, 40ms, 80ms, 160ms, 160ms, 160ms};
  for (std::size_t i = 0; i < caps.size(); ++i) {
    CAPTURE(i);
    CHECK(Drawn([&](ReconnectPace& pace) {
            fail(pace, static_cast<int>(i));
            pace.attempt(start);
            return start;
          }).are_below(caps[i]));
  }
  ReconnectPace pace(1us, 24h, 7);
  fail(pace, 1'000);
  pace.attempt(start);
  CHECK(pace.pause(start) <= Span{1us} * (1 << 20));
}

TEST_CASE("a connection that decided a call, or held for 100 ms, ends the growth, and no other",
          "[pace]") {
  struct Row {
    const char* what;
    std::function<Time(ReconnectPace&)> before;
    Span cap;
  };
  const auto behind = [](Span held, bool decides, bool is_left = false) {
    return [=](ReconnectPace& pace) {
      fail(pace, 10);
      return lose(pace, held, decides, is_left);
    };
  };
  for (const auto& [what, before, cap] : {
           Row{"decided, however short", behind(0us, true), 10ms},
           {"decided, and lost by others too", behind(1h, true), 10ms},
           {"decided nothing, at once", behind(0us, false), never_longer},
           {"decided nothing, 1 us too short", behind(100ms - 1us, false), never_longer},
           {"decided nothing, and held", behind(100ms, false), 10ms},
           {"left, since the server cannot decide", behind(10s, false, true), never_longer},
           {"left, though it had decided", behind(0us, true, true), never_longer},
           {"left late, though it had decided", behind(10s, true, true), never_longer},
           {"decided nothing, behind one that had",
            [](ReconnectPace& pace) {
              lose(pace, 0us, true);
              fail(pace, 10);
              return lose(pace, 0us, false);
            },
            never_longer},
           {"an attempt that took long",
            [](ReconnectPace& pace) {
              fail(pace, 10);
              pace.attempt(start);
              return start;
            },
            never_longer},
           {"the end of no connection",
            [](ReconnectPace& pace) {
              fail(pace, 10);
              pace.attempt(start);
              pace.ended(start + 1s);
              return start + 1s;
            },
            never_longer},
           {"the third that decided",
            [](ReconnectPace& pace) {
              for (int i = 0; i < 2; ++i) static_cast<void>(pace.pause(lose(pace, 0us, true)));
              return lose(pace, 1us, true);
            },
            10ms},
       }) {
    CAPTURE(what);
    CHECK(Drawn(before).are_below(cap));
  }
}

TEST_CASE("the pause counts from the beginning of an attempt that failed", "[pace]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const Span hung : {0ms, 1ms, 50ms, 159ms, 160ms, 500ms}) {
      ReconnectPace pace = pace_of(seed);
      ReconnectPace twin = pace_of(seed);
      fail(pace, 10);
      fail(twin, 10);
      pace.attempt(start);
      twin.attempt(start);
      CHECK(pace.pause(start + hung) == std::max(Span{0}, twin.pause(start) - hung));
    }
  }
}

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
