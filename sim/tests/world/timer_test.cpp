// The Timer on every kind of clock, and a worker as it is shipped. The last tests let real time
// pass, a few milliseconds. Threading: single-threaded.
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <memory_resource>
#include <optional>

#include "sim/tests/world/fixture.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Both contexts on which virtual time passes, behind one form.
struct OnWorld {
  World world;
  VirtualClock& clock = world.clock();
  World& context = world;
  void pass(Span span) { world.run_for(span); }
};

struct OnIoContext {
  net::io_context context;
  VirtualClock clock;
  void pass(Span span) {
    context.poll();
    context.restart();
    clock.advance(span);
    context.poll();
    context.restart();
  }
};

}  // namespace

TEMPLATE_TEST_CASE("a timer completes all its waits when its time comes", "", OnWorld,
                   OnIoContext) {
  TestType on;
  sluice::asio::Timer timer(on.context, on.clock);
  const Time start = on.clock.now();
  timer.expires_after(5s);
  CHECK(timer.expiry() == start + 5s);
  int completed = 0;
  for (int i = 0; i < 3; ++i) {
    timer.async_wait([&](Error error) {
      CHECK_FALSE(error);
      ++completed;
    });
  }
  on.pass(5s - 1us);
  CHECK(completed == 0);
  on.pass(1us);
  CHECK(completed == 3);
  timer.async_wait([&](Error) { ++completed; });  // its time has come already
  CHECK(completed == 3);
  on.pass(0us);
  CHECK(completed == 4);
}

TEMPLATE_TEST_CASE("a new expiry, a cancel and the timer's end abort the waits", "", OnWorld,
                   OnIoContext) {
  TestType on;
  std::vector<Error> errors;
  const auto note = [&](Error error) { errors.push_back(error); };
  const Error aborted = net::error::operation_aborted;
  {
    sluice::asio::Timer timer(on.context, on.clock);
    timer.expires_after(1h);
    timer.async_wait(note);
    timer.async_wait(note);
    CHECK(timer.expires_after(2h) == 2);
    CHECK(errors.empty());
    on.pass(1s);
    CHECK(errors == std::vector<Error>{aborted, aborted});
    timer.async_wait(note);
    CHECK(timer.cancel() == 1);
    CHECK(timer.cancel() == 0);
    on.pass(1s);
    timer.async_wait(note);
  }
  on.pass(1s);
  CHECK(errors == std::vector<Error>(4, aborted));
}

TEMPLATE_TEST_CASE("one wait of a timer is cancelled without the others", "", OnWorld,
                   OnIoContext) {
  TestType on;
  net::cancellation_signal signal;
  sluice::asio::Timer timer(on.context, on.clock);
  timer.expires_after(1s);
  std::optional<Error> first;
  std::optional<Error> second;
  timer.async_wait(net::bind_cancellation_slot(signal.slot(), [&](Error e) { first = e; }));
  timer.async_wait([&](Error e) { second = e; });
  signal.emit(net::cancellation_type::partial);
  CHECK_FALSE(first);
  on.pass(0s);
  REQUIRE(first);
  CHECK(*first == net::error::operation_aborted);
  CHECK_FALSE(second);
  on.pass(1s);
  REQUIRE(second);
  CHECK_FALSE(*second);
}

TEMPLATE_TEST_CASE("the handler's executor and allocator are used", "", OnWorld, OnIoContext) {
  TestType on;
  World other;
  struct Counting final : std::pmr::memory_resource {
    int allocations = 0;
    int freed = 0;
    void* do_allocate(std::size_t bytes, std::size_t align) override {
      ++allocations;
      return std::pmr::new_delete_resource()->allocate(bytes, align);
    }
    void do_deallocate(void* at, std::size_t bytes, std::size_t align) override {
      ++freed;
      std::pmr::new_delete_resource()->deallocate(at, bytes, align);
    }
    bool do_is_equal(const memory_resource& o) const noexcept override { return this == &o; }
  } counting;
  bool ran = false;
  sluice::asio::Timer timer(on.context, on.clock);
  timer.expires_after(1s);
  timer.async_wait(net::bind_executor(
      other, net::bind_allocator(std::pmr::polymorphic_allocator<char>(&counting), [&](Error) {
        ran = true;
        CHECK(other.get_executor().running_in_this_thread());
      })));
  on.pass(2s);
  CHECK_FALSE(ran);
  other.run();
  CHECK(ran);
  CHECK(counting.allocations > 0);
  CHECK(counting.allocations == counting.freed);
}

TEMPLATE_TEST_CASE("an io_context that ends with waits destroys their handlers", "", VirtualClock,
                   SystemClock) {
  constexpr bool is_virtual = std::is_same_v<TestType, VirtualClock>;
  TestType clock;
  int alive = 0;
  bool called = false;
  {
    net::io_context context;
    sluice::asio::Timer timer(context, clock);
    timer.expires_after(1h);
    timer.async_wait([&, counted = Counted(alive)](Error) { called = true; });
    net::co_spawn(
        context,
        [&, counted = Counted(alive)]() -> net::awaitable<void> {
          co_await sluice::asio::sleep_for(clock, 2h);
          called = true;
        },
        net::detached);
    context.poll();
    CHECK(alive == 2);
    if constexpr (is_virtual) {
      CHECK(clock.timers() == 2);
      clock.advance(1h);  // the first is posted by now
    }
  }
  CHECK(alive == 0);
  if constexpr (is_virtual) {
    CHECK(clock.timers() == 0);
    clock.advance(10h);
  }
  CHECK_FALSE(called);
}

TEST_CASE("a sleep on a virtual clock never completes inside what moves the clock") {
  net::io_context context;
  VirtualClock clock;
  bool inside = false;
  int woken = 0;
  sluice::asio::sleep_for(clock, 1s, net::bind_executor(context, [&](Error) {
                            CHECK_FALSE(inside);
                            ++woken;
                          }));
  sluice::asio::sleep_for(clock, 0s, net::bind_executor(context, [&](Error) {
                            inside = true;
                            clock.advance(1s);
                            inside = false;
                          }));
  context.run();  // the waits are work: it ends when both are over
  CHECK(woken == 1);
}

TEST_CASE("in real time, timers are cancelled and end as they do in a World") {
  SystemClock clock;
  net::io_context context;
  const Time start = clock.now();
  std::vector<Error> errors;
  const auto note = [&](Error error) { errors.push_back(error); };
  net::cancellation_signal signal;
  {
    sluice::asio::Timer timer(context, clock);
    timer.expires_after(1h);
    timer.async_wait(note);
    timer.async_wait(net::bind_cancellation_slot(signal.slot(), note));
    signal.emit(net::cancellation_type::total);
    CHECK(timer.expires_after(2ms) == 1);
    timer.async_wait(note);
    context.run();
    CHECK(clock.now() >= start + 2ms);
    timer.expires_at(Time::max());
    timer.async_wait(note);
  }
  context.restart();
  context.run();
  const Error aborted = net::error::operation_aborted;
  CHECK(errors.size() == 4);
  CHECK(std::count(errors.begin(), errors.end(), aborted) == 3);
  sluice::asio::sleep_for(clock, -1s, net::bind_executor(context, note));
  CHECK(errors.size() == 4);
  context.restart();
  context.run();
  CHECK(errors.size() == 5);
}
