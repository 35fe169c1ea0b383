#include "tests/chaos/callers.hpp"

#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sluice/fallback_store.hpp"
#include "sluice/limiters/token_bucket.hpp"
#include "sluice/memory_store.hpp"
#include "tests/support/redis_cluster.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

constexpr Word cost = 10'000;
constexpr Word most = 1'000'000;
constexpr int calls_of_a_key = 90;

/// A key of one caller's own, whose answers show whether they belong to its calls. Each call costs
/// 10,000 of a bucket that does not refill, and whose capacity ends in the digits of `id`. So what
/// remains names the owner of the key in its last four digits, and the call in the others.
class Witness {
 public:
  /// REQUIRES: id < 10,000, and no other witness on the same server has it.
  Witness(Store& store, std::uint32_t id);

  /// The step of the next call. Its key lives in this object.
  [[nodiscard]] Step step() const;
  [[nodiscard]] const std::string& tag() const noexcept { return tag_; }

  /// Takes note of the answer. False if it does not belong to the call. `before` and `now` are
  /// Board::upset at the beginning and at the end of the call: what the key held may be lost if it
  /// is odd, or has changed since the last answer.
  [[nodiscard]] bool hear(const std::error_code& error, const Decision& decision,
                          std::uint64_t before, std::uint64_t now);

 private:
  void take_next_key();

  std::uint32_t id_;
  Word capacity_;
  TokenBucket bucket_;
  std::string tag_;
  int keys_ = 0;
  int calls_ = 0;            // of this key
  Word last_ = 0;            // what remained after the last answer
  Word unknown_ = 0;         // calls that may be charged later
  std::uint64_t heard_ = 0;  // Board::upset at the last answer
};

Witness::Witness(Store& store, std::uint32_t id)
    : id_(id),
      capacity_(most + static_cast<Word>(id)),
      bucket_(store, "witness", Quota::per(1, 30min).burst(capacity_)) {
  take_next_key();
}

void Witness::take_next_key() {
  tag_ = "w" + std::to_string(id_) + "-" + std::to_string(keys_++);
  calls_ = 0;
  last_ = capacity_;
  unknown_ = 0;
}

Step Witness::step() const { return bucket_.acquire_step(tag_, cost); }

bool Witness::hear(const std::error_code& error, const Decision& decision, std::uint64_t before,
                   std::uint64_t now) {
  bool is_right = true;
  if (error) {
    if (error == Failure::unknown) ++unknown_;
  } else if (is_degraded(decision.source)) {
    ++unknown_;  // the call behind it may be charged, if its deadline passed on a busy machine
  } else {
    const Word left = decision.remaining;
    const Word charged = (last_ - left) / cost;
    is_right = decision.allowed && left % cost == capacity_ % cost && left <= capacity_ - cost;
    if (heard_ == before && before == now && now % 2 == 0) {
      is_right = is_right && charged >= 1 && charged <= 1 + unknown_;
      unknown_ -= charged - 1;
    }
    last_ = left;
    heard_ = now;
  }
  if (++calls_ >= calls_of_a_key || !is_right) take_next_key();
  return is_right;
}

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
    print_event(prints, "process " + std::to_string(process) + ": " + event.text());
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
      print_event(load_.events, "process " + std::to_string(process_) + ": wrong answer to " + tag +
                                    ", " + to_string(decision));
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
