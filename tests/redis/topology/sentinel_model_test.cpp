// The store behind Sentinels against random programs, judged by its answers: which calls are
// decided and by whom, and how soon after the world is calm. The model is the world itself: who is
// the master, who says so, and who hangs. Threading: single-threaded, in simulated time.
#include <algorithm>
#include <array>
#include <optional>

#include "tests/redis/fake/cluster.hpp"
#include "tests/redis/topology/simulated.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using State = SimulatedServer::State;

constexpr unsigned size = 3;  // of the servers, and of the Sentinels

/// Who has executed a call.
using Executed = std::map<std::uint64_t, std::vector<unsigned>>;

class Server final : public SimulatedServer {
 public:
  Server(net::io_context& io, unsigned number, Executed& executed)
      : SimulatedServer(io, number), number_(number), executed_(executed) {}

  bool is_master = false;
  bool lacks_replicas = false;

 private:
  std::string answer(const Command& command, Session&) override {
    if (command[0] == "ROLE") return array({bulk(is_master ? "master" : "slave")});
    if (!is_call(command)) return "-ERR unknown command\r\n";
    if (!is_master) return "-READONLY no\r\n";
    if (lacks_replicas) return "-NOREPLICAS no\r\n";
    executed_[nonce_of(command)].push_back(number_);
    return allowing(command, 1);
  }

  unsigned number_;
  Executed& executed_;
};

class Sentinel final : public SimulatedServer {
 public:
  using SimulatedServer::SimulatedServer;

  std::string named;      // the master's host; empty if it knows none
  std::size_t asked = 0;  // for it

  void learn(const std::string& master) {
    if (std::exchange(named, master) != master && is_up()) publish("+switch-master");
  }

 private:
  std::string answer(const Command& command, Session&) override {
    if (command.size() < 2 || command[1] == "SENTINELS") return array({});
    ++asked;
    return named.empty() ? "*-1\r\n" : array({bulk(named), bulk("6379")});
  }
};

class Group {
 public:
  Group(Random& random, bool is_by_name) : random_(random), is_by_name_(is_by_name) {
    for (unsigned i = 0; i < size; ++i) {
      servers_.push_back(std::make_unique<Server>(io, i, executed_));
      sentinels_.push_back(std::make_unique<Sentinel>(io, 10 + i));
      names_.name(host(i), servers_[i]->address());
      names_.name("s" + std::to_string(i) + ".test", sentinels_[i]->address());
    }
    servers_[0]->is_master = true;
    for (const auto& each : sentinels_) each->named = host(0);
    RedisOptions options;
    options.sentinel.emplace();
    options.sentinel->master = "mymaster";
    for (unsigned i = 0; i < size; ++i) {
      RedisAddress address = sentinels_[i]->address();
      if (is_by_name_) address.host = "s" + std::to_string(i) + ".test";
      options.sentinel->sentinels.push_back(address);
    }
    store_.emplace(io, options, names_.starter(), random.next());
  }

  /// Calls for so long, one every 20 ms.
  void load(Span span) {
    const SystemClock clock;
    for (const Time end = clock.now() + span; clock.now() < end;) {
      store_->ask("a", random_.one_in(5) ? 100ms : 500ms);
      pass(io, 20ms);
    }
  }

