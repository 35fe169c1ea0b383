// A proxy in front of a loopback server, which cuts and delays what passes.
// Threading: a thread of its own forwards; members from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace sluice::test {

/// What happens to a connection. Bytes are counted for each connection and direction: `up` leads to
/// the server, `down` to the client.
struct ProxyRule {
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  /// Both sides are closed once exactly so many bytes were forwarded; 0: at once.
  std::size_t cut_up = never;
  std::size_t cut_down = never;
  std::chrono::microseconds delay{0};  ///< of each byte, in both directions
  bool single_bytes = false;           ///< each byte is sent by itself
};

class TcpProxy {
 public:
  /// Listens on a loopback port; the server's is `target`. Throws std::runtime_error if it cannot.
  explicit TcpProxy(std::uint16_t target);
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  ~TcpProxy();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  /// The rule of connections that are made from now on.
  void set(const ProxyRule& rule);
  /// The rule of the next connection alone.
  void set_once(const ProxyRule& rule);

  /// How many connections a rule has cut.
  [[nodiscard]] std::uint64_t cuts() const noexcept { return cuts_; }
  /// What was forwarded in all.
  [[nodiscard]] std::size_t bytes_up() const noexcept { return up_; }
  [[nodiscard]] std::size_t bytes_down() const noexcept { return down_; }

 private:
  class Connection;

  void run();
  void listen();
  void accept();

  const std::uint16_t target_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int stop_fd_ = -1;
  std::mutex mutex_;  // guards what follows
  ProxyRule rule_;
  std::optional<ProxyRule> once_;

  std::atomic<std::uint64_t> cuts_{0};
  std::atomic<std::size_t> up_{0};
  std::atomic<std::size_t> down_{0};
  std::list<Connection> open_;  // of the thread
  std::thread thread_;
};

}  // namespace sluice::test
