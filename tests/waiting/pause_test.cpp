// Deadlines, cancellations and refusals of callers that wait behind others, to the tick.
// Threading: everything on the thread that moves the clock.
#include <deque>
#include <map>
#include <vector>

#include "tests/catch.hpp"
#include "tests/waiting/probe.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

/// How each wait ended, and when.
struct Ends {
  struct End {
    bool granted = false;
    std::error_code error{};
    Span at{};
    Span hint{};
  };

  explicit Ends(VirtualClock& clock) : time(clock), start(clock.now()) {}
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {  // who waits for ever keeps the queue that keeps it
    for (const auto& [name, probe] : probes) probe->cancel();
  }
  template <class L>
  void wait(const L& limiter, int name, const Deadline& deadline, Cost cost = 1, int priority = 0) {
    probes[name] = wait_for(limiter, request_of(limiter, "a", cost), deadline,
                            [this, name](std::error_code error, auto grant) {
                              Span hint{0};
                              if constexpr (std::is_same_v<typename L::Grant, Reservation>) {
                                hint = grant.retry_after;
                              }
                              all[name] = {!error && grant, error, time.now() - start, hint};
                              if constexpr (std::is_same_v<L, ConcurrencyLimiter>) {
                                leases.push_back(std::move(grant));
                              }
                            },
                            {.priority = priority});
  }
  [[nodiscard]] bool is_granted(int name, Span at) const {
    const auto found = all.find(name);
    return found != all.end() && found->second.granted && found->second.at == at;
  }
  [[nodiscard]] bool is_refused(int name, Span at) const {
    const auto found = all.find(name);
    return found != all.end() && !found->second.granted && !found->second.error &&
           found->second.at == at;
  }

  VirtualClock& time;
  Time start;
  std::map<int, End> all{};
  std::map<int, std::shared_ptr<detail::Waiter>> probes{};
  std::vector<Lease> leases{};
};

struct Fixture {
  VirtualClock time;
  std::unique_ptr<Store> store = make_virtual_store(time);
  TokenBucket bucket{*store, "b", Quota::per_second(1).burst(1)};
  Ends ends{time};
};

/// A store that answers as it is told, and notes when it was asked.
struct Told final : Store {
  void execute(const Plan&, Completion done) noexcept override {
    asked.push_back(time.now());
    Decision decision = answers.front();
    if (answers.size() > 1) answers.pop_front();
    decision.at = time.now();
    const std::array<Word, 8> output{};
    done({{}, decision, {&decision, 1}, output});
  }
  Clock& clock() noexcept override { return time; }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }

  VirtualClock time;
  std::deque<Decision> answers;
  std::vector<Time> asked;
};

}  // namespace

TEST_CASE("in a backlog who could be granted at its deadline is granted, a tick earlier refused",
          "[waiting][backlog][L3]") {
  Fixture f;
  f.ends.wait(f.bucket, 0, Deadline::never());
  // Each could have its second at the soonest; those with odd numbers come a tick too late for
  // theirs, and stand behind.
  for (int i = 1; i <= 200; ++i) {
    f.ends.wait(f.bucket, 2 * i, i * 1s);
    f.ends.wait(f.bucket, 2 * i + 1, (i + 1) * 1s - 1us);
  }
  while (f.time.advance_to_next()) {
  }
  for (int i = 1; i <= 200; ++i) {
    CAPTURE(i);
    CHECK(f.ends.is_granted(2 * i, i * 1s));
    const auto& late = f.ends.all.at(2 * i + 1);
    CHECK_FALSE(late.granted);
    CHECK_FALSE(late.error);
    CHECK(late.at <= (i + 1) * 1s - 1us);
    CHECK(late.at == 0s);
  }
}

TEST_CASE("who knows when its units are there still looks again each recheck", "[waiting]") {
  VirtualClock time;
  const auto store = make_virtual_store(time);
  Ends ends(time);
  const TokenBucket bucket(*store, "b", Quota::per(1, 10s).burst(1));
  const TokenBucket other(*store, "b", Quota::per(1, 10s).burst(1));
  for (const TokenBucket* each : {&bucket, &other}) {
    each->set_wait_queue({.across_processes = false});
  }
  for (const int name : {1, 2, 3}) ends.wait(bucket, name, Deadline::never());
  time.advance(10s);
  CHECK(ends.is_granted(2, 10s));
  time.advance(100ms);
  other.reset("a");
  time.advance(1h);
  CHECK(ends.is_granted(3, 11s));
}