  void disturb() {
    switch (random_.below(9)) {
      case 0:
      case 1:
      case 2:
        return replace_master();
      case 3:
      case 4:
        return spoil_sentinel();
      case 5:
        return heal_sentinel();
      case 6:
        return servers_[master_]->cut();
      case 7:
        servers_[master_]->set(random_.one_in(2) ? State::hung : State::down);
        load(Span{random_.between(0, 3'000'000)});
        return servers_[master_]->set(State::up);
      default:
        names_.set(Span{random_.one_in(2) ? 0 : random_.between(0, 600'000)}, random_.one_in(4));
    }
  }

  void replace_master() {
    replace_master((master_ + 1 + static_cast<unsigned>(random_.below(size - 1))) % size);
  }
  void replace_master(unsigned successor_number) {
    const unsigned old = std::exchange(master_, successor_number);
    Server& successor = *servers_[master_];
    successor.set(State::up);
    successor.is_master = true;
    successor.lacks_replicas = false;
    Server& former = *servers_[old];
    switch (random_.below(4)) {
      case 0:
        former.is_master = false;
        break;
      case 1:  // cut off from the others, perhaps with one Sentinel
        former.lacks_replicas = true;
        if (may_spoil && bad_ == size && random_.one_in(2))
          bad_ = static_cast<unsigned>(random_.below(size));
        break;
      case 2:
        former.set(State::hung);
        break;
      default:
        former.set(State::down);
        former.is_master = false;
    }
    tell();
  }

  /// One of the Sentinels knows at once, the others later.
  void tell() {
    slowest = random_.one_in(2) ? Span{0} : Span{random_.between(0, 4'000'000)};
    const auto first = random_.below(size);
    for (unsigned i = 0; i < size; ++i) {
      if (i == bad_) continue;
      const Span delay = i == first ? Span{0} : Span{random_.between(0, slowest.count())};
      const auto timer = std::make_shared<net::steady_timer>(io, delay);
      timer->async_wait([this, timer, i, master = master_](const auto&) {
        if (master == master_ && i != bad_) sentinels_[i]->learn(host(master));
      });
    }
  }

  void spoil_sentinel() {
    if (bad_ != size) return;
    bad_ = static_cast<unsigned>(random_.below(size));
    Sentinel& sentinel = *sentinels_[bad_];
    switch (random_.below(5)) {
      case 0:
        return sentinel.set(State::hung);
      case 1:
        return sentinel.set(State::down);
      case 2:  // it comes back without its configuration
        sentinel.named.clear();
        return sentinel.cut();
      case 3:  // SENTINEL REMOVE
        return sentinel.named.clear();
      default:  // it hears nothing of the others
        return;
    }
  }

  void heal_sentinel() {
    if (bad_ == size) return;
    Sentinel& sentinel = *sentinels_[std::exchange(bad_, size)];
    sentinel.set(State::up);
    sentinel.learn(host(master_));
  }

  /// From now on nothing changes, and names that are not known yet are found: the master decides
  /// again, and goes on.
  void calm(Span within) {
    load(within);
    const std::size_t first = store_->calls();
    load(1s);
    pass(io, 1s);
    for (std::size_t i = first; i < store_->calls(); ++i) {
      CAPTURE(i, store_->answer(i).error.message());
      REQUIRE(!store_->answer(i).error);
      REQUIRE(executed_[i] == std::vector<unsigned>{master_});
    }
  }
  void repair() {
    heal_sentinel();
    names_.set(Span{0});
  }
  void find_names() { names_.set(Span{random_.between(0, 200'000)}); }
  /// While calls fail, each Sentinel is asked once a second.
  void check_questions() {
    servers_[master_]->lacks_replicas = true;
    const auto asked = [&] {
      std::size_t sum = 0;
      for (const auto& each : sentinels_) sum += each->asked;
      return sum;
    };
    const std::size_t before = asked();
    load(5s);
    REQUIRE(asked() >= before + size * 4);
    REQUIRE(asked() <= before + size * 7);
    servers_[master_]->lacks_replicas = false;
  }
  /// Look-ups fail, or hang, until repair().
  void lose_names() {
    const bool fails = random_.one_in(2);
    names_.set(fails ? Span{0} : Span(1h), fails);
  }

  void judge() {
    for (std::size_t i = 0; i < store_->calls(); ++i) {
      const SimulatedStore::Answer& call = store_->answer(i);
      CAPTURE(i, call.error.message());
      REQUIRE(call.answers == 1);
      REQUIRE(call.ended <= call.deadline + 5ms);
      const std::size_t times = executed_.contains(i) ? executed_[i].size() : 0;
      REQUIRE(times <= 1);
      if (!call.error) REQUIRE(times == 1);
      if (call.error == Failure::not_executed) REQUIRE(times == 0);
    }
  }

  Simulation simulation;
  net::io_context io{1};
  bool may_spoil = true;
  Span slowest{0};  // until the last Sentinel knows of the last switch

 private:
  [[nodiscard]] std::string host(unsigned server) const {
    return is_by_name_ ? "r" + std::to_string(server) + ".test" : servers_[server]->address().host;
  }

  Random& random_;
  const bool is_by_name_;
  Executed executed_;
  SimulatedNames names_{io};
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
  unsigned master_ = 0;
  unsigned bad_ = size;  // the Sentinel that is not well, if any
  std::optional<SimulatedStore> store_;
};

}  // namespace

TEST_CASE("behind Sentinels the master decides soon after the world is calm, whatever was before",
          "[model][sentinel]") {
  Random random(
      "behind Sentinels the master decides soon after the world is calm, whatever was before");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(120, 20); ++program) {
    CAPTURE(program);
    Group group(random, random.one_in(2));
    group.load(1s);
    for (auto steps = random.below(6); steps > 0; --steps) {
      group.disturb();
      group.load(Span{random.between(0, random.one_in(2) ? 100'000 : 2'500'000)});
    }
    if (random.one_in(2)) group.repair();
    group.find_names();
    group.calm(8s);
    group.judge();
  }
}

TEST_CASE("a master that all Sentinels name decides 500 ms later at most", "[model][sentinel]") {
  Random random("a master that all Sentinels name decides 500 ms later at most");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(120, 20); ++program) {
    CAPTURE(program);
    Group group(random, random.one_in(2));
    group.load(3s);
    group.replace_master();
    group.load(group.slowest);
    group.repair();
    group.calm(500ms);
    group.check_questions();
    group.calm(500ms);
    group.judge();
  }
}

TEST_CASE("names that are known serve a failover while the name server is away",
          "[model][sentinel][look-up]") {
  Random random("names that are known serve a failover while the name server is away");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(40, 10); ++program) {
    CAPTURE(program);
    Group group(random, true);
    group.may_spoil = false;
    // Each server is connected to, and each Sentinel asked: a switch that some have not heard of
    // when the next one comes is not followed, and a Sentinel that is never needed is never looked
    // up.
    for (const unsigned master : {1U, 2U, 0U}) {
      group.load(3s);
      group.replace_master(master);
      group.load(group.slowest);
    }
    group.load(3s);
    group.check_questions();
    group.load(1s);
    group.lose_names();
    group.replace_master();
    group.load(group.slowest);
    group.calm(500ms);
    group.judge();
  }
}
