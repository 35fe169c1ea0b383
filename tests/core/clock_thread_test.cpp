// The thread of objects that work in the background, and forks. Threading: as the cases say.
#include "sluice/detail/clock_thread.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include "sluice/extend/manual_reset_event.hpp"
#include "sluice/memory_store.hpp"
#include "tests/catch.hpp"
#include "tests/support/in_child.hpp"

using namespace sluice;
using sluice::test::in_child;

namespace {

/// A thread that was started, and waits for ever.
struct Waiting {
  Waiting() {
    thread.emplace(store->clock());
    thread->start([this] {
      ++calls;
      called.wake();
      return Time::max();
    });
    called.wait();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();  // until it holds no lock
  }
  std::unique_ptr<MemoryStore> store = make_memory_store();
  std::atomic<int> calls{0};
  ManualResetEvent called;
  std::optional<detail::ClockThread> thread;
};

}  // namespace

TEST_CASE("a forked child does not have the thread, and ends the object all the same",
          "[core][clock_thread][realtime]") {
  Waiting parent;
  CHECK(in_child([&] {
    if (parent.thread->is_running()) return false;
    parent.thread->stop();
    parent.thread.reset();
    return true;
  }));
  CHECK(parent.thread->is_running());
  parent.thread->stop();
  CHECK_FALSE(parent.thread->is_running());
}

TEST_CASE("a forked child may start the thread anew", "[core][clock_thread][realtime]") {
  Waiting parent;
  CHECK(in_child([&] {
    ManualResetEvent called;
    parent.thread->start([&] {
      called.wake();
      return Time::max();
    });
    called.wait();
    called.reset();
    parent.thread->wake();
    called.wait();
    const bool was_running = parent.thread->is_running();
    parent.thread->stop();
    return was_running && !parent.thread->is_running();
  }));
  parent.called.reset();
  parent.thread->wake();
  parent.called.wait();
  parent.thread->stop();
  CHECK(parent.calls == 2);
}
