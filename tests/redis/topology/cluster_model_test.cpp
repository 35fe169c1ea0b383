// The store in a cluster against random programs, judged by its answers: which calls are decided
// and by whom, and how soon. The model is the world itself: which node has which keys, and what
// each node believes. Threading: single-threaded, in simulated time.
#include <algorithm>
#include <array>
#include <optional>

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
  std::vector<std::string> hosts{};
  bool sends_on = false;  // a node has said MOVED since the last look
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
  Node(net::io_context& io, unsigned number, Truth& truth, Ways& ways, Random& random)
      : SimulatedServer(io, number), number_(number), truth_(truth), ways_(ways), random_(random) {}

  Owners believed{};
  bool has_map = true;
  bool refuses = false;   // it has lost the others, though its map may be right
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
    Way& way = ways_[nonce_of(command)];
    way.asked.push_back(number_);
    const std::size_t shard = slots_.shard_of(hash_slot(command.at(3)));
    if (refuses) return "-CLUSTERDOWN no\r\n";
    const bool imports = is_asking && truth_.importer[shard] == number_;
    if (imports && random_.one_in(4)) return "-TRYAGAIN no\r\n";
    if (!imports && believed[shard] != number_) {
      truth_.sends_on = true;
      return sent_to("MOVED", believed[shard]);
    }
    if (!imports && truth_.owner[shard] != number_) return "-CLUSTERDOWN no\r\n";
    const bool is_moved = truth_.importer[shard] && truth_.moved[shard];
    if (!imports && is_moved) return sent_to("ASK", *truth_.importer[shard]);
    way.executed.push_back(number_);
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
  Ways& ways_;
  Random& random_;
  const Slots slots_;
};

class Cluster final : public SimulatedWorld {
 public:
  explicit Cluster(Random& random) : SimulatedWorld(random, shards), size_(1 + below(8)) {
    const bool is_by_name = one_in(2);
    for (unsigned i = 0; i < size_; ++i) {
      nodes_.push_back(std::make_unique<Node>(io, i, truth_, ways_, random));
      nodes_[i]->set_latency(1ms * below(3));
      const RedisAddress address = nodes_[i]->address();
      truth_.hosts.push_back(is_by_name ? "n" + std::to_string(i) + ".test" : address.host);
      names_.name(truth_.hosts[i], address);
    }
    const unsigned owners = 1 + below(size_);
    for (unsigned& owner : truth_.owner) owner = below(owners);
    for (const auto& each : nodes_) each->believed = truth_.owner;
    RedisOptions options;
    first_ = any_node();
    for (unsigned i = 0; i <= below(size_); ++i) {
      options.cluster.push_back({truth_.hosts[(first_ + i) % size_], 6379});
    }
    store_.emplace(io, options, names_.starter(), random.next());
  }
  ~Cluster() override { store_.reset(); }

  void disturb() {
    const unsigned node = any_node();
    switch (below(13)) {
      case 0:
      case 1:
        return lose(node);
      case 2:
        return bring_back(node);
      case 3:
      case 4:
        return begin_move(below(shards), node);
      case 5:
        return end_move(below(shards));
      case 6:
        touch_node(node);
        return nodes_[node]->cut();
      case 7:
        nodes_[node]->has_map = one_in(2);
        return;
      case 8:
      case 9:
        return hand_over(node);
      case 10:
      case 11:
        return lose_importer(node);
      default:
        names_.set(one_in(2) ? Span{0} : up_to(600ms), one_in(4));
    }
  }

  /// From now on nothing changes, and the nodes that are there agree: the owners decide again, and
  /// go on. Keys may be on their way all the time. A configured node is there, since the owners may
  /// be unknown.
  void calm() {
    for (unsigned i = 0; i < size_; ++i) {
      nodes_[i]->has_map = true;
      if (nodes_[i]->is_up() || is_owner(i) || i == first_) bring_back(i);
    }
    names_.set(one_in(2) ? Span{0} : up_to(200ms));
    load(2s);
    const std::size_t maps = maps_asked();
    const int vain = vain_attempts();
    SimulatedWorld::calm(1s);
    REQUIRE(maps_asked() <= maps + 4);  // one may be under way
    REQUIRE(vain_attempts() <= vain + 2);
    CHECK(store_->topology().size() <= 2 * size_ + 1);
  }

