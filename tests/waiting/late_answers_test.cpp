// What happens while a request is on its way: others join, places come back, queues overflow.
// Threading: everything on the thread that moves the clock.
#include <array>
#include <mutex>

#include "tests/catch.hpp"
#include "tests/waiting/holding.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// How a wait ended.
struct End {
  bool over = false;
  bool granted = false;
  std::error_code error{};
  Time at{};
};

template <class L>
auto wait(const L& limiter, Holding& store, End& end, const Deadline& deadline, int priority = 0,
          std::vector<Lease>* leases = nullptr) {
  return wait_for(limiter, request_of(limiter, "a", 1), deadline,
                  [&, leases](std::error_code error, auto grant) {
                    end = {true, !error && grant, error, store.time.now()};
                    if constexpr (std::is_same_v<L, ConcurrencyLimiter>) {
                      if (leases != nullptr) leases->push_back(std::move(grant));
                    } else {
                      static_cast<void>(leases);
                    }
                  },
                  {.priority = priority});
}

constexpr WaitQueueOptions across{.across_processes = true, .client = 1};

}  // namespace

TEST_CASE("a queue that overflows drops nobody whose request is in flight",
          "[waiting][processes][leases]") {
  const auto check = [](const auto& make) {
    for (const bool is_across : {false, true}) {
      for (const std::size_t most : {1U, 2U, 3U}) {
        for (const std::size_t delivered : {0U, 1U, 2U}) {
          Holding store;
          const auto limiter = make(store);
          CAPTURE(limiter.name(), is_across, most, delivered);
          WaitQueueOptions queue = is_across ? across : WaitQueueOptions{};
          queue.max_waiters = most;
          queue.overflow = Overflow::drop_oldest;
          limiter.set_wait_queue(queue);
          const auto held = limiter.try_acquire("a");
          REQUIRE(held);
          store.holds = true;
          std::vector<End> ends(6);
          std::vector<Lease> leases;
          std::vector<std::shared_ptr<detail::Waiter>> waiters;
          for (std::size_t i = 0; i < ends.size(); ++i) {
            const auto waiter = wait(limiter, store, ends[i], Deadline::never(), 0, &leases);
            waiters.push_back(waiter);
            const bool was_asking = waiters[0]->is_under_way();
            for (std::size_t j = 0; j < delivered && !store.first().empty(); ++j) store.deliver();
            if (was_asking && delivered == 0) CHECK_FALSE(ends[0].over);
          }
          store.deliver_all();
          store.holds = false;
          limiter.cancel_waits();
          store.time.advance(1h);
          for (const End& end : ends) {
            CHECK(end.over);
            CHECK((end.error == Errc::too_many_waiters || end.error == Errc::cancelled));
          }
          // As many as may wait have waited to the end.
          CHECK(std::ranges::count(ends, std::error_code(Errc::cancelled), &End::error) ==
                static_cast<std::ptrdiff_t>(most));
        }
      }
    }
  };
  check([](Store& store) { return FixedWindow(store, "x", 1, Calendar::every(1h)); });
  check([](Store& store) { return SlidingWindowCounter(store, "x", {1, 1h}); });
  check([](Store& store) { return ConcurrencyLimiter(store, "x", 1, {.ttl = 10min}); });
  check([](Store& store) { return TokenBucket(store, "x", Quota::per_hour(1).burst(1)); });
}

TEST_CASE("a deadline holds for a waiter that was overtaken while it entered the wait line",
          "[waiting][processes][L3]") {
  Holding store;
  const ConcurrencyLimiter jobs(store, "x", 1, {.ttl = 10min});
  jobs.set_wait_queue(across);
  const Lease held = jobs.try_acquire("a");
  const Time start = store.time.now();
  store.holds = true;
  End first;
  End second;
  const auto one = wait(jobs, store, first, 2s);
  store.deliver_until("wait_line.enter");
  const auto two = wait(jobs, store, second, Deadline::never(), 3);
  store.deliver_all();
  store.holds = false;
  for (int i = 0; i < 10; ++i) store.time.advance(1s);
  CHECK(first.over);
  CHECK_FALSE(first.granted);
  CHECK(first.at == start + 2s);
  jobs.cancel_waits();
  CHECK(second.error == Errc::cancelled);
}

