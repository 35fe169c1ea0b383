// The addresses of the server, and the order in which they are tried.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "look_up.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// "127.0.0.1:6379", "[::1]:6379" or the path of a unix socket.
[[nodiscard]] std::string text_of(const Endpoint& endpoint);

/// The addresses that the options name, in the order of the look-up, but for those that did not
/// serve, which stand at the end, the latest last. A name is looked up anew for each list; what the
/// last look-up that succeeded found is used if one fails or takes too long. Belongs to the I/O
/// thread.
class Endpoints {
 public:
  /// REQUIRES: the context and the options outlive it.
  Endpoints(boost::asio::io_context& io, const RedisOptions& options, Resolve resolve);

  /// What the server is called as long as no address is known: "redis.example:6379".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// True if list() looks a name up.
  [[nodiscard]] bool is_name() const noexcept { return is_name_; }

  /// The addresses to try; none if there was no look-up yet that succeeded. Takes up to
  /// connect_timeout, and if addresses are known, up to `patience`.
  boost::asio::awaitable<std::vector<Endpoint>> list();
  /// Why the look-up of the last list failed; empty if it did not.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// How many addresses the last list had.
  [[nodiscard]] std::size_t count() const noexcept { return known_.size(); }

  /// This address did not serve.
  void put_last(const Endpoint& endpoint);
  /// Ends a list() that is under way.
  void stop() noexcept { look_up_.stop(); }

  /// How long a look-up may keep a store from addresses that are known: much longer than a server
  /// of names that is well takes, and much shorter than a call's deadline.
  static constexpr Span patience = std::chrono::milliseconds{50};

 private:
  boost::asio::awaitable<void> look_up();
  void accept(Found found);

  const RedisOptions& options_;
  std::string name_;
  bool is_name_ = false;
  LookUp look_up_;
  std::vector<Endpoint> known_;  // in the order of the look-up
  std::vector<Endpoint> unfit_;  // of the known ones, those that did not serve, the latest last
  std::string error_;
};

}  // namespace sluice::redis_detail
