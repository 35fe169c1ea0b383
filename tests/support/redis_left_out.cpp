// Whether tests do without a server. Apart from redis_server.cpp, which benchmarks use as well.
#include "tests/left_out.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::test {

bool redis_left_out() {
  if (!without_redis()) return false;
  leave_out("it needs a redis-server, and SLUICE_NO_REDIS=1");
  return true;
}

}  // namespace sluice::test