  /// An owner has nothing any more from now on, and all nodes know: it is left.
  void reshard() {
    const unsigned from = truth_.owner[0];
    const auto heir = heir_of(from);
    if (!heir) return;
    give(from, *heir);
    for (const auto& each : nodes_) each->believed = truth_.owner;
    load(2500ms);
    REQUIRE((is_owner(from) || !nodes_[from]->has_caller()));
  }
  /// An owner hangs, and another node; the map is known to those that are asked first.
  void hang_owner() {
    names_.set(Span{0});
    const unsigned hung = truth_.owner[0];
    const auto heir = heir_of(hung);
    if (!heir || hung == first_) return;
    for (unsigned i = 0; i < size_; ++i) {
      if (nodes_[i]->state() == State::hung) bring_back(i);  // each costs a question its timeout
    }
    touch_node(hung);
    nodes_[hung]->set(State::hung);
    const unsigned other = any_node();
    if (truth_.owner[1] != hung && !is_owner(other) && other != *heir && other != first_) {
      nodes_[other]->set(State::hung);
    }
    give(hung, *heir);
    for (const auto& each : nodes_) each->believed = truth_.owner;
    SimulatedWorld::calm(
        2s);  // the map may have been fetched just before, and the other node be asked
  }
  /// While calls fail, the map is asked for once a second.
  void check_questions() {
    for (const auto& each : nodes_) each->refuses = true;
    for (std::size_t i = 0; i < shards; ++i) touch(i);
    const std::size_t before = maps_asked();
    load(3s);
    REQUIRE(maps_asked() >= before + 2);
    REQUIRE(maps_asked() <= before + 5);
    for (const auto& each : nodes_) each->refuses = false;
  }

 private:
  [[nodiscard]] std::string_view tag_of(std::size_t shard) const override { return tags[shard]; }
  [[nodiscard]] std::vector<unsigned> way_of(std::size_t shard) const override {
    std::vector way{truth_.owner[shard]};
    if (truth_.importer[shard] && truth_.moved[shard]) way.push_back(*truth_.importer[shard]);
    return way;
  }
  [[nodiscard]] bool is_steady(std::size_t shard) const override {
    const auto agrees = [&](const auto& node) {
      return !node->is_up() || node->believed[shard] == truth_.owner[shard];
    };
    const auto serves = [&](unsigned node) {
      return nodes_[node]->is_up() && !nodes_[node]->refuses;
    };
    return std::ranges::all_of(nodes_, agrees) && std::ranges::all_of(way_of(shard), serves);
  }
  /// No node costs a question its timeout, and a configured one is there.
  [[nodiscard]] bool is_settled(std::size_t shard) const override {
    const auto is_well = [](const auto& node) {
      return node->state() != State::hung && node->has_map;
    };
    return is_steady(shard) && names_.is_quick() && nodes_[first_]->is_up() &&
           std::ranges::all_of(nodes_, is_well);
  }
  /// The map is asked for at once after a loss, and each second while a node refuses. A node that
  /// is left has 200 ms to answer, and a pause between two attempts takes 250 ms at most.
  [[nodiscard]] Span search() const override {
    const auto refuses = [&](const auto& node) {
      return node->is_up() && (node->refuses || node->believed != truth_.owner);
    };
    return std::ranges::any_of(nodes_, refuses) ? 1200ms : 550ms;
  }
  /// The map that is fetched after MOVED, a second later at most, spares all others.
  void look() override {
    const Time now = SystemClock().now();
    bool are_settled = true;
    for (std::size_t i = 0; i < shards; ++i) are_settled = are_settled && is_settled(i);
    const bool sends_on = std::exchange(truth_.sends_on, false);
    if (!are_settled || truth_.owner != owner_) {
      owner_ = truth_.owner;
      sent_on_ = Time::max();
    } else if (sends_on) {
      sent_on_ = std::min(sent_on_, now);
      REQUIRE(now - sent_on_ <= 1100ms);
    }
  }

