// A network and a clock for the tests of topologies, in one thread: what the store's code asks of
// the system (time, epoll, sockets) is answered by this program. Time passes only while nothing
// else can happen, so that runs are as quick as they are repeatable. Threading: the test's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/redis/topology/topology.hpp"
#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/support/seed.hpp"

namespace sluice::test {

namespace net = boost::asio;
using redis_detail::Found;
using redis_detail::Topology;

/// Simulated time and sockets while it lives. IPv4 connections reach the servers of the program.
class Simulation {
 public:
  Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();
};

/// One connection of a server.
struct Session {
  explicit Session(net::io_context& io) : socket(io) {}
  net::local::stream_protocol::socket socket;
  std::string bytes;
  bool is_asking = false;
  bool listens = false;
  /// Sends what the socket takes, which is all of a reply.
  void send(std::string_view reply);
};

/// A server at 10.0.0.x:6379, which answers commands in order.
class SimulatedServer {
 public:
  enum class State { up, hung, down };
  SimulatedServer(net::io_context& io, unsigned number);
  virtual ~SimulatedServer() = default;

  void set(State state);
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool is_up() const noexcept { return state_ == State::up; }
  [[nodiscard]] RedisAddress address() const { return {host_, 6379}; }
  [[nodiscard]] int logins() const noexcept { return logins_; }
  /// Publishes to all who listen.
  void publish(std::string_view channel);
  /// Ends every connection.
  void cut();

 protected:
  /// The reply to a command behind the login.
  virtual std::string answer(const Command& command, Session& session) = 0;

 private:
  void listen();
  net::awaitable<void> accept(std::shared_ptr<net::local::stream_protocol::acceptor> acceptor);
  net::awaitable<void> serve(std::shared_ptr<Session> session);
  std::string reply(const Command& command, Session& session);

  net::io_context& io_;
  std::string host_;
  State state_ = State::down;
  int logins_ = 0;
  std::shared_ptr<net::local::stream_protocol::acceptor> acceptor_;
  std::vector<std::weak_ptr<Session>> sessions_;
};

/// Look-ups of names, each of which takes its time or fails.
class SimulatedNames {
 public:
  explicit SimulatedNames(net::io_context& io) : io_(io) {}

  /// REQUIRES: this outlives what it is given to.
  [[nodiscard]] redis_detail::StartLookUp starter();
  void name(const std::string& host, const RedisAddress& address) { addresses_[host] = address; }
  /// From now on.
  void set(Span delay, bool fails = false) {
    delay_ = delay;
    fails_ = fails;
  }
  [[nodiscard]] int begun() const noexcept { return begun_; }

 private:
  net::io_context& io_;
  std::map<std::string, RedisAddress> addresses_;
  Span delay_{0};
  bool fails_ = false;
  int begun_ = 0;
};

/// A topology and its calls.
class SimulatedStore {
 public:
  struct Answer {
    Time asked{};
    Time deadline{};
    Time ended{};
    int answers = 0;
    std::error_code error{};
  };

  SimulatedStore(net::io_context& io, RedisOptions options, redis_detail::StartLookUp look_up,
                 std::uint64_t seed);
  ~SimulatedStore();

  /// Asks for a key; returns the number of the call, which is its nonce.
  std::size_t ask(std::string_view tag, Span within);
  [[nodiscard]] const Answer& answer(std::size_t call) const { return *answers_.at(call); }
  [[nodiscard]] std::size_t calls() const noexcept { return answers_.size(); }
  [[nodiscard]] Topology& topology() { return *topology_; }
  [[nodiscard]] redis_detail::Journal& journal() { return journal_; }

 private:
  void work();

  net::io_context& io_;
  const RedisOptions options_;
  SystemClock clock_;
  redis_detail::Inbox inbox_;
  redis_detail::Journal journal_{options_};
  redis_detail::Names names_;
  bool is_stopped_ = false;
  std::unique_ptr<Topology> topology_;
  std::vector<std::unique_ptr<Answer>> answers_;
};

/// Lets `span` pass.
void pass(net::io_context& io, Span span);

}  // namespace sluice::test
