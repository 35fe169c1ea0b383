// Little's law as an identity: the sums of a Resource are those of its customers, to the
// microsecond, at any time. Threading: single-threaded.
#include <vector>

#include "sim/tests/world/fixture.hpp"
#include "sluice/sim/resource.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Impatient customers of a service in brown-outs.
class Service {
 public:
  struct Customer {
    Time came{};
    Time answered = Time::max();
    Time left = Time::max();
    bool served = false;
  };

  explicit Service(std::uint64_t seed)
      : world({.seed = seed}), resource(world, 3, Discipline::priority) {
    world.spawn(arrivals());
    world.spawn(brown_outs());
  }

  /// Of all customers, from their coming, or their begin of service, until now.
  [[nodiscard]] std::uint64_t waits() const {
    return sum(
        [&](const Customer& each) { return std::min(each.answered, world.now()) - each.came; });
  }
  [[nodiscard]] std::uint64_t services() const {
    return sum([&](const Customer& each) {
      return each.served ? std::min(each.left, world.now()) - each.answered : Span{0};
    });
  }

  World world;
  Resource resource;
  std::vector<Customer> customers;

 private:
  using Coroutine = net::awaitable<void, World::Executor>;

  template <class Of>
  [[nodiscard]] std::uint64_t sum(Of of) const {
    Span total{0};
    for (const Customer& each : customers) total += of(each);
    return static_cast<std::uint64_t>(total.count());
  }

  Coroutine arrivals() {
    SeededRng rng = stream(world.seed(), 0, 1);
    const Delay gap = Delay::exponential(350ms);
    for (;;) {
      co_await sluice::asio::sleep_for(world.clock(), gap.sample(rng));
      customers.push_back({.came = world.now()});
      world.spawn(customer(customers.size() - 1));
    }
  }
  Coroutine customer(std::size_t name) {
    SeededRng rng = stream(world.seed(), name, 2);
    const Span patience = Delay::exponential(5s).sample(rng);
    const Resource::Server server = co_await resource.acquire(
        {.priority = static_cast<int>(name % 3), .deadline = world.now() + patience});
    customers[name].answered = world.now();
    customers[name].served = static_cast<bool>(server);
    if (!server) co_return;
    co_await sluice::asio::sleep_for(world.clock(), Delay::exponential(1s).sample(rng));
    customers[name].left = world.now();
  }
  Coroutine brown_outs() {
    for (std::size_t servers = 0;; servers = (servers + 1) % 5) {
      co_await sluice::asio::sleep_for(world.clock(), 20s);
      resource.set_servers(servers);
    }
  }
};

}  // namespace

TEST_CASE("Little's law holds to the microsecond, at any time") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Service service(seed);
    for (int i = 0; i < 50; ++i) {
      service.world.run_for(37s + Span{i * 12'345});
      const ResourceStats stats = service.resource.stats();
      REQUIRE(stats.waiting_time == service.waits());
      REQUIRE(stats.busy_time == service.services());
      REQUIRE(stats.served + stats.abandoned + stats.waiting == service.customers.size());
    }
    const ResourceStats stats = service.resource.stats();
    CHECK(stats.abandoned > 100);
    CHECK(stats.served > 1'000);
    // L = lambda * W in these terms: L is the sum over the time, W the sum over the customers.
    const auto count = static_cast<double>(service.customers.size());
    const double rate = count / static_cast<double>(stats.elapsed.count());
    const double wait = static_cast<double>(service.waits()) / count;
    CHECK(stats.mean_waiting() == Approx(rate * wait).epsilon(1e-12));
  }
}
