// What must not compile, and beside it what must. A line with a comment that begins with `error:`
// has an error that the regular expression behind it matches; no other line has one. See
// check.cmake.
#include <array>
#include <climits>
#include <coroutine>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/sluice.hpp"

using namespace sluice;
using namespace std::chrono_literals;

// clang-format off
void results_are_looked_at(Store& store, std::error_code& error, Reservation& reservation) {
  const TokenBucket bucket(store, "bucket", Quota::per_second(10));
  bucket.try_acquire("a");                                // error: nodiscard
  bucket.try_acquire("a", error);                         // error: nodiscard
  bucket.try_acquire("a", 1, error);                      // error: nodiscard
  bucket.try_acquire("a", 1, RequestId{1, 2});            // error: nodiscard
  bucket.try_acquire("a", 1, RequestId{1, 2}, error);     // error: nodiscard
  bucket.future_try_acquire("a");                         // error: nodiscard
  bucket.awaitable_try_acquire("a");                      // error: nodiscard
  bucket.peek("a");                                       // error: nodiscard
  bucket.peek("a", error);                                // error: nodiscard
  bucket.peek("a", 1, error);                             // error: nodiscard
  bucket.acquire("a", 1, 1s);                             // error: nodiscard
  bucket.acquire("a", 1, 1s, {}, error);                  // error: nodiscard
  bucket.reserve("a", 1, 1s);                             // error: nodiscard
  bucket.reserve("a", 1, 1s, error);                      // error: nodiscard
  bucket.borrow("a", 1, 1s);                              // error: nodiscard
  bucket.borrow("a", 1, 1s, error);                       // error: nodiscard
  bucket.try_acquire_up_to("a", 2);                       // error: nodiscard
  bucket.at("a").try_acquire();                           // error: nodiscard
  bucket.at("a").try_acquire(error);                      // error: nodiscard
  bucket.at("a").peek();                                  // error: nodiscard
  decide(store, bucket.acquire_step("a"));                        // error: nodiscard
  decide(store, bucket.acquire_step("a"), error);                 // error: nodiscard
  decide(store, bucket.acquire_step("a"), error, {}, {});         // error: nodiscard
  if (bucket.try_acquire("a")) return;
  static_cast<void>(bucket.try_acquire("a"));
  static_cast<void>(bucket.reserve("a", 1, 1s));
  bucket.try_acquire_then("a", 1, [](std::error_code, Decision) {});
  bucket.cancel("a", reservation);
  bucket.refund("a", reservation, 1);
  bucket.settle("a", reservation, 1);
  bucket.block("a", 1s);
  bucket.reward("a", 1);
  bucket.penalize("a", 1);
  bucket.reset("a");
}

void results_of_shared_limiters_are_looked_at(Store& store, std::error_code& error) {
  const SharedTokenBucket bucket(store, "shared");
  bucket.try_acquire("a");                                // error: nodiscard
  bucket.try_acquire("a", error);                         // error: nodiscard
  bucket.peek("a");                                       // error: nodiscard
  bucket.peek("a", error);                                // error: nodiscard
  bucket.reserve("a", 1, 1s);                             // error: nodiscard
  bucket.borrow("a", 1, 1s);                              // error: nodiscard
  bucket.configuration("a");                                       // error: nodiscard
  bucket.configure("a", Quota::per_second(1));
  bucket.reset("a");
  const SharedSlidingWindow rate(store, "rate");
  rate.try_acquire("tag");                                // error: nodiscard
  rate.try_acquire("tag", error);                         // error: nodiscard
  rate.try_acquire("tag", 1, error);                      // error: nodiscard
  rate.acquire("tag", 1, 1s);                             // error: nodiscard
  rate.reserve("tag", 1, 1s);                             // error: nodiscard
  rate.peek("tag");                                       // error: nodiscard
  rate.configuration("tag");                                     // error: nodiscard
  rate.future_try_acquire("tag");                         // error: nodiscard
  rate.acquire_steps("tag");                              // error: nodiscard
  rate.configure("tag", RateType::overall, 1, 1s, SpentUnits::forgotten);
  rate.reward("tag", 1);
  rate.refresh("tag");
}

