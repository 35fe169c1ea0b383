// A unit test of limited code, without a framework: the clock is moved, nothing sleeps.
#include <sluice/testing.hpp>

#include <cstdlib>
#include <iostream>

using namespace sluice;
using namespace std::chrono_literals;

/// The code under test: sends a reminder at most twice a day to each user.
class Reminders {
 public:
  explicit Reminders(Store& store) : limit_(store, "reminders", Quota::per_day(2)) {}
  bool send(std::string_view user) { return limit_.try_acquire(user).allowed; }

 private:
  TokenBucket limit_;
};

void expect(bool ok, const char* claim) {
  std::cout << (ok ? "ok      " : "FAILED  ") << claim << '\n';
  if (!ok) std::exit(1);
}

int main() {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  Reminders reminders(*store);

  expect(reminders.send("alice") && reminders.send("alice"), "two reminders go out");
  expect(!reminders.send("alice"), "the third does not");
  expect(reminders.send("bob"), "another user is not affected");

  clock.advance(12h - 1us);
  expect(!reminders.send("alice"), "a microsecond too early it is refused");
  clock.advance(1us);
  expect(reminders.send("alice"), "after half a day there is one more");
}
