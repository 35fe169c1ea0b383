// The store in a cluster against random programs, judged by its answers: which calls are decided
// and by whom, and how soon after the world is calm. The model is the world itself: which node has
// which keys, and what each node believes. Threading: single-threaded, in simulated time.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "backends/redis/protocol/hash_slot.hpp"
#include "tests/redis/fake/cluster.hpp"
#include "tests/redis/topology/simulated.hpp"

using namespace sluice;
using namespace sluice::test;
using redis_detail::hash_slot;
using redis_detail::hash_slots;

namespace {

using State = SimulatedServer::State;

/// The keys, whose slots divide the cluster in as many shards.
constexpr std::array<const char*, 6> tags{"a", "b", "c", "d", "e", "f"};
constexpr std::size_t shards = tags.size();

/// The node of each shard.
using Owners = std::array<unsigned, shards>;

struct Truth {
  Owners owner{};
  /// Shards on their way: from the owner to this node; `moved`: their key is there.
  std::array<std::optional<unsigned>, shards> importer{};
  std::array<bool, shards> moved{};
  std::array<std::string, 4> hosts{};
  std::map<std::uint64_t, std::vector<unsigned>> executed;
};

/// The shards in the order of their slots, and the last slot of each.
struct Slots {
  std::array<std::size_t, shards> order{};
  std::array<std::uint16_t, shards> last{};

  Slots() {
    for (std::size_t i = 0; i < shards; ++i) order[i] = i;
    std::ranges::sort(order, {}, [](std::size_t shard) { return hash_slot(tags[shard]); });
    for (std::size_t i = 0; i < shards; ++i) {
      last[i] = i + 1 == shards ? hash_slots - 1 : hash_slot(tags[order[i]]);
    }
  }
  [[nodiscard]] std::size_t shard_of(std::uint16_t slot) const {
    std::size_t i = 0;
    while (last[i] < slot) ++i;
    return order[i];
  }
};

class Node final : public SimulatedServer {
 public:
  Node(net::io_context& io, unsigned number, Truth& truth, Random& random)
      : SimulatedServer(io, number), number_(number), truth_(truth), random_(random) {}

  Owners believed{};
  bool has_map = true;
  std::size_t asked = 0;  // for the map

 private:
  std::string answer(const Command& command, Session& session) override {
    const bool is_asking = std::exchange(session.is_asking, command[0] == "ASKING");
    if (command[0] == "ASKING") return "+OK\r\n";
    if (command[0] == "CLUSTER") {
      ++asked;
      return has_map ? map() : no_map();
    }
    if (!is_call(command)) return "-ERR unknown command\r\n";
    const std::size_t shard = slots_.shard_of(hash_slot(command.at(3)));
    const bool imports = is_asking && truth_.importer[shard] == number_;
    if (imports && random_.one_in(4)) return "-TRYAGAIN no\r\n";
    if (!imports && believed[shard] != number_) return sent_to("MOVED", believed[shard]);
    if (!imports && truth_.owner[shard] != number_) return "-CLUSTERDOWN no\r\n";
    const bool is_moved = truth_.importer[shard] && truth_.moved[shard];
    if (!imports && is_moved) return sent_to("ASK", *truth_.importer[shard]);
    truth_.executed[nonce_of(command)].push_back(number_);
    return allowing(command, 1);
  }

  [[nodiscard]] std::string sent_to(const std::string& word, unsigned node) const {
    return redirection(word, 6379, truth_.hosts[node]);
  }
  [[nodiscard]] std::string map() const {
    std::vector<std::string> rows;
    int first = 0;
    for (std::size_t i = 0; i < shards; ++i) {
      rows.push_back(
          row(first, slots_.last[i], bulk(truth_.hosts[believed[slots_.order[i]]]), 6379));
      first = slots_.last[i] + 1;
    }
    return array(rows);
  }

  unsigned number_;
  Truth& truth_;
  Random& random_;
  const Slots slots_;
};

class Cluster {
 public:
  explicit Cluster(Random& random)
      : random_(random), size_(1 + static_cast<unsigned>(random.below(4))) {
    const bool is_by_name = random.one_in(2);
    for (unsigned i = 0; i < size_; ++i) {
      nodes_.push_back(std::make_unique<Node>(io, i, truth_, random));
      truth_.hosts[i] = is_by_name ? "n" + std::to_string(i) + ".test" : nodes_[i]->address().host;
      names_.name(truth_.hosts[i], nodes_[i]->address());
    }
    for (unsigned& owner : truth_.owner) owner = any_node();
    for (const auto& each : nodes_) each->believed = truth_.owner;
    RedisOptions options;
    first_ = any_node();
    for (unsigned i = 0; i <= random.below(size_); ++i) {
      options.cluster.push_back({truth_.hosts[(first_ + i) % size_], 6379});
    }
    store_.emplace(io, options, names_.starter(), random.next());
  }

  /// Calls for so long, one every 20 ms.
  void load(Span span) {
    const SystemClock clock;
    for (const Time end = clock.now() + span; clock.now() < end;) {
      asked_.push_back(random_.below(shards));
      store_->ask(tags[asked_.back()], random_.one_in(5) ? 100ms : 500ms);
      pass(io, 20ms);
    }
  }