void results_of_windows_are_looked_at(Store& store, std::error_code& error, Reservation& taken) {
  const SlidingWindow windows(store, "windows", {{25, 5s}});
  windows.try_acquire("a");                               // error: nodiscard
  windows.try_acquire("a", error);                        // error: nodiscard
  windows.peek("a");                                      // error: nodiscard
  windows.peek("a", 1, error);                            // error: nodiscard
  windows.reserve("a", 1, 1s);                            // error: nodiscard
  windows.acquire("a", 1, 1s);                            // error: nodiscard
  windows.remaining("a");                                 // error: nodiscard
  windows.refund("a", taken, 1);
  windows.reset("a");
  const SlidingWindowCounter counter(store, "counter", {25, 5s});
  counter.try_acquire("a");                               // error: nodiscard
  counter.peek("a");                                      // error: nodiscard
  counter.reserve("a", 1);                                // error: nodiscard
  counter.settle("a", taken, 2);
  counter.reset("a");
  const FixedWindow window(store, "window", 10, Calendar::every(1min));
  window.try_acquire("a");                                // error: nodiscard
  window.try_acquire("a", error);                         // error: nodiscard
  window.peek("a");                                       // error: nodiscard
  window.peek("a", error);                                // error: nodiscard
  window.refund("a", taken, 1);
  window.penalize("a", 1);
}

void results_of_other_limiters_are_looked_at(Store& store, std::error_code& error, Lease& lease) {
  const ConcurrencyLimiter jobs(store, "jobs", 2);
  jobs.try_acquire("a");                                  // error: nodiscard
  jobs.acquire("a", 1, 1s);                               // error: nodiscard
  jobs.peek("a");                                         // error: nodiscard
  lease.renew();                                          // error: nodiscard
  lease.renew(error);                                     // error: nodiscard
  lease.release();
  jobs.release("a", LeaseId{1, 2});
  jobs.block("a", 1s);
  const FleetShedder fleet(store, "fleet", 10, {{"all", FleetShare::percent(100)}});
  fleet.try_acquire("all");                               // error: nodiscard
  fleet.peek("all");                                      // error: nodiscard
  fleet.reset();
  const UtilizationShedder shedder(store, "shedder");
  shedder.try_acquire("critical");                        // error: nodiscard
  shedder.try_acquire("a", "critical", error);            // error: nodiscard
  shedder.peek("critical");                               // error: nodiscard
  shedder.report();                                       // error: nodiscard
  shedder.sample(0.5);
  shedder.reset();
  const SlotLock lock(store, "lock", 1s);
  lock.try_acquire("a");                                  // error: nodiscard
  lock.reserve("a", 1s);                                  // error: nodiscard
  lock.acquire("a", 1s);                                  // error: nodiscard
  lock.peek("a");                                         // error: nodiscard
  lock.cancel("a", SlotPermit{});
  lock.block("a", 1s);
  const Gates gates(store, "gates", {"kind"});
  const Scope scope = gates.scope("kind", "id");
  gates.pass(scope);                                      // error: nodiscard
  gates.pass(scope, error);                               // error: nodiscard
  gates.acquire(std::span(&scope, 1), 1s);                // error: nodiscard
  gates.peek(scope);                                      // error: nodiscard
  gates.close(scope, 1s);
  gates.open(scope);
}

