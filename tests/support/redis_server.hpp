// A real redis-server (or valkey-server) for one test: its own folder, a unix socket and a free
// loopback port. It is found in SLUICE_REDIS_SERVER or in PATH, and dies with the test.
// Threading: one thread starts and stops it. That thread must outlive the server, because the
// kernel ends the server when the thread that started it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::test {

/// True if SLUICE_NO_REDIS=1: there is to be no server. Without that a missing server is a failure.
[[nodiscard]] bool without_redis();

/// The same, for a test case that needs a server, and returns if this is true: it is then reported
/// as left out, and not as passed.
[[nodiscard]] bool redis_left_out();

/// A loopback port that was free a moment ago; another process may take it first. Throws
/// std::runtime_error if there is none.
[[nodiscard]] std::uint16_t free_port();

/// The same, with two more properties. The system gives the port to no client, so that none takes
/// it while its server is down, nor connects to itself there. And port + 10000, a cluster's bus, is
/// free as well.
[[nodiscard]] std::uint16_t free_server_port();

/// How a server is started.
struct RedisSetup {
  std::vector<std::string> config{};       ///< lines of redis.conf, after the fixture's own
  std::vector<std::string> environment{};  ///< added to the server's: "LD_PRELOAD=/a/b.so"
  std::vector<std::string> arguments{};    ///< behind the file: "--sentinel"
  /// The port speaks TLS only; `config` names the certificates.
  bool tls = false;
  std::string password{};  ///< requirepass, and masterauth
};

class RedisServer {
 public:
  /// Starts a server and waits until it answers PING. Each item of `config` is one line of
  /// redis.conf, and stands after the fixture's own: "maxmemory 1mb". No persistence by default.
  /// `environment` is that of RedisSetup.
  /// Throws std::runtime_error with the end of the server's log if it does not come up.
  explicit RedisServer(std::vector<std::string> config = {},
                       std::vector<std::string> environment = {});
  explicit RedisServer(RedisSetup setup);
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  /// Kills the server and removes its folder.
  ~RedisServer();

  [[nodiscard]] const std::string& unix_socket() const noexcept { return socket_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running() const noexcept { return pid_ > 0; }

  /// Starts again after stop() or kill(), on the same socket and port.
  void start();
  /// SIGTERM, and waits for the end.
  void stop();
  /// SIGKILL: nothing is saved.
  void kill();
  /// kill() and start().
  void restart();
  /// SIGSTOP: the server accepts connections but answers nothing until resume().
  void suspend();
  void resume();
  /// The server's log so far.
  [[nodiscard]] std::string log() const;

 private:
  void spawn();
  [[nodiscard]] bool wait_until_ready();
  void end(int signal);

  RedisSetup setup_;
  std::string binary_;
  std::string folder_;
  std::string socket_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace sluice::test
