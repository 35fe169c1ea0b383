// The order of the queue, at every distance between times. Threading: single-threaded.
#include "sluice/sim/event_queue.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::sim;

namespace {

std::vector<std::uint64_t> take_all(EventQueue& queue) {
  std::vector<std::uint64_t> ids;
  for (EventQueue::Node node{}; queue.pop(word_limit, node);) ids.push_back(node.id);
  return ids;
}

}  // namespace

TEST_CASE("random pushes, takes and erasures happen as in a sorted map") {
  test::Random random("random pushes, takes and erasures happen as in a sorted map");
  CAPTURE(random.repeat());
  EventQueue queue;
  std::multimap<Word, std::uint64_t> expected;  // equal keys keep the order of insertion
  Word now = random.between(0, 1'000);
  std::uint64_t id = 0;
  const std::size_t rounds = test::scaled(2'000, 100);
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto reach = std::int64_t{1} << random.between(0, 45);
    for (std::int64_t i = random.between(0, 60); i > 0; --i) {
      const Word time = now + random.between(0, reach);
      queue.push({time, ++id}, now);
      expected.emplace(time, id);
    }
    if (random.one_in(8)) {
      const std::uint64_t odd = random.below(2);
      queue.erase_if([&](const EventQueue::Node& node) { return node.id % 3 == odd; });
      std::erase_if(expected, [&](const auto& event) { return event.second % 3 == odd; });
    }
    const Word end = now + random.between(0, reach);
    for (EventQueue::Node node{}; queue.pop(end, node); now = node.time) {
      REQUIRE_FALSE(expected.empty());
      REQUIRE(node.time == expected.begin()->first);
      REQUIRE(node.id == expected.begin()->second);
      expected.erase(expected.begin());
    }
    REQUIRE((expected.empty() || expected.begin()->first > end));
    REQUIRE(queue.size() == expected.size());
    if (!random.one_in(3)) now = end;  // else the next pushes lie behind what was looked for
  }
}

TEST_CASE("shuffled, events of one time come in any order, and times in theirs") {
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EventQueue queue;
    queue.shuffle_ties(seed);
    for (const std::uint64_t id : {4U, 1U, 2U, 3U}) queue.push({id == 4 ? 900 : 500, id}, 0);
    const auto order = take_all(queue);
    REQUIRE(order.back() == 4);
    orders.insert(order);
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("shuffled, a crowd at one time is complete, and its order is the seed's") {
  const auto order_of = [](std::uint64_t seed) {
    EventQueue queue;
    queue.shuffle_ties(seed);
    for (std::uint64_t id = 1; id <= 997; ++id) queue.push({77'777, id}, 0);
    return take_all(queue);
  };
  auto order = order_of(5);
  CHECK(order == order_of(5));
  CHECK(order != order_of(6));
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < 997; ++i) REQUIRE(order[i] == i + 1);
}
