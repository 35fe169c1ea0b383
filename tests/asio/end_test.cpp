// How an asynchronous call ends: at its time, by the loss of a lease, by its caller; and leases
// that end on an event loop, which nothing may block. Threading: everything on the test's thread.
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/asio.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/extend/owned_plan.hpp"
#include "sluice/extend/store_wrapper.hpp"
#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
namespace net = boost::asio;

namespace {

/// Holds calls while it is told to, and answers them then.
class HoldingStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  void execute(const Plan& plan, Completion done) noexcept override {
    if (!holds) return StoreWrapper::execute(plan, std::move(done));
    held_.emplace_back(OwnedPlan(plan), std::move(done));
  }
  void answer() {
    holds = false;
    for (auto& [plan, done] : std::exchange(held_, {})) {
      StoreWrapper::execute(plan.view(), std::move(done));
    }
  }
  [[nodiscard]] std::size_t held() const { return held_.size(); }

  bool holds = false;

 private:
  std::vector<std::pair<OwnedPlan, Completion>> held_;
};

struct Rig {
  VirtualClock clock;
  std::unique_ptr<Store> behind = make_virtual_store(clock);
  HoldingStore store{*behind};
  LeaseRenewer renewer{clock, Renewing::by_hand};
  ConcurrencyLimiter jobs{store, "jobs", 1, {.ttl = 12s, .renewer = &renewer}};
  net::io_context io;
  net::cancellation_signal cancel;
  std::string ended;

  void run() {
    io.restart();
    while (io.poll() != 0) {
    }
  }
  void move(Span span) {
    clock.advance(span);
    run();
  }
  /// Writes into `ended` how the coroutine ends.
  template <class T>
  void spawn(net::awaitable<T> coroutine) {
    ended = "runs";
    net::co_spawn(
        io, std::move(coroutine),
        net::bind_cancellation_slot(cancel.slot(), [this](std::exception_ptr thrown, T text) {
          ended = thrown ? text_of(thrown) : text;
        }));
    run();
  }
  static std::string text_of(const std::exception_ptr& thrown) try {
    std::rethrow_exception(thrown);
  } catch (LeaseLostWith<std::string>& lost) {
    return "lost: " + lost.result();
  } catch (const NotEnded&) {
    return "not ended";
  } catch (const NotGranted&) {
    return "not granted";
  } catch (const boost::system::system_error& error) {
    return error.code() == net::error::operation_aborted ? "aborted" : error.what();
  }
};

}  // namespace

TEST_CASE("a coroutine is cancelled at the end of its call", "[asio][ends]") {
  Rig rig;
  StopToken told;
  const Call call({{rig.jobs, "a"}}, {.end_by = 30s});
  const auto sleep = [&](Grants&, StopToken stop) -> net::awaitable<std::string> {
    told = stop;
    co_await asio::sleep_for(rig.clock, 1h, net::use_awaitable);
    co_return "slept";
  };
  const auto deaf = [&]() -> net::awaitable<std::string> {
    co_await net::this_coro::reset_cancellation_state(net::disable_cancellation());
    co_await asio::sleep_for(rig.clock, 35s, net::use_awaitable);
    co_return "slept";
  };
  rig.spawn(asio::async_call(call, sleep));
  for (int i = 0; i < 7; ++i) {
    rig.move(4s);
    rig.renewer.renew_due();
  }
  rig.move(2s - 1us);
  CHECK(rig.ended == "runs");
  CHECK_FALSE(told.stop_requested());
  rig.move(1us);
  CHECK(rig.ended == "not ended");
  CHECK(told.stop_requested());
  CHECK(rig.jobs.peek("a").remaining == 1);
  CHECK(rig.clock.timers() == 0);

  rig.spawn(asio::async_call(call, deaf));
  for (int i = 0; i < 8; ++i) {
    rig.move(4s);
    rig.renewer.renew_due();
  }
  rig.move(3s);
  CHECK(rig.ended == "slept");  // within a TTL of the last renewal
  rig.spawn(asio::async_call(Call({{rig.jobs, "a"}}, {.end_by = 0s}), sleep));
  CHECK(rig.ended == "not granted");
}