  /// A node dies, hangs or is cut off, and comes back, or another one has its shards from now on.
  void lose(unsigned node) {
    const bool is_cut_off = one_in(3);
    touch_node(node);
    if (!is_cut_off) nodes_[node]->set(one_in(3) ? State::hung : State::down);
    if (is_cut_off && size_ > 1) nodes_[node]->believed.fill(node);
    load(up_to(one_in(2) ? 100ms : 2s));
    const auto heir = heir_of(node);
    if (!heir) return bring_back(node);
    give(node, *heir);
    nodes_[*heir]->believed = truth_.owner;
    tell();
  }
  /// A node dies while keys are on their way to it; they stay where they were.
  void lose_importer(unsigned node) {
    begin_move(0, node);
    if (truth_.importer[0] != node) return;
    truth_.moved[0] = true;
    load(up_to(300ms));
    touch_node(node);
    nodes_[node]->set(State::down);
    load(up_to(100ms));
    truth_.importer[0].reset();
    if (const auto heir = heir_of(node)) give(node, *heir);
    for (const auto& each : nodes_) {
      if (each->is_up()) each->believed = truth_.owner;
    }
  }
  void bring_back(unsigned node) {
    touch_node(node);
    nodes_[node]->set(State::up);
    nodes_[node]->refuses = false;
    nodes_[node]->believed = truth_.owner;
  }
  /// A node gives its shards to another one, and from then on refuses all calls, or ends soon.
  void hand_over(unsigned node) {
    const auto heir = heir_of(node);
    if (!heir || !nodes_[node]->is_up()) return;
    if (one_in(2)) {
      touch_node(node);
      nodes_[node]->refuses = true;
      load(up_to(100ms));
    }
    give(node, *heir);
    for (const unsigned each : {node, *heir}) nodes_[each]->believed = truth_.owner;
    if (one_in(2)) nodes_[node]->refuses = false;
    tell();
    load(up_to(100ms));
    if (one_in(2)) nodes_[node]->set(State::down);
  }
  [[nodiscard]] std::optional<unsigned> heir_of(unsigned node) {
    const unsigned first = any_node();
    for (unsigned i = 0; i < size_; ++i) {
      const unsigned heir = (first + i) % size_;
      if (heir != node && nodes_[heir]->is_up() && !nodes_[heir]->refuses) return heir;
    }
    return std::nullopt;
  }
  void give(unsigned node, unsigned heir) {
    for (std::size_t i = 0; i < shards; ++i) {
      if (truth_.importer[i] == node) truth_.importer[i].reset();
      if (truth_.owner[i] != node) continue;
      truth_.owner[i] = heir;
      truth_.importer[i].reset();
    }
  }
  void begin_move(std::size_t shard, unsigned to) {
    if (!nodes_[to]->is_up() || truth_.owner[shard] == to || truth_.importer[shard]) return;
    truth_.importer[shard] = to;
    truth_.moved[shard] = one_in(2);
  }
  void end_move(std::size_t shard) {
    if (!truth_.importer[shard]) return;
    const unsigned from = truth_.owner[shard];
    truth_.owner[shard] = *std::exchange(truth_.importer[shard], {});
    for (const unsigned node : {truth_.owner[shard], from}) {
      nodes_[node]->believed[shard] = truth_.owner[shard];
    }
    if (one_in(2)) tell();
  }
  /// Every node hears it, sooner or later.
  void tell() {
    const Span slowest = one_in(2) ? 50ms : 1s;
    for (const auto& each : nodes_) {
      after(up_to(slowest), [this, node = each.get()] {
        if (node->is_up()) node->believed = truth_.owner;
      });
    }
  }

  void touch_node(unsigned node) {
    for (std::size_t i = 0; i < shards; ++i) {
      if (truth_.owner[i] == node || truth_.importer[i] == node) touch(i);
    }
  }
  [[nodiscard]] std::size_t maps_asked() const {
    std::size_t sum = 0;
    for (const auto& each : nodes_) sum += each->asked;
    return sum;
  }
  /// To connect to nodes that are away.
  [[nodiscard]] int vain_attempts() const {
    int sum = 0;
    for (const auto& each : nodes_) sum += each->is_up() ? 0 : each->attempts();
    return sum;
  }
  [[nodiscard]] unsigned any_node() { return below(size_); }
  [[nodiscard]] bool is_owner(unsigned node) const {
    return std::ranges::count(truth_.owner, node) > 0 ||
           std::ranges::count(truth_.importer, std::optional(node)) > 0;
  }

  const unsigned size_;
  unsigned first_ = 0;  // of the configured nodes
  Truth truth_;
  Owners owner_{};              // at the last look
  Time sent_on_ = Time::max();  // when a node said MOVED first since all is settled
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

TEST_CASE("in a cluster the owners decide soon after the world is calm, whatever was before",
          "[model][cluster]") {
  Random random("in a cluster the owners decide soon after the world is calm, whatever was before");
  CAPTURE(random.repeat());
  for (std::size_t program = 0; program < scaled(60, 20); ++program) {
    CAPTURE(program);
    Cluster cluster(random);
    cluster.load(1s);
    for (auto steps = random.below(8); steps > 0; --steps) {
      cluster.disturb();
      cluster.load(Span{random.between(0, random.one_in(2) ? 100'000 : 1'500'000)});
    }
    cluster.calm();
    cluster.check_questions();
    cluster.load(1s);
    cluster.reshard();
    cluster.hang_owner();
    cluster.judge();
  }
}
