// A store of several nodes that fail apart, as a cluster does, in virtual time.
// Threading: as the stores that it passes calls to; reach() from any thread.
#pragma once

#include <array>
#include <atomic>
#include <charconv>
#include <deque>
#include <string>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "tests/fallback/rig.hpp"

namespace sluice::test {

/// The tag of a key begins with the number of its node: "3" and "3.alice" are keys of node 3.
class NodesStore final : public StoreWrapper {
 public:
  NodesStore(Store& states, unsigned count) : StoreWrapper(states) {
    for (unsigned i = 0; i < count; ++i) nodes_.emplace_back(states);
  }

  void execute(const Plan& plan, Completion done) noexcept override {
    at(node_of(plan.steps()[0].key)).execute(plan, std::move(done));
  }
  [[nodiscard]] StorePart part_of(const Key& key) const noexcept override {
    const unsigned node = node_of(key);
    return node < nodes_.size() ? StorePart{node, nodes_[node].comebacks} : StorePart{node, 0};
  }

  /// The node whose calls may fail.
  [[nodiscard]] FaultyStore& at(unsigned node) { return nodes_[node].store; }
  /// The node is reachable again, whether or not it decides calls.
  void reach(unsigned node) noexcept { ++nodes_[node].comebacks; }

 private:
  struct Node {
    explicit Node(Store& states) : store(states) {}
    FaultyStore store;
    std::atomic<std::uint64_t> comebacks{0};
  };

  [[nodiscard]] static unsigned node_of(const Key& key) noexcept {
    unsigned node = 0;
    const std::string_view tag = key.tag();
    std::from_chars(tag.data(), tag.data() + tag.size(), node);
    return node;
  }

  std::deque<Node> nodes_;
};

/// A FallbackStore before several nodes.
struct NodesRig {
  explicit NodesRig(unsigned count, const BreakerOptions& options = {.failures = 3},
                    const FailurePolicy& policy = FailurePolicy::open())
      : nodes(*states, count), breaker(clock, drawing(options)), store(nodes, breaker, policy) {}

  BreakerOptions drawing(BreakerOptions options) {
    options.rng = &rng;
    return options;
  }
  /// One call; true if the primary decided it.
  bool ask(const Key& key) {
    std::error_code error;
    const Decision decision = decide(store, bucket.acquire_step(key), error);
    REQUIRE_FALSE(error);
    return !is_degraded(decision.source);
  }
  /// The node is down, and its breaker has found out.
  void trip(unsigned node) {
    nodes.at(node).fail_all(dead);
    while (breaker.state(node) != State::open) (void)ask(node);
  }

  SeededRng rng{11};
  VirtualClock clock;
  std::unique_ptr<Store> states = make_virtual_store(clock);
  NodesStore nodes;
  CircuitBreaker breaker;
  FallbackStore store;
  TokenBucket bucket{store, "b", Quota::per_second(1'000'000).burst(1'000'000)};
};

}  // namespace sluice::test
