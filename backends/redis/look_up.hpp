// LookUp: looks names up on a thread, because the system's call blocks and cannot be cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::redis_detail {

using Endpoint = boost::asio::generic::stream_protocol::endpoint;

/// The result of a look-up.
struct Found {
  std::vector<Endpoint> endpoints;  // none if `error` is set
  std::string error;                // the system's message
};

/// Blocks until it has a result. Any thread.
using Resolve = std::function<Found(const std::string& host, std::uint16_t port)>;

/// getaddrinfo().
[[nodiscard]] Found resolve_by_system(const std::string& host, std::uint16_t port);

/// One look-up at a time, on a detached thread, which may outlive its owner and then uses only the
/// shared state. Belongs to the I/O thread.
class LookUp {
 public:
  /// REQUIRES: the context outlives it.
  LookUp(boost::asio::io_context& io, Resolve resolve);
  LookUp(const LookUp&) = delete;
  LookUp& operator=(const LookUp&) = delete;
  ~LookUp();

  [[nodiscard]] bool is_under_way() const noexcept;
  /// Throws std::system_error if no thread can be started. REQUIRES: no look-up is pending.
  void start(const std::string& host, std::uint16_t port);
  /// Waits for the result, up to `patience`. None if the look-up is still pending, or if none was
  /// started since the last result.
  boost::asio::awaitable<std::optional<Found>> wait(Span patience);
  /// Ends a wait().
  void stop() noexcept;

 private:
  struct Shared;

  [[nodiscard]] std::optional<Found> take() noexcept;

  boost::asio::io_context& io_;
  Resolve resolve_;
  boost::asio::steady_timer arrival_;  // cancelled when the look-up ends
  std::shared_ptr<Shared> shared_;     // null: none was started, or its result was taken
};

}  // namespace sluice::redis_detail