namespace {

/// A bucket of a token a second and 10 at once, of which all are spent.
struct Spent {
  Spent() {
    bucket.set_wait_queue({.across_processes = false, .recheck = 1h});
    static_cast<void>(bucket.try_acquire("a", 10));
  }
  std::shared_ptr<detail::Waiter> wait(Cost cost, Time& granted) {
    return wait_for(bucket, request_of(bucket, "a", cost), Deadline::never(),
                    [&](std::error_code error, auto grant) {
                      if (!error && grant) granted = store.time.now();
                    });
  }
  void reward(Cost amount) {
    const auto ignored = [](std::error_code, const Decision&) {};
    auto verb = TokenBucket::Verbs::reward(bucket, "a", amount);
    detail::Running<decltype(verb), decltype(ignored)>::start(std::move(verb), ignored);
  }

  Holding store;
  TokenBucket bucket{store, "x", Quota::per_second(1).burst(10)};
  Time start = store.time.now();
};

}  // namespace

TEST_CASE("what came back in the meantime counts, in whatever order the answers arrive",
          "[waiting][wake]") {
  for (const bool in_order : {true, false}) {
    CAPTURE(in_order);
    Spent spent;
    Time granted{};
    const auto call = spent.wait(8, granted);
    spent.store.time.advance(1s);
    spent.store.holds = true;
    spent.reward(2);
    spent.reward(3);
    spent.store.deliver(in_order ? 0 : 1);
    spent.store.deliver();
    spent.store.holds = false;
    CHECK(granted == Time{});
    spent.store.time.advance(10s);
    CHECK(granted - spent.start == 3s);
  }
}

TEST_CASE("what was heard late does not put off who waits", "[waiting][wake]") {
  Spent spent;
  const TokenBucket elsewhere(spent.store, "x", spent.bucket.quota());
  Time granted{};
  const auto call = spent.wait(8, granted);
  spent.store.time.advance(1s);
  spent.store.holds = true;
  spent.reward(3);  // 4 of 10
  spent.store.holds = false;
  REQUIRE(elsewhere.try_acquire("a", 3));
  spent.store.holds = true;
  spent.reward(1);  // 2 of 10
  spent.store.deliver(1);
  spent.store.time.advance(3s);
  spent.store.deliver();
  spent.store.holds = false;
  spent.store.time.advance(10s);
  CHECK(granted - spent.start == 7s);
}

TEST_CASE("what comes back while a grant is on its way goes to the next at once",
          "[waiting][wake]") {
  Spent spent;
  Time first{};
  Time second{};
  const std::array calls{spent.wait(1, first), spent.wait(8, second)};
  spent.store.holds = true;
  spent.store.time.advance(1s);
  spent.reward(8);
  spent.store.deliver(1);
  CHECK(first == Time{});
  spent.store.deliver_all();
  CHECK(first - spent.start == 1s);
  CHECK(second - spent.start == 1s);
}

TEST_CASE("a ticket that enters while another call is granted is given up with its caller",
          "[waiting][processes]") {
  Spent spent;
  spent.store.time.advance(1s);
  spent.bucket.set_wait_queue(across);
  const TokenBucket other(spent.store, "x", Quota::per_second(1).burst(10));
  other.set_wait_queue({.across_processes = true, .client = 2});
  Time granted{};
  Time ignored{};
  spent.store.holds = true;
  const auto first = spent.wait(1, ignored);
  const auto leaves = spent.wait(1, ignored);
  spent.store.deliver(1);
  CHECK(spent.store.first() == "token_bucket.reserve");
  spent.store.deliver();
  CHECK(spent.store.first() == "wait_line.enter");
  spent.store.holds = false;
  spent.store.deliver();
  leaves->cancel();
  const auto next =
      wait_for(other, request_of(other, "a", 1), Deadline::never(),
               [&](std::error_code, const auto&) { granted = spent.store.time.now(); });
  spent.store.time.advance(1min);
  CHECK(granted - spent.start == 2s);
}

