// All tests of this program need a server.
#include "tests/left_out.hpp"

#include "tests/support/redis_server.hpp"

std::string sluice::test::why_left_out() {
  return without_redis() ? "they need a redis-server, and SLUICE_NO_REDIS=1" : "";
}
