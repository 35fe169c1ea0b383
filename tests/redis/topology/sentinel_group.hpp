// Three servers and three Sentinels in simulated time, which a program disturbs. The model is the
// world itself: who is the master, who says so, and who hangs. Threading: single-threaded.
#pragma once

#include <algorithm>
#include <optional>

#include "tests/redis/fake/cluster.hpp"
#include "tests/redis/topology/simulated.hpp"

namespace sluice::test {

constexpr unsigned group_size = 3;  // of the servers, and of the Sentinels

class GroupServer final : public SimulatedServer {
 public:
  GroupServer(net::io_context& io, unsigned number, Ways& ways)
      : SimulatedServer(io, number), number_(number), ways_(ways) {}

  bool is_master = false;
  bool lacks_replicas = false;

 private:
  std::string answer(const Command& command, Session&) override {
    if (command[0] == "SELECT") return "+OK\r\n";
    if (command[0] == "ROLE") return array({bulk(is_master ? "master" : "slave")});
    if (!is_call(command)) return "-ERR unknown command\r\n";
    Way& way = ways_[nonce_of(command)];
    way.asked.push_back(number_);
    if (!is_master) return "-READONLY no\r\n";
    if (lacks_replicas) return "-NOREPLICAS no\r\n";
    way.executed.push_back(number_);
    return allowing(command, 1);
  }
  [[nodiscard]] bool accepts(const Command& auth) const override {
    return auth == Command{"AUTH", "app", "of servers"};
  }

  unsigned number_;
  Ways& ways_;
};

class GroupSentinel final : public SimulatedServer {
 public:
  GroupSentinel(net::io_context& io, unsigned number, const std::vector<std::string>& hosts)
      : SimulatedServer(io, number), hosts_(hosts) {}

  std::string named;  // the master's host; empty if it knows none
  unsigned epoch = 0;
  bool hides_epoch = false;
  std::size_t asked = 0;  // for it

  /// True if somebody hears of it.
  bool learn(const std::string& master, unsigned of_epoch) {
    epoch = of_epoch;
    return std::exchange(named, master) != master && is_up() && publish("+switch-master");
  }

