// The store behind Sentinels against random programs, judged by its answers and events: which calls
// are decided and by whom, and how soon. Threading: single-threaded, in simulated time.
#include "tests/redis/topology/sentinel_group.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

class Group final : public SentinelGroup {
 public:
  using SentinelGroup::SentinelGroup;

  /// While calls fail, each Sentinel is asked once a second.
  void check_questions() {
    touch(0);
    servers_[master_]->lacks_replicas = true;
    const auto asked = [&] { return sum([](const auto& each) { return each->asked; }); };
    const std::size_t before = asked();
    load(5s);
    REQUIRE(asked() >= before + group_size * 4);
    REQUIRE(asked() <= before + group_size * 7);
    servers_[master_]->lacks_replicas = false;
  }

  /// The master has been replaced before the store starts: it asks until a Sentinel names the new
  /// one, and no further.
  void check_start() {
    servers_[0]->is_master = false;
    master_ = epoch_ = 1;
    servers_[master_]->is_master = true;
    told_.clear();
    const bool hangs = one_in(3);
    sentinels_[0]->set(hangs ? State::hung : State::up);
    if (one_in(2)) sentinels_[0]->named.clear();
    learn(1);
    sentinels_[2]->set(State::hung);
    bad_ = 2;
    start(group_size);
    REQUIRE(comeback() <= (hangs ? 400ms : 100ms));
  }
  /// The Sentinel that answered last is asked first, so that one that hangs costs 300 ms, once.
  void check_order() {
    const unsigned first = reconnect(Span{0}, 100ms);
    REQUIRE(reconnect(Span{0}, 100ms) == first);
    spoil_sentinel(first, 0);
    const unsigned next = reconnect(300ms, 400ms);
    REQUIRE(reconnect(Span{0}, 100ms) == next);
  }
  /// One that is listened to is asked every second, and has one to answer.
  void check_silence() {
    load(up_to(1s));  // between two questions
    spoil_sentinel(*watched(), 0);
    load(980ms);
    REQUIRE(!watched());
    load(1500ms);
    REQUIRE(watched());
  }
  /// While all are away, each is asked once a second, and by the one who would listen. The last
  /// known master is used, which no Sentinel denies.
  void check_absence() {
    lose_all(State::down);
    const auto tried = [&] { return sum([](const auto& each) { return each->attempts(); }); };
    const auto before = tried();
    load(10s);
    REQUIRE(tried() >= before + 10 * group_size);
    REQUIRE(tried() <= before + 150);
    servers_[master_]->lacks_replicas = false;
    servers_[master_]->cut();
    REQUIRE(comeback() <= 100ms);
    find_all();
  }
  /// A group that no Sentinel knows any more has no master.
  void check_forgotten() {
    touch(0);
    for (const auto& each : sentinels_) each->named.clear();
    servers_[master_]->cut();
    const std::size_t first = store_->calls();
    load(1s);
    for (std::size_t i = first; i < store_->calls(); ++i) REQUIRE(ways_[i].executed.empty());
    touch(0);
    for (const auto& each : sentinels_) set_master(*each);
    REQUIRE(comeback() <= 400ms);
  }
  /// The announced master is used at once, though no other Sentinel knows it.
  void check_news() {
    const auto kind = below(5);
    CAPTURE(kind);
    upset(kind);
    // A question that is asked of one that hangs comes to its end.
    const Span most = kind >= 2 && bad_ != group_size ? 400ms : 100ms;
    const unsigned teller = *watched();
    if (one_in(2)) tell_of_another_group(*sentinels_[teller]);
    const unsigned before = switches_;
    promote();
    learn(teller);
    REQUIRE(comeback() <= most);
    load(1s);
    REQUIRE(switches_ == before + 1);
    if (kind != 1) check_old_news(teller);
    find_all();
    bad_ = group_size;
  }
  /// A switch that was missed is found when all have hung meanwhile, though the old master goes on.
  void check_missed() {
    stop_listening();
    promote();
    for (const auto& each : sentinels_) set_master(*each);
    for (int i = 0; i < 1000 && !watched(); ++i) pass(io, 1ms);
    for (const auto& each : sentinels_) each->set(State::hung);
    load(1s);
    find_all();
    REQUIRE(comeback() <= 1200ms);
  }
  /// Nothing is announced, and the epochs begin anew.
  void configure_anew() {
    servers_[master_]->lacks_replicas = true;
    promote();
    epoch_ = 0;
    for (const auto& each : sentinels_) set_master(*each);
    REQUIRE(comeback() <= 1200ms);
    REQUIRE(reconnect(Span{0}, 100ms) < group_size);
  }

