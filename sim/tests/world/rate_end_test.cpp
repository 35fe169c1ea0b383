// A shared sliding window's limiter that goes before those who wait for it: they refer to it, and
// are told. Threading: single-threaded.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <list>
#include <memory>
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/asio/acquire.hpp"
#include "sluice/sluice.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// One limiter behind a network, and what became of those who wait for it.
struct Rig {
  Rig() { every(3s); }

  void every(Span interval) {
    here.configure(RateType::overall, 1, interval, SpentPermits::forgotten);
  }
  void wait() {
    sluice::asio::async_acquire(
        *rate, 1, Deadline::never(),
        net::bind_cancellation_slot(
            cancels.emplace_back().slot(),
            net::bind_executor(world.get_executor(), [this](Error error, const Decision&) {
              ends.emplace_back(error);
            })));
  }

  World world;
  std::unique_ptr<Store> link = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
  SharedSlidingWindow here{world.store(), "rate", "k"};
  std::unique_ptr<SharedSlidingWindow> rate =
      std::make_unique<SharedSlidingWindow>(*link, "rate", "k");
  std::list<net::cancellation_signal> cancels;  // one for each wait
  std::vector<std::error_code> ends;
};

const std::error_code gone = make_error_code(Errc::shut_down);

}  // namespace

TEST_CASE("a shared sliding window that goes while its setting is read ends the wait") {
  Rig rig;
  rig.wait();
  rig.world.run_for(500us);
  rig.rate.reset();
  rig.world.run();
  CHECK(rig.ends == std::vector{gone});
}

TEST_CASE("a shared sliding window that goes while it is asked by an old setting ends the wait") {
  Rig rig;
  rig.wait();
  rig.world.run();
  REQUIRE(rig.ends == std::vector{std::error_code()});
  rig.every(5s);
  rig.wait();
  rig.world.run_for(500us);
  rig.rate.reset();
  rig.world.run();
  REQUIRE(rig.ends.size() == 2);
  CHECK(rig.ends.back() == gone);
}

TEST_CASE("a shared sliding window that goes ends who would ask again") {
  Rig rig;
  rig.wait();
  rig.wait();
  rig.world.run_for(1s);
  CHECK(rig.ends.size() == 1);
  rig.rate.reset();
  rig.world.run();
  REQUIRE(rig.ends.size() == 2);
  CHECK(rig.ends.back() == gone);
}

TEST_CASE("a wait for a shared sliding window that has gone is cancelled without giving back") {
  Rig rig;
  rig.wait();
  rig.wait();
  rig.world.run_for(1s);
  rig.rate.reset();
  rig.cancels.back().emit(net::cancellation_type::all);
  rig.world.run();
  REQUIRE(rig.ends.size() == 2);
  CHECK(rig.ends.back() == std::error_code(Error(net::error::operation_aborted)));
}
