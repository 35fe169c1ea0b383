// Text that enters by a user's call: a null pointer is an empty text, which then gets the usual
// error for empty text. Threading: single-threaded.
#include "sluice/detail/arguments.hpp"

#include <string>

#include "sluice/http.hpp"
#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "sluice/testing/trace.hpp"
#include "tests/catch.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using test::contains_text;

namespace {

/// A variable, as in a program that did not find what it looked for.
const char* const nothing = nullptr;

std::string_view taken(detail::TextArg text) { return text; }

struct OwnString {
  operator std::string_view() const { return "own"; }  // NOLINT: converts
};

template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "no refusal";
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
  const auto empty_name = contains_text("name must have 1 byte to 1 MiB, got 0 bytes");
  const auto quota = Quota::per_second(10);
  CHECK_THAT(refusal_of([&] { TokenBucket(store, nothing, quota); }), empty_name);
  CHECK_THAT(refusal_of([&] { SharedTokenBucket(store, nothing); }), empty_name);
  CHECK_THAT(refusal_of([&] { SlidingWindow(store, nothing, {{25, 5s}}); }), empty_name);
  CHECK_THAT(refusal_of([&] { SlidingWindowCounter(store, nothing, {25, 5s}); }), empty_name);
  CHECK_THAT(refusal_of([&] { SharedSlidingWindow(store, nothing); }), empty_name);
  CHECK_THAT(refusal_of([&] { FixedWindow(store, nothing, 10, Calendar::every(1min)); }),
             empty_name);
  CHECK_THAT(refusal_of([&] { ConcurrencyLimiter(store, nothing, 2); }), empty_name);
  CHECK_THAT(refusal_of([&] {
               FleetShedder(store, nothing, 10, {{"all", FleetShare::percent(100)}});
             }),
             empty_name);
  CHECK_THAT(refusal_of([&] { UtilizationShedder(store, nothing); }), empty_name);
  CHECK_THAT(refusal_of([&] { SlotLock(store, nothing, 1s); }), empty_name);
  CHECK_THAT(refusal_of([&] { Gates(store, nothing, {"kind"}); }), empty_name);
}

TEST_CASE("A null pointer as a tier is an unknown tier", "[core][text_arg]") {
  const Fixture fixture;
  const FleetShedder fleet(fixture.store, "fleet", 10, {{"all", FleetShare::percent(100)}});
  const auto unknown = contains_text("tier \"\"");
  std::error_code error;
  CHECK_THAT(refusal_of([&] { (void)fleet.try_acquire(nothing); }), unknown);
  CHECK_THAT(refusal_of([&] { (void)fleet.peek(nothing); }), unknown);
  CHECK_THAT(refusal_of([&] { (void)fleet.share_of(nothing); }), unknown);
  CHECK_FALSE(fleet.try_acquire(nothing, error).decision().allowed);
  CHECK(error == Errc::invalid_argument);
  CHECK_THAT(refusal_of([&] {
               FleetShedder(fixture.store, "fleet", 10, {{nothing, FleetShare::percent(100)}});
             }),
             contains_text("a tier needs a name"));
  const UtilizationShedder shedder(fixture.store, "shedder");
  CHECK_THAT(refusal_of([&] { (void)shedder.try_acquire(nothing); }), unknown);
  CHECK_THAT(refusal_of([&] { (void)shedder.peek("host", nothing); }), unknown);
  CHECK_THAT(refusal_of([&] { (void)shedder.tier(nothing); }), unknown);
}

TEST_CASE("A scope's null kind is unknown, and its null id empty", "[core][text_arg][gates]") {
  const Fixture fixture;
  const Gates gates(fixture.store, "gates", {"account"});
  CHECK_THAT(refusal_of([&] { (void)gates.scope(nothing, "1"); }),
             contains_text("unknown kind of scope \"\"; there are \"account\""));
  CHECK_THAT(refusal_of([&] { (void)gates.scope("account", nothing); }),
             contains_text("the id of a scope must have 1 byte to 1 MiB, got 0 bytes"));
  CHECK_THAT(refusal_of([&] {
               Gates(fixture.store, "gates", {"account", nothing});
             }),
             contains_text("a kind of scope must have 1 to 64 bytes and no '=', got \"\""));
}

TEST_CASE("A scope's id may be a number, 0 as well", "[core][text_arg][gates]") {
  const Fixture fixture;
  const Gates gates(fixture.store, "gates", {"account"});
  CHECK(gates.scope("account", 42).key() == gates.scope("account", "42").key());
  CHECK(gates.scope("account", 0).key() == gates.scope("account", "0").key());
  CHECK(gates.scope("account", -7L).key() == gates.scope("account", "-7").key());
  CHECK(gates.scope("account", ~0ULL).key() ==
        gates.scope("account", "18446744073709551615").key());
}

TEST_CASE("A null pointer to be parsed is an empty text", "[core][text_arg]") {
  CHECK_THAT(refusal_of([] { Quota::parse(nothing); }),
             contains_text("expected a whole number at byte 1, got \"\""));
  CHECK_FALSE(host_cpu(nothing));
  CHECK_FALSE(process_cpu(nothing, nothing));
  CHECK_FALSE(proc_cpu_source(CpuOf::host, nothing)->read());
  CHECK(TimeZone(nothing, {{Time{}, Span{0}}}).name().empty());
  CHECK(testing::FaultScript(nothing).is_over());
  CHECK_THAT(refusal_of([] { (void)testing::parse_trace(nothing); }),
             contains_text("a trace begins with its title"));
}

TEST_CASE("A null pointer as a text of a response's headers is an empty text",
          "[core][text_arg][http]") {
  const auto quota = Quota::per_second(10);
  CHECK_THAT(refusal_of([&] { http::Policy(nothing, quota); }),
             contains_text("a policy needs a name"));
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
