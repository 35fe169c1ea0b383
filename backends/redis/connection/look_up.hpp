// Names: the addresses of names, which all connections of a store share.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::redis_detail {

using Endpoint = boost::asio::generic::stream_protocol::endpoint;

/// The result of a look-up.
struct Found {
  std::vector<Endpoint> endpoints;
  std::string error;  // the system's message
};

/// Blocks until it has a result: addresses, or an error. Any thread.
using Resolve = std::function<Found(const std::string& host, std::uint16_t port)>;

/// getaddrinfo().
[[nodiscard]] Found resolve_by_system(const std::string& host, std::uint16_t port);

/// Starts a look-up, and passes its result to `done`, on any thread and at any time. Throws
/// std::system_error if that is impossible.
using StartLookUp = std::function<void(const std::string& host, std::uint16_t port,
                                       std::function<void(Found)> done)>;

/// On a detached thread each, because the system's call blocks and cannot be cancelled. `resolve`:
/// empty for the system's.
[[nodiscard]] StartLookUp look_up_on_threads(Resolve resolve);

/// Each name is looked up once at a time, whoever asks. A connection, and this object, may end
/// while a look-up runs: its result uses only what it shares with them. Belongs to the I/O thread.
class Names {
 public:
  /// REQUIRES: the context outlives it.
  Names(boost::asio::io_context& io, StartLookUp start);
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  ~Names();

  /// The addresses of a name, by a new look-up or the one under way; and if it fails or takes too
  /// long, an error beside those of the last successful one. Takes up to `most`, and if addresses
  /// are known, up to `patience` from the start of the look-up.
  boost::asio::awaitable<Found> find(std::string host, std::uint16_t port, Span most);

  /// How long a look-up may delay the use of known addresses: much longer than a working name
  /// server takes, and much shorter than a call's timeout.
  static constexpr Span patience = std::chrono::milliseconds{50};
  /// The most names that are known: servers name others, and may do so for years.
  static constexpr std::size_t most_names = 4096;

 private:
  struct Name;
  class Waiter;

  std::shared_ptr<Name> name_of(const std::string& host, std::uint16_t port);

  boost::asio::io_context& io_;
  const StartLookUp start_;
  SystemClock clock_;
  std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<Name>> names_;
};

}  // namespace sluice::redis_detail
