// The draws of every model as one number; sim_trace has it from other compilers. Threading:
// single-threaded.
#include "sim/tests/pinned_models.hpp"
#include "tests/catch.hpp"

using namespace sluice;

TEST_CASE("the draws of every model are those they have always been") {
  CHECK(test::trace_of_models() == test::pinned_models);
}
