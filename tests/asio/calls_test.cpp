// Asynchronous calls under Asio's rules: cancellation, the end of the store and of the execution
// context, answers from other threads; and calls that ask the store more than once. Threading: as
// the cases say.
#include <array>
#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/asio.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
using namespace sluice::asio;
namespace net = boost::asio;
using Error = boost::system::error_code;

namespace {

/// Passes calls on to a virtual store, at once or later, and counts them.
class StoreInFront : public Store {
 public:
  void execute(const Plan& plan, Completion done) noexcept override {
    ++calls;
    if (!holds) return behind->execute(plan, std::move(done));
    held_.emplace(Held{OwnedPlan(plan), std::move(done)});
    on_stop_.emplace(plan.stop(), [this] { fail(on_stop); });
  }
  Clock& clock() noexcept override { return time; }
  [[nodiscard]] bool stamps_by_clock() const noexcept override { return true; }

  /// Executes the held call.
  void answer() {
    on_stop_.reset();
    const auto held = std::exchange(held_, std::nullopt);
    behind->execute(held->plan.view(), std::move(const_cast<Held&>(*held).done));
  }
  void fail(std::error_code error) {
    if (held_) std::exchange(held_, std::nullopt)->done.fail(error);
  }

  VirtualClock time;
  std::unique_ptr<Store> behind = make_virtual_store(time);
  bool holds = false;
  Errc on_stop = Errc::cancelled;
  int calls = 0;

 private:
  struct Held {
    OwnedPlan plan;
    Completion done;
  };
  std::optional<Held> held_;
  std::optional<StopCallback<std::function<void()>>> on_stop_;
};

/// Answers on a thread of its own, perhaps before execute() returns, and reads the plan until then.
class ThreadStore final : public Store {
 public:
  ~ThreadStore() override { join(); }
  void execute(const Plan& plan, Completion done) noexcept override {
    join();
    std::atomic<bool> answered{false};
    thread_ = std::thread(
        [&, owned = OwnedPlan(plan), done = std::move(done), waits = ++calls_ % 2 == 0]() mutable {
          auto& flag = answered;
          if (waits) {
            behind->execute(owned.view(), std::move(done));
            flag = true;
          } else {
            flag = true;
            behind->execute(owned.view(), std::move(done));
          }
        });
    while (!answered) std::this_thread::yield();
    for (const Step& step : plan.steps()) read += step.key.tag().size() + step.table.size();
  }
  Clock& clock() noexcept override { return time; }

  VirtualClock time;
  std::unique_ptr<Store> behind = make_virtual_store(time);
  std::size_t read = 0;

 private:
  void join() {
    if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
    if (thread_.joinable()) thread_.detach();
  }
  std::thread thread_;
  int calls_ = 0;
};

/// A limiter of the program's own.
class Own {
 public:
  explicit Own(Store& store) : bucket_(store, "own", Quota::per_second(1)) {}
  [[nodiscard]] Step acquire_step(const Key& key, Cost cost) const {
    return bucket_.acquire_step(key, cost);
  }
  [[nodiscard]] Step block_step(const Key& key, Span span) const {
    return bucket_.block_step(key, span);
  }
  [[nodiscard]] Step reset_step(const Key& key) const { return bucket_.reset_step(key); }
  [[nodiscard]] Store& store() const { return bucket_.store(); }

 private:
  TokenBucket bucket_;
};

}  // namespace

