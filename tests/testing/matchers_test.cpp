// The matchers of traces, each on a trace that keeps its claim to the last unit and on one that
// breaks it by one. Threading: single-threaded.
#include "sluice/testing/matchers.hpp"

#include <limits>

#include "sluice/sluice.hpp"
#include "sluice/testing/catch2.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/recording_store.hpp"
#include "src/testing/trace_events.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

namespace {

/// Traces made by hand: what a store without a limit would have been asked.
class Maker {
 public:
  explicit Maker(std::string name = "api") : bucket_(*store_, std::move(name), quota) {}

  Maker& grant(Span at, std::string_view key = "alice", Word cost = 1, Span ahead = 0s) {
    return add(at, key, cost, {.allowed = true, .retry_after = ahead});
  }
  Maker& refuse(Span at, Span hint, std::string_view key = "alice", Word cost = 1) {
    return add(at, key, cost, {.retry_after = hint});
  }
  Maker& fail(Span at, std::error_code error, std::string_view key = "alice") {
    add(at, key, 1, {});
    trace_.calls.back().error = error;
    return *this;
  }
  Maker& by(std::string caller) {
    trace_.calls.back().caller = std::move(caller);
    return *this;
  }
  Maker& as(const Step& step) {
    trace_.calls.back().steps = {TracedStep(step)};
    return *this;
  }
  Maker& mark(Span at, std::string text) {
    trace_.marks.push_back({start + at, trace_.calls.size(), std::move(text)});
    return *this;
  }
  operator const Trace&() const { return trace_; }
  [[nodiscard]] const TokenBucket& bucket() const { return bucket_; }

 private:
  Maker& add(Span at, std::string_view key, Word cost, Decision decision) {
    decision.at = start + at;
    TracedCall call;
    call.asked = call.answered = decision.at;
    call.steps = {TracedStep(bucket_.acquire_step(Key{key}, cost))};
    call.decision = decision;
    call.each = {decision};
    trace_.calls.push_back(std::move(call));
    return *this;
  }

  static constexpr Time start = VirtualClock::default_start;
  static inline const Quota quota = Quota::per_day(1000);
  VirtualClock clock_;
  std::unique_ptr<Store> store_ = make_virtual_store(clock_);
  TokenBucket bucket_;
  Trace trace_;
};

std::string broken(const TraceMatcher& matcher, const Trace& trace) {
  const Checked checked = matcher.check(trace);
  return checked ? checked->what : "";
}

}  // namespace

TEST_CASE("never_exceeds counts units in half-open windows", "[testing]") {
  Maker trace;
  trace.grant(0s, "alice", 24).grant(2s, "bob").refuse(3s, 2s).grant(5s, "bob", 24);
  CHECK_THAT(trace, never_exceeds(25, 5s));
  CHECK_THAT(trace, !never_exceeds(25, 5s + 1us));
  trace.grant(5s);
  CHECK_THAT(trace, never_exceeds(26, 5s));
  CHECK(broken(never_exceeds(25, 5s), trace) ==
        "in the window of 5 s that ends with +5 s 26 units were granted, the limit is 25");
}

TEST_CASE("reservations count when they take effect, questions, failures and refunds never",
          "[testing]") {
  Maker ahead;
  ahead.grant(0s).grant(0s, "alice", 1, 1s).grant(0s, "alice", 1, 2s);
  CHECK_THAT(ahead, never_exceeds(1, 1s) && spacing_at_least(1s));
  CHECK_THAT(ahead, !spacing_at_least(1s + 1us));
  CHECK(broken(spacing_at_least(1100ms), ahead) ==
        "grants at +0 s and +1 s are 1 s apart, less than 1.1 s");
  Maker trace;
  trace.grant(0s).grant(0s).as(trace.bucket().peek_step("alice"));
  trace.fail(0s, Errc::unknown).fail(0s, Errc::timed_out);
  trace.grant(0s).as(trace.bucket().reset_step("alice"));
  CHECK_THAT(trace, never_exceeds(1, 1s));
  CHECK_THAT(trace, !never_exceeds(0, 1s));
}