TEST_CASE("a lease that is lost under a coroutine is told to it and in its result",
          "[asio][ends]") {
  Rig rig;
  bool told = false;
  const auto work = [&](Lease&, StopToken stop) -> net::awaitable<std::string> {
    co_await asio::sleep_for(rig.clock, 20s, net::use_awaitable);
    told = stop.stop_requested();
    co_return "done";
  };
  const auto unaware = [&]() -> net::awaitable<std::string> {
    co_await asio::sleep_for(rig.clock, 20s, net::use_awaitable);
    co_return "done";
  };
  rig.spawn(asio::guarded(rig.jobs, "a", 1, 0s, work));
  rig.move(12s - 1us);
  rig.move(1us);  // nobody has renewed it
  rig.move(8s);
  CHECK(rig.ended == "lost: done");
  CHECK(told);
  rig.spawn(asio::guarded(rig.jobs, "a", 1, 0s, unaware));
  rig.move(20s);
  CHECK(rig.ended == "lost: done");
  rig.spawn(asio::guarded(rig.jobs, "a", 1, 0s, work));
  for (int i = 0; i < 5; ++i) {
    rig.move(4s);
    rig.renewer.renew_due();
  }
  CHECK(rig.ended == "done");
  CHECK_FALSE(told);
}

TEST_CASE("a caller's cancellation reaches a coroutine that has an end", "[asio][ends]") {
  Rig rig;
  const Call call({{rig.jobs, "a"}}, {.end_by = 30s});
  const auto sleep = [&](const StopToken&) -> net::awaitable<std::string> {
    co_await asio::sleep_for(rig.clock, 1h, net::use_awaitable);
    co_return "slept";
  };
  rig.spawn(asio::async_call(call, sleep));
  rig.cancel.emit(net::cancellation_type::terminal);
  rig.run();
  CHECK(rig.ended == "aborted");
  CHECK(rig.jobs.peek("a").remaining == 1);
  CHECK(rig.clock.timers() == 0);
}

TEST_CASE("a lease ends on an event loop while its store hangs", "[asio][leases][ends]") {
  // By construction: a destructor that waited for the store would never return.
  Rig rig;
  const auto keep = [&](auto& kept) {
    return net::bind_executor(rig.io, [&](auto, auto granted) { kept = std::move(granted); });
  };
  const auto released = [&] {
    CHECK(rig.store.held() == 1);
    rig.store.answer();
    CHECK(rig.jobs.peek("a").remaining == 1);
  };
  for (const bool waits : {false, true}) {
    Lease lease;
    waits ? asio::async_acquire(rig.jobs, "a", 1, 0s, keep(lease))
          : asio::async_try_acquire(rig.jobs, "a", 1, keep(lease));
    rig.run();
    rig.store.holds = true;
    REQUIRE(lease);
    lease = {};
    released();
  }
  {
    Grants grants;
    const std::array claims{Claim(rig.jobs, "a")};
    asio::async_acquire(claims, 0s, keep(grants));
    rig.run();
    rig.store.holds = true;
    REQUIRE(grants);
  }
  released();
  {
    Lease lease = rig.jobs.try_acquire("a");
    lease.never_block();
    Lease moved = std::move(lease);
    rig.store.holds = true;
  }
  released();
}

TEST_CASE("a context that ends with a lease inside does not wait for the store",
          "[asio][leases][ends]") {
  Rig rig;
  for (const bool waits : {false, true}) {
    {
      net::io_context io;
      auto ignore = net::bind_executor(io, [](auto, const Lease&) {});
      if (waits) {
        asio::async_acquire(rig.jobs, "a", 1, 0s, std::move(ignore));
      } else {
        asio::async_try_acquire(rig.jobs, "a", 1, std::move(ignore));
      }
      rig.store.holds = true;
    }
    CHECK(rig.store.held() == 1);
    rig.store.answer();
    CHECK(rig.jobs.peek("a").remaining == 1);
  }
}

}  // namespace sluice::test
