// sluice-demo --redis in a build without the Redis store.
#include <fmt/format.h>

#include "sim/tool/demo.hpp"

int sluice::tool::run_processes() {
  fmt::print(stderr,
             "This sluice-demo was built without the Redis store (SLUICE_REDIS=OFF); --redis needs "
             "it.\n");
  return 2;
}
