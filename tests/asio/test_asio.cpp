// The Asio form of a call, on a store that answers at once and on one that answers elsewhere.
#include <sluice/asio.hpp>
#include <sluice/sluice.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <optional>
#include <thread>

#include "tests/catch.hpp"

namespace {

using namespace sluice;
namespace net = boost::asio;

/// Holds calls until it is told to answer them, from whatever thread tells it.
class HeldStore final : public Store {
 public:
  void execute(const Plan& plan, Completion done) noexcept override {
    stop_ = plan.stop();
    key_ = std::string(plan.steps()[0].key.tag());
    done_.emplace(std::move(done));
    on_stop_.emplace(stop_, [this] { done_->fail(Errc::cancelled); });
  }
  Clock& clock() noexcept override { return clock_; }

  void answer() {
    on_stop_.reset();
    const Decision allowed{.allowed = true};
    (*done_)(Outcome{{}, allowed, {&allowed, 1}, {}});
  }
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  VirtualClock clock_;
  std::stop_token stop_;
  std::string key_;
  std::optional<Completion> done_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

struct Fixture {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  TokenBucket bucket{*store, "api", Quota::per_second(10).burst(1)};
  net::io_context io;
};

}  // namespace

TEST_CASE("a coroutine awaits a decision") {
  Fixture f;
  std::optional<Decision> first;
  std::optional<Decision> second;
  net::co_spawn(
      f.io,
      [&]() -> net::awaitable<void> {
        first = co_await sluice::asio::async_try_acquire(f.bucket, "alice", 1, net::use_awaitable);
        second = co_await sluice::asio::async_try_acquire(f.bucket, "alice", 1, net::use_awaitable);
      },
      net::detached);
  f.io.run();
  REQUIRE(first);
  CHECK(first->allowed);
  REQUIRE(second);
  CHECK_FALSE(second->allowed);
  CHECK(second->retry_after == std::chrono::milliseconds{100});
}

TEST_CASE("a failure reaches a coroutine as an exception with the code of Errc") {
  Fixture f;
  bool thrown = false;
  net::co_spawn(
      f.io,
      [&]() -> net::awaitable<void> {
        try {
          co_await sluice::asio::async_try_acquire(f.bucket, "alice", 2, net::use_awaitable);
        } catch (const boost::system::system_error& error) {
          thrown = error.code() == make_error_code(Errc::cost_exceeds_capacity);
        }
      },
      net::detached);
  f.io.run();
  CHECK(thrown);
}

TEST_CASE("a handler never runs inside the initiating function") {
  Fixture f;
  bool ran = false;
  sluice::asio::async_try_acquire(
      f.bucket, "alice", 1,
      net::bind_executor(f.io, [&](boost::system::error_code, Decision) { ran = true; }));
  CHECK_FALSE(ran);
  f.io.run();
  CHECK(ran);
}

TEST_CASE("a future and a deferred operation carry the decision") {
  Fixture f;
  auto deferred = sluice::asio::async_try_acquire(f.bucket, std::string("bob"), 1, net::deferred);
  auto future = std::move(deferred)(net::use_future);
  CHECK(future.get().allowed);
}

TEST_CASE("an answer from another thread arrives on the handler's executor") {
  HeldStore store;
  TokenBucket bucket{store, "api", Quota::per_second(1)};
  net::io_context io;
  std::thread::id where;
  std::optional<Decision> answer;
  {
    std::string key = "alice";
    sluice::asio::async_try_acquire(
        bucket, key, 1, net::bind_executor(io, [&](boost::system::error_code, Decision decision) {
          where = std::this_thread::get_id();
          answer = decision;
        }));
    key = "xxxxx";
  }
  CHECK(store.key() == "alice");
  std::thread other([&] { store.answer(); });
  io.run();  // work is tracked: this waits for the answer
  other.join();
  REQUIRE(answer);
  CHECK(answer->allowed);
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("cancelling the operation cancels the call") {
  HeldStore store;
  TokenBucket bucket{store, "api", Quota::per_second(1)};
  net::io_context io;
  net::cancellation_signal signal;
  boost::system::error_code error;
  sluice::asio::async_try_acquire(
      bucket, "alice", 1,
      net::bind_cancellation_slot(
          signal.slot(),
          net::bind_executor(io, [&](boost::system::error_code code, Decision) { error = code; })));
  net::post(io, [&] { signal.emit(net::cancellation_type::terminal); });
  io.run();
  CHECK(error == make_error_code(Errc::cancelled));
}
