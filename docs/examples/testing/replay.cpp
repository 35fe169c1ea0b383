// Recording what code asks, and replaying the answers, as docs/testing.md shows it.
#include <sluice/sluice.hpp>
#include <sluice/testing/catch2.hpp>
#include <sluice/testing/recording_store.hpp>
#include <sluice/testing/replaying_store.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

/// Imports rows; each batch is paid for by the number of its rows.
int import_rows(Store& store, int rows) {
  const TokenBucket limit(store, "imports", Quota::per_second(100));
  int done = 0;
  while (done < rows) {
    const Word batch = std::min(40, rows - done);
    if (!limit.try_acquire("tenant-7", batch)) break;
    done += static_cast<int>(batch);
  }
  return done;
}

const char* const recorded = R"(sluice-trace 1 from 946684800000000
+0.000000 token_bucket.acquire {tenant-7}:imports:100/s 100,1,10000,1000000,40 -> allowed 60/100 reset 400ms from virtual
+0.000000 token_bucket.acquire {tenant-7}:imports:100/s 100,1,10000,1000000,40 -> allowed 20/100 reset 800ms from virtual
+0.000000 token_bucket.acquire {tenant-7}:imports:100/s 100,1,10000,1000000,40 -> refused 20/100 retry 200ms reset 800ms from virtual
)";

TEST_CASE("an import asks what it asked when its trace was reviewed") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  RecordingStore store(*inner);
  CHECK(import_rows(store, 200) == 80);
  CHECK_THAT(store.trace(), same_as(parse_trace(recorded)));
}

TEST_CASE("an import is answered from a recording") {
  VirtualClock clock;
  ReplayingStore store(parse_trace(recorded), clock);
  CHECK(import_rows(store, 200) == 80);
  CHECK(store.report() == "");
}

TEST_CASE("a recording says what is asked differently") {
  VirtualClock clock;
  ReplayingStore store(parse_trace(recorded), clock);
  CHECK_THROWS_AS(import_rows(store, 60), std::system_error);
  CHECK(store.differences().at(0) ==
        "call 2: expected token_bucket.acquire {tenant-7}:imports:100/s 100,1,10000,1000000,40 at "
        "+0 s, "
        "got token_bucket.acquire {tenant-7}:imports:100/s 100,1,10000,1000000,20 at +0 s");
}
