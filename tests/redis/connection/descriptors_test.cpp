// A process without a free descriptor. Threading: single-threaded.
#include <sys/resource.h>
#include <unistd.h>

#include <system_error>

#include "sluice/redis/redis_store.hpp"
#include "tests/catch.hpp"

using namespace sluice;

TEST_CASE("without a descriptor left no store is made, and the error is the system's", "[fake]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest_free = ::dup(0);
  REQUIRE(lowest_free >= 0);
  ::close(lowest_free);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::error_code error;
  try {
    static_cast<void>(make_redis_store());
  } catch (const std::system_error& failure) {
    error = failure.code();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(error == std::errc::too_many_files_open);
  CHECK_NOTHROW(make_redis_store());
}
