// A real redis-server whose wall clock stands still until the test moves it: scripts see the
// test's TIME, and keys expire by it. Threading: that of RedisServer; set_time() from any thread.
#pragma once

#include <string>
#include <vector>

#include "sluice/time.hpp"
#include "tests/support/redis_server.hpp"

namespace sluice::test {

class FrozenRedis {
 public:
  /// The one server of this process, started by the first call. Must be called by a thread that
  /// lives as long as the process: the main one.
  static FrozenRedis& instance();

  FrozenRedis(const FrozenRedis&) = delete;
  FrozenRedis& operator=(const FrozenRedis&) = delete;
  ~FrozenRedis();

  /// The server's wall clock from now on; seen by the next command. REQUIRES: not before 1970.
  void set_time(Time time) noexcept;
  /// Forgets every key.
  void flush();
  [[nodiscard]] RedisServer& server() noexcept { return server_; }

 private:
  FrozenRedis();

  std::string folder_;
  Word* page_;
  RedisServer server_;
};

/// The variables of a server whose wall clock runs, but is wrong by `shift`.
[[nodiscard]] std::vector<std::string> shifted_clock(Span shift);

}  // namespace sluice::test
