// The store behind Sentinels against random programs, judged by its answers: which calls are
// decided and by whom, and how soon. The model is the world itself: who is the master, who says so,
// and who hangs. Threading: single-threaded, in simulated time.
#include <algorithm>
#include <optional>

#include "tests/redis/fake/cluster.hpp"
#include "tests/redis/topology/simulated.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

using State = SimulatedServer::State;

constexpr unsigned size = 3;  // of the servers, and of the Sentinels

class Server final : public SimulatedServer {
 public:
  Server(net::io_context& io, unsigned number, Ways& ways)
      : SimulatedServer(io, number), number_(number), ways_(ways) {}

  bool is_master = false;
  bool lacks_replicas = false;

 private:
  std::string answer(const Command& command, Session&) override {
    if (command[0] == "ROLE") return array({bulk(is_master ? "master" : "slave")});
    if (!is_call(command)) return "-ERR unknown command\r\n";
    Way& way = ways_[nonce_of(command)];
    way.asked.push_back(number_);
    if (!is_master) return "-READONLY no\r\n";
    if (lacks_replicas) return "-NOREPLICAS no\r\n";
    way.executed.push_back(number_);
    return allowing(command, 1);
  }

  unsigned number_;
  Ways& ways_;
};

class Sentinel final : public SimulatedServer {
 public:
  Sentinel(net::io_context& io, unsigned number, const std::vector<std::string>& hosts)
      : SimulatedServer(io, number), hosts_(hosts) {}

  std::string named;  // the master's host; empty if it knows none
  unsigned epoch = 0;
  std::size_t asked = 0;  // for it

  /// True if somebody hears of it.
  bool learn(const std::string& master, unsigned of_epoch) {
    epoch = of_epoch;
    return std::exchange(named, master) != master && is_up() && publish("+switch-master");
  }

 private:
  std::string answer(const Command& command, Session&) override {
    if (command.size() < 2 || command[1] == "SENTINELS") return all();
    if (command[1] == "MASTER") {
      if (named.empty()) return "-ERR No such master with that name\r\n";
      return array({bulk("ip"), bulk(named), bulk("config-epoch"), bulk(std::to_string(epoch))});
    }
    ++asked;
    return named.empty() ? "*-1\r\n" : array({bulk(named), bulk("6379")});
  }
  [[nodiscard]] std::string all() const {
    std::vector<std::string> rows;
    for (const std::string& host : hosts_) {
      rows.push_back(array({bulk("ip"), bulk(host), bulk("port"), bulk("6379")}));
    }
    return array(rows);
  }

  const std::vector<std::string>& hosts_;
};

class Group final : public SimulatedWorld {
 public:
  Group(Random& random, bool is_by_name) : SimulatedWorld(random, 1), is_by_name_(is_by_name) {
    RedisOptions options;
    for (unsigned i = 0; i < size; ++i) {
      servers_.push_back(std::make_unique<Server>(io, i, ways_));
      sentinels_.push_back(std::make_unique<Sentinel>(io, 10 + i, hosts_));
      hosts_.push_back(is_by_name ? "s" + std::to_string(i) + ".test"
                                  : sentinels_[i]->address().host);
      names_.name(host(i), servers_[i]->address());
      names_.name(hosts_[i], sentinels_[i]->address());
      servers_[i]->set_latency(1ms * below(3));
      sentinels_[i]->set_latency(1ms * below(3));
    }
    servers_[0]->is_master = true;
    for (const auto& each : sentinels_) each->named = host(0);
    options.sentinel.emplace();
    options.sentinel->master = "mymaster";
    for (unsigned i = 0; i <= below(size); ++i) {
      options.sentinel->sentinels.push_back({hosts_[i], 6379});
    }
    store_.emplace(io, options, names_.starter(), random.next());
  }
  ~Group() override { store_.reset(); }

  void disturb() {
    switch (below(10)) {
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
        touch(0);
        return servers_[master_]->cut();
      case 7:
        touch(0);
        servers_[master_]->set(one_in(2) ? State::hung : State::down);
        load(up_to(3s));
        touch(0);
        return servers_[master_]->set(State::up);
      case 8:
        stop_listening();
        return replace_master();
      default:
        names_.set(one_in(2) ? Span{0} : up_to(600ms), one_in(4));
    }
  }

  /// Nobody hears of a switch that comes now.
  void stop_listening() {
    for (const auto& each : sentinels_) each->cut();
  }
  /// Perhaps twice at once.
  void replace_master() {
    const unsigned by = 1 + below(size - 1);
    replace_master((master_ + by) % size);
    if (!one_in(3)) return;
    load(up_to(100ms));
    replace_master((master_ + by) % size);
  }
  void replace_master(unsigned successor_number) {
    touch(0);
    is_heard_ = false;
    const unsigned old = std::exchange(master_, successor_number);
    ++epoch_;
    Server& successor = *servers_[master_];
    successor.set(State::up);
    successor.is_master = true;
    successor.lacks_replicas = false;
    Server& former = *servers_[old];
    // One that goes on is found out by news only. Some Sentinel may have none.
    const bool has_news =
        (bad_ == size || is_plain_) && std::ranges::none_of(sentinels_, [&](const auto& sentinel) {
          return sentinel->named == host(master_);
        });
    if (!has_news) end_rivals();
    switch (has_news && one_in(2) ? 4 : below(4)) {
      case 0:
        former.is_master = false;
        break;
      case 1:  // cut off from the others, perhaps with one Sentinel
        former.lacks_replicas = true;
        if (may_spoil && bad_ == size && !has_rival() && one_in(2)) {
          bad_ = below(size);
          is_plain_ = false;
        }
        break;
      case 2:
        former.set(State::hung);
        break;
      case 3:
        former.set(State::down);
        former.is_master = false;
        break;
      default:  // cut off, and goes on for those that do not know
        break;
    }
    tell();
  }

