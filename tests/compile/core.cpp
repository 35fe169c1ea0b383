// What must not compile, and beside it what must. A line with a comment that begins with `error:`
// has an error that the regular expression behind it matches; no other line has one. See
// check.cmake.
#include <climits>
#include <memory>
#include <string>
#include <string_view>

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
  bucket.config("a");                                       // error: nodiscard
  bucket.configure("a", Quota::per_second(1));
  bucket.reset("a");
  const SharedSlidingWindow rate(store, "tag", "rate");
  rate.try_acquire();                                     // error: nodiscard
  rate.try_acquire(1, error);                             // error: nodiscard
  rate.acquire(1, 1s);                                    // error: nodiscard
  rate.reserve(1, 1s);                                    // error: nodiscard
  rate.peek();                                            // error: nodiscard
  rate.available_permits();                               // error: nodiscard
  rate.config();                                            // error: nodiscard
  rate.future_try_acquire();                              // error: nodiscard
  rate.configure(RateType::overall, 1, 1s, SpentPermits::forgotten);
  rate.reward(1);
  rate.refresh();
}

void results_of_windows_are_looked_at(Store& store, std::error_code& error, const Decision& taken) {
  const SlidingWindow windows(store, "windows", {{25, 5s}});
  windows.try_acquire("a");                               // error: nodiscard
  windows.try_acquire("a", error);                        // error: nodiscard
  windows.peek("a");                                      // error: nodiscard
  windows.peek("a", 1, error);                            // error: nodiscard
  windows.reserve("a", 1, 1s);                            // error: nodiscard
  windows.acquire("a", 1, 1s);                            // error: nodiscard
  windows.refund("a", taken, 1);
  windows.reset("a");
  const SlidingWindowCounter counter(store, "counter", {25, 5s});
  counter.try_acquire("a");                               // error: nodiscard
  counter.peek("a");                                      // error: nodiscard
  counter.settle("a", taken, {1, 2});
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
  static_cast<void>(Key(std::string("tag"), name));
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
  TokenBucket(unique, "b", quota);                                 // error: delete
  TokenBucket(unique.get(), "b", quota);                           // error: no match
  TokenBucket(nullptr, "b", quota);                                // error: no match
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
