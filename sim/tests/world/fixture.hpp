// What the tests of the World share. Threading: single-threaded.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/asio/sleep.hpp"
#include "sluice/asio/timer.hpp"
#include "sluice/sim/world.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace sluice::sim;
using namespace std::chrono_literals;
namespace net = boost::asio;
using Error = boost::system::error_code;

/// Rethrows what a coroutine threw, out of World::run().
struct Rethrow {
  void operator()(const std::exception_ptr& error) const {
    if (error) std::rethrow_exception(error);
  }
};

/// Counts its life: for things that must be destroyed exactly once.
class Counted {
 public:
  explicit Counted(int& alive) : alive_(&alive) { ++alive; }
  Counted(const Counted& other) : Counted(*other.alive_) {}
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*alive_; }

 private:
  int* alive_;
};

}  // namespace sluice::test
