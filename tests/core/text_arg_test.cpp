// Text that enters by a user's call: a null pointer is an empty text, which then gets the usual
// error for empty text. Threading: single-threaded.
#include "sluice/detail/arguments.hpp"

#include <functional>
#include <string>

#include "sluice/http.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/trace.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using namespace sluice::test;

namespace {

/// A variable, as in a program that did not find what it looked for.
const char* const nothing = nullptr;

std::string_view taken(detail::TextArg text) { return text; }

struct OwnString {
  operator std::string_view() const { return "own"; }  // NOLINT: converts
};

/// Each of these calls is refused with an exception that says this.
void are_refused(const std::string& what, std::initializer_list<std::function<void()>> calls) {
  for (const auto& call : calls) CHECK_THROWS_WITH(call(), contains_text(what));
}

struct Fixture {
  VirtualClock clock;
  std::shared_ptr<Store> store = make_virtual_store(clock);
};

}  // namespace

TEST_CASE("A text argument takes every string type, and a null pointer as an empty text",
          "[core][text_arg]") {
  char buffer[] = "buffer";
  char* const writable = buffer;
  CHECK(taken("literal") == "literal");
  CHECK(taken(buffer) == "buffer");
  CHECK(taken(writable) == "buffer");
  CHECK(taken(std::string("string")) == "string");
  CHECK(taken(std::string("a\0b", 3)).size() == 3);
  CHECK(taken(std::string_view("view")) == "view");
  CHECK(taken(OwnString{}) == "own");
  CHECK(taken({buffer, 3}) == "buf");
  CHECK(taken(nothing).empty());
  CHECK(taken({}).empty());
  static_assert(detail::TextArg("constant").view() == "constant");
}

TEST_CASE("A null pointer as a part of a key is an empty part", "[core][text_arg]") {
  const Fixture fixture;
  const TokenBucket bucket(fixture.store, "bucket", Quota::per_second(10));
  CHECK(Key("alice", nothing) == Key("alice"));
  CHECK(Key(42, nothing) == Key(42));
  CHECK(Key(std::string_view("alice"), nothing) == Key("alice"));
  CHECK(Key("alice").with_unit(nothing).unit().empty());
  CHECK(Key("alice").with_default_name(nothing).name().empty());
  CHECK(bucket.try_acquire(Key("alice", nothing)).allowed);
  std::error_code error;
  CHECK_FALSE(bucket.try_acquire(nothing, error));
  CHECK(error == Errc::invalid_key);
}

TEST_CASE("A null pointer as a limiter's name is refused as an empty name", "[core][text_arg]") {
  const Fixture fixture;
  const auto& store = fixture.store;
  are_refused("name must have 1 byte to 1 MiB, got 0 bytes",
              {[&] { TokenBucket(store, nothing, Quota::per_second(10)); },
               [&] { SharedTokenBucket(store, nothing); },
               [&] {
                 SlidingWindow(store, nothing, {{25, 5s}});
               },
               [&] {
                 SlidingWindowCounter(store, nothing, {25, 5s});
               },
               [&] { SharedSlidingWindow(store, nothing); },
               [&] { FixedWindow(store, nothing, 10, Calendar::every(1min)); },
               [&] { ConcurrencyLimiter(store, nothing, 2); },
               [&] {
                 FleetShedder(store, nothing, 10, {{"all", FleetShare::percent(100)}});
               },
               [&] { UtilizationShedder(store, nothing); }, [&] { SlotLock(store, nothing, 1s); },
               [&] { Gates(store, nothing, {"kind"}); }});
}

TEST_CASE("A null pointer as a tier is an unknown tier", "[core][text_arg]") {
  const Fixture fixture;
  const FleetShedder fleet(fixture.store, "fleet", 10, {{"all", FleetShare::percent(100)}});
  const UtilizationShedder shedder(fixture.store, "shedder");
  are_refused("tier \"\"",
              {[&] { (void)fleet.try_acquire(nothing); }, [&] { (void)fleet.peek(nothing); },
               [&] { (void)fleet.share_of(nothing); }, [&] { (void)shedder.try_acquire(nothing); },
               [&] { (void)shedder.peek("host", nothing); }, [&] { (void)shedder.tier(nothing); }});
  std::error_code error;
  CHECK_FALSE(fleet.try_acquire(nothing, error).decision().allowed);
  CHECK(error == Errc::invalid_argument);
  are_refused("a tier needs a name", {[&] {
                FleetShedder(fixture.store, "fleet", 10, {{nothing, FleetShare::percent(100)}});
              }});
}

TEST_CASE("A scope's null kind is unknown, and its null id empty; an id may be a number",
          "[core][text_arg][gates]") {
  const Fixture fixture;
  const Gates gates(fixture.store, "gates", {"account"});
  are_refused("unknown kind of scope \"\"; there are \"account\"",
              {[&] { (void)gates.scope(nothing, "1"); }});
  are_refused("the id of a scope must have 1 byte to 1 MiB, got 0 bytes",
              {[&] { (void)gates.scope("account", nothing); }});
  are_refused("a kind of scope must have 1 to 64 bytes and no '=', got \"\"", {[&] {
                Gates(fixture.store, "gates", {"account", nothing});
              }});
  CHECK(gates.scope("account", 0).key() == gates.scope("account", "0").key());
  CHECK(gates.scope("account", -7L).key() == gates.scope("account", "-7").key());
  CHECK(gates.scope("account", ~0ULL).key() ==
        gates.scope("account", "18446744073709551615").key());
}

TEST_CASE("A null pointer to be parsed is an empty text", "[core][text_arg]") {
  are_refused("expected a whole number at byte 1, got \"\"", {[] { Quota::parse(nothing); }});
  CHECK_FALSE(host_cpu(nothing));
  CHECK_FALSE(process_cpu(nothing, nothing));
  CHECK_FALSE(proc_cpu_source(CpuOf::host, nothing)->read());
  CHECK(TimeZone(nothing, {{Time{}, Span{0}}}).name().empty());
  CHECK(testing::FaultScript(nothing).is_over());
  are_refused("a trace begins with its title", {[] { (void)testing::parse_trace(nothing); }});
}

TEST_CASE("A null pointer as a text of a response's headers is an empty text",
          "[core][text_arg][http]") {
  const auto quota = Quota::per_second(10);
  are_refused("a policy needs a name", {[&] { http::Policy(nothing, quota); }});
  const http::Policy policy("p", quota, {.partition = nothing, .unit = nothing});
  CHECK(policy.partition().empty());
  CHECK(policy.unit().empty());
  Decision refused;
  refused.retry_after = 100ms;
  const auto headers = http::limit_headers(policy, refused, {.primary = nothing});
  CHECK(headers["Retry-After"] == "1");
  CHECK(headers["X-RateLimit-Limit"] == "10");
  CHECK(headers[nothing].empty());
  http::Text text;
  CHECK(text.assign(nothing));
  CHECK(text == nothing);
  CHECK(http::Feedback{}.find(nothing) == nullptr);
}