 private:
  std::string answer(const Command& command, Session&) override {
    if (command[0] != "SENTINEL") return "-ERR unknown command\r\n";
    if (command.at(2) != "mymaster") return "-ERR No such master with that name\r\n";
    if (command[1] == "SENTINELS") return all();
    if (command[1] == "MASTER") {
      if (named.empty() || hides_epoch) return "-ERR No such master with that name\r\n";
      return array({bulk("ip"), bulk(named), bulk("config-epoch"), bulk(std::to_string(epoch))});
    }
    ++asked;
    return named.empty() ? "*-1\r\n" : array({bulk(named), bulk("6379")});
  }
  [[nodiscard]] bool accepts(const Command& auth) const override {
    return auth == Command{"AUTH", "store", "of Sentinels"};
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

class SentinelGroup : public SimulatedWorld {
 public:
  using State = SimulatedServer::State;

  SentinelGroup(Random& random, bool is_by_name)
      : SimulatedWorld(random, 1), is_by_name_(is_by_name) {
    for (unsigned i = 0; i < group_size; ++i) {
      servers_.push_back(std::make_unique<GroupServer>(io, i, ways_));
      sentinels_.push_back(std::make_unique<GroupSentinel>(io, 10 + i, hosts_));
      hosts_.push_back(is_by_name ? "s" + std::to_string(i) + ".test"
                                  : sentinels_[i]->address().host);
      names_.name(host(i), servers_[i]->address());
      names_.name(hosts_[i], sentinels_[i]->address());
      servers_[i]->set_latency(1ms * below(3));
      sentinels_[i]->set_latency(1ms * below(3));
    }
    servers_[0]->is_master = true;
    for (const auto& each : sentinels_) each->named = host(0);
    told_ = host(0) + ":6379";
  }
  ~SentinelGroup() override { store_.reset(); }

  void start(unsigned sentinels) {
    RedisOptions options;
    options.on_event = [this](const RedisEvent& event) { hear(event); };
    options.database = 1;
    options.sentinel.emplace();
    options.sentinel->master = "mymaster";
    set_login(options, "app", "of servers");
    set_login(*options.sentinel, "store", "of Sentinels");
    for (unsigned i = 0; i < sentinels; ++i) {
      options.sentinel->sentinels.push_back({hosts_[i], 6379});
    }
    store_.emplace(io, options, names_.starter(), random_.next());
  }
  void start() { start(1 + below(group_size)); }
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
    const unsigned by = 1 + below(group_size - 1);
    replace_master((master_ + by) % group_size);
    if (!one_in(3)) return;
    load(up_to(100ms));
    replace_master((master_ + by) % group_size);
  }
  void replace_master(unsigned successor_number) {
    touch(0);
    is_heard_ = false;
    is_back_ = is_rival(*servers_[successor_number]);
    const unsigned old = std::exchange(master_, successor_number);
    ++epoch_;
    GroupServer& successor = *servers_[master_];
    successor.set(State::up);
    successor.is_master = true;
    successor.lacks_replicas = false;
    GroupServer& former = *servers_[old];
    // One that goes on is found out by news only. Some Sentinel may have none.
    const bool has_news = (bad_ == group_size || is_plain_) &&
                          std::ranges::none_of(sentinels_, [&](const auto& sentinel) {
                            return sentinel->named == host(master_);
                          });
    if (!has_news) end_rivals();
    switch (has_news && one_in(2) ? 4 : below(4)) {
      case 0:
        former.is_master = false;
        break;
      case 1:  // cut off from the others, perhaps with one Sentinel
        former.lacks_replicas = true;
        if (may_spoil && bad_ == group_size && !has_rival() && one_in(2)) {
          bad_ = below(group_size);
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
    slowest = !watched() || one_in(2) ? Span{0} : up_to(4s);
    const auto first = below(group_size);
    for (unsigned i = 0; i < group_size; ++i) {
      if (i == bad_) continue;
      after(i == first ? Span{0} : up_to(slowest), [this, i, master = master_] {
        if (master == master_ && i != bad_) learn(i);
      });
    }
  }

  void spoil_sentinel() { spoil_sentinel(below(group_size), below(has_rival() ? 3 : 5)); }
  /// The one that the store listens to: what it would miss, another one tells.
  void spoil_watched() {
    const unsigned number = *watched();
    if (one_in(2)) return spoil_sentinel(number, below(3));
    spoil_sentinel((number + 1 + below(group_size - 1)) % group_size, 2);
    sentinels_[number]->cut();  // so that another one is listened to, which may be that one
  }
  /// It is not there, or (not `is_plain_`) it is, and says what is not so.
  void spoil_sentinel(unsigned number, unsigned kind) {
    if (bad_ != group_size) return;
    bad_ = number;
    is_plain_ = kind < 3;
    GroupSentinel& sentinel = *sentinels_[bad_];
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
    if (bad_ == group_size) return;
    const unsigned healed = std::exchange(bad_, group_size);
    sentinels_[healed]->set(State::up);
    learn(healed);
  }

  void repair() {
    heal_sentinel();
    names_.set(Span{0});
  }
  void find_names() { names_.set(up_to(200ms)); }
  /// The events tell of the master at last.
  void judge_events() const {
    CHECK((told_.empty() || told_ == host(master_) + ":6379"));
    CHECK(connected_ == servers_[master_]->address().host + ":6379");
  }
  /// Look-ups fail, or hang, until repair().
  void lose_names() {
    const bool fails = one_in(2);
    names_.set(fails ? Span{0} : Span(1h), fails);
  }

  bool may_spoil = true;
  Span slowest{0};  // until the last Sentinel knows of the last switch

 protected:
  void set_master(GroupSentinel& sentinel) {
    sentinel.named = host(master_);
    sentinel.epoch = epoch_;
  }
  /// The former one goes on.
  void promote() {
    touch(0);
    is_heard_ = false;
    master_ = (master_ + 1) % group_size;
    ++epoch_;
    servers_[master_]->is_master = true;
    servers_[master_]->lacks_replicas = false;
  }

  void learn(unsigned sentinel) {
    if (sentinels_[sentinel]->learn(host(master_), epoch_)) is_heard_ = true;
  }
  /// The Sentinel that is up and listened to.
  [[nodiscard]] std::optional<unsigned> watched() const {
    for (unsigned i = 0; i < group_size; ++i) {
      if (sentinels_[i]->is_up() && sentinels_[i]->has_listener()) return i;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string host(unsigned server) const {
    return is_by_name_ ? "r" + std::to_string(server) + ".test"
                       : "10.0.0." + std::to_string(server);
  }

  std::vector<std::unique_ptr<GroupServer>> servers_;
  std::vector<std::unique_ptr<GroupSentinel>> sentinels_;
  unsigned master_ = 0;
  unsigned epoch_ = 0;
  unsigned bad_ = group_size;  // the Sentinel that is not well, if any
  std::string told_;           // the master, by the events
  unsigned switches_ = 0;      // by the events

 private:
  void set_login(auto& options, const std::string& user, const std::string& password) {
    if (one_in(2)) {
      options.credentials = [=] { return RedisCredentials{user, Secret(password)}; };
      return;
    }
    options.username = user;
    options.password = Secret(password);
  }
  [[nodiscard]] std::string_view tag_of(std::size_t) const override { return "a"; }
  [[nodiscard]] std::vector<unsigned> way_of(std::size_t) const override { return {master_}; }
  [[nodiscard]] bool is_steady(std::size_t) const override {
    const auto agrees = [&](const auto& sentinel) {
      return !sentinel->is_up() || sentinel->named == host(master_);
    };
    return serves() && !is_back_ && std::ranges::all_of(sentinels_, agrees);
  }
  /// The store has heard of the master, whether or not all Sentinels have.
  [[nodiscard]] bool is_settled(std::size_t) const override {
    return serves() && is_heard_ && names_.is_quick() && bad_ == group_size;
  }
  /// News is followed at once, unless it meets a connection that is ending; all are asked once a
  /// second while calls fail.
  [[nodiscard]] Span search() const override { return 1300ms; }
  [[nodiscard]] bool serves() const {
    return servers_[master_]->is_up() && !servers_[master_]->lacks_replicas;
  }
  /// A connection is left for the master that the event before names.
  void hear(const RedisEvent& event) {
    using Kind = RedisEvent::Kind;
    if (event.kind == Kind::switched) {
      CHECK(event.address != told_);
      told_ = event.address;
      ++switches_;
    }
    if (event.kind == Kind::connected) connected_ = event.address;
    if (event.kind == Kind::lost && event.cause.starts_with("the Sentinels name")) {
      CHECK(heard_ == Kind::switched);
      CHECK(event.cause == "the Sentinels name another master: " + told_);
    }
    heard_ = event.kind;
  }
  /// Former masters that go on.
  [[nodiscard]] bool is_rival(const GroupServer& server) const {
    return &server != servers_[master_].get() && server.is_master && !server.lacks_replicas;
  }
  [[nodiscard]] bool has_rival() const {
    return std::ranges::any_of(servers_, [&](const auto& each) { return is_rival(*each); });
  }
  void end_rivals() {
    for (const auto& each : servers_) each->lacks_replicas |= is_rival(*each);
  }
  const bool is_by_name_;
  std::vector<std::string> hosts_;  // of the Sentinels
  bool is_heard_ = true;            // the store has been told of the master
  bool is_back_ = false;            // it has gone on as one: the store may be about to leave it
  bool is_plain_ = true;
  std::string connected_;     // to which server, by the events
  RedisEvent::Kind heard_{};  // the last event
};

}  // namespace sluice::test