  void disturb() {
    const unsigned node = any_node();
    switch (random_.below(9)) {
      case 0:
      case 1:
        return lose(node);
      case 2:
        return bring_back(node);
      case 3:
      case 4:
        return begin_move(random_.below(shards), node);
      case 5:
        return end_move(random_.below(shards));
      case 6:
        return nodes_[node]->cut();
      case 7:
        nodes_[node]->has_map = random_.one_in(2);
        return;
      default:
        names_.set(Span{random_.one_in(2) ? 0 : random_.between(0, 600'000)}, random_.one_in(4));
    }
  }

  /// A node dies, hangs or is cut off, and comes back, or another one has its shards from now on.
  void lose(unsigned node) {
    const bool is_cut_off = random_.one_in(3);
    if (!is_cut_off) nodes_[node]->set(random_.one_in(2) ? State::hung : State::down);
    if (is_cut_off && size_ > 1) nodes_[node]->believed.fill(node);
    load(Span{random_.between(0, 2'000'000)});
    const auto heir = std::ranges::find_if(
        nodes_, [&](const auto& each) { return each->is_up() && each != nodes_[node]; });
    if (heir == nodes_.end()) return bring_back(node);
    for (std::size_t i = 0; i < shards; ++i) {
      if (truth_.importer[i] == node) truth_.importer[i].reset();
      if (truth_.owner[i] != node) continue;
      truth_.owner[i] = static_cast<unsigned>(heir - nodes_.begin());
      truth_.importer[i].reset();
    }
    (*heir)->believed = truth_.owner;
    tell();
  }
  void bring_back(unsigned node) {
    nodes_[node]->set(State::up);
    nodes_[node]->believed = truth_.owner;
  }
  void begin_move(std::size_t shard, unsigned to) {
    if (!nodes_[to]->is_up() || truth_.owner[shard] == to || truth_.importer[shard]) return;
    truth_.importer[shard] = to;
    truth_.moved[shard] = random_.one_in(2);
  }
  void end_move(std::size_t shard) {
    if (!truth_.importer[shard]) return;
    const unsigned from = truth_.owner[shard];
    truth_.owner[shard] = *std::exchange(truth_.importer[shard], {});
    for (const unsigned node : {truth_.owner[shard], from}) {
      nodes_[node]->believed[shard] = truth_.owner[shard];
    }
    if (random_.one_in(2)) tell();
  }
  /// Every node hears it, sooner or later.
  void tell() {
    for (const auto& each : nodes_) {
      const auto timer =
          std::make_shared<net::steady_timer>(io, Span{random_.between(0, 1'000'000)});
      timer->async_wait([this, timer, node = each.get()](const auto&) {
        if (node->is_up()) node->believed = truth_.owner;
      });
    }
  }

  /// From now on nothing changes, and the nodes that are there agree: the owners decide again, and
  /// go on. Keys may be on their way all the time. A configured node is there, since the owners may
  /// be unknown.
  void calm(Span within) {
    for (unsigned i = 0; i < size_; ++i) {
      nodes_[i]->has_map = true;
      if (nodes_[i]->is_up() || is_owner(i) || i == first_) bring_back(i);
    }
    names_.set(Span{random_.between(0, 200'000)});
    load(within);
    const std::size_t first = store_->calls();
    const std::size_t maps = maps_asked();
    load(1s);
    pass(io, 1s);
    REQUIRE(maps_asked() <= maps + 3);
    for (std::size_t i = first; i < store_->calls(); ++i) {
      CAPTURE(i, store_->answer(i).error.message());
      const bool is_moved = truth_.importer[asked_[i]] && truth_.moved[asked_[i]];
      if (is_moved && store_->answer(i).error == Errc::try_again) continue;
      REQUIRE(!store_->answer(i).error);
      const std::size_t shard = asked_[i];
      const unsigned decider = is_moved ? *truth_.importer[shard] : truth_.owner[shard];
      REQUIRE(truth_.executed[i] == std::vector<unsigned>{decider});
    }
  }

  void judge() {
    for (std::size_t i = 0; i < store_->calls(); ++i) {
      const SimulatedStore::Answer& call = store_->answer(i);
      CAPTURE(i, call.error.message());
      REQUIRE(call.answers == 1);
      REQUIRE(call.ended <= call.deadline + 5ms);
      const std::size_t times = truth_.executed.contains(i) ? truth_.executed[i].size() : 0;
      REQUIRE(times <= 1);
      if (!call.error) REQUIRE(times == 1);
      if (call.error == Failure::not_executed) REQUIRE(times == 0);
    }
    CHECK(store_->topology().size() <= 2 * size_ + 1);
  }

  Simulation simulation;
  net::io_context io{1};

 private:
  [[nodiscard]] std::size_t maps_asked() const {
    std::size_t sum = 0;
    for (const auto& each : nodes_) sum += each->asked;
    return sum;
  }
  [[nodiscard]] unsigned any_node() { return static_cast<unsigned>(random_.below(size_)); }
  [[nodiscard]] bool is_owner(unsigned node) const {
    return std::ranges::count(truth_.owner, node) > 0 ||
           std::ranges::count(truth_.importer, std::optional(node)) > 0;
  }

  Random& random_;
  const unsigned size_;
  unsigned first_ = 0;  // of the configured nodes
  Truth truth_;
  SimulatedNames names_{io};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::size_t> asked_;
  std::optional<SimulatedStore> store_;
};

}  // namespace

TEST_CASE("in a cluster the owners decide soon after the world is calm, whatever was before",
          "[model][cluster]") {
  Random random("in a cluster the owners decide soon after the world is calm, whatever was before");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(200, 20); ++program) {
    CAPTURE(program);
    Cluster cluster(random);
    cluster.load(1s);
    for (auto steps = random.below(8); steps > 0; --steps) {
      cluster.disturb();
      cluster.load(Span{random.between(0, random.one_in(2) ? 100'000 : 1'500'000)});
    }
    cluster.calm(4s);
    cluster.judge();
  }
}
