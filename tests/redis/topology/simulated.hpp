// A network and a clock for the tests of topologies, in one thread: what the store's code asks of
// the system (time, epoll, sockets) is answered by this program. Time passes only while nothing
// else can happen, so that runs are as quick as they are repeatable. Threading: the test's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  bool has_called = false;
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
  /// How often it was connected to, in vain as well.
  [[nodiscard]] int attempts() const;
  /// Each reply takes so long.
  void set_latency(Span latency) noexcept { latency_ = latency; }
  /// Publishes to all who listen. False if nobody does.
  bool publish(std::string_view channel);
  [[nodiscard]] bool has_listener() const;
  /// Whether somebody is connected who has made a call.
  [[nodiscard]] bool has_caller() const;
  /// Ends every connection.
  void cut();

 protected:
  /// The reply to a command behind the login.
  virtual std::string answer(const Command& command, Session& session) = 0;
  /// Whether this is the right login.
  [[nodiscard]] virtual bool accepts(const Command& /*auth*/) const { return true; }

 private:
  void listen();
  net::awaitable<void> accept(std::shared_ptr<net::local::stream_protocol::acceptor> acceptor);
  net::awaitable<void> serve(std::shared_ptr<Session> session);
  std::string reply(const Command& command, Session& session);
  [[nodiscard]] bool has(bool Session::*what) const;

  net::io_context& io_;
  std::string host_;
  State state_ = State::down;
  Span latency_{0};
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
  [[nodiscard]] bool is_quick() const noexcept { return delay_ == Span{0} && !fails_; }

 private:
  net::io_context& io_;
  std::map<std::string, RedisAddress> addresses_;
  Span delay_{0};
  bool fails_ = false;
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

/// The way of a call: the servers that it was sent to, in order, and those that executed it.
struct Way {
  std::vector<unsigned> asked;
  std::vector<unsigned> executed;
};
using Ways = std::map<std::uint64_t, Way>;

/// A store among servers that change, and the calls of a program, each for one of several shards.
/// The world says which servers a call of a shard passes; the calls are judged by that:
/// - A shard is steady while nothing that concerns it changes. Once one of its calls is decided,
///   the next ones go the same way, and at once.
/// - It is settled while, besides, nothing else costs much time. search() later at most, its calls
///   are decided, and those that have waited meanwhile.
class SimulatedWorld {
 public:
  SimulatedWorld(Random& random, std::size_t shards) : random_(random), shards_(shards) {}
  virtual ~SimulatedWorld() = default;

  /// Calls for so long, one every 20 ms.
  void load(Span span);
  /// From now on nothing changes: the calls are decided `within` that time, and from then on.
  void calm(Span within);
  void judge();

  Simulation simulation;
  net::io_context io{1};

 protected:
  [[nodiscard]] virtual std::string_view tag_of(std::size_t shard) const = 0;
  [[nodiscard]] virtual std::vector<unsigned> way_of(std::size_t shard) const = 0;
  [[nodiscard]] virtual bool is_steady(std::size_t shard) const = 0;
  [[nodiscard]] virtual bool is_settled(std::size_t shard) const = 0;
  /// What it takes at most to find out how the world has become.
  [[nodiscard]] virtual Span search() const = 0;
  /// Looks at the world after each call.
  virtual void look() {}

  /// Something happens to the shard at this moment.
  void touch(std::size_t shard);
  void after(Span delay, std::function<void()> act);
  [[nodiscard]] bool one_in(std::uint64_t n) { return random_.one_in(n); }
  [[nodiscard]] unsigned below(std::size_t n) { return static_cast<unsigned>(random_.below(n)); }
  [[nodiscard]] Span up_to(Span most) { return Span{random_.between(0, most.count())}; }

  Random& random_;
  Ways ways_;
  SimulatedNames names_{io};
  std::optional<SimulatedStore> store_;

 private:
  struct Asked {
    std::size_t shard;
    std::vector<unsigned> way;
    Time found;     // when its shard is found, which has been settled for search()
    bool is_known;  // its shard was steady all the time, and a call before it was decided
  };
  struct Shard {
    std::vector<unsigned> way{};
    Time steady{};  // the last moment at which it was not
    Time found{};
    bool is_known = false;
  };

  void ask();
  void observe();
  void shake(std::size_t shard);
  void unsettle(std::size_t shard);
  void for_waiting(std::size_t shard, const std::function<void(Asked&)>& act);
  void judge(std::size_t call);

  const SystemClock clock_;
  std::vector<Shard> shards_;
  std::vector<Asked> asked_;
};

}  // namespace sluice::test
