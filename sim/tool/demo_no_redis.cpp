// sluice-demo --redis in a build without the Redis store.
#include <fmt/format.h>

#include "sim/tool/demo.hpp"

namespace sluice::tool {
namespace {

int complain() {
  fmt::print(stderr,
             "This sluice-demo was built without the Redis store (SLUICE_REDIS=OFF); --redis needs "
             "it.\n");
  return 2;
}

}  // namespace

int run_processes() { return complain(); }
int run_redis_worker(const std::string& /*socket*/) { return complain(); }

}  // namespace sluice::tool