TEST_CASE("what comes back while the only caller looks again is not missed", "[waiting][wake]") {
  Spent spent;
  spent.bucket.set_wait_queue({.across_processes = false, .recheck = 2s});
  Time first{};
  Time second{};
  const std::array calls{spent.wait(1, first), spent.wait(8, second)};
  spent.store.time.advance(1s);  // the first leaves nothing
  spent.store.holds = true;
  spent.store.time.advance(2s);
  spent.reward(8);
  spent.store.deliver(1);
  spent.store.deliver_all();
  CHECK(first - spent.start == 1s);
  CHECK(second - spent.start == 3s);
}

namespace {

void check_overdue(const auto& make) {
  for (const bool is_granted : {true, false}) {
    for (const Span deadline : {Span{1ms}, Span{100ms}, Span{300ms}, Span{1h}}) {
      Holding store;
      const auto limiter = make(store);
      CAPTURE(limiter.name(), is_granted, deadline.count());
      auto held = is_granted ? decltype(limiter.try_acquire("a")){} : limiter.try_acquire("a");
      store.holds = true;
      End end;
      const auto waiter = wait(limiter, store, end, deadline);
      store.time.advance(std::max(deadline, Span{150ms}) - 1us);
      CHECK_FALSE(end.over);
      store.time.advance(1us);
      CHECK(end.over);
      CHECK(end.error == Errc::unknown);
      CHECK_FALSE(waiter->is_under_way());
      End other;  // the queue goes on
      const auto next = wait(limiter, store, other, deadline);
      CHECK(next->is_under_way());
      next->cancel();
      store.holds = false;
      store.deliver_all();
      CHECK(waiter->times_over() == 1);
      CHECK(other.error == Errc::cancelled);
      held = {};
      if (!is_granted) store.time.advance(deadline + 2h);
      const auto again = limiter.try_acquire("a");  // what a late answer granted has come back
      CHECK(again);
    }
  }
}

}  // namespace

TEST_CASE("a wait ends at its deadline though the store has not answered; a late grant comes back",
          "[waiting][overdue]") {
  check_overdue([](Store& store) { return FixedWindow(store, "x", 1, Calendar::every(1h)); });
  check_overdue([](Store& store) { return SlidingWindowCounter(store, "x", {1, 1h}); });
  check_overdue([](Store& store) { return SlidingWindow(store, "x", {{1, 1h}}); });
  check_overdue([](Store& store) { return ConcurrencyLimiter(store, "x", 1, {.ttl = 10min}); });
  check_overdue([](Store& store) { return TokenBucket(store, "x", Quota::per_hour(1).burst(1)); });
}

TEST_CASE("a call that may not wait has as long for its answer as the store gives it",
          "[waiting][overdue]") {
  Holding store;
  const TokenBucket bucket(store, "x", Quota::per_hour(1).burst(1));
  store.holds = true;
  End end;
  const auto waiter = wait(bucket, store, end, 0s);
  store.time.advance(1h);
  CHECK_FALSE(end.over);
  store.deliver();
  CHECK(end.granted);
}

TEST_CASE("a ticket that is entered late leaves the wait line, unless somebody waits here by then",
          "[waiting][overdue][processes]") {
  enum class Other { none, waits_here, waits_elsewhere };
  for (const Other other : {Other::none, Other::waits_here, Other::waits_elsewhere}) {
    Holding store;
    const ConcurrencyLimiter jobs(store, "x", 1, {.ttl = 10min});
    const FixedWindow window(store, "y", 1, Calendar::every(24h));
    jobs.set_wait_queue(across);
    window.set_wait_queue({.across_processes = false, .recheck = 24h});
    const Lease held = jobs.try_acquire("a");
    REQUIRE(window.try_acquire("a"));
    std::shared_ptr<detail::Waiter> waits;
    if (other == Other::waits_elsewhere) {
      waits =
          wait_for(Several{}, detail::limits_of(std::array{Claim(window, "a"), Claim(jobs, "a")}),
                   Deadline::never(), [](std::error_code, const Grants&) {});
      REQUIRE(window.waiting("a") == 1);
    }
    store.holds = true;
    End end;
    const auto waiter = wait(jobs, store, end, 1s);
    store.deliver();  // the refusal
    REQUIRE(store.first() == "wait_line.enter");
    End ignored;
    if (other == Other::waits_here) waits = wait(jobs, store, ignored, Deadline::never());
    store.time.advance(1s);
    REQUIRE(end.over);  // the last refusal holds
    CHECK_FALSE(end.error);
    CHECK_FALSE(end.granted);
    store.deliver();                                  // that it is entered
    if (other == Other::waits_here) store.deliver();  // the refusal of the second
    CHECK(store.first() == (other == Other::waits_here ? "wait_line.enter" : "wait_line.leave"));
    if (waits) waits->cancel();
    store.holds = false;
    store.deliver_all();
    CHECK(waiter->times_over() == 1);
  }
}