  /// One of the Sentinels knows at once, the others later, unless the store listens to none.
  void tell() {
    const bool is_listening = std::ranges::any_of(sentinels_, [](const auto& sentinel) {
      return sentinel->is_up() && sentinel->has_listener();
    });
    slowest = !is_listening || one_in(2) ? Span{0} : up_to(4s);
    const auto first = below(size);
    for (unsigned i = 0; i < size; ++i) {
      if (i == bad_) continue;
      after(i == first ? Span{0} : up_to(slowest), [this, i, master = master_] {
        if (master == master_ && i != bad_) learn(i);
      });
    }
  }

  void spoil_sentinel() { spoil_sentinel(below(size), below(has_rival() ? 3 : 5)); }
  /// The one that the store listens to: what it would miss, another one tells.
  void spoil_watched() {
    const auto watched = std::ranges::find_if(
        sentinels_, [](const auto& sentinel) { return sentinel->has_listener(); });
    REQUIRE(watched != sentinels_.end());
    const auto number = static_cast<unsigned>(watched - sentinels_.begin());
    if (one_in(2)) return spoil_sentinel(number, below(3));
    spoil_sentinel((number + 1 + below(size - 1)) % size, 2);
    (*watched)->cut();  // so that another one is listened to, which may be that one
  }
  /// It is not there, or (not `is_plain_`) it is, and says what is not so.
  void spoil_sentinel(unsigned number, unsigned kind) {
    if (bad_ != size) return;
    bad_ = number;
    is_plain_ = kind < 3;
    Sentinel& sentinel = *sentinels_[bad_];
    switch (kind) {
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
    const unsigned healed = std::exchange(bad_, size);
    sentinels_[healed]->set(State::up);
    learn(healed);
  }

  void repair() {
    heal_sentinel();
    names_.set(Span{0});
  }
  void find_names() { names_.set(up_to(200ms)); }
  /// While calls fail, each Sentinel is asked once a second.
  void check_questions() {
    touch(0);
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
    const bool fails = one_in(2);
    names_.set(fails ? Span{0} : Span(1h), fails);
  }

  bool may_spoil = true;
  Span slowest{0};  // until the last Sentinel knows of the last switch

 private:
  [[nodiscard]] std::string_view tag_of(std::size_t) const override { return "a"; }
  [[nodiscard]] std::vector<unsigned> way_of(std::size_t) const override { return {master_}; }
  [[nodiscard]] bool is_steady(std::size_t) const override {
    const auto agrees = [&](const auto& sentinel) {
      return !sentinel->is_up() || sentinel->named == host(master_);
    };
    return serves() && std::ranges::all_of(sentinels_, agrees);
  }
  /// The store has heard of the master, whether or not all Sentinels have.
  [[nodiscard]] bool is_settled(std::size_t) const override {
    return serves() && is_heard_ && names_.is_quick() && bad_ == size;
  }
  /// News is followed at once, unless it meets a connection that is ending; all are asked once a
  /// second while calls fail.
  [[nodiscard]] Span search() const override { return 1300ms; }
  [[nodiscard]] bool serves() const {
    return servers_[master_]->is_up() && !servers_[master_]->lacks_replicas;
  }
  void learn(unsigned sentinel) {
    if (sentinels_[sentinel]->learn(host(master_), epoch_)) is_heard_ = true;
  }
  /// Former masters that go on.
  [[nodiscard]] bool is_rival(const Server& server) const {
    return &server != servers_[master_].get() && server.is_master && !server.lacks_replicas;
  }
  [[nodiscard]] bool has_rival() const {
    return std::ranges::any_of(servers_, [&](const auto& each) { return is_rival(*each); });
  }
  void end_rivals() {
    for (const auto& each : servers_) each->lacks_replicas |= is_rival(*each);
  }
  [[nodiscard]] std::string host(unsigned server) const {
    return is_by_name_ ? "r" + std::to_string(server) + ".test" : servers_[server]->address().host;
  }

  const bool is_by_name_;
  std::vector<std::string> hosts_;  // of the Sentinels
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
  unsigned master_ = 0;
  unsigned epoch_ = 0;
  bool is_heard_ = true;  // the store has been told of the master
  unsigned bad_ = size;   // the Sentinel that is not well, if any
  bool is_plain_ = true;
};

}  // namespace

TEST_CASE("behind Sentinels the master decides soon after the world is calm, whatever was before",
          "[model][sentinel]") {
  Random random(
      "behind Sentinels the master decides soon after the world is calm, whatever was before");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(80, 20); ++program) {
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

TEST_CASE("a master that all Sentinels name decides soon", "[model][sentinel]") {
  Random random("a master that all Sentinels name decides soon");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(60, 20); ++program) {
    CAPTURE(program);
    Group group(random, random.one_in(2));
    group.load(3s);
    const auto kind = random.below(4);
    if (kind == 0) group.spoil_watched();
    if (kind == 1) group.stop_listening();
    if (kind == 0) group.load(3s);
    group.replace_master();
    group.load(group.slowest);
    if (kind != 0) group.repair();
    group.calm(kind < 2 ? 1s : 500ms);
    group.repair();
    group.check_questions();
    group.calm(500ms);
    group.judge();
  }
}

TEST_CASE("names that are known serve a failover while the name server is away",
          "[model][sentinel][look-up]") {
  Random random("names that are known serve a failover while the name server is away");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(20, 10); ++program) {
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
