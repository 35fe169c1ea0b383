// Replies of fake nodes of a cluster and fake Sentinels. Threading: FakeServer's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/redis/asking.hpp"
#include "tests/redis/events.hpp"
#include "tests/redis/fake/server.hpp"

namespace sluice::test {

inline std::string number(std::int64_t value) { return ":" + std::to_string(value) + "\r\n"; }

inline std::string array(const std::vector<std::string>& elements) {
  std::string reply = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) reply += element;
  return reply;
}

inline const std::string loopback = bulk("127.0.0.1");

/// A row of CLUSTER SLOTS. `host`: the reply that names it.
inline std::string row(std::int64_t first, std::int64_t last, const std::string& host,
                       std::uint16_t port) {
  return "*3\r\n" + number(first) + number(last) + "*3\r\n" + host + number(port) + bulk("id");
}

/// A node that answers CLUSTER SLOTS with `map()`, and each call with `answer()`, or well without
/// one. `left()` is told when a connection ends that had calls.
inline FakeServer::Behaviour node(
    std::function<std::string()> map, std::function<std::string(const Command&)> answer = {},
    std::function<void()> left = [] {}) {
  return [=](Peer& peer, int) {
    bool has_called = false;
    for (Word at = 1; const auto asked = peer.read_behind_login();) {
      const std::string& name = asked->at(0);
      has_called = has_called || is_call(*asked);
      const std::string reply = name == "CLUSTER"  ? map()
                                : name == "ASKING" ? "+OK\r\n"
                                : answer           ? answer(*asked)
                                                   : allowing(*asked, at++);
      if (!peer.send(reply)) break;
    }
    if (has_called) left();
  };
}

inline std::string no_map() { return "-ERR no map\r\n"; }

/// "MOVED" or "ASK".
inline std::string redirection(const std::string& word, std::uint16_t port,
                               const std::string& host = "127.0.0.1") {
  return "-" + word + " 1 " + host + ":" + std::to_string(port) + "\r\n";
}

inline RedisOptions fake_cluster(std::initializer_list<const FakeServer*> nodes) {
  RedisOptions options;
  for (const FakeServer* server : nodes) options.cluster.push_back({"127.0.0.1", server->port()});
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  return options;
}

inline RedisOptions fake_sentinel(const FakeServer& sentinel) {
  RedisOptions options;
  options.call_timeout = 20s;
  options.connect_timeout = 20s;
  options.sentinel.emplace();
  options.sentinel->master = "mymaster";
  options.sentinel->sentinels = {{"127.0.0.1", sentinel.port()}};
  return options;
}

}  // namespace sluice::test
