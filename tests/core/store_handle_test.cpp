// Who owns a limiter's store. Threading: single-threaded.
#include "sluice/store_handle.hpp"
#include "sluice/detail/waiter.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <set>

#include "tests/catch.hpp"
#include "tests/support/limiters.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

const Quota quota = Quota::per_second(10);

/// The name of the limiters that `make` makes.
template <class Make>
constexpr const char* type_name =
    std::invoke_result_t<const Make&, std::unique_ptr<MemoryStore>&>::type_name;

/// The classes in include/sluice/limiters that have a name for exceptions, but for those that a
/// limiter makes.
std::set<std::string> names_in_headers() {
  const auto folder = std::filesystem::path(SLUICE_SOURCE) / "include/sluice/limiters";
  const std::regex name("const char\\* type_name = \"(\\w+)\"");
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream text(file.path());
    std::smatch found;
    for (std::string line; std::getline(text, line);) {
      if (std::regex_search(line, found, name)) names.insert(found[1]);
    }
  }
  names.erase(BoundTokenBucket::type_name);
  return names;
}

}  // namespace

TEST_CASE("the list of limiters is complete", "[core]") {
  std::set<std::string> names;
  for_each_limiter(
      [&](const std::string&, auto make, auto) { names.insert(type_name<decltype(make)>); });
  INFO("tests/support/limiters.hpp has a row for each");
  CHECK(names == names_in_headers());
}

TEST_CASE("a limiter owns the store that it is given as a pointer, together with its copies",
          "[core][store_handle]") {
  for_each_limiter([](const std::string& key, auto make, auto ask) {
    INFO(key);
    auto store = make_memory_store();
    const auto life = store->life();
    auto limiter = allocate(make, store);
    std::error_code error;
    CHECK(ask(*limiter, error));
    if constexpr (std::is_copy_constructible_v<std::decay_t<decltype(*limiter)>>) {
      const auto copy = *limiter;
      limiter.reset();
      CHECK_FALSE(life.is_over());
      CHECK(ask(copy, error));
    }
    limiter.reset();
    CHECK(life.is_over());
  });
}

TEST_CASE("a limiter shares a store with its other owners, or borrows it", "[core][store_handle]") {
  for_each_limiter([](const std::string& key, auto make, auto ask) {
    INFO(key);
    const std::shared_ptr<MemoryStore> store = make_memory_store();
    std::error_code error;
    {
      std::shared_ptr<MemoryStore> given = store;
      const auto limiter = make(given);
      CHECK(ask(limiter, error));
      CHECK(store.use_count() == 2);
      const auto borrows = make(*store);
      CHECK(ask(borrows, error));
      CHECK(store.use_count() == 2);
    }
    CHECK(store.use_count() == 1);
  });
}

TEST_CASE("a bound bucket keeps the store, and so does a limiter that was moved from",
          "[core][store_handle]") {
  std::optional<TokenBucket> bucket(std::in_place, make_memory_store(), "b", quota);
  const BoundTokenBucket bound = bucket->at("a");
  bucket.reset();
  CHECK(bound.try_acquire());
  TokenBucket from(make_memory_store(), "b", quota);
  const TokenBucket to = std::move(from);
  std::error_code error;
  CHECK_FALSE(from.try_acquire("a", error));  // NOLINT(bugprone-use-after-move)
  CHECK(error == Errc::invalid_key);
  CHECK(&from.store() == &to.store());
}

TEST_CASE("a store that is a null pointer is refused by its name", "[core][store_handle]") {
  const auto null = "the pointer to a store is null";
  CHECK_THROWS_WITH(TokenBucket(std::unique_ptr<Store>(), "b", quota), null);
  CHECK_THROWS_WITH(SlotLock(std::shared_ptr<MemoryStore>(), "l", 1s), null);
  CHECK_THROWS_AS(TokenBucket(std::shared_ptr<Store>(), "b", quota), std::invalid_argument);
}

TEST_CASE("a fallback store owns the stores that it is given as pointers", "[core][store_handle]") {
  auto primary = make_memory_store();
  auto local = make_memory_store();
  const auto lives = {primary->life(), local->life()};
  CircuitBreaker breaker(primary->clock());
  {
    const TokenBucket bucket(
        std::make_unique<FallbackStore>(std::move(primary), breaker,
                                        FailurePolicy::local(std::move(local), 2)),
        "b", quota);
    CHECK(bucket.try_acquire("a"));
    for (const auto& life : lives) CHECK_FALSE(life.is_over());
  }
  for (const auto& life : lives) CHECK(life.is_over());
}

TEST_CASE("who waits does not own the store", "[core][store_handle]") {
  const std::shared_ptr<Store> store = make_memory_store();
  const TokenBucket bucket(store, "b", quota);
  struct Waiting final : detail::Waiter {
    using Waiter::Waiter;
    void timer_changed() noexcept override {}
    void finished(std::error_code) noexcept override {}
  };
  const long owners = store.use_count();
  const std::array claims{Claim(bucket, "a")};
  const auto waiter =
      std::make_shared<Waiting>(detail::limits_of(claims), Deadline::never(), detail::Caller{});
  CHECK(store.use_count() == owners);
}
