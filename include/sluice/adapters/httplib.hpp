// cpp-httplib: servers whose requests are limited, and clients that obey. Header only; needs
// cpp-httplib 0.11, and the same options of it (such as CPPHTTPLIB_OPENSSL_SUPPORT) wherever it is
// included.
#pragma once

#include <httplib.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "sluice/calls/errors.hpp"
#include "sluice/clock.hpp"
#include "sluice/http.hpp"

namespace sluice::http {
namespace detail {

/// Also of a body of no bytes: a second header could give it another length.
inline bool has_body(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") || request.has_header("Content-Length");
}

/// Has the response sent, and the connection closed. In cpp-httplib only a provider of content that
/// fails closes it; this one has written everything before.
inline void send_and_close(httplib::Response& response, std::string text) {
  response.set_header("Connection", "close");
  const std::size_t size = text.size();
  response.set_content_provider(
      size, "text/plain",
      [text = std::move(text)](std::size_t from, std::size_t length, httplib::DataSink& sink) {
        sink.write(text.data() + from, length);
        return false;
      });
}

}  // namespace detail

/// A handler for httplib::Server::set_pre_routing_handler(): requests that are refused are answered
/// here, and all responses have the headers. `key_of(request)` is the key of each, and is copied.
/// The threads of the server wait for the store. A refusal of a request with a body ends the
/// connection: cpp-httplib has not read the body, and would take it for the next request.
///
///     server.set_pre_routing_handler(http::limit_requests(limit, [](const auto& request) {
///       const std::string key = request.get_header_value("X-Api-Key");
///       return key.empty() ? "none" : key;
///     }));
template <class L, class KeyOf>
[[nodiscard]] httplib::Server::HandlerWithResponse limit_requests(RequestLimit<L> limit,
                                                                  KeyOf key_of) {
  return [limit = std::move(limit), key_of = std::move(key_of)](const httplib::Request& request,
                                                                httplib::Response& response) {
    const std::string key(key_of(request));
    const Admission admission = limit.admit(key);
    admission.headers.for_each(
        [&](auto name, auto value) { response.set_header(std::string(name), std::string(value)); });
    if (admission) return httplib::Server::HandlerResponse::Unhandled;
    response.status = admission.status;
    std::string reason(admission.reason());
    if (detail::has_body(request)) {
      detail::send_and_close(response, std::move(reason));
    } else {
      response.set_content(reason, "text/plain");
    }
    return httplib::Server::HandlerResponse::Handled;
  };
}

/// For a client, in the function of a Call: throws RateLimited or Transient unless the API has
/// answered, and returns what the response says of limits. A server that could not be reached has
/// served nothing; one whose answer was lost perhaps has. What does not pass, such as a certificate
/// that is not trusted, is a std::runtime_error.
inline Feedback require_served(const httplib::Result& result, Time now = SystemClock().now(),
                               const ParseOptions& options = {}) {
  using Error = httplib::Error;
  switch (const Error error = result.error()) {
    case Error::Success:
      break;
    case Error::Connection:
    case Error::ConnectionTimeout:
    case Error::SSLConnection:
      throw Transient(Served::no, {}, httplib::to_string(error));
    case Error::Read:
    case Error::Write:
    case Error::Unknown:
      throw Transient(Served::perhaps, {}, httplib::to_string(error));
    default:
      throw std::runtime_error(httplib::to_string(error));
  }
  Feedback feedback = parse_feedback(result->headers, now, options);
  require_served(result->status, feedback);
  return feedback;
}

}  // namespace sluice::http
