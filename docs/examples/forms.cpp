// The forms of one call: blocking with an error code, callback, future, and Boost.Asio's co_await.
#include <sluice/asio.hpp>
#include <sluice/sluice.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iostream>

using namespace sluice;

int main() {
  const auto store = make_memory_store();
  const TokenBucket bucket{*store, "api", Quota::per_second(100)};
  int admitted = 0;

  std::error_code error;
  if (bucket.try_acquire("alice", error)) ++admitted;
  if (error == Failure::unknown) std::cerr << "perhaps charged: " << error.message() << '\n';

  bucket.try_acquire_then("alice", 1, [&](std::error_code, Decision d) { admitted += d.allowed; });

  admitted += bucket.future_try_acquire("alice").get().allowed;

  boost::asio::io_context io;
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        const Decision d = co_await sluice::asio::async_try_acquire(bucket, "alice", 1,
                                                                    boost::asio::use_awaitable);
        admitted += d.allowed;
      },
      boost::asio::detached);
  io.run();

  std::cout << admitted << " of 4 admitted\n";
  return admitted == 4 ? 0 : 1;
}
