// A shared sliding window that goes before those who wait for it, as any limiter may.
// Threading: single-threaded.
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
    here.configure("rate", RateType::overall, 1, interval, SpentUnits::forgotten);
  }
  void wait() {
    sluice::asio::async_acquire(
        *rate, "rate", 1, Deadline::never(),
        net::bind_cancellation_slot(
            cancels.emplace_back().slot(),
            net::bind_executor(world.get_executor(), [this](Error error, const Reservation&) {
              ends.emplace_back(error);
            })));
  }

  World world;
  std::unique_ptr<RemoteStore> link = world.connect({Delay::constant(1ms), Delay::constant(1ms)});
  SharedSlidingWindow here{world.store(), "k"};
  std::unique_ptr<SharedSlidingWindow> rate = std::make_unique<SharedSlidingWindow>(*link, "k");
  std::list<net::cancellation_signal> cancels;  // one for each wait
  std::vector<std::error_code> ends;
};

const std::error_code granted;

}  // namespace

TEST_CASE("a wait outlives a shared sliding window that goes while its setting is read") {
  Rig rig;
  rig.wait();
  rig.world.run_for(500us);
  rig.rate.reset();
  rig.world.run();
  CHECK(rig.ends == std::vector{granted});
}

TEST_CASE("a wait outlives a shared sliding window that goes while it is asked by an old setting") {
  Rig rig;
  rig.wait();
  rig.world.run();
  REQUIRE(rig.ends == std::vector{granted});
  rig.every(5s);
  rig.wait();
  rig.world.run_for(500us);
  rig.rate.reset();
  rig.world.run();
  CHECK(rig.ends == std::vector{granted, granted});
}

TEST_CASE("who would ask again outlives a shared sliding window") {
  Rig rig;
  rig.wait();
  rig.wait();
  rig.world.run_for(1s);
  CHECK(rig.ends.size() == 1);
  rig.rate.reset();
  rig.world.run();
  CHECK(rig.ends == std::vector{granted, granted});
}

TEST_CASE("a wait for a shared sliding window that has gone is cancelled, and gives back") {
  const std::error_code aborted = Error(net::error::operation_aborted);
  std::size_t cancelled = 0;
  for (Span at = 2990ms; at < 3010ms; at += 500us) {  // the second is granted after 3 s
    Rig rig;
    rig.wait();
    rig.wait();
    rig.world.run_for(at);
    rig.rate.reset();
    rig.cancels.back().emit(net::cancellation_type::all);
    rig.world.run_for(100ms);
    REQUIRE(rig.ends.size() == 2);
    const bool gave_back = rig.ends.back() == aborted;
    CHECK((gave_back || rig.ends.back() == granted));
    cancelled += gave_back ? 1U : 0U;
    if (at > 3s) CHECK(rig.here.peek("rate").remaining == (gave_back ? 1 : 0));
  }
  CHECK(cancelled > 20);
  CHECK(cancelled < 40);
}

TEST_CASE("a connection that goes ends who waits for a shared sliding window") {
  for (const Span after : {Span{500us}, Span{2500us}, Span{1s}}) {  // read, asked, waiting
    Rig rig;
    rig.wait();
    rig.wait();
    rig.world.run_for(after);
    rig.rate.reset();
    rig.link.reset();
    rig.world.run();
    REQUIRE(rig.ends.size() == 2);
    CHECK(rig.ends.back() == make_error_code(Errc::shut_down));
  }
}