void keys_are_text_or_numbers(const TokenBucket& bucket, const SlotLock& lock) {
  static_cast<void>(bucket.try_acquire(nullptr));         // error: delete
  static_cast<void>(Key(nullptr));                        // error: delete
  static_cast<void>(Key(nullptr, "name"));                // error: delete
  static_cast<void>(bucket.acquire_step(nullptr));                // error: delete
  static_cast<void>(lock.try_acquire(nullptr));           // error: delete
  static_cast<void>(bucket.try_acquire(true));            // error: convert|conversion|no match
  static_cast<void>(bucket.try_acquire(false));           // error: convert|conversion|no match
  static_cast<void>(bucket.try_acquire('a'));             // error: convert|conversion|no match
  static_cast<void>(bucket.try_acquire(u8'a'));           // error: convert|conversion|no match
  static_cast<void>(bucket.try_acquire(L'a'));            // error: convert|conversion|no match
  static_cast<void>(bucket.try_acquire(1.0));             // error: convert|conversion|no match
  static_cast<void>(bucket.try_acquire("a"));
  static_cast<void>(bucket.try_acquire(std::string("a")));
  static_cast<void>(bucket.try_acquire(std::string_view("a")));
  static_cast<void>(bucket.try_acquire(0));
  static_cast<void>(bucket.try_acquire(LLONG_MIN));
  static_cast<void>(bucket.try_acquire(ULLONG_MAX));
  static_cast<void>(bucket.try_acquire(Key(42, "uploads")));
  static_cast<void>(bucket.try_acquire({42, "uploads"}));
}

void keys_and_steps_keep_no_view_of_a_temporary(Store& store, const std::string& id) {
  const TokenBucket b(store, "bucket", Quota::per_second(10));
  const SlotLock lock(store, "lock", 1s);
  const ConcurrencyLimiter jobs(store, "jobs", 2);
  const Gates gates(store, "gates", {"kind"});
  const std::string kept = "user-" + id;
  std::string name = "name";
  const Key a("user-" + id);                                             // error: put the string into a variable
  const Key c = "user-" + id;                                            // error: put the string into a variable
  const Key d{"user-" + id, "name"};                                     // error: put the string into a variable
  const Key e("user", "name-" + id);                                     // error: put the string into a variable
  const Key f(42, "name-" + id);                                         // error: put the string into a variable
  const Key g(id.empty() ? "all" : "user-" + id);                        // error: put the string into a variable
  const Key h(std::move(name));                                          // error: put the string into a variable
  const std::array<Key, 1> keys{"user-" + id};                           // error: put the string into a variable
  const auto made = [&]() -> Key { return "user-" + id; };               // error: put the string into a variable
  const auto local = [&]() -> Key { std::string text = id; return text; };  // error: put the string into a variable
  const std::array steps{b.acquire_step("user-" + id)};                  // error: put the string into a variable
  const std::vector<Step> more{b.peek_step("user-" + id)};               // error: put the string into a variable
  const auto step = lock.acquire_step("user-" + id);                     // error: put the string into a variable
  const Step lease = jobs.acquire_step({"user-" + id, "jobs"}, {});      // error: put the string into a variable
  const auto waits = b.awaitable_try_acquire("user-" + id);              // error: put the string into a variable
  const Step passes = gates.pass_step(gates.scope("kind", id));          // error: keep the scope in a variable|delete
  const Step closes = gates.close_step(gates.scope("kind", id), 1s);     // error: keep the scope in a variable|delete
  static_assert(!std::is_constructible_v<Key, std::string>);
  static_assert(std::is_constructible_v<Key, std::string&>);
  const Key view(std::string_view(kept).substr(1));
  const std::array fine{b.acquire_step(kept), b.acquire_step(Key{kept, "uploads"}), b.acquire_step(42)};
  static_cast<void>(b.try_acquire("user-" + id));
  static_cast<void>(b.try_acquire({"user-" + id, "uploads-" + id}, 2));
  static_cast<void>(b.try_acquire(view));
  static_cast<void>(jobs.try_acquire("user-" + id).decision());
  static_cast<void>(lock.reserve("user-" + id, 1s));
  static_cast<void>(b.at("user-" + id).try_acquire());
  static_cast<void>(acquire({{b, "user-" + id}, {jobs, {"user-" + id, "jobs"}}}, 1s).decision());
  b.block("user-" + id, 1s);
  gates.close(gates.scope("kind", id), 1s);
}

