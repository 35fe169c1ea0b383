// Values and tables that are replaced while threads read them.
#include <array>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "sluice/sluice.hpp"
#include "src/util/published.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

namespace {

/// Words that are equal while it lives.
struct Witness {
  explicit Witness(int the_value) { words.fill(the_value); }
  ~Witness() { words.fill(-1); }
  [[nodiscard]] bool is_whole() const {
    for (const int word : words) {
      if (word != words[0] || word < 0) return false;
    }
    return true;
  }
  std::array<int, 64> words{};
};

}  // namespace

TEST_CASE("readers see whole values while a writer replaces them", "[tables][threads]") {
  detail::Published<Witness> published(std::make_unique<const Witness>(0));
  std::atomic<bool> is_over{false};
  std::atomic<int> torn{0};
  std::atomic<int> backwards{0};
  std::vector<std::thread> readers;
  std::latch started(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      int last = 0;
      started.count_down();
      while (!is_over) {
        published.read([&](const Witness& now) {
          if (!now.is_whole()) ++torn;
          if (now.words[0] < last) ++backwards;
          last = now.words[0];
          return 0;
        });
      }
    });
  }
  started.wait();
  for (int i = 1; i <= 3000; ++i) published.replace(std::make_unique<const Witness>(i));
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(torn == 0);
  CHECK(backwards == 0);
  CHECK(published.read([](const Witness& now) { return now.words[0]; }) == 3000);
}

TEST_CASE("replace() waits for a reader that is inside, and not for those that come",
          "[tables][threads]") {
  detail::Published<Witness> published(std::make_unique<const Witness>(1));
  std::atomic<bool> is_replaced{false};
  std::thread writer;
  published.read([&](const Witness& now) {
    writer = std::thread([&] {
      published.replace(std::make_unique<const Witness>(2));
      is_replaced = true;
    });
    // Another reader sees the new value while this one still has the old one.
    int seen = 0;
    while (seen != 2) {
      std::thread([&] {
        seen = published.read([](const Witness& other) { return other.words[0]; });
      }).join();
    }
    CHECK_FALSE(is_replaced);
    CHECK(now.is_whole());
    CHECK(now.words[0] == 1);
    return 0;
  });
  writer.join();
  CHECK(is_replaced);
}

TEST_CASE("threads decide by a table that others replace", "[tables][threads]") {
  const auto store = make_memory_store();
  LimitList wide(1'000'000);
  wide.limit("alice", 1'000'000);
  LimitList narrow(1'000'000);
  narrow.deny("alice");
  const auto table = std::make_shared<LimitTable<Word>>(wide);
  const FixedWindow window(*store, "window", table, Calendar::daily());
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!is_over) {
        const Decision alice = window.try_acquire("alice");
        if (!alice && alice.retry_after != Decision::never) ++wrong;
        if (!window.try_acquire("bob")) ++wrong;
      }
    });
  }
  for (int i = 0; i < 1000; ++i) table->replace(i % 2 == 0 ? narrow : wide);
  is_over = true;
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
  CHECK(table->list() == wide);
}

}  // namespace sluice::test
