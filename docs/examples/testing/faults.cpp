// Testing what code does when the store fails, as docs/testing.md shows it.
#include <sluice/testing.hpp>
#include <sluice/testing/catch2.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

/// Calls an API that bills every call: never without a grant, and never twice for one.
class Geocoder {
 public:
  enum class Result { called, later, failed };

  explicit Geocoder(Store& store) : limit_(store, "geocoder", Quota::per_second(10)) {}

  Result locate(std::string_view user) {
    for (int attempts = 3; attempts > 0; --attempts) {
      std::error_code error;
      const Decision decision = limit_.try_acquire(user, error);
      if (!error) return decision ? Result::called : Result::later;
      if (error == Failure::unknown) break;  // it may have been charged
    }
    return Result::failed;
  }

 private:
  TokenBucket limit_;
};

TEST_CASE_METHOD(VirtualFixture, "what was not executed is asked again, what is unknown is not") {
  Geocoder geocoder(store);

  faults.play(FaultScript("timeout not_connected ok"));
  CHECK(geocoder.locate("alice") == Geocoder::Result::called);
  CHECK(faults.counts().calls == 3);

  faults.play(FaultScript("unknown ok"));
  CHECK(geocoder.locate("alice") == Geocoder::Result::failed);
  CHECK(faults.counts().calls == 4);
  CHECK(faults.counts().lost == 1);  // charged, and the answer never came
}

TEST_CASE_METHOD(VirtualFixture, "an outage refuses everybody, and is over when it is over") {
  Geocoder geocoder(store);
  CHECK(geocoder.locate("alice") == Geocoder::Result::called);

  faults.fail_all(Fault::not_executed(Errc::not_connected));
  move(at(1s));
  CHECK(geocoder.locate("alice") == Geocoder::Result::failed);

  faults.heal();
  mark("the store is back");
  move(at(2s));
  CHECK(geocoder.locate("alice") == Geocoder::Result::called);
  CHECK_THAT(trace(), recovers_within(1s));
}

TEST_CASE_METHOD(VirtualFixture, "one call in ten fails, by a seed") {
  Geocoder geocoder(store);
  SeededRng rng(7);
  faults.fail_some(0.1, Fault::not_executed(), rng);
  for (int i = 0; i < 1000; ++i) {
    move(after(100ms));
    CHECK(geocoder.locate("alice") != Geocoder::Result::later);
  }
  CHECK(faults.counts().failed > 50);
  CHECK_THAT(trace(), at_most_operations_per_grant(1.2));
}
