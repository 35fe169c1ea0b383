// Boost.Beast: servers whose requests are limited, and clients that obey. Header only; needs Boost
// 1.81 and sluice::asio.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "sluice/asio/verbs.hpp"
#include "sluice/clock.hpp"
#include "sluice/http.hpp"

namespace sluice::http {

/// RequestLimit::admit(), for a coroutine: no thread waits for the store. The limit must live until
/// the completion.
///
///     const auto admission = co_await http::async_admit(limit, std::string(request["X-Api-Key"]));
///     if (!admission) co_return http::refusal(request, admission);
///     auto response = serve(request);
///     http::set_headers(response, admission);
template <class L>
[[nodiscard]] boost::asio::awaitable<Admission> async_admit(const RequestLimit<L>& limit,
                                                            std::string key, Cost cost = 1) {
  const auto [error, decision] = co_await asio::async_try_acquire(
      limit.limiter(), key, cost, boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return limit.answer(key, decision, error);
}

/// Sets the headers of an admission in a response, of this library or of any other that has
/// `set(name, value)`.
template <class Response>
void set_headers(Response& response, const Admission& admission) {
  admission.headers.for_each([&](auto name, auto value) { response.set(name, value); });
}

/// The response to a request that is refused: 429 or 503, to HEAD without the body. REQUIRES:
/// !admission.
template <class Body, class Fields>
[[nodiscard]] boost::beast::http::response<boost::beast::http::string_body> refusal(
    const boost::beast::http::request<Body, Fields>& request, const Admission& admission) {
  namespace beast = boost::beast::http;
  beast::response<beast::string_body> response(static_cast<beast::status>(admission.status),
                                               request.version());
  set_headers(response, admission);
  response.set(beast::field::content_type, "text/plain");
  response.keep_alive(request.keep_alive());
  response.body() = admission.reason();
  response.prepare_payload();
  if (request.method() == beast::verb::head) response.body().clear();  // the length stays
  return response;
}

/// For a client, in the function of a Call: throws RateLimited or Transient unless the API has
/// answered, and returns what the response says of limits. `now` is when it came.
template <class Body, class Fields>
Feedback require_served(const boost::beast::http::response<Body, Fields>& response,
                        Time now = SystemClock().now(), const ParseOptions& options = {}) {
  Feedback feedback = parse_feedback(response.base(), now, options);
  require_served(static_cast<Word>(response.result_int()), feedback);
  return feedback;
}

}  // namespace sluice::http
