// Each answer belongs to its request, however many are under way. Threading: as each test says.
#include <mutex>
#include <thread>

#include "sluice/limiters/token_bucket.hpp"
#include "sluice/testing/invariants.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace sluice::testing;

namespace {

constexpr int threads = 4;

/// A limit that only this request has, so that an answer shows whose it is.
TokenBucket marked(Store& store, std::uint64_t request) {
  return {store, "marked", Quota::per_second(1).burst(static_cast<Word>(request))};
}

}  // namespace

TEST_CASE("an answer belongs to its request when callers share a store", "[answers][S6]") {
  for_each_store([](Store& store, VirtualClock&) {
    const std::size_t each = scaled(300);
    std::vector<std::vector<Matched>> seen(threads);
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < threads; ++caller) {
      callers.emplace_back([&, caller] {
        for (std::size_t i = 0; i < each; ++i) {
          const std::uint64_t request = 1 + caller * each + i;
          const Decision d = marked(store, request).try_acquire(std::to_string(request));
          seen[caller].push_back({request, static_cast<std::uint64_t>(d.limit)});
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    std::vector<Matched> all;
    for (const auto& part : seen) all.insert(all.end(), part.begin(), part.end());
    CHECK(all.size() == threads * each);
    const Checked checked = check_answers(all);
    INFO((checked ? checked->what : std::string()));
    CHECK_FALSE(checked);
  });
}

TEST_CASE("an answer belongs to its request in batches and callbacks", "[answers][S6]") {
  for_each_store([](Store& store, VirtualClock&) {
    const std::size_t count = scaled(500);
    std::vector<TokenBucket> buckets;
    std::vector<std::string> keys;
    std::vector<Step> steps;
    for (std::size_t i = 0; i < count; ++i) {
      buckets.push_back(marked(store, i + 1));
      keys.push_back(std::to_string(i));
    }
    for (std::size_t i = 0; i < count; ++i) steps.push_back(buckets[i].acquire_step(keys[i]));
    std::mutex mutex;
    std::vector<Matched> seen;
    std::vector<std::future<Decision>> futures;
    for (std::size_t i = 0; i < count; ++i) {
      decide_then(store, steps[i], [&, i](std::error_code, const Decision& d) {
        const std::lock_guard lock(mutex);
        seen.push_back({i + 1, static_cast<std::uint64_t>(d.limit)});
      });
      futures.push_back(future_decide(store, steps[i]));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Decision d = futures[i].get();
      CHECK(d.limit == static_cast<Word>(i + 1));
    }
    const std::vector<Plan> plans(steps.begin(), steps.end());
    std::vector<Decision> results(count);
    std::vector<std::error_code> errors(count);
    decide_batch(store, plans, results, errors);
    for (std::size_t i = 0; i < count; ++i) CHECK(results[i].limit == static_cast<Word>(i + 1));
    const std::lock_guard lock(mutex);
    CHECK(seen.size() == count);
    CHECK_FALSE(check_answers(seen));
  });
}