Lease keeps(const ConcurrencyLimiter& jobs) { return jobs.acquire("a", 1, 1s); }
Grants keeps(std::span<const Claim> claims) { return acquire(claims, 1s); }

void grants_outlive_their_condition(const ConcurrencyLimiter& jobs, std::span<const Claim> claims, std::error_code& error) {
  if (!jobs.acquire("k", 1, 5s)) return;                          // error: if .Lease lease = jobs.acquire
  if (jobs.try_acquire("k")) return;                              // error: if .Lease lease = jobs.acquire
  while (jobs.try_acquire("k", 1, error)) return;                 // error: if .Lease lease = jobs.acquire
  bool ok{jobs.acquire("k", 1, 5s)};                              // error: if .Lease lease = jobs.acquire
  ok = static_cast<bool>(jobs.acquire("k", 1, 5s));               // error: if .Lease lease = jobs.acquire
  ok = ok && jobs.acquire("k", 1, 5s);                            // error: if .Lease lease = jobs.acquire
  const int n = jobs.acquire("k", 1, 5s) ? 1 : 0;                 // error: if .Lease lease = jobs.acquire
  if (!keeps(jobs)) return;                                       // error: if .Lease lease = jobs.acquire
  if (std::optional<Lease> some = jobs.acquire("k", 1, 5s); !std::move(*some)) return;  // error: if .Lease lease = jobs.acquire
  if (!acquire(claims, 5s)) return;                               // error: if .Grants granted = acquire
  if (acquire({{jobs, "k"}}, 5s)) return;                         // error: if .Grants granted = acquire
  ok = bool(acquire(claims, 5s, {}, error));                      // error: if .Grants granted = acquire
  ok = !keeps(claims) || ok;                                      // error: if .Grants granted = acquire
  if (const Lease lease = jobs.acquire("k", 1, 5s)) return;
  if (Lease lease = jobs.acquire("k", 1, 5s); !lease) return;
  if (auto granted = acquire(claims, 5s)) return;
  if (auto&& lease = keeps(jobs); lease && ok && n != 0) return;
  const Decision decision = jobs.acquire("k", 1, 5s).decision();
  const Lease taken = acquire(claims, 5s).get<Lease>(0);
  if (std::optional<Lease> lease = jobs.acquire("k", 1, 5s); *lease && decision && taken) return;
}

struct Task {
  [[nodiscard]] bool await_ready() const { return true; }
  void await_suspend(std::coroutine_handle<>) const {}
  [[nodiscard]] int await_resume() const { return 1; }
};
struct Converts {
  Task operator co_await() const { return {}; }
};

void blocking_calls_end_no_coroutine(const Call& call, const ConcurrencyLimiter& jobs, const Gates& gates, std::span<const Scope> scopes) {
  static_cast<void>(call([] { return Task{}; }));                                  // error: asio::async_call
  static_cast<void>(call([](Grants&) { return Converts{}; }));                     // error: asio::async_call
  static_cast<void>(guarded(jobs, "all", 1, 10s, [](Lease&) { return Task{}; }));  // error: asio::async_call
  static_cast<void>(with_backoff(gates, scopes, [] { return Converts{}; }));       // error: asio::async_call
  static_cast<void>(call([] { return 1; }));
  guarded(jobs, "all", 1, 10s, [] {});
}

void a_shared_window_is_a_claim(const SharedSlidingWindow& rate, const TokenBucket& bucket) {
  const Claim one(rate, "a", 3);
  static_cast<void>(acquire({{bucket, "a"}, {rate, "a", Estimate{3}}}, 1s).decision());
}

