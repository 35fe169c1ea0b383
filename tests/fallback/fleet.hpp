// A fleet whose server goes away and comes back: each client has a breaker and a local store of its
// own, and callers who wait for one limit. In virtual time.
// Threading: single-threaded.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/system/system_error.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/asio/acquire.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/limiters/shared_sliding_window.hpp"
#include "sluice/limiters/slot_lock.hpp"
#include "sluice/sim/upstream.hpp"
#include "sluice/sim/world.hpp"
#include "sluice/testing/invariants.hpp"
#include "tests/fallback/rig.hpp"

namespace sluice::test {

inline void rethrow(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

template <class Grant>
[[nodiscard]] const Decision& decision_of(const Grant& grant) {
  if constexpr (std::is_base_of_v<Decision, Grant>) {
    return grant;
  } else {
    return grant.decision();
  }
}

/// `L` is the limiter that all callers wait for, under one key.
template <class L>
class Fleet {
 public:
  using Policy = std::function<FailurePolicy(Store& local)>;
  using Limiter = std::function<L(Store&)>;

  struct Client {
    Client(Fleet& fleet, const SeededRng& draws, const Limiter& limiter_of, const Policy& policy)
        : rng(draws),
          local(make_virtual_store(fleet.world.clock())),
          primary(fleet.world.store()),
          breaker(fleet.world.clock(), {.rng = &rng},
                  [&fleet, this](State, State to) {
                    if (to == State::closed) fleet.found(*this);
                  }),
          store(primary, breaker, policy(*local)),
          limiter(limiter_of(store)) {}

    SeededRng rng;
    std::unique_ptr<Store> local;
    FaultyStore primary;
    CircuitBreaker breaker;
    FallbackStore store;
    L limiter;
    Time back{};  // found the server after the last outage
  };
  /// A call that was let through.
  struct Call {
    Time at;
    bool alone;  // without the server
    std::size_t client;
    Time came;
  };

  Fleet(std::uint64_t seed, Word clients, const Limiter& limiter, const Policy& policy)
      : world({.seed = seed}) {
    for (Word i = 0; i < clients; ++i) {
      const auto draws = sim::stream(seed, static_cast<std::uint64_t>(i), 1);
      all.push_back(std::make_unique<Client>(*this, draws, limiter, policy));
    }
  }

  /// Callers come to each client `between` apart on average, for `span`, and wait for `patience`.
  void come(Span span, Span between, Span patience) {
    const Time end = world.now() + span;
    for (std::size_t i = 0; i < all.size(); ++i) {
      boost::asio::co_spawn(world, arrivals(i, end, between, patience), rethrow);
    }
  }
  /// The server is away for `span`.
  void outage(Span span) {
    went = world.now();
    for (const auto& client : all) {
      client->primary.fail_all(dead);
      client->back = Time{};
    }
    world.run_for(span);
    came_back = world.now();
    for (const auto& client : all) client->primary.heal();
  }

  /// How long clients decided alone in the last outage, each for `most` at most: in microseconds,
  /// all together.
  [[nodiscard]] Word alone_us(Span most = Span::max()) const {
    Word sum = 0;
    for (const auto& client : all) {
      sum += std::min(most, std::max(client->back, came_back) - went).count();
    }
    return sum;
  }
  /// What was let through, by the server or without it; by all clients or by one.
  [[nodiscard]] testing::History history(bool alone, std::optional<std::size_t> by = {}) const {
    testing::History calls;
    for (const Call& call : made) {
      if (call.alone == alone && call.client == by.value_or(call.client)) {
        calls.push_back({call.at, 1, true, call.at, {}, 0, call.client});
      }
    }
    return calls;
  }
  [[nodiscard]] Word alone() const { return static_cast<Word>(history(true).size()); }
  /// The most calls in any window.
  [[nodiscard]] Word busiest(Span window) const {
    sim::Upstream upstream(100'000'000, window);
    for (const Call& call : made) upstream.call(call.at);
    return static_cast<Word>(upstream.busiest());
  }

  sim::World world;
  std::vector<std::unique_ptr<Client>> all;
  std::vector<Call> made;
  Word refused = 0;
  Span hold{0};  // how long a caller keeps its grant
  Time went{};
  Time came_back{};

 private:
  using Awaitable = boost::asio::awaitable<void>;
  using Grant = typename L::Grant;

  void found(Client& client) noexcept { client.back = world.now(); }

  Awaitable arrivals(std::size_t i, Time end, Span between, Span patience) {
    const auto pause = sim::Delay::exponential(between);
    SeededRng rng = sim::stream(world.seed(), i, 2);
    for (;;) {
      co_await sluice::asio::sleep_for(world.clock(), pause.sample(rng));
      if (world.now() >= end) co_return;
      boost::asio::co_spawn(world, caller(i, patience), rethrow);
    }
  }
  Awaitable caller(std::size_t i, Span patience) {
    const Time came = world.now();
    std::optional<Grant> grant;
    try {
      grant.emplace(co_await wait_for_one(all[i]->limiter, patience));
    } catch (const boost::system::system_error& error) {
      // The first or last request of the wait was still under way at the deadline.
      const std::error_code code = error.code();
      if (code != Errc::unknown && code != Errc::timed_out) throw;
    }
    if (!grant || !*grant) {
      ++refused;
      co_return;
    }
    made.push_back({world.now(), is_degraded(decision_of(*grant).source), i, came});
    if (hold > Span{0}) co_await sluice::asio::sleep_for(world.clock(), hold);
  }
  static auto wait_for_one(const L& limiter, Span patience) {
    if constexpr (std::is_same_v<L, SlotLock>) {
      return sluice::asio::async_acquire(limiter, "upstream", Deadline(patience));
    } else {
      return sluice::asio::async_acquire(limiter, "upstream", 1, Deadline(patience));
    }
  }
};

}  // namespace sluice::test
