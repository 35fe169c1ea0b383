// The stores of for_each_store().
#include "tests/support/stores.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sluice/extend/store_wrapper.hpp"
#include "sluice/memory_store.hpp"
#include "sluice/virtual_store.hpp"
#include "tests/catch.hpp"

#ifdef SLUICE_TEST_REDIS
#include "sluice/redis/redis_store.hpp"
#include "tests/support/frozen_redis.hpp"
#endif

namespace sluice::test {
namespace {

using Body = std::function<void(Store&, VirtualClock&)>;

bool has(Stores stores, Stores one) {
  return (static_cast<unsigned>(stores) & static_cast<unsigned>(one)) != 0;
}

void on_virtual_time(const Body& body) {
  INFO("on the virtual store");
  VirtualClock clock;
  const auto store = make_virtual_store(clock);
  body(*store, clock);
}

void on_memory(const Body& body) {
  INFO("on the memory store");
  VirtualClock clock;
  const auto store = make_memory_store({.max_keys = 1 << 14, .clock = &clock});
  body(*store, clock);
}

#ifdef SLUICE_TEST_REDIS

/// Brings the server's clock to the test's before each call.
class DrivenStore final : public StoreWrapper {
 public:
  DrivenStore(Store& inner, FrozenRedis& redis, VirtualClock& clock)
      : StoreWrapper(inner), redis_(redis), clock_(clock) {}

  void execute(const Plan& plan, Completion done) noexcept override {
    redis_.set_time(clock_.now());
    inner().execute(plan, std::move(done));
  }
  void execute_batch(std::span<const Plan> plans, std::span<Completion> done) noexcept override {
    redis_.set_time(clock_.now());
    inner().execute_batch(plans, done);
  }
  [[nodiscard]] Clock& clock() noexcept override { return clock_; }

 private:
  FrozenRedis& redis_;
  VirtualClock& clock_;
};

void on_redis(const Body& body) {
  INFO("on the Redis store");
  FrozenRedis& redis = FrozenRedis::instance();
  VirtualClock clock;
  redis.set_time(clock.now());
  redis.flush();
  RedisOptions options;
  options.unix_socket = redis.server().unix_socket();
  // A loaded machine must not fail a test about decisions.
  options.call_timeout = options.connect_timeout = options.stall_timeout = std::chrono::seconds{30};
  const auto store = make_redis_store(options);
  DrivenStore driven(*store, redis, clock);
  body(driven, clock);
}

#endif

}  // namespace

Stores chosen_stores() {
  const char* const text = std::getenv("SLUICE_TEST_STORES");
  const std::string_view choice = text == nullptr ? "" : text;
  if (choice.empty()) return Stores::all;
  if (choice == "local") return Stores::local;
  if (choice == "redis") return Stores::redis_and_virtual;
  throw std::invalid_argument("SLUICE_TEST_STORES must be local or redis, got " +
                              std::string(choice));
}

void for_each_store(const Body& body, Stores stores) {
  const auto runs = [&, chosen = chosen_stores()](Stores one) {
    return has(stores, one) && has(chosen, one);
  };
  if (runs(Stores::virtual_time)) on_virtual_time(body);
  if (runs(Stores::memory)) on_memory(body);
#ifdef SLUICE_TEST_REDIS
  if (runs(Stores::redis) && !redis_left_out()) on_redis(body);
#endif
}

}  // namespace sluice::test
