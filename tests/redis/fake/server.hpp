// A server that behaves as a test wants: each connection is handed to a function.
// Threading: the behaviour runs on the server's own thread, one connection after the other; or each
// connection has a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/redis/resp.hpp"

namespace sluice::test {

/// The server's end of one connection.
class Peer {
 public:
  Peer(int fd, const std::atomic<bool>& stopping) : fd_(fd), stopping_(stopping) {}

  /// The next command; none once the client has closed or the server stops.
  std::optional<Command> read();
  /// The next EVALSHA or EVAL; the login before it is answered as by a server without a password.
  std::optional<Command> read_call();
  /// The next command behind a login, which is answered as by a server without a password.
  std::optional<Command> read_behind_login();
  /// False if the client has closed.
  bool send(std::string_view bytes);
  /// Waits until the client closes, or the server stops.
  void wait_for_close();
  /// The connection ends with a RST instead of a FIN.
  void reset_on_close();

 private:
  int fd_;
  const std::atomic<bool>& stopping_;
  std::string bytes_;
};

class FakeServer {
 public:
  /// `number` counts the connections from 0.
  using Behaviour = std::function<void(Peer& peer, int number)>;

  enum class Serving { one_by_one, at_once };

  /// Listens on a free loopback port.
  explicit FakeServer(Behaviour behaviour, Serving serving = Serving::one_by_one);
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] int connections() const noexcept { return connections_; }

 private:
  void run();
  void serve(int fd, int number);

  Behaviour behaviour_;
  Serving serving_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> crowd_;  // of the connections, if they are served at once
  std::thread thread_;
};

/// What a server of this version answers to HELLO 2; one module is loaded.
std::string hello_reply(const std::string& version, const std::string& server = "redis");

/// Answers every call as a correct server would, with `at` counting up from `first_at`.
void serve_well(Peer& peer, Word first_at = 1);
/// Answers so many calls so, of each connection, and ends it.
FakeServer::Behaviour serving(int calls);

}  // namespace sluice::test
