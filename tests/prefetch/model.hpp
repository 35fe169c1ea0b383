// What the model of a PrefetchStore is made of: its terms, its limit, and what it notes of
// processes and calls. Threading: single-threaded.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "sluice/limiters/fixed_window.hpp"
#include "sluice/limiters/shared_token_bucket.hpp"
#include "sluice/limiters/sliding_window.hpp"
#include "sluice/limiters/sliding_window_counter.hpp"
#include "sluice/rules/shared_token_bucket_reserve.hpp"
#include "sluice/rules/token_bucket_reserve.hpp"
#include "tests/prefetch/rig.hpp"
#include "tests/support/wire_store.hpp"

namespace sluice::test::prefetch_model {

enum class Kind { bucket, shared, fixed, counter };

/// What a life is about.
struct Terms {
  Kind kind;
  Word limit;
  Word per_second;  // of buckets; 0: nothing drains
  Span hold;
  Word most;
  Span recheck;
  bool changes;  // blocks, resets, rewards
  bool faults;   // lost calls, clocks set back, ends of processes
};

constexpr Span window_span = 1s;
constexpr const char* key = "a";

inline bool is_bucket(Kind kind) { return kind == Kind::bucket || kind == Kind::shared; }
inline Quota quota_of(const Terms& terms) {
  return (terms.per_second > 0 ? Quota::per_second(terms.per_second) : Quota::per_hour(1))
      .burst(terms.limit);
}

/// The steps of the limit, whichever kind it is.
class Limit {
 public:
  Limit(Store& store, const Terms& terms)
      : terms_(terms),
        bucket_(store, "l", quota_of(terms)),
        shared_(store, "l"),
        fixed_(store, "l", terms.limit, Calendar::every(window_span)),
        counter_(store, "l", WindowLimit{terms.limit, window_span}) {}

  [[nodiscard]] Step acquire(Word cost) const {
    return of([&](const auto& limiter) { return limiter.acquire_step(key, cost); });
  }
  [[nodiscard]] Step reserve(Word cost, Span wait) const {
    return terms_.kind == Kind::bucket ? bucket_.reserve_step(key, cost, wait)
                                       : shared_.reserve_step(key, cost, wait);
  }
  /// The step of a refund of all that `outcome` granted to `step`.
  [[nodiscard]] Step refund(const Step& step, const std::vector<Word>& out) const {
    const Arguments& a = step.args;
    if (terms_.kind == Kind::bucket) {
      return {
          &token_bucket_refund, step.key, {a[0], a[1], a[2], a[3], out[0], out[0], out[1], out[2]}};
    }
    return {&shared_token_bucket_refund,
            step.key,
            {a[0], out[0], a[2], out[0], out[1], out[2], out[3], out[4]}};
  }
  [[nodiscard]] Step reset() const {
    return of([&](const auto& limiter) { return limiter.reset_step(key); });
  }
  [[nodiscard]] Step block(Span span) const {
    return of([&](const auto& limiter) { return limiter.block_step(key, span); });
  }
  [[nodiscard]] Step reward(Word amount) const {
    return of([&](const auto& limiter) { return limiter.reward_step(key, amount); });
  }
  [[nodiscard]] Word left() const {
    return of([&](const auto& limiter) { return limiter.peek(key).remaining; });
  }
  void configure() const {
    if (terms_.kind == Kind::shared) shared_.configure(key, quota_of(terms_));
  }

 private:
  template <class Use>
  [[nodiscard]] std::invoke_result_t<Use, const FixedWindow&> of(Use use) const {
    switch (terms_.kind) {
      case Kind::bucket:
        return use(bucket_);
      case Kind::shared:
        return use(shared_);
      case Kind::fixed:
        return use(fixed_);
      default:
        return use(counter_);
    }
  }

  Terms terms_;
  TokenBucket bucket_;
  SharedTokenBucket shared_;
  FixedWindow fixed_;
  SlidingWindowCounter counter_;
};

/// Units that a call spent without the store.
struct Use {
  std::size_t call;
  Word units;
  Time at;
  Word window;          // in which they count
  std::uint64_t order;  // when they were spent, at the latest
};
/// Units that the store granted to a process in answer to a question of the PrefetchStore.
struct Granted {
  Word units;           // left
  Time from;            // reserved for then
  Time until;           // `hold` is over: by the time of the question
  Word window;          // in which the store granted them
  std::uint64_t order;  // when the process was told
  std::vector<Use> uses{};
};
/// A refusal that the store told a process.
struct Refused {
  Time told_at;
  std::uint64_t decided;
  Word remaining;
};

struct Process {
  Process(Store& server, const Terms& terms)
      : wire(server),
        store(
            std::in_place, wire,
            PrefetchStoreOptions{.hold = terms.hold, .most = terms.most, .recheck = terms.recheck}),
        limit(std::in_place, *store, terms),
        log(std::in_place, *store, "log", std::vector{WindowLimit{65536, 1h}}) {}

  WireStore wire;
  std::optional<PrefetchStore> store;
  std::optional<Limit> limit;
  std::optional<SlidingWindow> log;
  std::vector<Granted> granted;
  std::vector<Refused> refused;
  std::size_t open = 0;       // calls without an answer
  bool plans = false;         // some were asked for, whose units may come back
  Word left = 0;              // at most, of what was taken for a caller that was not served
  Word spent = 0;             // without the store
  Word refunded = 0;          // to the PrefetchStore
  Word unsure = 0;            // of plans without an answer
  std::uint64_t cleared = 0;  // the last block, reset or set-back clock
  std::uint64_t changed = 0;  // when the store decided its last change of the limit
  std::uint64_t changed_told = 0;
  Time blocked_until{};
  std::uint64_t blocked_from = 0;
};

enum class Verb { ask, reserve, plan, refund, block, reset, reward };

/// A call of the program.
struct Call {
  Verb verb;
  std::size_t process;
  Word cost;
  std::uint64_t asked;
  Time asked_at;
  int answers = 0;
  Span span{0};
  std::uint64_t decided = 0;  // by the store, of a call that was passed on
  std::optional<Step> step{};
  std::vector<Word> output{};
  bool refundable = false;
  std::size_t noted = 0;  // its place in the history, plus one
  std::size_t of = 0;     // the call that is refunded
  std::size_t number = 0;
};

}  // namespace sluice::test::prefetch_model
