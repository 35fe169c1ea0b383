// The parts for Boost.Beast without a network; end_to_end_test.cpp has a server and clients.
#include "sluice/adapters/beast.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <stdexcept>
#include <string>

#include "sluice/sluice.hpp"
#include "tests/catch.hpp"

namespace sluice::test {

using namespace std::chrono_literals;
namespace net = boost::asio;
namespace beast = boost::beast::http;

TEST_CASE("a coroutine decides a request, and makes the response to a refusal", "[http][beast]") {
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  const http::RequestLimit limit(TokenBucket(*store, "api", Quota::per_second(1).burst(3)));
  http::Admission served;
  http::Admission refused;
  net::io_context io;
  net::co_spawn(
      io,
      [&]() -> net::awaitable<void> {
        served = co_await http::async_admit(limit, "alice");
        refused = co_await http::async_admit(limit, "alice", 3);
      },
      [](std::exception_ptr failed) {
        if (failed) std::rethrow_exception(failed);
      });
  io.run();
  CHECK(served);
  CHECK(served.decision.remaining == 2);
  REQUIRE(refused.status == 429);

  beast::request<beast::empty_body> request(beast::verb::get, "/", 10);
  request.keep_alive(true);
  const auto response = http::refusal(request, refused);
  CHECK(response.result() == beast::status::too_many_requests);
  CHECK(response.version() == 10);
  CHECK(response.keep_alive());
  CHECK(response[beast::field::retry_after] == "1");
  CHECK(response["RateLimit"] == "\"api\";r=2;t=1");
  CHECK(response.body() == "too many requests\n");
  CHECK(response[beast::field::content_type] == "text/plain");
  CHECK(response[beast::field::content_length] == std::to_string(response.body().size()));

  // A client takes a body after a response to HEAD for the next response of the connection.
  request.method(beast::verb::head);
  const auto to_head = http::refusal(request, refused);
  CHECK(to_head.body().empty());
  CHECK(to_head[beast::field::content_length] == response[beast::field::content_length]);

  beast::response<beast::string_body> own;
  http::set_headers(own, served);
  CHECK(own["X-RateLimit-Remaining"] == "2");
}

TEST_CASE("a client throws what a Call knows, and reads what the API says", "[http][beast]") {
  beast::response<beast::string_body> response(beast::status::ok, 11);
  response.set("X-RateLimit-Limit", "10");
  response.set("X-RateLimit-Remaining", "4");
  const auto feedback = http::require_served(response, Time{1'000'000s});
  REQUIRE(feedback.windows().size() == 1);
  CHECK(feedback.windows()[0].remaining == 4);

  response.result(beast::status::too_many_requests);
  response.set(beast::field::retry_after, "Mon, 12 Jan 1970 13:47:10 GMT");
  const auto wait = [&](const http::ParseOptions& options) {
    try {
      (void)http::require_served(response, Time{1'000'000s}, options);
    } catch (const RateLimited& limited) {
      return limited.retry_after();
    }
    throw std::logic_error("it has returned");
  };
  CHECK(wait({}) == 30s);
  CHECK(wait({.longest = 20s}) == 20s);
  response.result(beast::status::service_unavailable);
  CHECK_THROWS_AS(http::require_served(response), Transient);
  response.result(beast::status::not_found);
  CHECK_NOTHROW(http::require_served(response));
}

}  // namespace sluice::test
