// Wake-ups within one process: who watches a key hears of it, until it does not want to.
#include "sluice/extend/subscription.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

namespace sluice::test {

TEST_CASE("who watches a channel is called for each wake-up, in the order of coming",
          "[core][watch]") {
  Subscriptions watchers;
  std::vector<int> calls;
  CHECK_FALSE(watchers.is_watched("a"));
  auto first = watchers.subscribe("a", [&] { calls.push_back(1); });
  auto second = watchers.subscribe("a", [&] { calls.push_back(2); });
  const auto other = watchers.subscribe("b", [&] { calls.push_back(3); });

  watchers.notify("a");
  CHECK(calls == std::vector{1, 2});
  second.reset();
  watchers.notify("a");
  CHECK(calls == std::vector{1, 2, 1});
  watchers.notify("nobody's");
  CHECK(calls.size() == 3);
  CHECK(watchers.is_watched("a"));
  first.reset();
  CHECK_FALSE(watchers.is_watched("a"));
}

TEST_CASE("a watch may end within its own call, and outlive whom it watched", "[core][watch]") {
  auto watchers = std::make_unique<Subscriptions>();
  std::unique_ptr<Subscription> own;
  own = watchers->subscribe("a", [&] { own.reset(); });
  const auto left = watchers->subscribe("a", [] {});
  watchers->notify("a");
  CHECK(own == nullptr);
  watchers.reset();
}

TEST_CASE("threads may watch, wake and leave at the same time", "[core][watch]") {
  Subscriptions watchers;
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto watch = watchers.subscribe("a", [&] { ++calls; });
        watchers.notify("a");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(calls >= 800);  // each hears at least itself
  CHECK_FALSE(watchers.is_watched("a"));
}

}  // namespace sluice::test
