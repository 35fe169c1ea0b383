#include "tests/chaos/callers.hpp"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sluice/fallback_store.hpp"
#include "sluice/memory_store.hpp"
#include "tests/chaos/witness.hpp"
#include "tests/support/redis_cluster.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

/// What a call is about, and where its result is written.
struct Question {
  std::int64_t began;
  std::int64_t due;
  std::size_t group;
  bool is_shared;
  std::uint64_t upset;  // Board::upset when it began
};

RedisOptions options_of(const Load& load, Tally& tally, std::size_t process) {
  RedisOptions options = load.options;
  options.on_event = [&tally, process, prints = load.events](const RedisEvent& event) {
    if (event.kind == RedisEvent::Kind::switched) ++tally.switches;
    if (!prints) return;
    std::fprintf(stderr, "%.3f process %zu: %s\n", static_cast<double>(now_us()) / 1e6, process,
                 event.text().c_str());
  };
  return options;
}

/// The store of a process, and what it needs.
class Stores {
 public:
  Stores(const Load& load, Tally& tally, std::size_t process)
      : redis_(make_redis_store(options_of(load, tally, process))) {
    if (!load.fallback) return;
    // A small table. The first calls to one of the default size, at the beginning of an outage,
    // wait for its pages: up to 75 ms on a machine of two busy CPUs.
    memory_ = make_memory_store({.max_keys = 10'000});
    breaker_.emplace(redis_->clock());
    fallback_.emplace(*redis_, *breaker_, FailurePolicy::local(*memory_, 3), load.deadline);
  }
  [[nodiscard]] Store& operator*() noexcept {
    return fallback_ ? static_cast<Store&>(*fallback_) : *redis_;
  }

 private:
  std::unique_ptr<RedisStore> redis_;
  std::unique_ptr<Store> memory_;
  std::optional<CircuitBreaker> breaker_;
  std::optional<FallbackStore> fallback_;
};

class Caller {
 public:
  Caller(const Load& load, Board& board, std::size_t process, std::size_t thread, Store& store)
      : load_(load),
        board_(board),
        tally_(board.tallies[process]),
        process_(process),
        thread_(thread),
        store_(store),
        shared_(store, "shared", Quota::per_second(load.rate).burst(load.capacity)) {
    const std::size_t first = (process * load.threads + thread) * load.keys;
    for (std::size_t i = 0; i < load.keys; ++i) {
      witnesses_.emplace_back(store, static_cast<std::uint32_t>(first + i));
    }
  }

  void run() {
    for (std::size_t i = 0; !board_.over; ++i) {
      if (thread_ + 1 == load_.threads) {
        ask_many();
      } else if (i % 2 == 0) {
        ask(true);
      } else {
        ask(false, i / 2 % witnesses_.size());
      }
      std::this_thread::sleep_for(load_.pause);
    }
  }

 private:
  [[nodiscard]] Question begin(bool is_shared, const std::string& tag) {
    const std::int64_t now = now_us();
    ++tally_.calls;
    std::int64_t none = 0;
    tally_.first_call.compare_exchange_strong(none, now);
    return {now, now + load_.deadline.count(), board_.group_of_slot[test::cluster_slot(tag)],
            is_shared, board_.upset};
  }

  [[nodiscard]] Plan plan_of(const Step& step) const {
    return load_.fallback ? Plan(step) : Plan(step).within(load_.deadline);
  }

  void ask(bool is_shared, std::size_t which = 0) {
    const std::string tag = is_shared ? "all" : witnesses_[which].tag();
    const Question question = begin(is_shared, tag);
    const Step step = is_shared ? shared_.acquire_step(tag) : witnesses_[which].step();
    tally_.since[thread_] = question.began;
    std::error_code error;
    const Decision decision = decide(store_, plan_of(step), error);
    tally_.since[thread_] = 0;
    note(question, error, decision);
    if (!is_shared && !witnesses_[which].hear(error, decision, question.upset, board_.upset)) {
      ++tally_.mispaired;
      if (load_.events) {
        std::fprintf(stderr, "%.3f process %zu: wrong answer to %s, %s\n",
                     static_cast<double>(now_us()) / 1e6, process_, tag.c_str(),
                     to_string(decision).c_str());
      }
    }
  }

  /// A burst on the shared key, and on keys of this caller, that nobody waits for one by one.
  void ask_many() {
    struct Burst {
      std::atomic<int> pending{0};
    };
    const auto burst = std::make_shared<Burst>();  // a call that hangs keeps it
    constexpr int size = 16;
    burst->pending = size;
    for (int i = 0; i < size; ++i) {
      const Question question = begin(true, "all");
      const Step step = shared_.acquire_step("all");
      decide_then(store_, plan_of(step),
                  [this, burst, question, answers = 0](std::error_code error,
                                                       const Decision& decision) mutable {
                    note(question, error, decision);
                    if (++answers > 1) ++tally_.answered_twice;
                    --burst->pending;
                  });
    }
    const std::int64_t patience = now_us() + load_.deadline.count() + 5'000'000;
    while (burst->pending > 0 && now_us() < patience) std::this_thread::sleep_for(1ms);
    tally_.hung += static_cast<std::uint64_t>(std::max(0, burst->pending.load()));
  }

  void note(const Question& question, const std::error_code& error, const Decision& decision) {
    const std::int64_t now = now_us();
    tally_.last_call = now;
    if (now > question.due) tally_.late.add({question.due, now});
    if (error) {
      ++tally_.failed[question.group];
      ++tally_.errors[static_cast<std::size_t>(error.value()) % tally_.errors.size()];
    } else if (is_degraded(decision.source)) {
      ++tally_.degraded[question.group];
    } else {
      tally_.note_decision(question.group, now);
      if (question.is_shared && decision.allowed) ++tally_.granted;
    }
  }

  const Load& load_;
  Board& board_;
  Tally& tally_;
  std::size_t process_;
  std::size_t thread_;
  Store& store_;
  TokenBucket shared_;
  std::vector<Witness> witnesses_;
};

}  // namespace

void run_callers(const Load& load, Board& board, std::size_t process) {
  Stores stores(load, board.tallies[process], process);
  std::deque<Caller> callers;
  for (std::size_t i = 0; i < load.threads; ++i) {
    callers.emplace_back(load, board, process, i, *stores);
  }
  std::vector<std::thread> threads;
  for (Caller& caller : callers) threads.emplace_back([&caller] { caller.run(); });
  board.tallies[process].is_ready = true;
  for (std::thread& thread : threads) thread.join();
  if (board.tallies[process].hung > 0) std::_Exit(1);  // its callers would be told after their end
}

}  // namespace sluice::chaos
