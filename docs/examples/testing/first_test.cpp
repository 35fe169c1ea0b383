// A first unit test of limited code, as docs/testing.md shows it.
#include <sluice/sluice.hpp>
#include <sluice/testing/catch2.hpp>
#include <sluice/testing/fixture.hpp>

#include "tests/catch.hpp"

using namespace sluice;
using namespace sluice::testing;
using namespace std::chrono_literals;

/// Sends a reminder at most twice a day to each user.
class Reminders {
 public:
  explicit Reminders(Store& store) : limit_(store, "reminders", Quota::per_day(2)) {}
  bool send(std::string_view user) { return limit_.try_acquire(user).allowed; }

 private:
  TokenBucket limit_;
};

TEST_CASE("a user gets two reminders at once, and one more after twelve hours") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  Reminders reminders(*store);

  CHECK(reminders.send("alice"));
  CHECK(reminders.send("alice"));
  CHECK_FALSE(reminders.send("alice"));
  CHECK(reminders.send("bob"));

  clock.advance(12h - 1us);
  CHECK_FALSE(reminders.send("alice"));
  clock.advance(1us);
  CHECK(reminders.send("alice"));
}

TEST_CASE_METHOD(VirtualFixture, "an API key makes five calls at once and ten a second") {
  const TokenBucket limit(store, "api", Quota::per_second(10).burst(5));
  const auto take = [&] { return limit.try_acquire("key"); };
  const auto take_five = [&] { return limit.try_acquire("key", 5); };

  CHECK(play({
      {at(0s), take_five, allowed(0)},
      {at(0s), take, refused(100ms)},
      {at(100ms - 1us), take, refused(1us)},
      {after(1us), take, allowed(0)},
      {at(600ms), take_five, allowed(0)},
  }));
}