TEST_CASE("an outcome is owned: the decision, each step's, and the output words", "[asio]") {
  Random random("an outcome is owned: the decision, each step's, and the output words");
  CAPTURE(random.repeat());
  StoreInFront left;
  StoreInFront right;
  net::io_context io;
  const auto steps_on = [](Store& store, Cost cost, const auto& use) {
    const TokenBucket bucket(store, "b", Quota::per_second(10).burst(8));
    const SlidingWindow windows(store, "w", {{6, 1s}, {9, 10s}});
    const SlotLock lock(store, "l", 10ms);
    const ConcurrencyLimiter jobs(store, "j", 3, {.ttl = 1s});
    use(std::array{lock.acquire_step("a", 1s), bucket.reserve_step("a", cost, 1s),
                   windows.acquire_step("a", cost), jobs.acquire_step("a", LeaseId{1, 2}, 2)});
  };
  for (std::size_t i = 0; i < scaled(300); ++i) {
    const Cost cost = random.between(0, 7);
    std::array<Decision, 4> each;
    std::array<Word, 3 + 5 + 4> words{};
    std::error_code error;
    Decision decision;
    steps_on(left, cost,
             [&](const auto& steps) { decision = decide(left, steps, error, each, words); });
    OwnedOutcome outcome;
    Error failure = make_error_code(Errc::busy);
    steps_on(right, cost, [&](const auto& steps) {
      async_execute(right, steps, net::bind_executor(io, [&](Error code, OwnedOutcome told) {
                      failure = code;
                      outcome = std::move(told);
                    }));
    });
    io.restart();
    io.run();
    REQUIRE(std::error_code(failure) == error);
    REQUIRE(outcome.decision() == decision);
    REQUIRE(static_cast<bool>(outcome) == decision.allowed);
    if (error) {
      REQUIRE(error == Errc::cost_exceeds_capacity);
      REQUIRE(outcome.steps().empty());
      REQUIRE(outcome.output_of(1).empty());
    } else {
      REQUIRE(std::ranges::equal(outcome.steps(), each));
      REQUIRE(outcome.output_of(0).empty());
      const std::span<const Word> all(words);
      REQUIRE(std::ranges::equal(outcome.output_of(1), all.subspan(0, 3)));
      REQUIRE(std::ranges::equal(outcome.output_of(2), all.subspan(3, 5)));
      REQUIRE(std::ranges::equal(outcome.output_of(3), all.subspan(8, 4)));
      REQUIRE(outcome.output_of(4).empty());
    }
    const Span step{random.between(0, 300'000)};
    left.time.advance(step);
    right.time.advance(step);
  }
}

TEST_CASE("grants are made of an owned outcome", "[asio]") {
  StoreInFront store;
  net::io_context io;
  const TokenBucket bucket(store, "b", Quota::per_second(10).burst(8));
  const SlidingWindow windows(store, "w", {{6, 1s}});
  const ConcurrencyLimiter jobs(store, "j", 3);
  const LeaseId id{1, 2};
  const std::array steps{bucket.reserve_step("a", 4, 1s), windows.acquire_step("a", 5),
                         jobs.acquire_step("a", id, 2)};
  const Time asked_at = store.clock().now();
  auto future = async_execute(store, steps, net::bind_executor(io, net::use_future));
  io.run();
  const OwnedOutcome outcome = future.get();
  REQUIRE(outcome);
  Reservation tokens = TokenBucket::reservation(outcome.steps()[0], outcome.output_of(0));
  CHECK(tokens.granted == 4);
  CHECK(bucket.cancel("a", tokens) == 4);
  Reservation window = SlidingWindow::reservation(outcome.steps()[1], outcome.output_of(1), 5);
  CHECK(SlidingWindow::remaining_of(outcome.output_of(1)).front() == 1);
  CHECK(windows.cancel("a", window) == 5);
  Lease lease = jobs.adopt("a", id, 2, outcome.steps()[2], outcome.output_of(2), asked_at);
  CHECK(lease.renew());
  CHECK(lease.release());
}

TEST_CASE("a call that is cancelled updates nothing, and says whether it was sent", "[asio]") {
  StoreInFront store;
  net::io_context io;
  const TokenBucket bucket(store, "b", Quota::per_second(10).burst(8));
  Reservation tokens = bucket.reserve("a", 4, 1s);
  for (const Errc code : {Errc::cancelled, Errc::unknown}) {
    store.holds = true;
    store.on_stop = code;
    net::cancellation_signal signal;
    Error error;
    int called = 0;
    async_settle(bucket, "a", tokens, 1,
                 net::bind_cancellation_slot(
                     signal.slot(), net::bind_executor(io, [&](Error told, Settlement settled) {
                       error = told;
                       ++called;
                       CHECK(settled.refunded == 0);
                     })));
    signal.emit(net::cancellation_type::none);
    io.restart();
    io.poll();
    CHECK(called == 0);
    signal.emit(net::cancellation_type::terminal);
    io.restart();
    io.run();
    CHECK(called == 1);
    CHECK(std::error_code(error) == code);
    CHECK(tokens.granted == 4);
    signal.emit(net::cancellation_type::terminal);  // it is over already
  }
  store.holds = false;
  CHECK(bucket.settle("a", tokens, 1).refunded == 3);
}

TEST_CASE("a reservation is updated on the handler's executor, right before the handler",
          "[asio]") {
  StoreInFront store;
  net::io_context io;
  const TokenBucket bucket(store, "b", Quota::per_second(10).burst(8));
  Reservation tokens = bucket.reserve("a", 4, 1s);
  store.holds = true;
  bool called = false;
  async_refund(bucket, "a", tokens, 3, net::bind_executor(io, [&](Error error, Word units) {
                 CHECK_FALSE(error);
                 CHECK(units == 3);
                 CHECK(tokens.granted == 1);
                 called = true;
               }));
  store.answer();
  CHECK(tokens.granted == 4);
  io.run();
  CHECK(called);
}

TEST_CASE("a store that ends fails its calls", "[asio]") {
  auto store = std::make_unique<StoreInFront>();
  net::io_context io;
  const FixedWindow window(*store, "w", 5, Calendar::daily());
  const TokenBucket bucket(*store, "b", Quota::per_second(10).burst(8));
  const ConcurrencyLimiter jobs(*store, "j", 3);
  SharedSlidingWindow rate(*store, "r");
  Reservation tokens = bucket.reserve("a", 4, 1s);
  int failed = 0;
  const auto run = [&](auto operation) {
    if (!store) return;
    store->holds = true;
    std::move(operation)(net::bind_executor(io, [&](Error error, const auto&...) {
      CHECK(std::error_code(error) == Errc::shut_down);
      ++failed;
    }));
    store->fail(Errc::shut_down);
    CHECK(failed == 0);
    io.restart();
    io.run();
    CHECK(failed == 1);
    failed = 0;
  };
  run(async_try_acquire(window, "a", 1));
  run(async_cancel(bucket, "a", tokens));
  run(async_try_acquire(jobs, "a", 1));
  run(async_release(jobs, "a", LeaseId{1, 2}));
  run(async_try_acquire(rate, "t", 1));
  run(async_configuration(rate, "t"));
  CHECK(tokens.granted == 4);

  // The destructor drops what it still holds.
  async_decide(*store, bucket.acquire_step("a"), net::bind_executor(io, [&](Error error, Decision) {
    CHECK(std::error_code(error) == Errc::shut_down);
    ++failed;
  }));
  store = nullptr;
  io.restart();
  io.run();
  CHECK(failed == 1);
}

TEST_CASE("a context that ends before the handler ran destroys it, and its lease is released",
          "[asio]") {
  StoreInFront store;
  const ConcurrencyLimiter jobs(store, "j", 1);
  const TokenBucket bucket(store, "b", Quota::per_second(10).burst(8));
  Reservation tokens = bucket.reserve("a", 4, 1s);
  const auto alive = std::make_shared<int>(0);
  {
    net::io_context io;
    async_try_acquire(jobs, "a", 1,
                      net::bind_executor(io, [alive](Error, const Lease&) { FAIL("called"); }));
    async_cancel(bucket, "a", tokens,
                 net::bind_executor(io, [alive](Error, Word) { FAIL("called"); }));
    CHECK(alive.use_count() == 3);
    CHECK_FALSE(jobs.try_acquire("a").decision().allowed);
  }
  CHECK(alive.use_count() == 1);
  CHECK(tokens.granted == 4);
  CHECK(jobs.try_acquire("a").decision().allowed);
}

TEST_CASE("answers of other threads may come before a call has been sent whole", "[asio]") {
  Random random("answers of other threads may come before a call has been sent whole");
  CAPTURE(random.repeat());
  ThreadStore store;
  net::io_context io;
  const auto work = net::make_work_guard(io);
  std::thread runs([&] { io.run(); });
  const SharedSlidingWindow rate(store, "r");
  const FixedWindow daily(store, "w", 1'000'000, Calendar::daily());
  const ConcurrencyLimiter jobs(store, "j", 3);
  const auto on = [&] { return net::bind_executor(io, net::use_future); };
  async_configure(rate, "t", RateType::overall, 1000, 1s, SpentUnits::kept, on()).get();
  for (std::size_t i = 0; i < scaled(100); ++i) {
    const std::string key(1 + random.below(60), 'k');
    CHECK(async_try_acquire(daily, key, 1, on()).get());
    CHECK(async_try_acquire(rate, "t", 1, on()).get());
    Lease lease = async_try_acquire(jobs, key, 1, on()).get();
    CHECK(async_renew(lease, on()).get());
    CHECK(async_release(lease, on()).get());
    CHECK_FALSE(async_release(lease, on()).get());
    CHECK(async_decide(store, daily.acquire_step(key), on()).get());
    store.time.advance(10ms);
  }
  io.stop();
  runs.join();
  CHECK(store.read > 0);
}

TEST_CASE("a lease may be destroyed while it is renewed or released", "[asio]") {
  StoreInFront store;
  net::io_context io;
  const ConcurrencyLimiter jobs(store, "j", 1);
  int called = 0;
  {
    Lease lease = jobs.try_acquire("a");
    store.holds = true;
    async_release(lease, net::bind_executor(io, [&](Error error, bool released) {
                    CHECK_FALSE(error);
                    CHECK(released);
                    ++called;
                  }));
  }
  store.answer();
  store.holds = false;
  io.run();
  CHECK(called == 1);
  Lease lease = jobs.try_acquire("a");
  CHECK(lease);
  store.time.advance(2min);
  async_renew(lease, net::bind_executor(io, [&](Error error, bool renewed) {
                CHECK_FALSE(error);
                CHECK_FALSE(renewed);
                ++called;
              }));
  io.restart();
  io.run();
  CHECK(called == 2);
  CHECK(lease.lost());
}

TEST_CASE("arguments are copied before the call returns", "[asio]") {
  StoreInFront store;
  net::io_context io;
  const TokenBucket bucket(store, "b", Quota::per_second(10).burst(8));
  const Gates gates(store, "g", {"host"});
  std::string tag(40, 't');
  std::string name(40, 'n');
  std::vector<Scope> scopes{gates.scope("host", "a"), gates.scope("host", "b")};
  auto charge = async_penalize(bucket, {tag, name}, 3);
  auto pass = async_pass(gates, scopes);
  const std::string tag_then(40, 't');
  const std::string name_then(40, 'n');
  tag.assign(40, 'y');  // in the same memory
  name.assign(40, 'y');
  scopes.clear();
  CHECK(store.calls == 0);
  std::move(charge)(net::bind_executor(io, [](Error, const Decision&) {}));
  std::move(pass)(net::bind_executor(io, [](Error error, const Decision& passed) {
    CHECK_FALSE(error);
    CHECK(passed.allowed);
  }));
  io.run();
  CHECK(bucket.peek({tag_then, name_then}).remaining == 5);
  CHECK(bucket.peek({tag, name}).remaining == 8);
}

TEST_CASE("a limiter of the program's own is asked by its steps", "[asio]") {
  StoreInFront store;
  const Own own(store);
  const auto get = [](auto&& start) {
    net::io_context io;
    auto future = start(net::bind_executor(io, net::use_future));
    io.run();
    return future.get();
  };
  const auto acquire = [&](auto token) {
    return async_try_acquire(own, {"a", "k"}, 1, std::move(token));
  };
  CHECK(get(acquire));
  CHECK_FALSE(get(acquire));
  get([&](auto token) { return async_reset(own, {"a", "k"}, std::move(token)); });
  CHECK(get([&](auto token) {
    return async_try_acquire(own, {"a", "k"}, 1, RequestId{1, 2}, std::move(token));
  }));
  CHECK(get([&](auto token) { return async_block(own, {"a", "k"}, 5s, std::move(token)); }));
  CHECK(get(acquire).retry_after == 5s);
}

}  // namespace sluice::test