void spans_are_of_any_unit(const TokenBucket& bucket, const SlotLock& lock, const Gates& gates, const Scope& scope) {
  static_cast<void>(bucket.reserve("a", 1, 1ns));
  static_cast<void>(bucket.acquire("a", 1, 1500ns));
  bucket.block("a", 1ns);
  static_cast<void>(lock.reserve("a", 1ns));
  gates.close(scope, 1ns);
  static_cast<void>(bucket.block_step("a", 1ns));
  static_cast<void>(Quota::per(1, 1000ns));
  static_cast<void>(bucket.acquire("a", 1, 1.5s));                // error: convert|conversion|no match
}

void texts_are_no_null_pointer_literals(Store& store, const Gates& gates, const FleetShedder& fleet) {
  static_cast<void>(Key("tag", nullptr));                 // error: delete
  static_cast<void>(Key("tag", 0));                       // error: no match|ambiguous
  static_cast<void>(Key(42, nullptr));                    // error: delete
  static_cast<void>(gates.scope("kind", nullptr));        // error: delete
  static_cast<void>(gates.scope(nullptr, "id"));          // error: delete
  static_cast<void>(gates.scope(0, "id"));                // error: ambiguous
  static_cast<void>(gates.scope("kind", true));           // error: convert|conversion|no match
  static_cast<void>(gates.scope("kind", 'a'));            // error: convert|conversion|no match
  static_cast<void>(gates.scope("kind", 1.0));            // error: convert|conversion|no match
  static_cast<void>(fleet.try_acquire(nullptr));          // error: delete
  static_cast<void>(fleet.try_acquire(0));                // error: ambiguous
  Quota::parse(nullptr);                                  // error: delete
  Quota::parse(0);                                        // error: ambiguous
  SlotLock(store, nullptr, 1s);                           // error: delete
  SlotLock(store, 0, 1s);                                 // error: ambiguous
  static_cast<void>(gates.scope("kind", 0));
  static_cast<void>(gates.scope("kind", LLONG_MIN));
  static_cast<void>(gates.scope(std::string("kind"), std::string_view("id")));
  static_cast<void>(fleet.try_acquire(std::string("all")));
  Quota::parse(std::string("30/min"));
  const char* const name = "name";
  static_cast<void>(Key("tag", name));
  SlotLock(store, name, 1s);
}

void stores_outlive_their_limiters(VirtualClock& clock, Store& store, CircuitBreaker& breaker) {
  const auto quota = Quota::per_second(10);
  const auto closed = FailurePolicy::closed();
  auto unique = make_memory_store();
  const std::shared_ptr<Store> shared = make_virtual_store(clock);
  const std::shared_ptr<MemoryStore> derived = make_memory_store();
  TokenBucket(FallbackStore(store, breaker, closed), "b", quota);  // error: delete
  SlotLock(FallbackStore(store, breaker, closed), "b", 1s);        // error: delete
  TokenBucket(unique.get(), "b", quota);                           // error: no match
  TokenBucket(nullptr, "b", quota);                                // error: no match
  TokenBucket(unique, "b", quota);                                 // error: pass .store, or std::move
  TokenBucket(std::as_const(unique), "b", quota);                  // error: pass .store, or std::move
  TokenBucket(*make_memory_store(), "b", quota);                   // error: this store would end at once
  SlotLock(*make_virtual_store(clock), "b", 1s);                   // error: this store would end at once
  CircuitBreaker(make_memory_store()->clock());                    // error: or keep it in a variable
  TokenBucket(store, "b", quota);
  TokenBucket(*unique, "b", quota);
  TokenBucket(*shared, "b", quota);
  TokenBucket(shared, "b", quota);
  TokenBucket(derived, "b", quota);
  TokenBucket(make_memory_store(), "b", quota);
  TokenBucket(make_virtual_store(clock), "b", quota);
  TokenBucket(std::move(unique), "b", quota);
}
// clang-format on
