// How gates behave, in exact integers, on every store. Threading: single-threaded.
#include "sluice/limiters/gates.hpp"

#include <array>
#include <stdexcept>

#include "sluice/calls/with_backoff.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "tests/catch.hpp"
#include "tests/support/far_client.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/stores.hpp"

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> kinds{"account", "developer"};
const GateOptions paced{.cap = 1h, .ramp = 1s, .spacing = 100ms};
const GateOptions unpaced{.cap = 1h, .ramp = 0s, .spacing = 0s};

}  // namespace

TEST_CASE("a gate closed anew while somebody waits keeps them waiting", "[gate][C-083]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    FarClient client(store, clock);
    const Gates gates(client, "adwords", kinds, paced);
    gates.set_wait_queue({.across_processes = false, .recheck = 1h});  // asks at hints alone
    const Gates elsewhere(store, "adwords", kinds, paced);
    const std::array scopes{gates.scope("account", "1"), gates.scope("developer", "token")};
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    gates.close(scopes[0], 10s);
    // Another worker is limited while the first refusal is under way, and once more at the next.
    client.meanwhile = [&] {
      elsewhere.close(scopes[1], 25s);
      client.meanwhile = [&] { elsewhere.close(scopes[0], 30s); };  // until 40 s
    };
    CHECK(gates.acquire(scopes, 1min));
    CHECK(clock.now() == start + 40s);
    gates.close(scopes[0], 10s);
    client.meanwhile = [&] { elsewhere.close(scopes[1], 25s); };
    CHECK_FALSE(gates.acquire(scopes, 25s - 1us));
    CHECK(clock.now() < start + 65s);
  });
}

TEST_CASE("the gates are asked before every attempt, not before the first alone", "[gate][C-083]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    FarClient client(store, clock);
    const Gates gates(client, "adwords", kinds, unpaced);
    const Gates elsewhere(store, "adwords", kinds, unpaced);
    const std::array scopes{gates.scope("account", "1"), gates.scope("developer", "token")};
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    std::vector<Span> calls;
    with_backoff(gates, scopes, [&] {
      calls.push_back(clock.now() - start);
      if (calls.size() == 3) return;
      // While it is told so, another worker learns of a longer closure of the other scope.
      client.meanwhile = [&] { elsewhere.close(scopes[1], 25s); };
      throw RateLimited(10s, 0);
    });
    CHECK(calls == std::vector<Span>{0s, 25s, 50s});
  });
}

TEST_CASE("no wait is negative, and none means for ever", "[gate][C-085]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const Gates gates(store, "adwords", kinds, paced);
    const Scope account = gates.scope("account", "1");
    for (const Span none : {Span{0}, Span{-1}, Span{-1000}, Span::min()}) {
      CHECK(gates.close(account, none).reset_after == 0s);
      CHECK(gates.pass(account).allowed);
    }
    CHECK(gates.close(account, Span::max()).allowed);  // 292,000 years
    CHECK(gates.pass(account).retry_after == 1h);
  });
}

TEST_CASE("a scope is a kind that is known and an id that is there", "[gate][C-086]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const Gates gates(store, "adwords", kinds, unpaced);
    CHECK(names(refusal([&] { (void)gates.scope("", "1"); }), "unknown kind of scope \"\""));
    CHECK(names(refusal([&] { (void)gates.scope("Account", "1"); }),
                "\"Account\"; there are \"account\", \"developer\""));
    CHECK(names(refusal([&] { (void)gates.scope("account", ""); }), "got 0 bytes"));
    const std::string longest(Key::max_part_bytes - std::string("account=").size(), 'x');
    CHECK(gates.pass(gates.scope("account", longest)).allowed);
    CHECK(names(refusal([&] { (void)gates.scope("account", longest + 'x'); }), "1 MiB"));

    // An account that looks like a token, or like another scope, is none.
    gates.close(gates.scope("account", "1"), 30s);
    CHECK_FALSE(gates.pass(gates.scope("account", "1")).allowed);
    CHECK(gates.pass(gates.scope("developer", "1")).allowed);
    gates.close(gates.scope("account", "1:developer=2"), 30s);
    CHECK(gates.pass(gates.scope("developer", "2")).allowed);
    CHECK(gates.scope("developer", "1").kind() == "developer");
  });
}