 private:
  [[nodiscard]] std::size_t sum(auto of) const {
    std::size_t result = 0;
    for (const auto& each : sentinels_) result += static_cast<std::size_t>(of(each));
    return result;
  }
  /// Returns while the Sentinel is asked because of that, often just behind its answer.
  void tell_of_another_group(GroupSentinel& sentinel) {
    const std::size_t before = sentinel.asked;
    sentinel.publish("+switch-master");
    for (auto ms = 1 + below(40); ms > 0 && sentinel.asked == before; --ms) pass(io, 1ms);
  }
  void upset(unsigned kind) {
    if (kind == 0 || (kind == 2 && one_in(2))) {  // not all Sentinels answer
      spoil_sentinel((*watched() + 1) % group_size, 0);
    }
    if (kind == 1) {
      for (const auto& each : sentinels_) each->hides_epoch = true;
    }
    if (kind == 2) {  // until the pauses between the attempts are the longest
      touch(0);
      servers_[master_]->set(one_in(2) ? State::hung : State::down);
      load(2500ms + up_to(500ms));
    }
    if (kind == 3) lose_most();
  }
  /// Those that have not heard of a switch are listened to in vain.
  void check_old_news(unsigned teller) {
    const unsigned before = switches_;
    sentinels_[teller]->cut();
    load(1s);
    touch(0);
    sentinels_[*watched()]->publish("+switch-master");
    servers_[master_]->cut();
    load(1s);
    REQUIRE(switches_ == before);
  }
  /// How long it takes until the master decides a call.
  Span comeback() {
    const SystemClock clock;
    const Time since = clock.now();
    const std::size_t first = store_->calls();
    while (clock.now() < since + 10s) {
      load(20ms);
      for (std::size_t i = first; i < store_->calls(); ++i) {
        const auto& answer = store_->answer(i);
        if (answer.answers == 1 && ways_[i].executed == std::vector{master_}) {
          return answer.ended - since;
        }
      }
    }
    return clock.now() - since;
  }
  /// Returns the Sentinel that is asked.
  unsigned reconnect(Span least, Span most) {
    std::vector<std::size_t> before;
    for (const auto& each : sentinels_) before.push_back(each->asked);
    touch(0);
    servers_[master_]->cut();
    const Span span = comeback();
    REQUIRE(span >= least);
    REQUIRE(span <= most);
    std::vector<unsigned> asked;
    for (unsigned i = 0; i < group_size; ++i) {
      if (sentinels_[i]->asked > before[i]) asked.push_back(i);
    }
    REQUIRE(asked.size() == 1);
    return asked[0];
  }
  void lose_all(State state) {
    touch(0);
    servers_[master_]->lacks_replicas = true;
    for (const auto& each : sentinels_) each->set(state);
  }
  /// All for a while, then all but one or none.
  void lose_most() {
    lose_all(one_in(2) ? State::hung : State::down);
    load(2s + up_to(1s));
    stop_listening();  // else what the store has given up seems to listen
    if (one_in(2)) {
      find_all();
    } else {
      bad_ = below(group_size);
      sentinels_[bad_]->set(State::up);
    }
    for (int i = 0; i < 100 && !watched(); ++i) load(20ms);
  }
  void find_all() {
    for (const auto& each : sentinels_) each->set(State::up);
  }
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
    group.start();
    group.load(1s);
    for (auto steps = random.below(6); steps > 0; --steps) {
      group.disturb();
      group.load(Span{random.between(0, random.one_in(2) ? 100'000 : 2'500'000)});
    }
    if (random.one_in(2)) group.repair();
    group.find_names();
    group.calm(8s);
    group.judge();
    group.judge_events();
  }
}

TEST_CASE("a master that all Sentinels name decides soon", "[model][sentinel]") {
  Random random("a master that all Sentinels name decides soon");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(60, 20); ++program) {
    CAPTURE(program);
    Group group(random, random.one_in(2));
    group.start();
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
    group.judge_events();
  }
}

TEST_CASE("what hangs, is away or is announced costs the time that it must", "[model][sentinel]") {
  Random random("what hangs, is away or is announced costs the time that it must");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(120, 40); ++program) {
    CAPTURE(program);
    Group group(random, random.one_in(2));
    const auto kind = random.below(8);
    CAPTURE(kind);
    if (kind == 0) group.check_start();
    if (kind != 0) group.start();
    group.load(3s);
    if (kind == 1) group.check_order();
    if (kind == 2) group.check_silence();
    if (kind == 3) group.check_absence();
    if (kind == 4) group.check_news();
    if (kind == 5) {
      group.check_news();
      group.load(3s);
      group.configure_anew();
    }
    if (kind == 6) group.check_missed();
    if (kind == 7) group.check_forgotten();
    group.load(1s);
    group.judge();
    group.judge_events();
  }
}

TEST_CASE("names that are known serve a failover while the name server is away",
          "[model][sentinel][look-up]") {
  Random random("names that are known serve a failover while the name server is away");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(20, 10); ++program) {
    CAPTURE(program);
    Group group(random, true);
    group.start();
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
    group.judge_events();
  }
}
