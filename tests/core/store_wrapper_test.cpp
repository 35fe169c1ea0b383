// StoreWrapper: what is passed on, and what a subclass is asked for. Threading: single-threaded.
#include "sluice/extend/store_wrapper.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sluice/decide.hpp"
#include "sluice/extend/subscription.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/virtual_clock.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

/// Notes what it is asked.
class Noting final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    asked.emplace_back("execute");
    StoreWrapper::execute(plan, std::move(done));
  }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return stamps; }
  [[nodiscard]] bool keeps_order() const noexcept override { return orders && !stamps; }
  void bind(const Key&, Binding&) noexcept override { asked.emplace_back("bind"); }
  void notify(const Key& key) noexcept override {
    asked.emplace_back("notify " + std::string(key.tag()));
  }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(const Key& key,
                                                        std::function<void()>) noexcept override {
    asked.emplace_back("subscribe " + std::string(key.tag()));
    return nullptr;
  }
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept override {
    return std::make_shared<const std::string>("because of " + error.message());
  }
  [[nodiscard]] StorePart part_of(const Key&) const noexcept override { return {3, 5}; }
  [[nodiscard]] bool may_block() const noexcept override { return blocks; }

  std::vector<std::string> asked;
  bool stamps = true;
  bool orders = true;
  bool blocks = true;
};

class OnAnotherClock final : public StoreWrapper {
 public:
  OnAnotherClock(Store& inner, Clock& clock) : StoreWrapper(inner), clock_(clock) {}
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  Clock& clock_;
};

}  // namespace

TEST_CASE("a wrapper passes on what it does not override", "[store_wrapper]") {
  VirtualClock clock;
  const auto whole = make_virtual_store(clock);
  Noting inner(*whole);
  StoreWrapper store(static_cast<Store&>(inner));
  CHECK(&store.clock() == &clock);
  CHECK(store.stamps_by_clock());
  CHECK_FALSE(store.keeps_order());
  inner.stamps = false;
  CHECK_FALSE(store.stamps_by_clock());
  CHECK(store.keeps_order());
  inner.orders = false;
  CHECK_FALSE(store.keeps_order());
  CHECK(store.may_block());
  inner.blocks = false;
  CHECK_FALSE(store.may_block());
  CHECK(store.part_of("a").index == 3);
  CHECK(store.part_of("a").comebacks == 5);
  CHECK(*store.reason_of(Errc::timed_out) == *inner.reason_of(Errc::timed_out));
  store.notify("a");
  CHECK(store.subscribe("b", [] {}) == nullptr);
  Binding binding;
  store.bind("c", binding);
  CHECK(inner.asked == std::vector<std::string>{"notify a", "subscribe b", "bind"});
}

TEST_CASE("every call of a wrapper comes through execute()", "[store_wrapper]") {
  VirtualClock clock;
  const auto whole = make_virtual_store(clock);
  Noting store(*whole);
  const TokenBucket bucket(store, "b", Quota::per_second(1).burst(3));
  CHECK(bucket.try_acquire("a"));
  CHECK(bucket.at("a").try_acquire());
  const std::array steps{bucket.acquire_step("a")};
  const std::array plans{Plan(steps), Plan(steps)};
  std::array<Decision, 2> decisions;
  std::array<std::error_code, 2> errors;
  decide_batch(store, plans, decisions, errors);
  CHECK(decisions[0].allowed);
  CHECK_FALSE(decisions[1].allowed);
  CHECK(std::ranges::count(store.asked, "execute") == 4);
}

TEST_CASE("the time of a decision is not that of a clock of the wrapper's own", "[store_wrapper]") {
  VirtualClock clock;
  VirtualClock other;
  other.advance(1h);
  const auto inner = make_memory_store({.max_keys = 16, .clock = &clock});
  REQUIRE(inner->stamps_by_clock());
  CHECK(StoreWrapper(*inner).stamps_by_clock());
  OnAnotherClock store(*inner, other);
  CHECK_FALSE(store.stamps_by_clock());
  CHECK_FALSE(StoreWrapper(static_cast<Store&>(store)).stamps_by_clock());
}

TEST_CASE("a wrapper owns its store, or outlives one that it has borrowed", "[store_wrapper]") {
  VirtualClock clock;
  StoreWrapper owner(make_virtual_store(clock));
  CHECK(TokenBucket(owner, "b", Quota::per_second(1)).try_acquire("a"));
  std::optional<StoreWrapper> borrower;
  {
    const auto inner = make_virtual_store(clock);
    borrower.emplace(*inner);
  }
  std::error_code error;
  (void)TokenBucket(*borrower, "b", Quota::per_second(1)).try_acquire("a", 1, error);
  CHECK(error == Errc::shut_down);
}