TEST_CASE("an id that is a secret is stored as a keyed hash", "[gate][C-086]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const GateOptions hashed{
        .ramp = 0s, .spacing = 0s, .hashed_kinds = {"developer"}, .secret = {1, 2}};
    const Gates gates(store, "adwords", kinds, hashed);
    const Scope token = gates.scope("developer", "s3cr3t-t0ken");
    CHECK(render(token.key()).find("s3cr3t") == std::string::npos);
    CHECK(render(gates.scope("account", "123").key()) == "{adwords}:account=123");
    gates.close(token, 30s);
    CHECK_FALSE(gates.pass(gates.scope("developer", "s3cr3t-t0ken")).allowed);
    CHECK(gates.pass(gates.scope("developer", "another")).allowed);
    GateOptions other = hashed;
    other.secret = {3, 4};
    CHECK(Gates(store, "adwords", kinds, other).scope("developer", "s3cr3t-t0ken").key() !=
          token.key());
  });
}

TEST_CASE("what becomes of a closure is always told", "[gate][C-087]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const Gates gates(store, "adwords", kinds, paced);
    const Scope account = gates.scope("account", "1");
    // What lies under the key is a lock: neither a closed gate nor silence.
    const SlotLock lock(store, "b", 1s);
    REQUIRE(lock.try_acquire(account.key()));
    std::error_code error;
    CHECK_FALSE(gates.close(account, 30s, error).allowed);
    CHECK(error == Errc::wrong_kind);
    CHECK(error == Failure::not_executed);
    CHECK_THROWS_AS(gates.close(account, 30s), std::system_error);
    CHECK_FALSE(gates.pass(account, error).allowed);
    CHECK(error == Errc::wrong_kind);
  });
}

TEST_CASE("every scope that an upstream limits is closed, whatever else went wrong",
          "[gate][C-088]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Gates gates(store, "adwords", kinds, paced);
    const Gates elsewhere(store, "adwords", kinds, paced);
    const std::array scopes{gates.scope("account", "1"), gates.scope("developer", "token")};
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    struct Fault {
      const char* text;
      const Scope* limited;  // null: it is not about a rate
      Span wait;
    };
    const std::array<Fault, 4> faults{{{"no such campaign", nullptr, 0s},
                                       {"rate", &scopes[0], 12s},
                                       {"internal", nullptr, 0s},
                                       {"rate", &scopes[1], 40 * 24h}}};
    const auto call = [&] {
      for (const Fault& fault : faults) {
        if (fault.limited != nullptr) gates.close(*fault.limited, fault.wait);
      }
      throw std::runtime_error(faults.front().text);
    };
    CHECK_THROWS_WITH(with_backoff(gates, scopes, call), "no such campaign");
    CHECK(clock.now() == start);  // an error that is not about a rate is passed on at once
    CHECK(elsewhere.peek(scopes[0]).retry_after == 12s);
    CHECK(elsewhere.peek(scopes[1]).retry_after == 1h);  // the cap, not 40 days
    CHECK(elsewhere.pass(scopes).step == 1);
  });
}

TEST_CASE("a refusal that is not tried again closes its scope, and no wait outlasts the deadline",
          "[gate][C-088]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Gates gates(store, "adwords", kinds, unpaced);
    const Gates elsewhere(store, "adwords", kinds, unpaced);
    const std::array scopes{gates.scope("account", "1"), gates.scope("developer", "token")};
    const VirtualClock::AutoAdvance moving(clock);
    const Time start = clock.now();
    const auto limited = [] { throw RateLimited(40 * 24h, 1); };
    CHECK_THROWS_AS(with_backoff(gates, scopes, limited, {.attempts = 1}), RateLimited);
    CHECK(elsewhere.peek(scopes[1]).retry_after == 1h);
    CHECK(elsewhere.peek(scopes[0]).allowed);
    int calls = 0;
    const auto count = [&] { ++calls; };
    const auto refused_by = [&](const Deadline& deadline) {
      try {
        with_backoff(elsewhere, scopes, count, {.deadline = deadline});
      } catch (const NotGranted& refusal) {
        CHECK(refusal.decision().step == 1);
        return true;
      }
      return false;
    };
    CHECK(refused_by(1h - 1us));  // at once, or when the time is up, but not later
    CHECK(calls == 0);
    CHECK(clock.now() < start + 1h);
    CHECK_FALSE(refused_by(start + 1h));
    CHECK(calls == 1);
    CHECK(clock.now() == start + 1h);
    // A deadline in the middle of the attempts: the closure is known, and nobody sleeps it out.
    const auto always = [&] {
      ++calls;
      throw RateLimited(10s, 0);
    };
    CHECK_THROWS_AS(with_backoff(gates, scopes, always, {.deadline = 25s}), NotGranted);
    CHECK(calls == 1 + 3);  // at 0, 10 and 20 s
    CHECK(clock.now() <= start + 1h + 25s);
    CHECK(elsewhere.peek(scopes[0]).retry_after > 0s);
  });
}

