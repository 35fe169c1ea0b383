// Endpoints: the addresses of the server, in the order in which they are tried.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "backends/redis/connection/look_up.hpp"
#include "sluice/redis/redis_store.hpp"

namespace sluice::redis_detail {

/// "127.0.0.1:6379", "[::1]:6379" or the path of a unix socket.
[[nodiscard]] std::string text_of(const Endpoint& endpoint);

/// The addresses of the options, in the order of the look-up, except that those that did not serve
/// are last, the latest at the end. A name is looked up for each list; if a look-up fails or takes
/// too long, the result of the last successful one of the store is used. Belongs to the I/O thread.
class Endpoints {
 public:
  /// REQUIRES: the options and the names outlive it.
  Endpoints(const RedisOptions& options, Names& names);

  /// The name of the server while no address is known: "redis.example:6379".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// True if list() looks a name up.
  [[nodiscard]] bool is_name() const noexcept { return is_name_; }

  /// The addresses to try; empty before the first successful look-up. Takes up to connect_timeout,
  /// and if addresses are known, up to Names::patience.
  boost::asio::awaitable<std::vector<Endpoint>> list();
  /// The error of the last look-up; empty if it succeeded.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  /// The number of addresses in the last list.
  [[nodiscard]] std::size_t count() const noexcept { return known_.size(); }

  /// Records that this address did not serve.
  void put_last(const Endpoint& endpoint);

 private:
  void accept(Found found);

  const RedisOptions& options_;
  Names& names_;
  std::string name_;
  bool is_name_ = false;
  std::vector<Endpoint> known_;  // in the order of the look-up
  std::vector<Endpoint> unfit_;  // of the known ones, those that did not serve, the latest last
  std::string error_;
};

}  // namespace sluice::redis_detail
