// How a server answers requests that a limiter has decided.
#include <map>
#include <memory>
#include <string>

#include "sluice/sluice.hpp"
#include "sluice/testing/faulty_store.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

namespace {

std::map<std::string, std::string> headers_of(const http::Admission& admission) {
  std::map<std::string, std::string> headers;
  admission.headers.for_each([&](auto name, auto value) { headers.emplace(name, value); });
  return headers;
}
using Headers = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("a request is served or refused by the tier of its key, and told so", "[http][serve]") {
  VirtualClock clock;
  LimitList list(Quota::per_second(1).burst(2));
  list.tier("gold", Quota::per_second(10).burst(50)).assign("alice", "gold");
  list.allow("health").deny("mallory");
  const http::RequestLimit limit(
      TokenBucket(make_virtual_store(clock), "api", std::make_shared<QuotaTable>(list)));

  const http::Admission served = limit.admit("bob");
  CHECK(served);
  CHECK(served.status == 200);
  CHECK(served.reason().empty());
  CHECK(headers_of(served) == Headers{{"RateLimit-Policy", "\"api\";q=2;w=2"},
                                      {"RateLimit", "\"api\";r=1;t=1"},
                                      {"X-RateLimit-Limit", "2"},
                                      {"X-RateLimit-Remaining", "1"},
                                      {"X-RateLimit-Reset", "1"}});
  CHECK(headers_of(limit.admit("alice", 7))["RateLimit-Policy"] == "\"api\";q=50;w=5");
  CHECK(headers_of(limit.admit("alice"))["X-RateLimit-Remaining"] == "42");

  (void)limit.admit("bob");
  const http::Admission refused = limit.admit("bob");
  CHECK_FALSE(refused);
  CHECK(refused.status == 429);
  CHECK(refused.reason() == "too many requests\n");
  CHECK(refused.decision.retry_after == 1s);
  CHECK(headers_of(refused)["Retry-After"] == "1");

  CHECK(headers_of(limit.admit("health")).empty());
  const http::Admission denied = limit.admit("mallory");
  CHECK(denied.status == 429);
  CHECK(headers_of(denied).count("Retry-After") == 0);
}

TEST_CASE("windows tell their own length, and the limit of the key", "[http][serve]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  LimitList<Word> list(5);
  list.limit("alice", 7);
  const auto table = std::make_shared<LimitTable<Word>>(list);
  const http::RequestLimit counter(SlidingWindowCounter(*store, "counter", table, 90s));
  const http::RequestLimit daily(FixedWindow(*store, "daily", table, Calendar::every(1h)));
  CHECK(headers_of(counter.admit("bob"))["RateLimit-Policy"] == "\"counter\";q=5;w=90");
  CHECK(headers_of(counter.admit("alice"))["RateLimit-Policy"] == "\"counter\";q=7;w=90");
  CHECK(headers_of(daily.admit("bob"))["RateLimit-Policy"] == "\"daily\";q=5;w=3600");
  const auto alice = headers_of(daily.admit("alice"));
  CHECK(alice.at("RateLimit-Policy") == "\"daily\";q=7;w=3600");
  CHECK(alice.at("X-RateLimit-Remaining") == "6");
}

TEST_CASE("a request that cannot be decided is a 503 without headers", "[http][serve]") {
  VirtualClock clock;
  const auto inner = make_virtual_store(clock);
  testing::FaultyStore store(*inner);
  const http::RequestLimit limit(TokenBucket(store, "api", Quota::per_second(1)));
  for (const http::Admission& failed : {limit.admit(""), limit.admit("bob", -1), [&] {
                                          store.fail_call(1, testing::Fault::not_executed());
                                          return limit.admit("bob");
                                        }()}) {
    CHECK_FALSE(failed);
    CHECK(failed.status == 503);
    CHECK(failed.error);
    CHECK(failed.headers.size() == 0);
    CHECK(failed.reason() == "the limit cannot be checked now\n");
  }
  CHECK(limit.admit("").error == Errc::invalid_key);
}

TEST_CASE("a limiter whose name no client may see is refused at once", "[http][serve]") {
  const auto store = make_memory_store();
  const auto with_name = [&](const std::string& name) {
    return http::RequestLimit(TokenBucket(*store, name, Quota::per_second(1)));
  };
  CHECK_THROWS_AS(with_name(std::string(65, 'x')), std::invalid_argument);
  CHECK_THROWS_AS(with_name("a\nb"), std::invalid_argument);
  CHECK_NOTHROW(with_name(std::string(64, 'x')));
}

TEST_CASE("the options of the headers hold for each request", "[http][serve]") {
  VirtualClock clock;
  const http::RequestLimit limit(
      TokenBucket(make_virtual_store(clock), "api", Quota::per_second(1)),
      {.rate_limit = false, .primary = "another"});
  const auto headers = headers_of(limit.admit("bob"));
  CHECK(headers.count("RateLimit") == 0);
  CHECK(headers.count("X-RateLimit-Limit") == 1);
}

}  // namespace sluice::test