TEST_CASE("a gate is opened, peeked at and asked for without exceptions", "[gate]") {
  for_each_store([](Store& store, VirtualClock& clock) {
    const Gates gates(store, "adwords", kinds, paced);
    const std::array scopes{gates.scope("account", "1"), gates.scope("developer", "token")};
    std::error_code error;
    gates.close(scopes[0], 30s, error);
    CHECK(gates.peek(scopes).retry_after == 30s);
    CHECK(gates.peek(scopes, error).retry_after == 30s);
    CHECK(gates.peek(scopes[1], error).allowed);
    gates.open(scopes[0]);
    CHECK(gates.pass(scopes, error).remaining == 1);
    gates.close(scopes[0], 30s);
    gates.open(scopes[0], error);
    CHECK(gates.pass(scopes[0], error).remaining == 1);
    CHECK_FALSE(error);
    gates.close(scopes[0], 30s);
    clock.advance(48h);  // whether or not the state was collected
    CHECK(gates.pass(scopes[0]).remaining == 1);
  });
}

TEST_CASE("gates without scopes, with one twice or too many are errors", "[gate]") {
  for_each_store([](Store& store, VirtualClock& /*clock*/) {
    const Gates gates(store, "adwords", kinds, paced);
    std::error_code error;
    const std::span<const Scope> none;
    CHECK_FALSE(gates.pass(none, error).allowed);
    CHECK(error == Errc::invalid_plan);
    CHECK_FALSE(gates.acquire(none, 0s, {}, error).allowed);
    CHECK(error == Errc::invalid_plan);
    const std::vector twice(2, gates.scope("account", "1"));
    CHECK_FALSE(gates.pass(twice, error).allowed);
    CHECK(error == Errc::duplicate_key);
    std::vector<Scope> many;
    for (int i = 0; i < 17; ++i) many.push_back(gates.scope("account", std::to_string(i)));
    CHECK_FALSE(gates.pass(many, error).allowed);
    CHECK(error == Errc::invalid_plan);
    CHECK_THROWS_AS(gates.peek(many), std::system_error);
    many.pop_back();
    CHECK(gates.pass(many, error).allowed);
  });
}

TEST_CASE("gates that cannot be are refused with the value", "[gate]") {
  VirtualClock clock;
  for_each_store(
      [](Store& store, VirtualClock& /*clock*/) {
        const auto make = [&](std::vector<std::string> some, GateOptions options = {}) {
          return refusal([&] { (void)Gates(store, "g", some, options); });
        };
        CHECK(names(make({}), "at least one kind"));
        CHECK(names(make({"account", ""}), "got \"\""));
        CHECK(names(make({"a=b"}), "got \"a=b\""));
        CHECK(names(make({"a", "a"}), "\"a\" occurs twice"));
        CHECK(names(make({std::string(65, 'k')}), "1 to 64 bytes"));
        CHECK(names(make({"a"}, {.hashed_kinds = {"b"}}), "hashed kind \"b\""));
        CHECK(names(make({"a"}, {.cap = 0s}), "cap must be 1 to"));
        CHECK(names(make({"a"}, {.cap = 366 * 24h}), "cap must be"));
        CHECK(names(make({"a"}, {.ramp = -1us}), "got -1 us"));
        CHECK(names(make({"a"}, {.ramp = 25h}), "ramp must be"));
        CHECK(names(make({"a"}, {.ramp = 1s, .spacing = 2s}), "spacing must be 0 to 1000000 us"));
        CHECK(names(refusal([&] { (void)Gates(store, "", {"a"}); }), "name"));
      },
      Stores::virtual_time);
}
