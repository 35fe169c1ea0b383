// What a response said, told to gates and limiters.
#include <sluice/sluice.hpp>

#include "tests/catch.hpp"
#include "tests/http/parse.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using http::parse_lines;

namespace {

struct Fixture {
  VirtualClock clock;
  std::unique_ptr<Store> store = make_virtual_store(clock);
  Gates gates{*store, "upstream", {"account"}, {.cap = 1h, .ramp = 0s, .spacing = 0s}};
  Scope scope = gates.scope("account", "7");
  TokenBucket bucket{*store, "api", Quota::per_second(1).burst(10)};
  http::Feedback busy = parse_lines({{"RateLimit", R"("a";r=0;t=30)"}});
  http::Feedback fine = parse_lines({{"X-RateLimit-Remaining", "3"}});
};

/// Answers nothing.
class DeadStore final : public Store {
 public:
  void execute(const Plan& /*plan*/, Completion done) noexcept override {
    done.fail(Errc::not_connected);
  }
  Clock& clock() noexcept override { return clock_; }

 private:
  VirtualClock clock_;
};

}  // namespace

TEST_CASE("a gate closes for as long as the response asked, to the microsecond") {
  Fixture f;
  CHECK(http::close_gate(f.gates, f.scope, f.fine, 0s).allowed);
  CHECK(f.gates.peek(f.scope).allowed);
  http::close_gate(f.gates, f.scope, f.busy, 7s);
  f.clock.advance(30s - 1us);
  CHECK_FALSE(f.gates.peek(f.scope).allowed);
  f.clock.advance(1us);
  CHECK(f.gates.peek(f.scope).allowed);
}

TEST_CASE("a bucket is blocked for as long as the response asked, at most for its longest") {
  Fixture f;
  CHECK(http::block(f.bucket, "alice", f.fine, 0s).allowed);
  CHECK(f.bucket.peek("alice").remaining == 10);
  http::block(f.bucket, "alice", f.busy, 7s);
  CHECK(f.bucket.peek("alice").retry_after == 30s);
  http::block(f.bucket, "bob", parse_lines({{"Retry-After", "86400"}}), 7s);
  CHECK(f.bucket.peek("bob").retry_after == f.bucket.longest());
  std::error_code error;
  http::block(f.bucket, "eve", parse_lines({{"Retry-After", "86400"}}), 7s, error);
  CHECK_FALSE(error);
  CHECK(f.bucket.peek("eve").retry_after == f.bucket.longest());
}

TEST_CASE("where the response does not say how long, the caller does") {
  Fixture f;
  http::close_gate(f.gates, f.scope, f.fine, 7s);
  CHECK(f.gates.peek(f.scope).retry_after == 7s);
  http::block(f.bucket, "alice", f.fine, 7s);
  CHECK(f.bucket.peek("alice").retry_after == 7s);
  http::block(f.bucket, "bob", f.fine, 7h);
  CHECK(f.bucket.peek("bob").retry_after == f.bucket.longest());
  CHECK(http::close_gate(f.gates, f.gates.scope("account", "8"), f.fine, -7s).allowed);
  CHECK(f.gates.peek(f.gates.scope("account", "8")).allowed);
}

TEST_CASE("a store that cannot decide is an error in both forms") {
  Fixture f;
  DeadStore dead;
  const Gates gates{dead, "upstream", {"account"}};
  const TokenBucket bucket{dead, "api", Quota::per_second(1)};
  const Scope scope = gates.scope("account", "7");
  std::error_code error;
  http::close_gate(gates, scope, f.busy, 0s, error);
  CHECK(error == Errc::not_connected);
  http::close_gate(gates, scope, f.fine, 0s, error);
  CHECK_FALSE(error);
  http::block(bucket, "alice", f.busy, 0s, error);
  CHECK(error == Errc::not_connected);
  http::lower(bucket, "alice", f.fine, f.fine.find(""), error);
  CHECK(error == Errc::not_connected);
  CHECK_THROWS_AS(http::close_gate(gates, scope, f.busy, 0s), std::system_error);
  CHECK_THROWS_AS(http::block(bucket, "alice", f.busy, 0s), std::system_error);
  CHECK_THROWS_WITH(http::lower(bucket, "alice", f.fine, f.fine.find("")),
                    "http::lower: " + make_error_code(Errc::not_connected).message());
  CHECK_THROWS_WITH(http::lower(f.bucket, Key{"", "name"}, f.fine, f.fine.find("")),
                    "http::lower: a tag of 0 bytes, a name of 4 bytes: " +
                        make_error_code(Errc::invalid_key).message());
}
