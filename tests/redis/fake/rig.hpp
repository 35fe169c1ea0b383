// A store on a fake server. Threading: the test's thread asks, the server runs on its own.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/fake/server.hpp"

namespace sluice::test {

/// Nothing but the server ends a call or a connection for a while.
inline RedisOptions options_for(const FakeServer& server) {
  RedisOptions options;
  options.port = server.port();
  options.connect_timeout = 5s;
  options.stall_timeout = 1h;
  return options;
}

struct Rig {
  explicit Rig(
      FakeServer::Behaviour behaviour,
      const std::function<void(RedisOptions&)>& change = [](RedisOptions&) {},
      FakeServer::Serving serving = FakeServer::Serving::one_by_one)
      : server(std::move(behaviour), serving), store(make_store(change)) {}

  void ask(Asked& asked, Span within = 1h, std::stop_token stop = {}) const {
    bucket.ask(asked, "a", within, std::move(stop));
  }
  [[nodiscard]] std::error_code error(Span within = 20s) const { return bucket.error("a", within); }
  /// One call after the other, each without waiting.
  void ask_all(Crowd& crowd, Span within = 1h, const std::stop_token& stop = {}) const {
    for (std::size_t i = 0; i < crowd.size(); ++i) ask(crowd[i], within, stop);
  }
  [[nodiscard]] RedisStats stats() const { return store->stats(); }

  FakeServer server;
  std::unique_ptr<RedisStore> store;
  Bucket bucket{*store, Quota::per_second(10)};

 private:
  [[nodiscard]] std::unique_ptr<RedisStore> make_store(
      const std::function<void(RedisOptions&)>& change) const {
    RedisOptions options = options_for(server);
    change(options);
    return make_redis_store(options);
  }
};

/// Answers the first connection's calls by `first`, and those of later ones from 500 on.
inline FakeServer::Behaviour at_first(std::function<void(Peer&)> first) {
  return [first = std::move(first)](Peer& peer, int number) {
    if (number > 0) return serve_well(peer, 500);
    first(peer);
  };
}

}  // namespace sluice::test
