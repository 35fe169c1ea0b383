// What the tests of moved states share: stores on one clock, and the way from one to the other.
// Threading: the test's thread.
#pragma once

#include "sluice/sluice.hpp"
#include "src/core/state_file.hpp"
#include "src/testing/model.hpp"
#include "tests/catch.hpp"
#include "tests/support/frozen_redis.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stores.hpp"
#include "tests/support/temporary_file.hpp"
#include "tests/tool/program.hpp"

namespace sluice::test {

inline std::unique_ptr<MemoryStore> make_named_store(VirtualClock& clock) {
  return make_memory_store({.max_keys = 4096, .clock = &clock, .keep_names = true});
}

/// `sluice <words>` on the server of for_each_store(), at the time of the clock.
inline nlohmann::json on_server(VirtualClock& clock, const std::string& words) {
  FrozenRedis& redis = FrozenRedis::instance();
  redis.set_time(clock.now());
  const Ran ran = sluice_tool(url_of(redis.server()), words + " --json");
  INFO(ran.output);
  REQUIRE(ran.code == 0);
  return json_lines(ran.output).at(0);
}
inline nlohmann::json import_into(VirtualClock& clock, const TemporaryFile& file) {
  return on_server(clock, "import --yes " + file.path());
}
inline nlohmann::json export_from(VirtualClock& clock, const TemporaryFile& file) {
  return on_server(clock, "export " + file.path());
}

inline void require_same(const testing::detail::Answered& a, const testing::detail::Answered& b) {
  using testing::detail::describe;
  CAPTURE(describe(a.error), describe(a.decision), describe(b.error), describe(b.decision));
  REQUIRE(a.error == b.error);
  if (a.error) return;
  REQUIRE(testing::detail::same(a.decision, b.decision));
  REQUIRE(a.output == b.output);
}

}  // namespace sluice::test