TEST_CASE("who waits behind reservations is granted at its deadline, and refused at once before",
          "[waiting][backlog][L3]") {
  Fixture f;
  REQUIRE(f.bucket.try_acquire("a"));
  for (int i = 0; i < 60; ++i) REQUIRE(f.bucket.reserve("a", 1, 1min).allowed);
  const TokenBucket other(*f.store, "b", Quota::per_second(1).burst(1));
  f.ends.wait(other, 1, 61s - 1us);
  CHECK(f.ends.is_refused(1, 0s));
  CHECK(f.ends.all[1].hint == 61s);
  f.ends.wait(other, 2, 61s);
  // Behind it, nobody can be granted before it is.
  f.ends.wait(other, 3, 62s - 1us);
  CHECK(f.ends.is_refused(3, 0s));
  CHECK(f.ends.all[3].hint == 62s);
  f.ends.wait(other, 4, 62s);
  f.time.advance(1h);
  CHECK(f.ends.is_granted(2, 61s));
  CHECK(f.ends.is_granted(4, 62s));
}

TEST_CASE("on every limiter, who could be granted at its deadline is granted, not a tick earlier",
          "[waiting][L3]") {
  const auto check = [](auto make, bool is_known = true) {
    for (const bool across : {false, true}) {
      VirtualClock time;
      const auto store = make_virtual_store(time);
      const auto limiter = make(*store);
      CAPTURE(limiter.name(), across);
      limiter.set_wait_queue({.across_processes = across, .client = 1});
      const auto held = limiter.try_acquire("a");  // by a silent holder, if it is a lease
      REQUIRE(held);
      const Span left = limiter.peek("a").retry_after;
      Ends ends(time);
      ends.wait(limiter, 1, left - 1us);
      ends.wait(limiter, 2, left);
      time.advance(1h);
      CHECK(ends.is_refused(1, is_known ? 0s : left - 1us));
      CHECK(ends.is_granted(2, left));
    }
  };
  check([](Store& store) { return FixedWindow(store, "f", 1, Calendar::every(1h)); });
  check([](Store& store) { return TokenBucket(store, "b", Quota::per(1, 100s).burst(1)); });
  check([](Store& store) { return SlidingWindow(store, "w", {{1, 100s}}); });
  check([](Store& store) { return ConcurrencyLimiter(store, "j", 1, {.ttl = 10s}); }, false);
}

TEST_CASE("who leaves the front of a backlog, or comes to it, is waited for by nobody",
          "[waiting][backlog]") {
  for (const Span then : {2s, 10s}) {
    VirtualClock time;
    const auto store = make_virtual_store(time);
    const TokenBucket bucket(*store, "b", Quota::per_second(1).burst(200));
    Ends ends(time);
    REQUIRE(bucket.try_acquire("a", 200));
    ends.wait(bucket, 1, Deadline::never(), 150);  // sleeps until its time
    ends.wait(bucket, 2, Deadline::never(), 5);
    time.advance(then);
    CHECK(ends.all.empty());
    ends.wait(bucket, 3, Deadline::never(), 2, 3);
    CHECK(ends.is_granted(3, then));
    ends.probes[1]->cancel();
    CHECK(ends.all[1].error == Errc::cancelled);
    time.advance(1h);
    CHECK(ends.is_granted(2, std::max<Span>(then, 7s)));
  }
}

TEST_CASE("a refusal without the store is asked again at its hint", "[waiting][L3]") {
  for (const Source source : {Source::policy, Source::fallback}) {
    CAPTURE(static_cast<int>(source));
    Told store;
    Decision refused{.allowed = false, .source = source, .limit = 1, .retry_after = 1s};
    Decision granted{.allowed = true, .source = Source::other, .limit = 1};
    store.answers = {refused, refused, granted};
    const TokenBucket bucket(store, "b", Quota::per_second(1).burst(1));
    Ends ends(store.time);
    ends.wait(bucket, 1, 10s);
    CHECK(ends.all.empty());
    ends.wait(bucket, 2, 1s);  // behind it, no earlier than the hint
    ends.wait(bucket, 3, 1s - 1us);
    CHECK(ends.is_refused(3, 0s));
    CHECK(ends.all.count(2) == 0);
    store.time.advance(1min);
    // A local store's hint does not say when the store is back: it is asked again soon.
    const Span rest = source == Source::fallback ? 50ms : 1s;
    CHECK(ends.is_granted(1, 2 * rest));
    const std::vector<Time> expected{ends.start, ends.start + rest, ends.start + 2 * rest};
    REQUIRE(store.asked.size() >= expected.size());
    CHECK(std::equal(expected.begin(), expected.end(), store.asked.begin()));
  }
}

}  // namespace sluice::test