TEST_CASE("a wait that ends while its ticket is entered tells how long the limit still takes",
          "[waiting][overdue][processes]") {
  Holding store;
  const ConcurrencyLimiter jobs(store, "x", 1, {.ttl = 10min});
  jobs.set_wait_queue(across);
  const Lease held = jobs.try_acquire("a");
  store.holds = true;
  Decision refusal;
  const auto waiter = wait_for(jobs, request_of(jobs, "a"), 1s,
                               [&](std::error_code, const Lease& no) { refusal = no.decision(); });
  store.deliver();
  REQUIRE(store.first() == "wait_line.enter");
  store.time.advance(1s);
  CHECK(waiter->times_over() == 1);
  CHECK(refusal.retry_after == 10min - 1s);
  store.holds = false;
  store.deliver_all();
}

TEST_CASE("a request that is sent at the deadline has 150 ms for its answer",
          "[waiting][overdue][leases]") {
  Holding store;
  const ConcurrencyLimiter jobs(store, "x", 1, {.ttl = 10min});
  jobs.set_wait_queue({.across_processes = false, .recheck = 1h});
  const Lease held = jobs.try_acquire("a");
  End end;
  const auto waiter = wait(jobs, store, end, 1s);
  store.holds = true;
  store.time.advance(1s);
  CHECK(waiter->is_under_way());
  store.time.advance(150ms - 1us);
  CHECK_FALSE(end.over);
  store.time.advance(1us);
  CHECK(end.error == Errc::unknown);
  store.holds = false;
  store.deliver_all();
  CHECK(waiter->times_over() == 1);
}

TEST_CASE("who is refused behind one that sleeps is told how long that sleeps",
          "[waiting][leases]") {
  Holding store;
  const ConcurrencyLimiter jobs(store, "x", 1, {.ttl = 10min});
  jobs.set_wait_queue({.across_processes = false, .recheck = 1h});
  const Lease held = jobs.try_acquire("a");
  End first;
  const auto one = wait(jobs, store, first, Deadline::never());
  Decision refusal;
  const auto two = wait_for(jobs, request_of(jobs, "a"), 1s,
                            [&](std::error_code, const Lease& no) { refusal = no.decision(); });
  store.time.advance(1s);
  CHECK(two->times_over() == 1);
  CHECK(refusal.retry_after == 10min - 1s);
  one->cancel();
}

TEST_CASE("a thread that waits is back at its deadline", "[waiting][overdue][realtime]") {
  /// Answers nothing until it ends. In real time.
  struct Deaf final : Store {
    void execute(const Plan&, Completion done) noexcept override {
      const std::lock_guard lock(mutex);
      kept.push_back(std::move(done));
    }
    Clock& clock() noexcept override { return time; }
    SystemClock time;
    std::mutex mutex;
    std::vector<Completion> kept;
  };
  Deaf store;
  const ConcurrencyLimiter jobs(store, "y", 1, {.ttl = 10min});
  const Time start = store.time.now();
  std::error_code error;
  CHECK_FALSE(jobs.acquire("a", 1, 110ms, {}, error).decision());
  CHECK(error == Errc::unknown);
  CHECK_FALSE(acquire({{jobs, "a"}}, 110ms, {}, error).decision());
  CHECK(error == Errc::unknown);
  CHECK(store.time.now() >= start + 220ms);
  for (Completion& done : std::exchange(store.kept, {})) done.fail(Errc::unknown);
}

}  // namespace sluice::test