TEST_CASE("keeps_rate holds over every interval", "[testing]") {
  Maker trace;
  trace.grant(0s, "alice", 5).grant(100ms).grant(200ms);
  CHECK_THAT(trace, keeps_rate({.burst = 5, .units = 10, .period = 1s}));
  trace.grant(299'999us);
  CHECK(broken(keeps_rate({.burst = 5, .units = 10, .period = 1s}), trace) ==
        "from +0 s to +299.999 ms 8 units were granted, 1 more than fit");
}

TEST_CASE("share_within compares keys, or callers if they have names", "[testing]") {
  Maker keys;
  keys.grant(0s, "a", 9).grant(0s, "b", 11);
  CHECK_THAT(keys, share_within(0.1));
  CHECK_THAT(keys, !share_within(0.09));
  keys.grant(0s, "b", 1);
  CHECK(broken(share_within(0.1), keys) ==
        "key {a}:api:1000/day was granted 9 of 21 units, 14.29 % less than an equal share among 2");
  Maker callers;
  callers.grant(0s).by("one").grant(0s).by("two").refuse(0s, 1s).by("three");
  CHECK(broken(share_within(0.1), callers) ==
        "caller \"three\" was granted 0 of 2 units, 100 % less than an equal share among 3");
  callers.grant(1s).by("three");
  CHECK_THAT(callers, share_within(0));
  CHECK(broken(share_within(1), Maker().refuse(0s, 1s)) == "nothing was granted at all");
}

TEST_CASE("recovers_within looks for a grant after each mark", "[testing]") {
  Maker trace;
  CHECK(broken(recovers_within(30s), trace) == "no mark says when there was a fault");
  trace.grant(0s).mark(1s, "redis is killed").fail(2s, Errc::unknown).refuse(3s, 28s).grant(31s);
  CHECK_THAT(trace, recovers_within(30s));
  CHECK(broken(recovers_within(30s - 1us), trace) ==
        "after \"redis is killed\" at +1 s nothing was granted until +31 s, 1 us too late");
  CHECK(broken(recovers_within(30s, "valkey"), trace) == "no mark says \"valkey\"");
  trace.mark(40s, "redis is full").refuse(41s, 1s);
  CHECK(broken(recovers_within(30s), trace) ==
        "after \"redis is full\" at +40 s nothing was granted any more");
  CHECK_THAT(trace, recovers_within(30s, "killed"));
}

TEST_CASE("refused_with_exact_hint follows each question on each key", "[testing]") {
  Maker good;
  good.refuse(0s, 2s).refuse(500ms, 1500ms).refuse(0s, 3s, "bob").refuse(0s, 9s, "alice", 7);
  good.grant(2s).refuse(2s, 1s).grant(3s, "bob");
  CHECK_THAT(good, refused_with_exact_hint());

  const std::string question =
      "of token_bucket.acquire {alice}:api:1000/day 1000,1,86400000,86400000000,1, ";
  CHECK(broken(refused_with_exact_hint(), Maker().refuse(0s, 2s).refuse(2s, 1s)) ==
        question + "a request for 1 at +2 s was refused, the hint was +2 s");
  CHECK(broken(refused_with_exact_hint(), Maker().refuse(0s, 2s).grant(1999ms)) ==
        question + "a request for 1 at +1.999 s passed, the hint was +2 s");
  CHECK(broken(refused_with_exact_hint(), Maker().refuse(0s, 2s).refuse(1s, 2s)) ==
        question + "a request for 1 at +1 s was told +3 s, the hint was +2 s");
}

TEST_CASE("a hint ends when something else was granted, or may have been", "[testing]") {
  CHECK_THAT(Maker().refuse(0s, 2s).grant(1s, "alice", 3).refuse(2s, 1s),
             refused_with_exact_hint());
  CHECK_THAT(Maker().refuse(0s, 2s).fail(1s, Errc::unknown).refuse(2s, 1s),
             refused_with_exact_hint());
  CHECK_THAT(Maker().refuse(0s, 2s).fail(1s, Errc::timed_out).refuse(2s, 1s),
             !refused_with_exact_hint());
  Maker looked;
  looked.refuse(0s, 2s).grant(1s).as(looked.bucket().peek_step("alice")).refuse(2s, 1s);
  CHECK_THAT(looked, !refused_with_exact_hint());
}

TEST_CASE("at_most_operations_per_grant counts every call", "[testing]") {
  Maker trace;
  trace.grant(0s).refuse(0s, 1s).grant(1s).fail(1s, Errc::timed_out);
  CHECK_THAT(trace, at_most_operations_per_grant(2));
  trace.grant(2s).as(trace.bucket().peek_step("alice"));
  CHECK(broken(at_most_operations_per_grant(2), trace) == "5 operations made 2 grants, 2.5 each");
  CHECK_THAT(trace, at_most_operations_per_grant(2.5));
  CHECK(broken(at_most_operations_per_grant(9), Maker().refuse(0s, 1s)) ==
        "1 operation made no grant");
}

TEST_CASE("never_fails names the first failure", "[testing]") {
  Maker trace;
  trace.grant(0s);
  CHECK_THAT(trace, never_fails());
  trace.fail(1s, Errc::unknown).fail(2s, Errc::timed_out);
  CHECK(broken(never_fails(), trace) ==
        "2 calls failed, the first at +1 s: token_bucket.acquire {alice}:api:1000/day "
        "1000,1,86400000,86400000000,1 -> error unknown");
}

TEST_CASE("a trace is the same as a recorded one, or the line is named", "[testing]") {
  Maker trace;
  trace.grant(0s).refuse(1s, 1s);
  CHECK_THAT(trace, same_as(parse_trace(to_text(trace))));
  const Trace recorded = trace;
  trace.grant(2s);
  CHECK(broken(same_as(recorded), trace).find("line 4 of the trace: expected the end, got ") == 0);
}

TEST_CASE("each_key and for_key judge the calls on one key alone", "[testing]") {
  Maker trace;
  trace.grant(0s, "a").grant(500ms, "b").grant(1s, "a").grant(1500ms, "b");
  CHECK_THAT(trace, !spacing_at_least(1s));
  CHECK_THAT(trace, each_key(spacing_at_least(1s)));
  CHECK_THAT(trace, for_key("a", spacing_at_least(1s)));
  trace.grant(2s, "b");
  CHECK(broken(each_key(spacing_at_least(1s)), trace) ==
        "of key {b}:api:1000/day, grants at +1.5 s and +2 s are 500 ms apart, less than 1 s");
  CHECK_THAT(trace, for_key("a", spacing_at_least(1s)) && !for_key("b", spacing_at_least(1s)));
  CHECK(broken(for_key("c", never_fails()), trace) == "\"c\" was never asked");
}

TEST_CASE("for_key finds a key by every text that shows it", "[testing]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  const TokenBucket limit(store, "rpm", Quota::per_minute(2));
  for (int i = 0; i < 3; ++i) {
    (void)limit.try_acquire("acme");
    (void)limit.try_acquire("a|b");
  }
  const Trace trace = store.trace();
  for (const char* const text : {"acme", "{acme}:rpm", "{acme}:rpm:2/min",
                                 "{a%7Cb}:rpm",     // in the text of a trace
                                 "{a%7cb}:rpm"}) {  // in an exception
    CHECK_THAT(trace, for_key(text, never_exceeds(2, 1min) && !never_exceeds(1, 1min)));
  }
  CHECK_THAT(trace, for_key({"acme", "rpm"}, !never_exceeds(1, 1min)));
  for (const char* const text : {"{acme}:rp", "{acme}:tpm"}) {
    CHECK(broken(for_key(text, never_fails()), trace) ==
          "\"" + std::string(text) + "\" was never asked");
  }
}

TEST_CASE("matchers are joined, and the sentence is of the part that failed", "[testing]") {
  Maker trace;
  trace.grant(0s).grant(1s);
  const auto both = never_exceeds(1, 1s) && spacing_at_least(2s);
  CHECK(both.description() == "never exceeds 1 in 1 s and spaces its grants by 2 s or more");
  CHECK(broken(both, trace) == "grants at +0 s and +1 s are 1 s apart, less than 2 s");
  CHECK_THAT(trace, never_exceeds(1, 1s) || spacing_at_least(2s));
  CHECK(broken(never_exceeds(0, 1s) || spacing_at_least(2s), trace) ==
        "in the window of 1 s that ends with +0 s 1 units were granted, the limit is 0; and grants "
        "at +0 s and +1 s are 1 s apart, less than 2 s");
  CHECK(broken(!never_exceeds(1, 1s), trace) == "it never exceeds 1 in 1 s");
}

TEST_CASE("a claim that makes no sense is an error where it is made", "[testing]") {
  CHECK_THROWS_WITH(never_exceeds(25, 0s),
                    "never_exceeds: the window must be 1 us or longer, got 0 s");
  CHECK_THROWS_WITH(keeps_rate({.burst = 1, .units = 1, .period = -1s}),
                    "keeps_rate: the period must be 1 us or longer, got -1 s");
  CHECK_THROWS_WITH(share_within(-0.5),
                    "share_within: the tolerance must lie in [0, 1e9], got -0.500000");
  CHECK_THROWS_AS(share_within(std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
  CHECK_THROWS_AS(at_most_operations_per_grant(std::numeric_limits<double>::infinity()),
                  std::invalid_argument);
}

TEST_CASE("decisions are matched by what they say", "[testing]") {
  const Decision yes{.allowed = true, .limit = 5, .remaining = 4};
  const Decision no{.limit = 5, .retry_after = 100ms};
  CHECK_THAT(yes, allowed() && allowed(4) && !allowed(3) && !refused());
  CHECK_THAT(no, refused() && refused(100ms) && !refused(99'999us) && !allowed());
  CHECK(refused(99ms).check(no)->what ==
        "it was refused, 0 of 5 left, retry after 100 ms, from other");
}

namespace {

/// What each limiter grants, as the matchers count it.
Word granted(const std::function<void(Store&)>& use) {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  use(store);
  Word units = 0;
  for (const Event& event : sluice::testing::detail::requests_of(store.trace())) {
    units += event.allowed ? event.cost : 0;
  }
  return units;
}

}  // namespace

TEST_CASE("what limiters grant is counted, with its cost", "[testing]") {
  CHECK(granted([](Store& store) {
          const TokenBucket bucket(store, "n", Quota::per_day(10));
          (void)bucket.try_acquire("a", 3);
          Reservation r = bucket.reserve("a", 4, 0s);
          (void)bucket.refund("a", r, 1);
          (void)bucket.try_acquire_up_to("a", 9);  // 4 are left
          (void)bucket.peek("a");
        }) == 11);
  CHECK(granted([](Store& store) {
          const SlotLock lock(store, "n", 1s);
          for (int i = 0; i < 2; ++i) (void)lock.reserve("a", 5s);
        }) == 2);
  CHECK(granted([](Store& store) {
          const ConcurrencyLimiter jobs(store, "n", 9, {.ttl = 1s});
          const Lease lease = jobs.try_acquire("a", 3);
          (void)SlidingWindow(store, "w", {{9, 1s}}).try_acquire("a", 3);
          (void)SlidingWindowCounter(store, "c", {9, 1s}).try_acquire("a", 3);
          (void)FixedWindow(store, "f", 9, Calendar::daily()).try_acquire("a", 3);
        }) == 12);
}
